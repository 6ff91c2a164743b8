"""Declarations of files of population models and templates; every value is checked when it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from os import PathLike
from typing import Any

import numpy as np

from keydyn import files
from keydyn.arrays import Integers
from keydyn.files import Bounds, Kind, Tensor, Tensors, Values, declared, probabilities, whole, within
from keydyn.model.data import vocabulary
from keydyn.population.cells import N_CONTEXTS, Cells, WideEffects
from keydyn.population.chain import CLASSES, Chain
from keydyn.population.features import HOLD, INTERVAL
from keydyn.population.shared_parameters import SharedParameters, Template, Variances

MOST_FACTORS, MOST_STATES, MOST_DEGREES = 1000, 8, 100
# Bounds of numbers of order one, and of variances; larger ones could overflow in computations.
LARGEST_VARIANCE = 1e6
bounded = within(-LARGEST_VARIANCE, LARGEST_VARIANCE)
positive = within(1 / LARGEST_VARIANCE**2, LARGEST_VARIANCE)


def packed(known: SharedParameters) -> bytes:
    """The contents of a file with a population's parameters."""
    return POPULATION.packed(_fields(known), _tensors(known))


def read(path: str | PathLike[str]) -> SharedParameters:
    """Read a population's parameters from a file; a `ModelFileError` says what is wrong with it."""
    return POPULATION.parsed(files.read(path), path)


def parsed(contents: bytes, path: str | PathLike[str]) -> SharedParameters:
    """Read a population's parameters from a file's contents; `path` is for messages."""
    return POPULATION.parsed(contents, path)


def fingerprint(known: SharedParameters) -> str:
    """SHA-256 of a population's parameters."""
    return POPULATION.digest(_fields(known), _tensors(known))


def _fields(known: SharedParameters) -> Values:
    return {
        "event_types": known.cells.vocabulary.tolist(),
        "features": list(known.features),
        "n_people": known.n_people,
        "n_samples": known.n_samples,
    }


def _tensors(known: SharedParameters) -> Tensors:
    tensors: Tensors = {
        "pairs.before": known.cells.before,
        "pairs.after": known.cells.after,
        "location": known.location,
        "scale": known.scale,
        "loadings": known.loadings,
        "support": known.support,
    }
    tensors |= {f"strengths.{one.name}": getattr(known.variances, one.name) for one in fields(Variances)}
    tensors |= {f"chain.{one.name}": getattr(known.chain, one.name) for one in fields(Chain)}
    for f, (codes, effects) in enumerate(zip(known.wide.codes, known.wide.effects, strict=True)):
        for k, (code, effect) in enumerate(zip(codes, effects, strict=True)):
            tensors |= {f"wide.{f}.{k}.codes": code, f"wide.{f}.{k}.effects": effect}
    return tensors


def _features(name: str, value: Any) -> tuple[str, ...]:
    """Check names of features: interval and hold, then others, all different."""
    features = files.many(files.text)(name, value)
    if features[:2] != [INTERVAL, HOLD] or len(set(features)) < len(features):
        raise files.wrong(name, value, f"{INTERVAL}, {HOLD} and further features")
    return tuple(features)


def _event_types(name: str, labels: Any) -> vocabulary.Types:
    if not isinstance(labels, list) or any(isinstance(label, float) for label in labels):
        raise files.wrong(name, labels, "a list of text or whole numbers")
    return vocabulary.check_types(labels) if labels else np.array([], dtype=str)


def rising_codes(n_codes: int) -> Bounds:
    """Bounds of codes below `n_codes`, strictly rising."""

    def check(name: str, codes: Integers) -> None:
        within(0, n_codes - 1)(name, codes)
        if (np.diff(codes) <= 0).any():
            raise ValueError(f"{name} must be rising numbers")

    return check


def _degrees(name: str, degrees: Integers) -> None:
    within(2, MOST_DEGREES)(name, degrees)
    if (degrees % 2).any() or not 1 <= len(degrees) <= MOST_STATES:
        raise ValueError(f"{name} must be even numbers, one per state, for at most {MOST_STATES} states")


def _loadings(name: str, loadings: Any) -> None:
    bounded(name, loadings)
    if not 1 <= loadings.shape[1] <= MOST_FACTORS:
        raise ValueError(f"{name} has {loadings.shape[1]} factors")


def _declared(values: Values) -> dict[str, Tensor]:
    """The tensors of a population of C cells and S hidden states."""
    F, m, K = len(values["features"]), len(values["event_types"]), len(CLASSES)
    pairs = Tensor((None,), rising_codes((m + 1) ** 2), np.int64)
    tensors = {
        "pairs.before": pairs,
        "pairs.after": pairs,
        "location": Tensor(("C",), bounded),
        "scale": Tensor(("C",), positive),
        "loadings": Tensor(("C", None), _loadings),
        "support": Tensor(("C",), within(0, files.MOST_COUNTED)),
        "strengths.slope": Tensor((F, 3), bounded),
        "strengths.slope_variance": Tensor((F, 3), positive),
        "strengths.noise_leans": Tensor((3,), positive),
        "strengths.degrees": Tensor((1,), positive),
        "chain.degrees": Tensor(("S",), _degrees, np.int64),
        "chain.start": Tensor(("S",), probabilities),
        "chain.transitions": Tensor((K, K, "S", "S"), probabilities),
        "chain.location": Tensor(("S", F), bounded),
        "chain.scale": Tensor(("S", F), positive),
    }
    for name in ("cell", "key", "tempo", "noise", "gain"):
        tensors[f"strengths.{name}"] = Tensor((F,), positive)
    for f in range(F):
        for k in range(N_CONTEXTS):
            name, size = f"wide.{f}.{k}", f"W{f}.{k}"
            codes = rising_codes(max(m, 100) ** 3)
            tensors[f"{name}.codes"] = Tensor((size,), codes, np.int64, group=f"wide.{f}")
            tensors[f"{name}.effects"] = Tensor((size,), bounded, group=f"wide.{f}")
    return tensors


def _built(values: Values, tensors: Tensors) -> SharedParameters:
    features = values["features"]
    cells = Cells(values["event_types"], len(features), tensors["pairs.before"], tensors["pairs.after"])
    if len(cells.key) and cells.key.max() >= cells.n_keys:
        raise ValueError("a pair names a key that does not exist")
    if len(tensors["location"]) != cells.n_cells:
        raise ValueError(f"location has {len(tensors['location'])} values for {cells.n_cells} cells")
    own: Values = {name: tensors[name] for name in ("location", "scale", "loadings", "support")}
    own |= {name: values[name] for name in ("n_people", "n_samples")}
    variances = Variances(**{one.name: tensors[f"strengths.{one.name}"] for one in fields(Variances)})
    chain = Chain(**{one.name: tensors[f"chain.{one.name}"] for one in fields(Chain)})
    wide = _wide(tensors, len(features))
    return SharedParameters(features, cells, wide=wide, variances=variances, chain=chain, **own)


def _wide(tensors: Tensors, n_features: int) -> WideEffects:
    def tables(f: int, what: str) -> tuple[Any, ...]:
        there = N_CONTEXTS if f"wide.{f}.0.codes" in tensors else 0
        return tuple(tensors[f"wide.{f}.{k}.{what}"] for k in range(there))

    return WideEffects(
        tuple(tables(f, "codes") for f in range(n_features)),
        tuple(tables(f, "effects") for f in range(n_features)),
    )


_FIELDS = {"event_types": _event_types, "features": _features, "n_people": whole(2), "n_samples": whole(2)}
POPULATION = declared(Kind("PopulationModel", _FIELDS, _declared, _built))

# C cells, F features.
_OF_A_TEMPLATE = {
    "mean": Tensor(("C",), bounded),
    "scale": Tensor(("C",), positive),
    "slopes": Tensor(("F", 3), bounded),
    "gain": Tensor(("F",), positive),
}
TEMPLATE = declared(
    Kind(
        "PopulationTemplate",
        {"population": files.sha256, "n_samples": whole(), "n_events": whole()},
        lambda values: _OF_A_TEMPLATE | {"manner": Tensor((None,), bounded, group="manner")},
        lambda values, tensors: Template(
            values["population"], **tensors, n_samples=values["n_samples"], n_events=values["n_events"]
        ),
    )
)


def packed_template(template: Template) -> bytes:
    """The contents of a file with a person's template."""
    values = {name: getattr(template, name) for name in TEMPLATE.fields}
    names = [*_OF_A_TEMPLATE, *(["manner"] if len(template.manner) else [])]
    return TEMPLATE.packed(values, {name: getattr(template, name) for name in names})


def _people(values: Values, tensors: Tensors) -> list[Template]:
    wide = {name: tensors[name].astype(np.float64) for name in _OF_A_TEMPLATE}
    return [
        Template(
            values["population"],
            **{name: of_all[u].copy() for name, of_all in wide.items()},
            n_samples=int(tensors["n_samples"][u]),
            n_events=int(tensors["n_events"][u]),
        )
        for u in range(len(tensors["n_events"]))
    ]


# U people, at half precision to save space, because their numbers need not be exact.
_OF_PEOPLE = {
    name: replace(of_one, shape=("U", *of_one.shape), bounds=files.finite, dtype=np.float16)
    for name, of_one in _OF_A_TEMPLATE.items()
} | dict.fromkeys(("n_samples", "n_events"), Tensor(("U",), within(0, files.MOST_COUNTED), np.int64))
PEOPLE = declared(Kind("PopulationPeople", {"population": files.sha256}, lambda values: _OF_PEOPLE, _people))


def packed_people(population: str, templates: Sequence[Template]) -> bytes:
    """The contents of a file with the templates of many people."""
    tensors: Tensors = {
        name: np.stack([getattr(one, name) for one in templates]).astype(of_all.dtype)
        for name, of_all in _OF_PEOPLE.items()
    }
    return PEOPLE.packed({"population": population}, tensors)
