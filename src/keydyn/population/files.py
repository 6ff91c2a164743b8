"""Population models in files: safetensors, a digest, and every value checked on the way in."""

from __future__ import annotations

import re
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.data import vocabulary
from keydyn.model.data.settings import is_whole
from keydyn.model.files import storage
from keydyn.model.files.restoring import MOST_COUNTED, Tensors, finite
from keydyn.population.cells import Cells
from keydyn.population.chain import CLASSES, Chain
from keydyn.population.features import HOLD, INTERVAL
from keydyn.population.parameters import Parameters, Variances
from keydyn.population.template import Template
from keydyn.population.wide_effects import N_CONTEXTS, WideEffects

CLASS, TEMPLATE = "PopulationModel", "PopulationTemplate"
TEMPLATE_TENSORS = ("mean", "scale", "slopes", "gain")
TEMPLATE_FIELDS = {"format", "version", "class", "population", "n_samples", "n_events", "sha256"}
FIELDS = {
    *("format", "version", "class", "event_types", "features", "n_people", "n_samples", "sha256"),
}
MOST_FACTORS, MOST_STATES, MOST_DEGREES = 1000, 8, 100
# Variances are variances of numbers in units of one; larger ones would overflow on their way.
LARGEST = 1e6


def packed(known: Parameters) -> bytes:
    """The contents of a file with what was learnt."""
    return storage.packed(_header(known), _tensors(known))


def read(path: str | PathLike[str]) -> Parameters:
    """What was learnt, from a file with what `packed` gave; a `ModelFileError` says what is wrong with it."""
    return _population(storage.load(path), path)


def parsed(contents: bytes, path: str | PathLike[str]) -> Parameters:
    """The same of a file's contents; `path` is for messages."""
    return _population(storage.parsed(contents, Path(path)), path)


def _population(parameters: object, path: str | PathLike[str]) -> Parameters:
    if not isinstance(parameters, Parameters):
        raise storage.ModelFileError(f"{path} holds a {type(parameters).__name__}, not a population model")
    return parameters


def fingerprint(known: Parameters) -> str:
    """SHA-256 of what was learnt."""
    return storage.digest(_header(known), _tensors(known))


def _header(known: Parameters) -> dict[str, Any]:
    return {
        "format": storage.FORMAT,
        "version": storage.VERSION,
        "class": CLASS,
        "event_types": known.cells.vocabulary.tolist(),
        "features": list(known.features),
        "n_people": known.n_people,
        "n_samples": known.n_samples,
    }


def _tensors(known: Parameters) -> Tensors:
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


def _restored(header: dict[str, Any], tensors: Tensors) -> Parameters:
    strange = set(header) - FIELDS
    if strange:
        raise ValueError(f"the header has fields that belong to no population: {', '.join(sorted(strange))}")
    features = header["features"]
    text = isinstance(features, list) and all(isinstance(name, str) for name in features)
    if not text or features[:2] != [INTERVAL, HOLD] or len(set(features)) < len(features):
        raise ValueError(f"features is {features!r}")
    for name, least in (("n_people", 2), ("n_samples", 2)):
        if not (is_whole(header[name]) and least <= header[name] <= MOST_COUNTED):
            raise ValueError(f"{name} is {header[name]!r}")
    for name, values in tensors.items():
        whole = name.startswith("pairs.") or name.endswith(".codes") or name == "chain.degrees"
        if values.dtype != (np.int64 if whole else np.float64):
            raise ValueError(f"{name} has values of type {values.dtype}")
    labels = header["event_types"]
    if not isinstance(labels, list) or any(isinstance(label, float) for label in labels):
        raise ValueError("event_types is not a list of text or whole numbers")
    types = vocabulary.check_types(labels) if labels else np.array([], dtype=str)
    F, m = len(features), len(types)
    pairs = (_codes(tensors, f"pairs.{name}", (m + 1) ** 2) for name in ("before", "after"))
    cells = Cells(types, F, *pairs)
    if len(cells.key) and cells.key.max() >= cells.n_keys:
        raise ValueError("a pair names a key that is not there")
    C = cells.n_cells
    loadings = finite(tensors, "loadings", (C, None))
    if not 1 <= loadings.shape[1] <= MOST_FACTORS:
        raise ValueError(f"loadings has {loadings.shape[1]} factors")
    known = Parameters(
        tuple(features),
        cells,
        _bounded(tensors, "location", (C,)),
        _positive(tensors, "scale", (C,)),
        _wide(tensors, F, m),
        _bounded(tensors, "loadings", loadings.shape),
        _support(tensors, C),
        _variances(tensors, F),
        _chain(tensors, F),
        header["n_people"],
        header["n_samples"],
    )
    strange = set(tensors) - set(_tensors(known))
    if strange:
        raise ValueError(f"there are tensors that belong to no population: {', '.join(sorted(strange))}")
    return known


def _bounded(tensors: Tensors, name: str, shape: tuple[int, ...]) -> Floats:
    values = finite(tensors, name, shape)
    if (np.abs(values) > LARGEST).any():
        raise ValueError(f"{name} has values beyond ±{LARGEST:g}")
    return values


def _positive(tensors: Tensors, name: str, shape: tuple[int, ...]) -> Floats:
    values = _bounded(tensors, name, shape)
    if (values < 1 / LARGEST**2).any():
        raise ValueError(f"{name} must be positive")
    return values


def _codes(tensors: Tensors, name: str, n_codes: int) -> Integers:
    codes = tensors[name]
    if codes.ndim != 1 or (np.diff(codes) <= 0).any():
        raise ValueError(f"{name} must be one list of rising numbers")
    if len(codes) and not (codes[0] >= 0 and codes[-1] < n_codes):
        raise ValueError(f"{name} has a number that is not a code")
    return codes


def _wide(tensors: Tensors, n_features: int, m: int) -> WideEffects:
    codes, effects = [], []
    for f in range(n_features):
        there = f"wide.{f}.0.codes" in tensors
        names = [f"wide.{f}.{k}" for k in range(N_CONTEXTS if there else 0)]
        tables = [_codes(tensors, f"{name}.codes", max(m, 100) ** 3) for name in names]
        codes.append(tuple(tables))
        effects.append(
            tuple(
                _bounded(tensors, f"{name}.effects", table.shape)
                for name, table in zip(names, tables, strict=True)
            )
        )
    return WideEffects(tuple(codes), tuple(effects))


def _variances(tensors: Tensors, n_features: int) -> Variances:
    per_feature = ("cell", "key", "tempo", "noise", "gain")
    values = {name: _positive(tensors, f"strengths.{name}", (n_features,)) for name in per_feature}
    return Variances(
        **values,
        slope=_bounded(tensors, "strengths.slope", (n_features, 3)),
        slope_variance=_positive(tensors, "strengths.slope_variance", (n_features, 3)),
        noise_leans=_positive(tensors, "strengths.noise_leans", (3,)),
        degrees=_positive(tensors, "strengths.degrees", (1,)),
    )


def _support(tensors: Tensors, n_cells: int) -> Floats:
    support = finite(tensors, "support", (n_cells,))
    if (support < 0).any() or (support > MOST_COUNTED).any():
        raise ValueError("support has a value that is negative or too large")
    return support


def _chain(tensors: Tensors, n_features: int) -> Chain:
    degrees = tensors["chain.degrees"]
    S, K = len(degrees), len(CLASSES)
    if degrees.ndim != 1 or not 1 <= S <= MOST_STATES:
        raise ValueError(f"chain.degrees must be one number per state, at most {MOST_STATES}")
    if (degrees < 2).any() or (degrees > MOST_DEGREES).any() or (degrees % 2).any():
        raise ValueError(f"chain.degrees must be even numbers from 2 to {MOST_DEGREES}")
    return Chain(
        _distribution(tensors, "chain.start", (S,)),
        _distribution(tensors, "chain.transitions", (K, K, S, S)),
        _bounded(tensors, "chain.location", (S, n_features)),
        _positive(tensors, "chain.scale", (S, n_features)),
        degrees,
    )


def _distribution(tensors: Tensors, name: str, shape: tuple[int, ...]) -> Floats:
    values = finite(tensors, name, shape)
    if (values < 0).any() or (np.abs(values.sum(axis=-1) - 1) > 1e-6).any():
        raise ValueError(f"{name} must be probabilities that add up to one")
    return values


def packed_template(template: Template) -> bytes:
    """The contents of a file with a person's template."""
    header = {
        "format": storage.FORMAT,
        "version": storage.VERSION,
        "class": TEMPLATE,
        "population": template.population,
        "n_samples": template.n_samples,
        "n_events": template.n_events,
    }
    return storage.packed(header, {name: getattr(template, name) for name in TEMPLATE_TENSORS})


def _restored_template(header: dict[str, Any], tensors: Tensors) -> Template:
    strange = (set(header) - TEMPLATE_FIELDS) | (set(tensors) - set(TEMPLATE_TENSORS))
    if strange:
        raise ValueError(f"there are fields that belong to no template: {', '.join(sorted(strange))}")
    population = header["population"]
    if not isinstance(population, str) or not re.fullmatch("[0-9a-f]{64}", population):
        raise ValueError(f"population is {population!r}, not a SHA-256")
    for name in ("n_samples", "n_events"):
        if not (is_whole(header[name]) and 0 <= header[name] <= MOST_COUNTED):
            raise ValueError(f"{name} is {header[name]!r}")
    C, F = len(tensors["mean"]), len(tensors["gain"])
    return Template(
        population,
        _bounded(tensors, "mean", (C,)),
        _positive(tensors, "scale", (C,)),
        _bounded(tensors, "slopes", (F, 3)),
        _positive(tensors, "gain", (F,)),
        header["n_samples"],
        header["n_events"],
    )


storage.READERS |= {CLASS: _restored, TEMPLATE: _restored_template}
