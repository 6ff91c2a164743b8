"""People drawn from the population, and typing drawn from a template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from keydyn.model.data.vocabulary import as_labels, places_of
from keydyn.population.features import HOLD, INTERVAL, Observations
from keydyn.population.parameters import Parameters
from keydyn.population.person import CLIP
from keydyn.population.scoring import FORGET
from keydyn.population.states import classes_of
from keydyn.population.template import Template


def drawn_people(known: Parameters, population: str, n: int, random: np.random.Generator) -> list[Template]:
    """People who differ as the population says, each known exactly: no scale is wide for want of samples.

    A cell's noise is drawn about its key's, that about the person's, that about the population's: scaled
    inverse chi-squared, with the pseudo-observations by which each leans on the next as degrees of freedom.
    The gain is everybody's.
    """
    if n < 0:
        raise ValueError(f"the number of people to draw is {n}; it must not be negative")
    cells, strengths, V = known.cells, known.strengths, known.loadings
    to_keys, to_cells, of_cells = cells.key_feature, cells.key, cells.feature
    cell_deviation, key_deviation = np.sqrt(strengths.cell)[of_cells], np.sqrt(strengths.key)[to_keys]
    slope_deviation = np.sqrt(strengths.slope_variance)
    leans = strengths.noise_leans
    people = []
    for _ in range(n):
        z = random.normal(size=V.shape[1])
        a = random.normal(0.0, key_deviation)
        b = random.normal(0.0, cell_deviation)
        own = strengths.noise * leans[2] / random.chisquare(leans[2], cells.n_features)
        of_keys = own[to_keys] * leans[1] / random.chisquare(leans[1], cells.n_keys)
        noise = of_keys[to_cells] * leans[0] / random.chisquare(leans[0], cells.n_cells)
        slopes = random.normal(strengths.slope, slope_deviation)
        mean = V @ z + a[to_cells] + b
        gain = np.sqrt(strengths.gain)
        people.append(Template(population, mean, np.sqrt(noise), slopes, gain, n_samples=0, n_events=0))
    return people


def drawn(
    known: Parameters, template: Template, events: Sequence[Any], random: np.random.Generator
) -> pd.DataFrame:
    """One sample of these keys: hidden state, residual, slope and tempo in turn. The first interval is NaN.

    The tempo wanders as scoring takes it to wander.
    """
    labels = as_labels(events)
    if len(labels) == 0:
        raise ValueError("there are no events to draw")
    places = places_of(known.cells.vocabulary)
    unknown = len(places)
    codes = np.array([places.get(label, unknown) for label in labels.tolist()], dtype=np.int64)
    N, F = len(codes), len(known.features)
    nothing = np.zeros((N, F))
    seen = Observations(nothing, codes, np.array([0, N], dtype=np.int64), nothing)
    cell, wide = known.cells.of(seen), known.wide.of(seen, known.cells.vocabulary)
    classes, chain, parents = classes_of(known.cells.vocabulary)[codes], known.chain, known.parents
    # Residuals of the two events before the sample stand in the first two rows.
    r = np.zeros((N + 2, F))
    tempo = random.normal(0.0, np.sqrt(known.strengths.tempo))
    state = 0
    for n in range(N):
        odds = chain.start if n == 0 else chain.transitions[classes[n - 1], classes[n], state]
        state = int(random.choice(chain.n_states, p=odds))
        for f in range(F):
            if n == 0 and f == 0:
                continue
            e = chain.location[state, f] + chain.scale[state, f] * random.standard_t(chain.degrees[state])
            r[n + 2, f] = template.gain[f] * (e + tempo[f])
            for j, (of, before) in enumerate(parents[f]):
                if of >= 0:
                    x = np.clip(r[n + 2 - before, of], -CLIP, CLIP)
                    r[n + 2, f] += template.slopes[f, j] * x
        step = random.normal(0.0, np.sqrt((1 - (1 - FORGET) ** 2) * known.strengths.tempo))
        tempo = (1 - FORGET) * tempo + step
    y = template.mean[cell] + template.scale[cell] * r[2:] + wide
    values = known.location[cell] + known.scale[cell] * y
    times = [f for f, name in enumerate(known.features) if name in (INTERVAL, HOLD)]
    values[:, times] = np.exp(values[:, times])
    values[0, 0] = np.nan
    return pd.DataFrame(values, columns=list(known.features)).assign(keyname=labels)
