"""The relatives in files: the same format as the POHMM's, with fields and tensors of their own."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from keydyn.model.families.family import Family, families_of
from keydyn.model.files import restoring, storage
from keydyn.model.files.restoring import Tensors
from keydyn.model.relatives import contexts
from keydyn.model.relatives.labels import LabelledTables, Reliability, is_probability
from keydyn.model.relatives.lines import EachItsOwn, Lines
from keydyn.model.relatives.parameter_tables import Tables, n_rows
from keydyn.model.theta.given import check_emission, distribution

if TYPE_CHECKING:
    from keydyn.model.relatives.relative import Relative

FIELDS = {
    *("format", "version", "class", "feature_names", "families", "settings", "fit", "sha256"),
    *("contexts", "labels"),
}
FITTED = ("log_likelihood_", "n_iter_", "stop_reason_", "n_parameters_")
# Settings that are contexts, not plain values.
CONTEXTS = ("emission_context", "transition_context", "previous")


CLASSES: dict[str, type[Relative]] = {}


def restorable(kind: Any) -> Any:
    """Make a relative known by its name to the files that hold one; a decorator."""
    CLASSES[kind.__name__] = kind
    storage.READERS[kind.__name__] = restored
    return kind


def save(model: Relative, path: str | PathLike[str]) -> None:
    """Write a fitted model; a `ValueError` if `load` would refuse it."""
    if type(model) not in CLASSES.values():
        raise ValueError(f"a {type(model).__name__} cannot be saved; {', '.join(CLASSES)} can")
    model._settings(len(model._theta.emission))
    families = tuple(emission.distribution for emission in model._theta.emission)
    settings = model.get_params(deep=False)
    same = families_of(model.emission, len(families)) == families
    same = same and isinstance(model._theta, Lines) == _is_linear(settings)
    if not same or len(model._theta.startprob) != settings["n_states"]:
        raise ValueError("n_states, emission or previous was changed after fitting: fit again before saving")
    for k, emission in enumerate(model._theta.emission):
        check_emission(emission, f"emission of feature {k}", (n_rows(emission), settings["n_states"]))
    header = {
        "format": storage.FORMAT,
        "version": storage.VERSION,
        "class": type(model).__name__,
        "feature_names": list(getattr(model, "feature_names_in_", [])),
        "families": [_family_spec(family) for family in families],
        "settings": {k: _plain(k, v) for k, v in settings.items() if k not in storage.NOT_STORED},
        "contexts": None if isinstance(model._theta, Lines) else [*map(contexts.described, model._contexts)],
        "labels": _labels(model._theta),
        "fit": {name: getattr(model, name) for name in FITTED if hasattr(model, name)},
    }
    storage.write(path, header, _tensors(model._theta) | _tensors_of_fit(model))


def fingerprint(model: Relative) -> str:
    """SHA-256 of θ, to tell whether two models are the same."""
    names = [context.names() for context in model._contexts]
    return storage.digest({"contexts": names, "labels": _labels(model._theta)}, _tensors(model._theta))


def restored(header: dict[str, Any], tensors: Tensors) -> Relative:
    """The model that a file's header and tensors describe; an error if they describe none."""
    strange = set(header) - FIELDS
    if strange:
        raise ValueError(f"the header has fields that belong to no model: {', '.join(sorted(strange))}")
    restoring.check_types(tensors)
    families = tuple(restoring.family_of(spec) for spec in header["families"])
    settings = {name: _given(name, value) for name, value in header["settings"].items()}
    model = CLASSES[header["class"]](**settings)
    model._settings(len(families))
    if families_of(model.emission, len(families)) != families:
        raise ValueError("the settings' emission is not that of the families")
    theta, pair = _parameters(header, tensors, families)
    if len(theta.startprob) != model.get_params(deep=False)["n_states"]:
        raise ValueError("the settings and the tensors have different numbers of states")
    if (header["class"] == "PartiallyHMM") != isinstance(theta, LabelledTables) or (
        isinstance(theta, Lines) != _is_linear(settings)
    ):
        raise ValueError(f"these are not the parameters of a {header['class']}")
    model._take_given(theta, pair)
    names = header["feature_names"]
    if names:
        text = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not text or len(names) != len(families):
            raise ValueError("feature_names does not fit the features")
        model.feature_names_in_ = np.array(names, dtype=object)
    for name, value in header["fit"].items():
        setattr(model, restoring.fit_attribute(name, value), value)
    if "history" in tensors:
        model.history_ = restoring.finite(tensors, "history", (header["fit"].get("n_iter_"),))
    if "scale_floored.0" in tensors:
        model.scale_floored_ = [tensors[f"scale_floored.{k}"] for k in range(len(families))]
    unknown = set(tensors) - set(_tensors(theta) | _tensors_of_fit(model))
    if unknown:
        raise ValueError(f"there are tensors that belong to no model: {', '.join(sorted(unknown))}")
    return model


def _parameters(
    header: dict[str, Any], tensors: Tensors, families: tuple[Family, ...]
) -> tuple[Any, tuple[contexts.Context, contexts.Context]]:
    start = distribution("startprob", tensors["startprob"], (None,))
    m, n_features = len(start), len(families)
    if header["contexts"] is None:
        feature = header["settings"]["previous_feature"]
        theta = Lines(
            start,
            distribution("transmat", tensors["transmat"], (m, m)),
            restoring.emissions("emission", tensors, families, (1, m)),
            restoring.finite(tensors, "emission_slopes", (n_features, m)),
            restoring.finite(tensors, "transition_slopes", (m, m)),
            restoring.finite(tensors, "centre", (n_features,)),
            feature,
        )
        if any(not family.location_scale for family in families):
            raise ValueError("a line needs a location-scale family")
        return theta, (EachItsOwn(), EachItsOwn())
    of_emission, of_steps = (contexts.restored(spec) for spec in header["contexts"])
    for context in (of_emission, of_steps):
        if isinstance(context, contexts.Bins) and context.feature >= n_features:
            raise ValueError("a context bins a feature that is not there")
    tables = Tables(
        start,
        distribution("transmat", tensors["transmat"], (of_steps.n_tables, m, m)),
        restoring.emissions("emission", tensors, families, (of_emission.n_tables, m)),
    )
    labels = header["labels"]
    if labels is None:
        return tables, (of_emission, of_steps)
    observed, true, names = labels["observed"], labels["true"], tuple(labels["names"])
    right = (observed is None or is_probability(observed)) and is_probability(true) and len(names) == m
    right = right and all(name is None or isinstance(name, (str, int)) for name in names)
    estimated = tuple(labels["estimated"])
    if not right or not set(estimated) <= {"p_observed", "p_true"}:
        raise ValueError(f"labels is {labels!r}")
    reliability = Reliability(observed, true, estimated)
    with_labels = LabelledTables(start, tables.transmat, tables.emission, reliability, names)
    return with_labels, (of_emission, of_steps)


def _is_linear(settings: dict[str, Any]) -> bool:
    previous = settings.get("previous")
    return isinstance(previous, str) and previous == "linear"


def _labels(theta: Any) -> dict[str, Any] | None:
    if not isinstance(theta, LabelledTables):
        return None
    reliability = theta.reliability
    return {
        "observed": reliability.observed,
        "true": reliability.true,
        "estimated": list(reliability.estimated),
        "names": list(theta.names),
    }


def _tensors(theta: Any) -> Tensors:
    tensors: Tensors = {"startprob": theta.startprob, "transmat": theta.transmat}
    for k, emission in enumerate(theta.emission):
        tensors |= {f"emission.{k}.{name}": values for name, values in emission.params.items()}
    if isinstance(theta, Lines):
        names = ("emission_slopes", "transition_slopes", "centre")
        tensors |= {name: getattr(theta, name) for name in names}
    return tensors


def _tensors_of_fit(model: Relative) -> Tensors:
    tensors: Tensors = {}
    if hasattr(model, "history_"):
        tensors["history"] = model.history_
    if hasattr(model, "scale_floored_"):
        tensors |= {f"scale_floored.{k}": acted for k, acted in enumerate(model.scale_floored_)}
    return tensors


def _plain(name: str, value: Any) -> Any:
    """A setting as JSON can hold it."""
    if name == "emission":
        many = isinstance(value, (list, tuple))
        return [_family_spec(v) for v in value] if many else _family_spec(value)
    if name in CONTEXTS:
        if isinstance(value, contexts.Context):
            return contexts.described(value)
        if callable(value):
            raise ValueError(contexts.NOT_SAVED)
    return list(value) if isinstance(value, tuple) else value


def _given(name: str, value: Any) -> Any:
    """A setting from JSON."""
    if name == "emission":
        many = isinstance(value, list)
        return [*map(restoring.emission_of, value)] if many else restoring.emission_of(value)
    if name in CONTEXTS and isinstance(value, dict):
        return contexts.restored(value)
    return tuple(value) if isinstance(value, list) else value


def _family_spec(kind: Any) -> Any:
    return kind if isinstance(kind, str) else {"family": kind.name, **kind.settings()}
