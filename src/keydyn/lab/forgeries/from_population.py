"""Typing drawn from the population model, as by the owner of a template or by the average person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from keydyn.arrays import Floats
from keydyn.decisions.liveness.hands import with_manner
from keydyn.decisions.liveness.not_typed import times_of
from keydyn.keystrokes.samples import Samples
from keydyn.lab.forgeries.forger import KNOWLEDGE
from keydyn.lab.forgeries.made_up import made_up
from keydyn.model import Sequences
from keydyn.population import PopulationModel, Template

# Rates samples sent in the name of a template's owner, (n,): how strongly a detector believes each was typed.
Preferred = Callable[[Samples, Template], Floats]


@dataclass(frozen=True)
class FromPopulation:
    """Typing of the victim as predicted by the full model, enrolled with the recordings of the victim.

    With the enrolled samples, these are draws from a stolen template; with fewer samples, from a template
    made by the attacker; with none, the typing of the average person. The draws have everything that the
    model describes: wider contexts, dependence between times, hidden states and a drifting tempo. This is
    therefore the attack of someone who knows what a detector looks for. An attacker who also has the detector
    draws each text `tries` times and sends the draw that `preferred` rates highest. Without `chance`, every
    time is the expected one. By default the shipped population is used.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.lab.forgeries import FromPopulation
    >>> samples = Samples.of(make_typists(1, 8))
    >>> len(FromPopulation().forge(samples[:3], samples[6:], np.random.default_rng(0)))
    2
    """

    population: PopulationModel | None = None
    chance: bool = True
    preferred: Preferred | None = None
    tries: int = 10
    rounded: bool = True

    @property
    def family(self) -> str:
        """Expected times resemble averages; draws resemble no other attack."""
        return "the model" if self.chance else "averages"

    @property
    def knowledge(self) -> tuple[str, ...]:
        """All knowledge can be used; the population alone is enough to type as the average person."""
        return KNOWLEDGE

    def forge(self, recorded: Samples, texts: Samples, random: np.random.Generator) -> Samples:
        """Forge the keys of `texts` as the recorded person, or the average one, would type them."""
        population = PopulationModel.shipped() if self.population is None else self.population
        template = population.anyone()
        if len(recorded):
            template = with_manner(population, population.enrol(recorded), recorded)
        if self.preferred is None:
            made = typed_as(population, template, texts, random if self.chance else None)
            return made_up(made, times_of(made), self.rounded)
        times = np.empty((texts.sequences.n_events, 2))
        offsets = texts.sequences.offsets
        for s in range(len(texts)):
            # A dictionary of the same person, repeated `tries` times.
            made = dictionary(population, [template] * self.tries, texts[s : s + 1], random)
            made = made_up(made, times_of(made), self.rounded)
            best = int(np.argmax(self.preferred(made, template)))
            times[offsets[s] : offsets[s + 1]] = times_of(made[best : best + 1])
        return made_up(texts, times, self.rounded)


def typed_as(
    population: PopulationModel,
    template: Template,
    samples: Samples,
    random: np.random.Generator | None = None,
) -> Samples:
    """The keys as the owner of a template would type them: drawn at random, or expected without a generator.

    With a stolen template these are forgeries of its owner; with `population.anyone()`, of the average
    typist.
    """
    times = np.empty((samples.sequences.n_events, 2))
    offsets = samples.sequences.offsets
    for s, one in enumerate(samples.sequences):
        # Interval and hold are a population's first features.
        drawn = population.typed_by([template], one.labels().tolist(), random)[0, :, :2]
        times[offsets[s] : offsets[s + 1]] = drawn
    return made_up(samples, times, rounded=False)


def dictionary(
    population: PopulationModel,
    people: Sequence[Template],
    sample: Samples,
    random: np.random.Generator | None,
) -> Samples:
    """One sample's keys as each of these people would type them, as in `typed_as`; users are numbers."""
    if len(sample) != 1:
        raise ValueError(f"a dictionary is of the keys of one sample, not of {len(sample)}")
    keys, n = sample.sequences.labels().tolist(), len(people)
    names = sample.sequences.feature_names or ()
    order = [population.parameters.features.index(name) for name in names]
    values = population.typed_by(people, keys, random)[..., order].reshape(n * len(keys), len(order))
    frame = pd.DataFrame(values, columns=list(names))
    sequences = Sequences.from_arrays(frame, np.tile(keys, n), np.full(n, len(keys)))
    return Samples([(number, 0) for number in range(n)], sequences, sample.emission)
