"""Random models of each kind, each as the package's and as the enumeration's, with sequences to ask about."""

from __future__ import annotations

import numpy as np

from keydyn import ContextHMM, PartiallyHMM, PartlyHMM
from keydyn.model import Bins, NoContext
from tests.model.relatives import enumeration

FAMILIES = ("lognormal", "normal", "student")


def emission(rng, rows, m, families=FAMILIES):
    return [(f, rng.normal(0.3, 1, (rows, m)), rng.uniform(0.3, 1.5, (rows, m))) for f in families]


def values(rng, n, families=FAMILIES, missing=0.2):
    columns = [rng.lognormal(0, 1, n) if f == "lognormal" else rng.normal(0, 1.5, n) for f in families]
    x = np.stack(columns, axis=1)
    x[rng.random(x.shape) < missing] = np.nan
    return x


def context(rng, m=2, emission_edges=(0.8, 1.5), step_edges=(1.0,)):
    """Different contexts for emission and step; None for none at all."""
    contexts = [NoContext() if e is None else Bins(e) for e in (emission_edges, step_edges)]
    start = rng.dirichlet(np.ones(m))
    trans = rng.dirichlet(np.ones(m), (contexts[1].n_tables, m))
    tables = emission(rng, contexts[0].n_tables, m)
    model = ContextHMM.from_parameters(
        start, trans, tables, emission_context=contexts[0], transition_context=contexts[1]
    )
    return model, enumeration.Bins(start, trans, tables, emission_edges, step_edges, 0)


def partly_lines(rng, m=2, zeros=False):
    start, trans = rng.dirichlet(np.ones(m)), rng.dirichlet(np.ones(m), m)
    if zeros:
        trans[0] = np.eye(m)[1]
    tables, slopes = emission(rng, 1, m), rng.normal(0, 0.5, (len(FAMILIES), m))
    tilt, centre = rng.normal(0, 1, (m, m)), rng.normal(0, 0.5, len(FAMILIES))
    model = PartlyHMM.from_parameters(
        start,
        trans,
        tables,
        emission_slopes=slopes,
        transition_slopes=tilt,
        centre=centre,
        previous_feature=1,
    )
    return model, enumeration.Lines(start, trans, tables, slopes, tilt, centre, 1)


def partially(rng, m=3, observed=0.4, true=0.7):
    start, trans = rng.dirichlet(np.ones(m)), rng.dirichlet(np.ones(m), m)
    tables, names = emission(rng, 1, m), ("slow", "fast", "lost")[:m]
    model = PartiallyHMM.from_parameters(
        start, trans, tables, p_observed=observed, p_true=true, state_labels=names
    )
    return model, enumeration.Labels(start, trans, tables, observed, true, names)


def labels(rng, n, names=("slow", "fast", "lost"), seen=0.5):
    drawn = np.array(names, dtype=object)[rng.integers(0, len(names), n)]
    drawn[rng.random(n) >= seen] = None
    return drawn


def written_down(model):
    """A model of given parameters as the enumeration has it."""
    tables = [(e.family, e.params["loc"], e.params["scale"]) for e in model.emission_]
    parts = model.startprob_, model.transmat_, tables
    if isinstance(model, ContextHMM):
        return enumeration.Bins(*parts, model.emission_context_.edges, model.transition_context_.edges, 0)
    if isinstance(model, PartlyHMM):
        slopes = model.emission_slopes_, model.transition_slopes_
        return enumeration.Lines(*parts, *slopes, model.centre_, model.previous_feature)
    return enumeration.Labels(*parts, model.p_observed_, model.p_true_, model.state_labels_.tolist())


def simulated(model, lengths, seed=0):
    """Values, labels (None for models without) and states, drawn by the enumeration."""
    rng, truth = np.random.default_rng(seed), written_down(model)
    values, states = zip(*(truth.drawn(rng, length) for length in lengths), strict=True)
    states = np.concatenate(states)
    return np.concatenate(values), truth.said(rng, states) if hasattr(truth, "said") else None, states
