"""The relatives in files, declared as the POHMM's are, with fields and arrays of their own."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from keydyn import files
from keydyn.files import Kind, Tensor, Tensors, Values, many, or_null, probabilities, record
from keydyn.model.families.family import families_of
from keydyn.model.model_files import (
    NOT_STORED,
    OF_A_FIT,
    OF_ANY_MODEL,
    declared_emission,
    declared_history,
    emission_tensors,
    emissions,
    feature_names,
    floored,
    given_emission,
    history_of,
    of_a_fit,
    plain_emission,
)
from keydyn.model.relatives import contexts
from keydyn.model.relatives.labels import LabelledTables, Reliability, is_probability
from keydyn.model.relatives.lines import EachItsOwn, Lines
from keydyn.model.relatives.parameter_tables import ContextTables, n_rows
from keydyn.model.theta.given import check_emission

if TYPE_CHECKING:
    from keydyn.model.relatives.relative import Relative

# Settings that are contexts, not plain values.
CONTEXTS = ("emission_context", "transition_context")
LINES = ("emission_slopes", "transition_slopes", "centre")


CLASSES: dict[str, type[Relative]] = {}


def restorable(kind: Any) -> Any:
    """Make a relative known by its name to the files that hold one; a decorator."""
    CLASSES[kind.__name__] = kind
    files.KINDS[kind.__name__] = RELATIVE
    return kind


def save(model: Relative, path: str | PathLike[str]) -> None:
    """Write a fitted model; a `ValueError` if `load` would refuse it."""
    if type(model) not in CLASSES.values():
        raise ValueError(f"a {type(model).__name__} cannot be saved; {', '.join(CLASSES)} can")
    model._settings(len(model._theta.emission))
    families = tuple(emission.distribution for emission in model._theta.emission)
    settings = model.get_params(deep=False)
    same = families_of(model.emission, len(families)) == families
    if not same or len(model._theta.startprob) != settings["n_states"]:
        raise ValueError("n_states or emission was changed after fitting: fit again before saving")
    for k, emission in enumerate(model._theta.emission):
        check_emission(emission, f"emission of feature {k}", (n_rows(emission), settings["n_states"]))
    values = {
        "class": type(model).__name__,
        "feature_names": list(getattr(model, "feature_names_in_", [])),
        "families": [plain_emission(family) for family in families],
        "settings": {k: _plain(k, v) for k, v in settings.items() if k not in NOT_STORED},
        "contexts": None if isinstance(model._theta, Lines) else [*map(contexts.described, model._contexts)],
        "labels": _labels(model._theta),
        "fit": {name: getattr(model, name) for name in OF_A_FIT if hasattr(model, name)},
    }
    files.write(path, RELATIVE.packed(values, _tensors(model._theta) | history_of(model)))


def _tensors(theta: Any) -> Tensors:
    tensors: Tensors = {"startprob": theta.startprob, "transmat": theta.transmat}
    tensors |= emission_tensors("emission", theta.emission)
    if isinstance(theta, Lines):
        tensors |= {name: getattr(theta, name) for name in LINES}
    return tensors


def _labels(theta: Any) -> Values | None:
    if not isinstance(theta, LabelledTables):
        return None
    reliability = theta.reliability
    return {
        "observed": reliability.observed,
        "true": reliability.true,
        "estimated": list(reliability.estimated),
        "names": list(theta.names),
    }


def _plain(name: str, value: Any) -> Any:
    """A setting as JSON can hold it."""
    if name == "emission":
        return plain_emission(value)
    if name in CONTEXTS:
        if isinstance(value, contexts.Context):
            return contexts.described(value)
        if callable(value):
            raise ValueError(contexts.NOT_SAVED)
    return list(value) if isinstance(value, tuple) else value


def _given(name: str, value: Any) -> Any:
    """A setting from JSON."""
    if name == "emission":
        return given_emission(value)
    if name in CONTEXTS and isinstance(value, dict):
        return contexts.restored(name, value)
    return tuple(value) if isinstance(value, list) else value


def _contexts(name: str, value: Any) -> list[contexts.Context]:
    """Those of emissions and of transitions."""
    pair: list[contexts.Context] = many(contexts.restored)(name, value)
    if len(pair) != 2:
        raise files.wrong(name, value, "a list of two contexts")
    return pair


def _probability(name: str, value: Any) -> Any:
    if not is_probability(value):
        raise files.wrong(name, value, "a probability")
    return value


def _state_name(name: str, value: Any) -> Any:
    if value is not None and not isinstance(value, (str, int)):
        raise files.wrong(name, value, "the label of a state")
    return value


_FIELDS = OF_ANY_MODEL | {
    "contexts": or_null(_contexts),
    "labels": or_null(
        record(
            {
                "observed": or_null(_probability),
                "true": _probability,
                "estimated": many(files.one_of("p_observed", "p_true")),
                "names": many(_state_name),
            }
        )
    ),
}


def _declared(values: Values) -> dict[str, Tensor]:
    """M states; lines have one emission table, contexts as many as they have rows."""
    families, pair = values["families"], values["contexts"]
    tensors = {"startprob": Tensor(("M",), probabilities)}
    if pair is None:
        of_emission = 1
        tensors |= {
            "transmat": Tensor(("M", "M"), probabilities),
            "emission_slopes": Tensor((len(families), "M")),
            "transition_slopes": Tensor(("M", "M")),
            "centre": Tensor((len(families),)),
        }
    else:
        of_emission = pair[0].n_tables
        tensors["transmat"] = Tensor((pair[1].n_tables, "M", "M"), probabilities)
    return (
        tensors
        | declared_emission("emission", families, (of_emission, "M"))
        | declared_history(values, (None, "M"))
    )


def _built(values: Values, tensors: Tensors) -> Relative:
    families, name = tuple(values["families"]), values["class"]
    settings = {name: _given(name, value) for name, value in values["settings"].items()}
    if settings.pop("previous", "linear") != "linear":
        raise ValueError("a PartlyHMM in bins is a ContextHMM with the same bins twice now: fit that")
    model = CLASSES[name](**settings)
    model._settings(len(families))
    if families_of(model.emission, len(families)) != families:
        raise ValueError("the settings' emission is not that of the families")
    theta = _parameters(values, tensors)
    if len(theta.startprob) != model.get_params(deep=False)["n_states"]:
        raise ValueError("the settings and the tensors have different numbers of states")
    labelled, linear = isinstance(theta, LabelledTables), isinstance(theta, Lines)
    if (name == "PartiallyHMM") != labelled or (name == "PartlyHMM") != linear:
        raise ValueError(f"these are not the parameters of a {name}")
    pair = (EachItsOwn(), EachItsOwn()) if linear else tuple(values["contexts"])
    model._take_given(theta, pair)
    found, counted = model._state.result, values["fit"].get("n_parameters_")
    if counted is not None:
        found = found.replaced(n_parameters=(counted, counted))
    found = found.replaced(floored=floored(values, tensors), **of_a_fit(values, tensors))
    model._state = replace(model._state, result=found, feature_names=feature_names(values))
    return model


def _parameters(values: Values, tensors: Tensors) -> Any:
    families, pair, labels = values["families"], values["contexts"], values["labels"]
    tables = ContextTables(
        tensors["startprob"], tensors["transmat"], emissions("emission", tensors, families)
    )
    if pair is None:
        if any(not family.location_scale for family in families):
            raise ValueError("a line needs a location-scale family")
        slopes: Any = {name: tensors[name] for name in LINES}
        feature = values["settings"]["previous_feature"]
        return Lines(tables.startprob, tables.transmat, tables.emission, **slopes, feature=feature)
    for context in pair:
        if isinstance(context, contexts.Bins) and context.feature >= len(families):
            raise ValueError("a context bins a feature that is not there")
    if labels is None:
        return tables
    names = tuple(labels["names"])
    if len(names) != tables.n_states:
        raise ValueError(f"labels.names has {len(names)} entries for {tables.n_states} states")
    reliability = Reliability(labels["observed"], labels["true"], tuple(labels["estimated"]))
    return LabelledTables(tables.startprob, tables.transmat, tables.emission, reliability, names)


RELATIVE = Kind("relative", _FIELDS, _declared, _built)
