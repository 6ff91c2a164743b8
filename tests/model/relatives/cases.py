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
