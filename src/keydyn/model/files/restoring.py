"""A model from what a file holds, every value checked: the file may come from anywhere."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.model.data import vocabulary
from keydyn.model.data.settings import Smoothing, check_settings, is_whole
from keydyn.model.families.family import Emission, Family, families_of, family
from keydyn.model.fit.result import Estimates
from keydyn.model.theta.event_chain import EventChain
from keydyn.model.theta.given import check_emission, distribution
from keydyn.model.theta.parameters import Marginal, Parameters

if TYPE_CHECKING:
    from keydyn.model.pohmm import POHMM

Tensors = dict[str, NDArray[Any]]
FIELDS = {
    *("format", "version", "class", "event_types", "feature_names", "families"),
    *("settings", "smoothing", "closed", "fit", "sha256"),
}


CLASSES: dict[str, Any] = {}
# Counts up to here are exact as floats.
MOST_COUNTED = 2**53


def restorable(kind: Any) -> Any:
    """Make an estimator known by its name to the files that hold one; a decorator."""
    CLASSES[kind.__name__] = kind
    return kind


def restored(header: dict[str, Any], tensors: Tensors) -> POHMM:
    """The model that a file's header and tensors describe; an error if they describe none."""
    strange = set(header) - FIELDS
    if strange:
        raise ValueError(f"the header has fields that belong to no model: {', '.join(sorted(strange))}")
    check_types(tensors)
    families = tuple(family_of(spec) for spec in header["families"])
    model = _unfitted(header, families)
    parameters = _parameters(header, tensors, families)
    if parameters.n_states != model.n_states:
        raise ValueError(f"the header says {model.n_states} states, the tensors {parameters.n_states}")
    if header["class"] == "HMM" and not vocabulary.is_single(parameters.event_types):
        raise ValueError("an HMM has no event types of its own")
    model._take_given(parameters)
    if not isinstance(header["closed"], bool):
        raise ValueError(f"closed is {header['closed']!r}")
    model._closed = header["closed"]
    names = header["feature_names"]
    if names:
        text = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not text or len(names) != len(families):
            raise ValueError("feature_names does not fit the features")
        model.feature_names_in_ = np.array(names, dtype=object)
    reported = {fit_attribute(name, value): value for name, value in header["fit"].items()}
    used, full = reported.pop("n_parameters_", None), reported.pop("n_parameters_full_", None)
    counted = None if used is None or full is None else (used, full)
    for name, value in reported.items():
        setattr(model, name, value)
    if "history" in tensors:
        model.history_ = finite(tensors, "history", (header["fit"].get("n_iter_"),))
    model._source = Estimates(
        parameters, None, *_of_a_fit(tensors, parameters.startprob.shape, len(families)), counted
    )
    return model


def _of_a_fit(
    tensors: Tensors, shape: tuple[int, ...], n_features: int
) -> tuple[list[Any] | None, Floats | None]:
    """Where the scale floor acted, and Π[j | ω], if the file has them."""
    floored, stationary = None, None
    if "scale_floored.0" in tensors:
        floored = [tensors[f"scale_floored.{k}"] for k in range(n_features)]
        if any(acted.shape != shape for acted in floored):
            raise ValueError("scale_floored has a wrong shape")
    if "stationary" in tensors:
        stationary = distribution("stationary", tensors["stationary"], shape)
    return floored, stationary


def _unfitted(header: dict[str, Any], families: tuple[Family, ...]) -> POHMM:
    settings = dict(header["settings"])
    emission = settings["emission"]
    several = isinstance(emission, list)
    settings["emission"] = [*map(emission_of, emission)] if several else emission_of(emission)
    if isinstance(settings["fixed"], list):
        settings["fixed"] = tuple(settings["fixed"])
    if header["class"] not in CLASSES:
        raise ValueError(f"class {header['class']!r} is not known")
    model: POHMM = CLASSES[header["class"]](**settings)
    check_settings(model.get_params(deep=False), len(families))
    if families_of(model.emission, len(families)) != families:
        raise ValueError("the settings' emission is not that of the families")
    return model


def family_of(spec: Any) -> Family:
    if not isinstance(spec, dict):
        raise ValueError(f"a family is described by a dict, not {spec!r}")
    return family(**{"name" if key == "family" else key: value for key, value in spec.items()})


def emission_of(spec: Any) -> str | Family:
    return spec if isinstance(spec, str) else family_of(spec)


def check_types(tensors: Tensors) -> None:
    for name, values in tensors.items():
        integers, truths = name == "pairs", name.startswith("scale_floored.")
        wanted = np.int64 if integers else np.bool_ if truths else np.float64
        if values.dtype != wanted:
            raise ValueError(f"{name} has values of type {values.dtype}, not {np.dtype(wanted)}")


def fit_attribute(name: str, value: Any) -> str:
    right = {
        "log_likelihood_": isinstance(value, float) and math.isfinite(value),
        "n_iter_": is_whole(value) and 1 <= value <= MOST_COUNTED,
        "stop_reason_": value in ("tol", "max_iter", "decrease", "callback"),
        "n_parameters_": is_whole(value) and 0 <= value <= MOST_COUNTED,
        "n_parameters_full_": is_whole(value) and 0 <= value <= MOST_COUNTED,
    }
    if not right.get(name, False):
        raise ValueError(f"the header's fit has {name} = {value!r}")
    return name


def _parameters(header: dict[str, Any], tensors: Tensors, families: tuple[Family, ...]) -> Parameters:
    labels = header["event_types"]
    if not isinstance(labels, list) or any(isinstance(label, float) for label in labels):
        raise ValueError("event_types is not a list of text or whole numbers")
    types = vocabulary.check_types(labels)
    m = len(types)
    startprob = distribution("startprob", tensors["startprob"], (m, None))
    n_states = startprob.shape[1]
    pairs = _check_pairs(tensors["pairs"], m)
    square = (n_states, n_states)
    transmat = finite(tensors, "transmat", (len(pairs), *square))
    if len(pairs):
        transmat = distribution("transmat", transmat, transmat.shape)
    marginal = None
    if "marginal.startprob" in tensors:
        marginal = Marginal(
            distribution("marginal.startprob", tensors["marginal.startprob"], (n_states,)),
            distribution("marginal.transmat", tensors["marginal.transmat"], square),
            distribution("marginal.transmat_from", tensors["marginal.transmat_from"], (m, *square)),
            distribution("marginal.transmat_to", tensors["marginal.transmat_to"], (m, *square)),
            emissions("marginal.emission", tensors, families, (n_states,)),
        )
    return Parameters.of(
        types,
        startprob,
        pairs,
        transmat,
        emissions("emission", tensors, families, (m, n_states)),
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
        values = tensors[name]
        if values.shape != (m,) or not (values >= 0).all():
            raise ValueError(f"{name} must be {m} numbers, none negative")
        counts.append(values)
    startprob = pair_prob = None
    if "chain.startprob" in tensors:
        startprob = distribution("chain.startprob", tensors["chain.startprob"], (m,))
        pair_prob = finite(tensors, "chain.pair_prob", (len(pairs),))
        total = np.bincount(pairs[:, 0], pair_prob, minlength=m)
        if (pair_prob < 0).any() or (np.abs(total - (counts[0] > 0)) > 1e-6).any():
            raise ValueError("chain.pair_prob does not add up to one for each event type")
    return EventChain(prob, counts[0], counts[1], startprob, pair_prob)


def emissions(
    prefix: str, tensors: Tensors, families: tuple[Family, ...], shape: tuple[int, ...]
) -> list[Emission]:
    emissions = []
    for k, kind in enumerate(families):
        params = {name: np.array(tensors[f"{prefix}.{k}.{name}"]) for name in kind.parameters}
        emissions.append(Emission(kind, params))
        check_emission(emissions[-1], f"{prefix}.{k}", shape)
    return emissions


def _check_pairs(pairs: NDArray[Any], m: int) -> Integers:
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError("pairs must be (P, 2) whole numbers")
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= m):
        raise ValueError("pairs names an event type that is not there")
    if (np.diff(pairs[:, 0] * m + pairs[:, 1]) <= 0).any():
        raise ValueError("pairs is not sorted")
    return np.array(pairs)


def _check_smoothing(spec: dict[str, Any]) -> Smoothing:
    rules = {name: spec[name] for name in ("start", "transitions", "emission")}
    return Smoothing.of(rules, spec["weights"])


def finite(tensors: Tensors, name: str, shape: tuple[int | None, ...]) -> Floats:
    values = tensors[name]
    fits = values.ndim == len(shape) and all(
        want is None or have == want for have, want in zip(values.shape, shape, strict=True)
    )
    if not fits or not np.isfinite(values).all():
        raise ValueError(f"{name} has a wrong shape or values that are not finite")
    return values
