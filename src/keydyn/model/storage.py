"""Models in files: safetensors with a checked header. Nothing in such a file can run code.

The format is described in docs/file-format.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from keydyn.model import vocabulary
from keydyn.model.emissions import Emission, Family, family
from keydyn.model.given import check_emission, distribution
from keydyn.model.kernels import Floats, Integers
from keydyn.model.parameters import EventChain, Marginal, Parameters
from keydyn.model.settings import check_settings
from keydyn.model.smoothing import Smoothing

if TYPE_CHECKING:
    from keydyn.model.pohmm import POHMM

FORMAT = "keydyn-model"
VERSION = 1
HEADER = "keydyn"
# Constructor parameters that say how to run a fit, not what the model is.
NOT_STORED = ("verbose", "callback", "random_state", "warm_start")

Tensors = dict[str, NDArray[Any]]


class ModelFileError(ValueError):
    """A file that is no model, or a damaged one."""


def save(model: POHMM, path: str | PathLike[str], *, event_chain: bool = True) -> None:
    """Write a fitted model; the file is there in full or not at all."""
    parameters = model._parameters
    tensors = _tensors(parameters, event_chain)
    if model._stationary is not None:
        tensors["stationary"] = model._stationary
    if hasattr(model, "history_"):
        tensors["history"] = model.history_
    header = _header(model)
    header["sha256"] = _digest(header, tensors)
    contents = to_bytes(
        {name: np.ascontiguousarray(values) for name, values in tensors.items()},
        {HEADER: json.dumps(header, ensure_ascii=False, sort_keys=True)},
    )
    _write_whole(Path(path), contents)


def load(path: str | PathLike[str]) -> POHMM:
    """Read a model that `save` wrote; a `ModelFileError` says what is wrong with any other file."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            header = _parse_header(path, (file.metadata() or {}).get(HEADER))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ModelFileError(f"{path} is no keydyn model, or it is cut short: {error}") from None
    if header.get("sha256") != _digest(header, tensors):
        raise ModelFileError(f"{path} is damaged: its contents do not match its SHA-256")
    try:
        return _model(header, tensors)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path} holds values that make no model: {error}") from None


def fingerprint(parameters: Parameters) -> str:
    """SHA-256 of θ, to tell whether two models are the same."""
    types = json.dumps(parameters.event_types.tolist(), ensure_ascii=False)
    return _digest({"event_types": types}, _tensors(parameters, event_chain=False))


def _header(model: POHMM) -> dict[str, Any]:
    parameters = model._parameters
    settings = {k: v for k, v in model.get_params(deep=False).items() if k not in NOT_STORED}
    settings["emission"] = [_family_spec(e.distribution) for e in parameters.emission]
    return {
        "format": FORMAT,
        "version": VERSION,
        "class": type(model).__name__,
        "event_types": parameters.event_types.tolist(),
        "feature_names": list(getattr(model, "feature_names_in_", [])),
        "settings": settings,
        "smoothing": asdict(parameters.smoothing),
        "closed": model._closed,
        "fit": {
            name: getattr(model, name)
            for name in ("log_likelihood_", "n_iter_", "stop_reason_", "n_parameters_", "n_parameters_full_")
            if hasattr(model, name)
        },
    }


def _family_spec(kind: Family) -> dict[str, Any]:
    return {"family": kind.name, **kind.settings()}


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


def _digest(header: dict[str, Any], tensors: Tensors) -> str:
    """SHA-256 of the header without its own digest, then of each tensor's name, type, shape and bytes."""
    plain = {name: value for name, value in header.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(plain, ensure_ascii=False, sort_keys=True).encode())
    for name in sorted(tensors):
        values = tensors[name]
        digest.update(f"\n{name} {values.dtype.str} {values.shape}\n".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def _parse_header(path: Path, text: str | None) -> dict[str, Any]:
    if text is None:
        raise ModelFileError(f"{path} is a safetensors file, but not a keydyn model")
    try:
        header = json.loads(text)
    except ValueError:
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
    return header


def _model(header: dict[str, Any], tensors: Tensors) -> POHMM:
    from keydyn.model.pohmm import HMM, POHMM

    classes: dict[str, type[POHMM]] = {"POHMM": POHMM, "HMM": HMM}
    settings = dict(header["settings"])
    families = [family(spec.pop("family"), **spec) for spec in map(dict, settings["emission"])]
    settings["emission"] = [kind if kind.settings() else kind.name for kind in families]
    model = classes[header["class"]](**settings)
    check_settings(model.get_params(deep=False), len(families))
    parameters = _parameters(header, tensors, families)
    if parameters.n_states != model.n_states:
        raise ValueError(f"the header says {model.n_states} states, the tensors {parameters.n_states}")
    model._take_given(parameters)
    model._closed = bool(header["closed"])
    names = header["feature_names"]
    if names:
        if len(names) != len(families) or not all(isinstance(name, str) for name in names):
            raise ValueError("feature_names does not fit the features")
        model.feature_names_in_ = np.array(names, dtype=object)
    for name, value in header["fit"].items():
        setattr(model, _fit_attribute(name, value), value)
    if "stationary" in tensors:
        model._stationary = distribution("stationary", tensors["stationary"], parameters.startprob.shape)
    if "history" in tensors:
        model.history_ = _finite(tensors, "history", (None,))
    return model


def _fit_attribute(name: str, value: Any) -> str:
    kinds = {
        "log_likelihood_": float,
        "n_iter_": int,
        "stop_reason_": str,
        "n_parameters_": int,
        "n_parameters_full_": int,
    }
    if name not in kinds or not isinstance(value, kinds[name]):
        raise ValueError(f"the header's fit has {name} = {value!r}")
    return name


def _parameters(header: dict[str, Any], tensors: Tensors, families: list[Family]) -> Parameters:
    types = vocabulary.check_types(header["event_types"])
    m = len(types)
    startprob = distribution("startprob", tensors["startprob"], (m, None))
    n_states = startprob.shape[1]
    pairs = _check_pairs(tensors["pairs"], m)
    square = (n_states, n_states)
    transmat = np.zeros((0, *square))
    if len(pairs):
        transmat = distribution("transmat", tensors["transmat"], (len(pairs), *square))
    marginal = None
    if "marginal.startprob" in tensors:
        marginal = Marginal(
            distribution("marginal.startprob", tensors["marginal.startprob"], (n_states,)),
            distribution("marginal.transmat", tensors["marginal.transmat"], square),
            distribution("marginal.transmat_from", tensors["marginal.transmat_from"], (m, *square)),
            distribution("marginal.transmat_to", tensors["marginal.transmat_to"], (m, *square)),
            _emissions("marginal.emission", tensors, families, (n_states,)),
        )
    return Parameters(
        types,
        startprob,
        pairs,
        transmat,
        _emissions("emission", tensors, families, (m, n_states)),
        _chain(tensors, m, pairs, has_prob=marginal is not None),
        marginal,
        _check_smoothing(header["smoothing"]),
    )


def _chain(tensors: Tensors, m: int, pairs: Integers, has_prob: bool) -> EventChain:
    prob = np.full(m, np.nan)
    if has_prob:
        prob = distribution("chain.prob", tensors["chain.prob"], (m,))
    counts = []
    for name in ("chain.leaving", "chain.entering"):
        values = np.array(tensors[name], dtype=np.float64)
        if values.shape != (m,) or not (values >= 0).all():
            raise ValueError(f"{name} must be {m} numbers, none negative")
        counts.append(values)
    startprob = pair_prob = None
    if "chain.startprob" in tensors:
        startprob = distribution("chain.startprob", tensors["chain.startprob"], (m,))
        pair_prob = _finite(tensors, "chain.pair_prob", (len(pairs),))
        total = np.bincount(pairs[:, 0], pair_prob, minlength=m)
        if (pair_prob < 0).any() or (np.abs(total - (counts[0] > 0)) > 1e-6).any():
            raise ValueError("chain.pair_prob does not add up to one for each event type")
    return EventChain(prob, counts[0], counts[1], startprob, pair_prob)


def _emissions(
    prefix: str, tensors: Tensors, families: list[Family], shape: tuple[int, ...]
) -> list[Emission]:
    emissions = []
    for k, kind in enumerate(families):
        params = {name: np.array(tensors[f"{prefix}.{k}.{name}"]) for name in kind.parameters}
        if any(values.dtype != np.float64 for values in params.values()):
            raise ValueError(f"{prefix}.{k} is not in double precision")
        emissions.append(Emission(kind, params))
        check_emission(emissions[-1], f"{prefix}.{k}", shape)
    return emissions


def _check_pairs(pairs: NDArray[Any], m: int) -> Integers:
    if pairs.dtype != np.int64 or pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError("pairs must be (P, 2) whole numbers")
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= m):
        raise ValueError("pairs names an event type that is not there")
    if (np.diff(pairs[:, 0] * m + pairs[:, 1]) <= 0).any():
        raise ValueError("pairs is not sorted")
    return np.array(pairs)


def _check_smoothing(spec: dict[str, Any]) -> Smoothing:
    rules = {name: spec[name] for name in ("start", "transitions", "emission")}
    return Smoothing.of(rules, spec["weights"])


def _finite(tensors: Tensors, name: str, shape: tuple[int | None, ...]) -> Floats:
    values = np.array(tensors[name], dtype=np.float64)
    fits = values.ndim == len(shape) and all(
        want is None or have == want for have, want in zip(values.shape, shape, strict=True)
    )
    if not fits or not np.isfinite(values).all():
        raise ValueError(f"{name} has a wrong shape or values that are not finite")
    return values


def _write_whole(path: Path, contents: bytes) -> None:
    """Write beside the target, make it durable, then put it in place."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
