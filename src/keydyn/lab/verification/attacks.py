"""What attackers send in somebody's name: the keys of a genuine sample with times that nobody typed there.

Every attack takes genuine samples and returns as many with the same keys; who sends them is a matter of
bookkeeping, and their index stays that of the genuine ones. A stranger's attack needs nothing from here: it
is the stranger's own typing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Truths
from keydyn.decisions.liveness.not_typed import times_of
from keydyn.keystrokes.samples import Samples
from keydyn.model import Sequences
from keydyn.population import PopulationModel, Template
from keydyn.population.features import HOLD, INTERVAL

# No time that is made up is shorter, milliseconds.
SHORTEST = 1.0


def replayed(samples: Samples, jitter: float = 0.0, random: np.random.Generator | None = None) -> Samples:
    """Recorded samples sent again, every press and release displaced by `jitter` ms, normally distributed."""
    times = times_of(samples)
    if jitter > 0:
        generator = np.random.default_rng(random)
        press, release = generator.normal(0.0, jitter, (2, len(times)))
        # A first interval is NaN and stays so.
        times[1:, 0] += np.diff(press)
        times[:, 1] += release - press
        times = np.maximum(times, SHORTEST)
    return _with_times(samples, times)


def typed_as(
    population: PopulationModel,
    template: Template,
    samples: Samples,
    random: np.random.Generator | None = None,
) -> Samples:
    """The keys as the owner of a template would type them, with a generator; without one, all as expected.

    With a stolen template these are forgeries of its owner; with `population.anyone()`, the average typist.
    """
    features, names = population.parameters.features, samples.sequences.feature_names or ()
    values = [population.typed_by([template], one.labels().tolist(), random)[0] for one in samples.sequences]
    order = [features.index(name) for name in names]
    return replace(samples, sequences=samples.sequences.with_values(np.concatenate(values)[:, order]))


def robot(samples: Samples, interval: float, hold: float) -> Samples:
    """All intervals equal, and all holds."""
    times = times_of(samples)
    times[:] = interval, hold
    return _with_times(samples, times)


def in_the_rhythm_of(samples: Samples, others: Samples) -> Samples:
    """The keys with another person's times, one after the other, whatever keys they were for."""
    times, theirs = times_of(samples), times_of(others)
    for f in range(2):
        known = theirs[np.isfinite(theirs[:, f]), f]
        if len(known) == 0:
            raise ValueError(f"the other person has no {'holds' if f else 'intervals'}")
        times[:, f] = np.resize(known, len(times))
    return _with_times(samples, times)


def shuffled(samples: Samples, random: np.random.Generator) -> Samples:
    """The sample's own times, in another order: intervals among intervals and holds among holds."""
    times, offsets = times_of(samples), samples.sequences.offsets
    for s in range(len(samples)):
        for f in range(2):
            rows = slice(offsets[s] + (f == 0), offsets[s + 1])
            times[rows, f] = random.permutation(times[rows, f])
    return _with_times(samples, times)


def dictionary(
    population: PopulationModel,
    people: Sequence[Template],
    sample: Samples,
    random: np.random.Generator | None,
) -> Samples:
    """One sample's keys as typed by each of these people, whose numbers are the users; as in `typed_as`."""
    if len(sample) != 1:
        raise ValueError(f"a dictionary is of the keys of one sample, not of {len(sample)}")
    keys, n = sample.sequences.labels().tolist(), len(people)
    names = sample.sequences.feature_names or ()
    order = [population.parameters.features.index(name) for name in names]
    values = population.typed_by(people, keys, random)[..., order].reshape(n * len(keys), len(order))
    frame = pd.DataFrame(values, columns=list(names))
    sequences = Sequences.from_arrays(frame, np.tile(keys, n), np.full(n, len(keys)))
    return Samples([(number, 0) for number in range(n)], sequences, sample.emission)


def most_accepted(accepted: Truths) -> int:
    """The entry of a dictionary to try first: the one that most people's templates accept, (entries, people).

    Those people are the attacker's own; the victim is not among them.
    """
    return int(np.argmax(accepted.mean(axis=1)))


def _with_times(samples: Samples, times: Floats) -> Samples:
    """The same samples with other intervals and holds; further features stay."""
    sequences = samples.sequences
    names = sequences.feature_names or ()
    X = np.array(sequences.X)
    times[sequences.offsets[:-1], 0] = np.nan
    X[:, [names.index(INTERVAL), names.index(HOLD)]] = times
    return replace(samples, sequences=sequences.with_values(X))
