"""People drawn from the population, and typing drawn from a template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.data.vocabulary import as_labels
from keydyn.population.cells import Contexts, Observations
from keydyn.population.features import CLIP, HOLD, INTERVAL
from keydyn.population.score.kernel import FORGET
from keydyn.population.shared_parameters import SharedParameters, Template


def drawn_people(
    known: SharedParameters, population: str, n: int, random: np.random.Generator
) -> list[Template]:
    """Draw n people who differ as those of the population do; uncertainty widens none of their scales.

    A cell's noise is drawn around its key's, that around the person's, and that around the population's. Each
    draw is scaled inverse chi-squared, with the pseudo-observations of the estimate as degrees of freedom.
    The gain is the population's.
    """
    if n < 0:
        raise ValueError(f"the number of people to draw is {n}; it must not be negative")
    cells, variances, V = known.cells, known.variances, known.loadings
    to_keys, to_cells, of_cells = cells.key_feature, cells.key, cells.feature
    cell_deviation, key_deviation = np.sqrt(variances.cell)[of_cells], np.sqrt(variances.key)[to_keys]
    slope_deviation = np.sqrt(variances.slope_variance)
    leans = variances.noise_leans
    people = []
    for _ in range(n):
        z = random.normal(size=V.shape[1])
        a = random.normal(0.0, key_deviation)
        b = random.normal(0.0, cell_deviation)
        own = variances.noise * leans[2] / random.chisquare(leans[2], cells.n_features)
        of_keys = own[to_keys] * leans[1] / random.chisquare(leans[1], cells.n_keys)
        noise = of_keys[to_cells] * leans[0] / random.chisquare(leans[0], cells.n_cells)
        slopes = random.normal(variances.slope, slope_deviation)
        mean = V @ z + a[to_cells] + b
        gain = np.sqrt(variances.gain)
        people.append(Template(population, mean, np.sqrt(noise), slopes, gain, n_samples=0, n_events=0))
    return people


def drawn(
    known: SharedParameters,
    templates: Sequence[Template],
    events: Sequence[Any],
    random: np.random.Generator | None,
) -> Floats:
    """Draw (U, N, F) values of the same keys as typed by each person.

    The tempo drifts as scoring assumes. Without a generator every residual is 0, so all values are as
    expected. The first interval is NaN.
    """
    labels = as_labels(events)
    if len(labels) == 0:
        raise ValueError("there are no events to draw")
    codes = known.cells.places(labels)[:-1]
    N, F = len(codes), len(known.features)
    times = np.array([name in (INTERVAL, HOLD) for name in known.features])
    seen = Observations(np.zeros((N, F)), codes, np.array([0, N], dtype=np.int64), times)
    around = seen.around(known.cells.spaces)
    without, cell, _ = Contexts.of(known.cells, wide=known.wide).standardised(seen.values, around)
    r = np.zeros((len(templates), N, F))
    if random is not None:
        r = _residuals(known, templates, known.classes[codes], random)
    mean, scale = (np.stack([getattr(one, name) for one in templates]) for name in ("mean", "scale"))
    values: Floats = known.location[cell] + known.scale[cell] * (mean[:, cell] + scale[:, cell] * r - without)
    values[..., times] = np.exp(values[..., times])
    values[:, 0, 0] = np.nan
    return values


def _residuals(
    known: SharedParameters, templates: Sequence[Template], classes: Integers, random: np.random.Generator
) -> Floats:
    """Draw (U, N, F) residuals, in units of people's scales, of keys of these classes."""
    chain, parents, tempo_variance = known.chain, known.parents, known.variances.tempo
    U, N, F = len(templates), len(classes), len(known.features)
    gain, slopes = (np.stack([getattr(one, name) for one in templates]) for name in ("gain", "slopes"))
    # The first two rows are the residuals, 0, of the two events before the sample.
    r = np.zeros((U, N + 2, F))
    tempo = random.normal(0.0, np.sqrt(tempo_variance), (U, F))
    state = np.zeros(U, dtype=np.int64)
    for n in range(N):
        odds = chain.start if n == 0 else chain.transitions[classes[n - 1], classes[n], state]
        state = (random.random((U, 1)) > np.cumsum(odds, axis=-1)[..., :-1]).sum(axis=1)
        e = chain.location[state] + chain.scale[state] * random.standard_t(
            chain.degrees[state][:, None], (U, F)
        )
        for f in range(F):
            if n == 0 and f == 0:
                continue
            r[:, n + 2, f] = gain[:, f] * (e[:, f] + tempo[:, f])
            for j, (of, before) in enumerate(parents[f]):
                if of >= 0:
                    r[:, n + 2, f] += slopes[:, f, j] * np.clip(r[:, n + 2 - before, of], -CLIP, CLIP)
        step = random.normal(0.0, np.sqrt((1 - (1 - FORGET) ** 2) * tempo_variance), (U, F))
        tempo = (1 - FORGET) * tempo + step
    return r[:, 2:]
