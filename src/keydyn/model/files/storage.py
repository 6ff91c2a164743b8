"""Models in files: safetensors with a checked header. Nothing in such a file can run code.

The format is described in docs/file-format.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from keydyn.atomic import write_bytes
from keydyn.model.data.settings import check_settings
from keydyn.model.families.family import Family, families_of
from keydyn.model.files import restoring
from keydyn.model.files.restoring import Tensors
from keydyn.model.theta.given import check_emission
from keydyn.model.theta.parameters import Parameters
from keydyn.regular_files import UnusableFileError, read_regular

if TYPE_CHECKING:
    from keydyn.model.pohmm import POHMM

FORMAT = "keydyn-model"
VERSION = 1
HEADER = "keydyn"
# Constructor parameters that say how to run a fit, not what the model is.
# Bytes of the largest file that is read; the largest model measured has a tenth of them.
LARGEST = 1 << 30
NOT_STORED = ("verbose", "callback", "random_state", "warm_start")


# What makes a model of a file's header and tensors, by the name of its class; POHMM and HMM are read here.
READERS: dict[str, Callable[[dict[str, Any], Tensors], Any]] = {}


class ModelFileError(ValueError):
    """A file that is no model, or a damaged one.

    Examples
    --------
    >>> from pathlib import Path
    >>> from keydyn import load
    >>> from keydyn.model import ModelFileError
    >>> _ = Path("model.keydyn").write_bytes(b"no model at all")
    >>> try:
    ...     load("model.keydyn")
    ... except ModelFileError as error:
    ...     print("model.keydyn" in str(error))
    True
    """


def save(model: POHMM, path: str | PathLike[str], *, event_chain: bool = True) -> None:
    """Write a fitted model; the file is there in full or not at all."""
    write(path, *contents_of(model, event_chain))


def contents_of(model: POHMM, event_chain: bool = True) -> tuple[dict[str, Any], Tensors]:
    """The header and the tensors of a fitted model; a `ValueError` if it cannot be saved."""
    _check_saveable(model)
    return _header(model), _tensors(model._parameters, event_chain) | _tensors_of_fit(model)


def write(path: str | PathLike[str], header: dict[str, Any], tensors: Tensors) -> None:
    """Write a header, with its digest, and tensors."""
    write_packed(path, packed(header, tensors))


def write_packed(path: str | PathLike[str], contents: bytes) -> None:
    """Write what `packed` made."""
    # A misspelt folder is reported, not created.
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"there is no folder {Path(path).parent}")
    write_bytes(Path(path), contents)


def packed(header: dict[str, Any], tensors: Tensors) -> bytes:
    """The contents of a file with this header, its digest added, and these tensors."""
    header = header | {"sha256": digest(header, tensors)}
    return to_bytes(
        {name: np.ascontiguousarray(values) for name, values in tensors.items()}, {HEADER: _text(header)}
    )


def load(path: str | PathLike[str]) -> Any:
    """Read a model that `save` wrote: a `POHMM`, an `HMM`, one of their relatives, or a `POHMMClassifier`.

    A `ModelFileError` says what is wrong with any other file.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM, load
    >>> HMM(emission="normal").fit(np.random.default_rng(0).normal(size=(50, 1))).save("model.keydyn")
    >>> type(load("model.keydyn")).__name__
    'HMM'
    """
    path = Path(path)
    try:
        return parsed(read_regular(path, LARGEST), path)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except (UnusableFileError, OSError) as error:
        raise ModelFileError(f"{path} is not a keydyn model: {error}") from None


def parsed(contents: bytes, path: str | PathLike[str]) -> Any:
    """The model in the contents of a file; `path` is what messages call it.

    For callers that must know what they read, by its digest for instance, before it is used.
    """
    path = Path(path)
    try:
        tensors = {name: np.array(values) for name, values in from_bytes(contents).items()}
        # What is there was checked by the line above: its length, then a header in JSON.
        described = json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])
        header = _parse_header(path, described.get("__metadata__", {}).get(HEADER))
    except (SafetensorError, AttributeError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} is not a keydyn model, or it is cut short: {error}") from None
    if header.get("sha256") != digest(header, tensors):
        raise ModelFileError(f"{path} is damaged: its contents do not match its SHA-256")
    try:
        if header.get("class") in READERS:
            return READERS[header["class"]](header, tensors)
        return restored(header, tensors)
    except KeyError as error:
        raise ModelFileError(f"{path} is not a complete model: it has no {error}") from None
    except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ModelFileError(f"{path} holds values that do not form a model: {error}") from None


def restored(header: dict[str, Any], tensors: Tensors) -> POHMM:
    """The model that a header and tensors describe; an error if they describe none."""
    model = restoring.restored(header, tensors)
    strange = set(tensors) - set(_tensors(model._parameters, event_chain=True) | _tensors_of_fit(model))
    if strange:
        raise ValueError(f"there are tensors that belong to no model: {', '.join(sorted(strange))}")
    return model


def fingerprint(parameters: Parameters) -> str:
    """SHA-256 of θ, to tell whether two models are the same."""
    return digest({"event_types": parameters.event_types.tolist()}, _tensors(parameters, event_chain=False))


def _check_saveable(model: POHMM) -> None:
    """`ValueError` if `load` would refuse what `save` is about to write."""
    parameters = model._parameters
    if type(model) not in restoring.CLASSES.values():
        raise ValueError(f"a {type(model).__name__} cannot be saved; {' and '.join(restoring.CLASSES)} can")
    check_settings(model.get_params(deep=False), len(parameters.emission))
    families = parameters.families
    if model.n_states != parameters.n_states or families_of(model.emission, len(families)) != families:
        raise ValueError("n_states or emission was changed after fitting: fit again before saving")
    for k, emission in enumerate(parameters.emission_tables):
        check_emission(emission, f"emission of feature {k}", parameters.start_table.shape)


def _header(model: POHMM) -> dict[str, Any]:
    parameters = model._parameters
    settings = {k: v for k, v in model.get_params(deep=False).items() if k not in NOT_STORED}
    if isinstance(settings["smoothing"], Mapping):
        settings["smoothing"] = dict(settings["smoothing"])
    emission = settings["emission"]
    one_for_all = isinstance(emission, (str, Family))
    settings["emission"] = _emission_spec(emission) if one_for_all else [*map(_emission_spec, emission)]
    return {
        "format": FORMAT,
        "version": VERSION,
        "class": type(model).__name__,
        "event_types": parameters.event_types.tolist(),
        "feature_names": list(getattr(model, "feature_names_in_", [])),
        "families": [_emission_spec(emission.distribution) for emission in parameters.emission],
        "settings": settings,
        "smoothing": asdict(parameters.smoothing),
        "closed": model._closed,
        "fit": {
            name: getattr(model, name)
            for name in ("log_likelihood_", "n_iter_", "stop_reason_", "n_parameters_", "n_parameters_full_")
            if hasattr(model, name)
        },
    }


def _emission_spec(kind: str | Family) -> str | dict[str, Any]:
    """What the header says of a family: its name if it was given by name, otherwise its settings too."""
    return kind if isinstance(kind, str) else {"family": kind.name, **kind.settings()}


def _tensors_of_fit(model: POHMM) -> Tensors:
    tensors: Tensors = {}
    if model._stationary is not None:
        tensors["stationary"] = model._stationary
    if hasattr(model, "history_"):
        tensors["history"] = model.history_
    if hasattr(model, "scale_floored_"):
        tensors |= {f"scale_floored.{k}": acted for k, acted in enumerate(model.scale_floored_)}
    return tensors


def _tensors(parameters: Parameters, event_chain: bool) -> Tensors:
    chain, marginal = parameters.chain, parameters.marginal
    tensors: Tensors = {
        "startprob": parameters.startprob,
        "pairs": parameters.pairs,
        "transmat": parameters.transmat,
        "chain.prob": chain.prob,
        "chain.leaving": chain.leaving,
        "chain.entering": chain.entering,
    }
    if event_chain and chain.startprob is not None and chain.pair_prob is not None:
        tensors |= {"chain.startprob": chain.startprob, "chain.pair_prob": chain.pair_prob}
    for k, emission in enumerate(parameters.emission):
        tensors |= {f"emission.{k}.{name}": values for name, values in emission.params.items()}
    if marginal is not None:
        tensors |= {
            "marginal.startprob": marginal.startprob,
            "marginal.transmat": marginal.transmat,
            "marginal.transmat_from": marginal.transmat_from,
            "marginal.transmat_to": marginal.transmat_to,
        }
        for k, emission in enumerate(marginal.emission):
            tensors |= {f"marginal.emission.{k}.{name}": v for name, v in emission.params.items()}
    return tensors


def digest(header: dict[str, Any], tensors: Tensors) -> str:
    """SHA-256 of the header without its own digest, then of each tensor's name, type, shape and bytes."""
    plain = {name: value for name, value in header.items() if name != "sha256"}
    digest = hashlib.sha256(_text(plain).encode())
    for name in sorted(tensors):
        values = tensors[name]
        digest.update(f"\n{name} {values.dtype.str} {values.shape}\n".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def _text(header: dict[str, Any]) -> str:
    """The one way in which a header is written; NumPy's numbers among the settings become plain ones."""
    return json.dumps(header, sort_keys=True, default=lambda value: value.item())


def _parse_header(path: Path, text: str | None) -> dict[str, Any]:
    if text is None:
        raise ModelFileError(f"{path} is a safetensors file, but not a keydyn model")
    try:
        header = json.loads(text)
        unchanged = _text(header) == text
    except (ValueError, RecursionError):
        raise ModelFileError(f"{path} is damaged: its header cannot be read") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a keydyn model")
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise ModelFileError(f"{path} is damaged: format version {version!r}")
    if version > VERSION:
        raise ModelFileError(
            f"{path} was written by a newer keydyn (format version {version}); this one reads up to {VERSION}"
        )
    if not unchanged:
        raise ModelFileError(f"{path} is damaged: its header was changed")
    return header
