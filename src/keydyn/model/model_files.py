"""Writing and reading the files of `POHMM` and `HMM` models (docs/file-format.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from keydyn import files
from keydyn.arrays import Integers
from keydyn.files import Field, Kind, Tensor, Tensors, Values, many, probabilities, record, truth, whole
from keydyn.model.data import vocabulary
from keydyn.model.data.fit_settings import Smoothing, check_settings
from keydyn.model.families.family import Emission, Family, families_of, family
from keydyn.model.fit.estimator import ModelState
from keydyn.model.fit.result import FitResult
from keydyn.model.theta.given import check_emission
from keydyn.model.theta.parameters import ByType, EventChain, Marginal, Parameters

if TYPE_CHECKING:
    from keydyn.model.pohmm import POHMM

# Constructor parameters that affect how a fit runs, not what the model is.
NOT_STORED = ("verbose", "callback", "random_state", "warm_start")
OF_THE_MARGINAL = ("startprob", "transmat", "transmat_from", "transmat_to")
CLASSES: dict[str, Any] = {}


def restorable(kind: Any) -> Any:
    """Register an estimator class by name, so that its files can be loaded; a decorator."""
    CLASSES[kind.__name__] = kind
    files.KINDS[kind.__name__] = MODEL
    return kind


def save(model: POHMM, path: str | PathLike[str], *, event_chain: bool = True) -> None:
    """Write a fitted model to a file, completely or not at all."""
    files.write(path, packed(model, event_chain=event_chain))


def packed(model: POHMM, *, event_chain: bool = True) -> bytes:
    """The file contents of a fitted model."""
    return files.packed(*contents_of(model, event_chain))


def contents_of(model: POHMM, event_chain: bool = True) -> tuple[Values, Tensors]:
    """The header and the tensors of a fitted model; raises `ValueError` if it cannot be saved."""
    _check_saveable(model)
    tensors, stationary = _tensors(model._parameters, event_chain), model._state.result.stationary
    if stationary is not None:
        tensors["stationary"] = stationary
    if hasattr(model, "history_"):
        tensors["history"] = model.history_
    if hasattr(model, "scale_floored_"):
        tensors |= {f"scale_floored.{k}": acted for k, acted in enumerate(model.scale_floored_)}
    return _header(model), tensors


def _check_saveable(model: POHMM) -> None:
    """Raise `ValueError` if `load` would refuse what `save` is about to write."""
    parameters = model._parameters
    if type(model) not in CLASSES.values():
        raise ValueError(f"a {type(model).__name__} cannot be saved; {' and '.join(CLASSES)} can")
    check_settings(model.get_params(deep=False), len(parameters.emission))
    families = parameters.families
    if model.n_states != parameters.n_states or families_of(model.emission, len(families)) != families:
        raise ValueError("n_states or emission was changed after fitting: fit again before saving")
    for k, emission in enumerate(parameters.emission_tables):
        check_emission(emission, f"emission of feature {k}", parameters.start_table.shape)


def _header(model: POHMM) -> Values:
    parameters = model._parameters
    settings = {k: v for k, v in model.get_params(deep=False).items() if k not in NOT_STORED}
    if isinstance(settings["smoothing"], Mapping):
        settings["smoothing"] = dict(settings["smoothing"])
    settings["emission"] = _plain_emission(settings["emission"])
    return MODEL.header(
        {
            "class": type(model).__name__,
            "event_types": parameters.event_types.tolist(),
            "feature_names": list(getattr(model, "feature_names_in_", [])),
            "families": [_plain_emission(emission.distribution) for emission in parameters.emission],
            "settings": settings,
            "smoothing": asdict(parameters.smoothing),
            "closed": model._state.closed,
            "fit": {name: getattr(model, name) for name in _OF_A_FIT if hasattr(model, name)},
        }
    )


def _plain_emission(emission: Any) -> Any:
    """The setting `emission` in a form for JSON: names as they are, families as dicts of their settings."""
    if isinstance(emission, (list, tuple)):
        return [_plain_emission(one) for one in emission]
    return emission if isinstance(emission, str) else {"family": emission.name, **emission.settings()}


def _given_emission(plain: Any) -> Any:
    """The setting `emission` from the form that `_plain_emission` produces."""
    if isinstance(plain, list):
        return [_given_emission(one) for one in plain]
    return plain if isinstance(plain, str) else _family("emission", plain)


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
    tensors |= _emission_tensors("emission", parameters.emission)
    if marginal is not None:
        tensors |= {f"marginal.{name}": getattr(marginal, name) for name in OF_THE_MARGINAL}
        tensors |= _emission_tensors("marginal.emission", marginal.emission)
    return tensors


def _emission_tensors(prefix: str, emission: list[Emission]) -> Tensors:
    """The parameters of each feature's family."""
    return {
        f"{prefix}.{k}.{name}": values
        for k, one in enumerate(emission)
        for name, values in one.params.items()
    }


# The declaration of a file's fields and tensors, and the functions that read them.


def _family(name: str, spec: Any) -> Family:
    if not isinstance(spec, dict):
        raise files.wrong(name, spec, "an object that describes a family")
    return family(**{"name" if key == "family" else key: value for key, value in spec.items()})


def _string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise files.wrong(name, value, "text")
    return value


def event_types(name: str, labels: Any) -> vocabulary.Types:
    """The event types in a header: distinct labels, all text or all whole numbers."""
    if not isinstance(labels, list) or any(isinstance(label, float) for label in labels):
        raise files.wrong(name, labels, "a list of text or whole numbers")
    return vocabulary.check_types(labels)


def _smoothing(name: str, spec: Any) -> Smoothing:
    rules = dict(_RULES(name, spec))
    weights = rules.pop("weights")
    return Smoothing.of(rules, weights)


_RULES = record(dict.fromkeys(("start", "transitions", "emission", "weights"), files.anything))


_OF_A_FIT: dict[str, Field] = {
    "log_likelihood_": files.number,
    "n_iter_": whole(1),
    "stop_reason_": files.one_of("tol", "max_iter", "decrease", "callback"),
    "n_parameters_": whole(),
    "n_parameters_full_": whole(),
}
_FIELDS: dict[str, Field] = {
    "event_types": event_types,
    "feature_names": many(_string),
    "families": many(_family),
    "settings": files.mapping,
    "smoothing": _smoothing,
    "closed": truth,
    "fit": record(_OF_A_FIT, complete=False),
}


def _declared_emission(
    prefix: str, families: list[Family], shape: tuple[int | str, ...], group: str | None = None
) -> dict[str, Tensor]:
    """The arrays of each feature's family; `_emissions` lets the family check their values."""
    names = [f"{prefix}.{k}.{name}" for k, kind in enumerate(families) for name in kind.parameters]
    return {name: Tensor(shape, group=group) for name in names}


def _declared(values: Values) -> dict[str, Tensor]:
    """The tensors that a file declares, for m event types, M states and P pairs of types."""
    families, m = values["families"], len(values["event_types"])
    square, counts = ("M", "M"), files.within(0.0, np.inf)
    floored = Tensor((m, "M"), files.unbounded, np.bool_, "scale_floored")
    return {
        "startprob": Tensor((m, "M"), probabilities),
        "pairs": Tensor(("P", 2), files.within(0, m - 1), np.int64),
        "transmat": Tensor(("P", *square), probabilities),
        # NaN if there is no stationary distribution, and hence no marginal.
        "chain.prob": Tensor((m,), files.unbounded),
        "chain.leaving": Tensor((m,), counts),
        "chain.entering": Tensor((m,), counts),
        "chain.startprob": Tensor((m,), probabilities, group="chain"),
        "chain.pair_prob": Tensor(("P",), files.within(0.0, np.inf), group="chain"),
        "marginal.startprob": Tensor(("M",), probabilities, group="marginal"),
        "marginal.transmat": Tensor(square, probabilities, group="marginal"),
        "marginal.transmat_from": Tensor((m, *square), probabilities, group="marginal"),
        "marginal.transmat_to": Tensor((m, *square), probabilities, group="marginal"),
        "stationary": Tensor((m, "M"), probabilities, group="stationary"),
        "history": Tensor((values["fit"].get("n_iter_"),), group="history"),
        **{f"scale_floored.{k}": floored for k in range(len(families))},
        **_declared_emission("emission", families, (m, "M")),
        **_declared_emission("marginal.emission", families, ("M",), "marginal"),
    }


def _built(values: Values, tensors: Tensors) -> POHMM:
    model = _unfitted(values)
    parameters = _parameters(values, tensors)
    if parameters.n_states != model.n_states:
        raise ValueError(f"the header says {model.n_states} states, the arrays {parameters.n_states}")
    if values["class"] == "HMM" and not vocabulary.is_single(parameters.event_types):
        raise ValueError("an HMM has no event types of its own")
    fit, names, n_features = values["fit"], values["feature_names"], len(values["families"])
    if names and len(names) != n_features:
        raise ValueError(f"feature_names has {len(names)} names for {n_features} features")
    floored = [tensors[name] for k in range(n_features) if (name := f"scale_floored.{k}") in tensors]
    used, full = fit.get("n_parameters_"), fit.get("n_parameters_full_")
    result = FitResult.of(
        parameters,
        stationary=tensors.get("stationary"),
        n_parameters=None if used is None or full is None else (used, full),
        floored=floored or None,
        log_likelihood=fit.get("log_likelihood_"),
        history=tensors.get("history"),
        stop_reason=fit.get("stop_reason_"),
    )
    model._state = ModelState(result, n_features, tuple(names) or None, values["closed"])
    return model


def _unfitted(values: Values) -> POHMM:
    families = tuple(values["families"])
    settings = dict(values["settings"])
    settings["emission"] = _given_emission(settings["emission"])
    if isinstance(settings["fixed"], list):
        settings["fixed"] = tuple(settings["fixed"])
    model: POHMM = CLASSES[values["class"]](**settings)
    check_settings(model.get_params(deep=False), len(families))
    if families_of(model.emission, len(families)) != families:
        raise ValueError("the settings' emission is not that of the families")
    return model


def _parameters(values: Values, tensors: Tensors) -> Parameters:
    pairs, families, marginal = tensors["pairs"], values["families"], None
    if (np.diff(pairs[:, 0] * len(values["event_types"]) + pairs[:, 1]) <= 0).any():
        raise ValueError("pairs is not sorted")
    if "marginal.startprob" in tensors:
        tables = {name: tensors[f"marginal.{name}"] for name in OF_THE_MARGINAL}
        marginal = Marginal(**tables, emission=_emissions("marginal.emission", tensors, families))
        probabilities("chain.prob", tensors["chain.prob"])
    own = _emissions("emission", tensors, families)
    by_type = ByType(tensors["startprob"], pairs, tensors["transmat"], own)
    chain = _chain(tensors, pairs, has_prob=marginal is not None)
    return Parameters.of(values["event_types"], by_type, marginal, chain, values["smoothing"])


def _chain(tensors: Tensors, pairs: Integers, has_prob: bool) -> EventChain:
    prob, leaving, entering = (tensors[f"chain.{name}"] for name in ("prob", "leaving", "entering"))
    startprob, pair_prob = (tensors.get(f"chain.{name}") for name in ("startprob", "pair_prob"))
    if not has_prob:
        prob = np.full(len(prob), np.nan)
    if pair_prob is not None:
        total = np.bincount(pairs[:, 0], pair_prob, minlength=len(prob))
        if not (np.abs(total - (leaving > 0)) <= files.SUM_TOLERANCE).all():
            raise ValueError("chain.pair_prob does not add up to one for each event type")
    return EventChain(prob, leaving, entering, startprob, pair_prob)


def _emissions(prefix: str, tensors: Tensors, families: list[Family]) -> list[Emission]:
    """The emission of each feature, with parameters checked by its family."""
    found = []
    for k, kind in enumerate(families):
        params = {name: tensors[f"{prefix}.{k}.{name}"] for name in kind.parameters}
        try:
            kind.check(params)
        except ValueError as error:
            raise ValueError(f"{prefix}.{k}: {error}") from None
        found.append(Emission(kind, params))
    return found


MODEL = Kind("POHMM", _FIELDS, _declared, _built)


def load(path: files.Path_) -> Any:
    """Read a model that `save` wrote: a `POHMM`, an `HMM` or a `POHMMClassifier`.

    Any other file raises a `ModelFileError` that says what is wrong with it.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM, load
    >>> HMM(emission="normal").fit(np.random.default_rng(0).normal(size=(50, 1))).save("model.keydyn")
    >>> type(load("model.keydyn")).__name__
    'HMM'
    """
    # Each class registers its kind of file in the module that defines it.
    for module in ("pohmm", "classifier"):
        import_module(f"keydyn.model.{module}")
    return files.parsed(files.read(path), path)
