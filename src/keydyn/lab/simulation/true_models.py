"""True models θ₀ for the simulation study: 3 event types, 2 states, intervals in milliseconds."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats
from keydyn.model import HMM, POHMM

EVENT_TYPES = ("a", "b", "c")

# Locations and scales of the active and the passive state by event type. The slow type's active state is
# slower than the fast type's passive one: a model that ignores types cannot tell them apart.
LOCATIONS = np.array([[100.0, 220.0], [160.0, 360.0], [240.0, 520.0]])
SCALES = np.array([[25.0, 45.0], [35.0, 70.0], [50.0, 100.0]])
UNIFORM = np.full((3, 3, 2, 2), 0.5)
PERSISTENT = np.tile(np.array([[0.8, 0.2], [0.4, 0.6]]), (3, 3, 1, 1))

TRUTHS = ("keystrokes", "persistent", "overlapping")


def true_model(name: str = "keystrokes") -> POHMM:
    """θ₀ by its name; "random-7" is drawn with the seed 7.

    "keystrokes" has uniform transition probabilities, as the paper; in "persistent" states last; in
    "overlapping" they are closer together as well.
    """
    if name == "keystrokes":
        return _model(UNIFORM, LOCATIONS, SCALES)
    if name == "persistent":
        return _model(PERSISTENT, LOCATIONS, SCALES)
    if name == "overlapping":
        return _model(PERSISTENT, LOCATIONS, 1.5 * SCALES)
    kind, _, seed = name.partition("-")
    if kind == "random" and seed.isdecimal():
        return _random(np.random.default_rng(int(seed)))
    raise ValueError(f"there is no true model {name!r}; there are {', '.join(TRUTHS)} and random-SEED")


def true_hmm(name: str = "keystrokes") -> HMM:
    """The HMM of the same name: each state has the average location, scale and transitions over types.

    Its states are as far apart as those of a type; those of `to_hmm()` hold the spread between types as well.
    """
    model = true_model(name)
    emission = model.emission_[0]
    return HMM.from_parameters(
        model.startprob_.mean(axis=0),
        model.transmat_.mean(axis=(0, 1)),
        [("normal", emission.loc.mean(axis=0), emission.scale.mean(axis=0))],
    )


def _random(generator: np.random.Generator) -> POHMM:
    active = generator.uniform(80.0, 250.0, 3)
    loc = np.stack([active, active + generator.uniform(120.0, 300.0, 3)], axis=1)
    to_passive = generator.uniform(0.2, 0.8, (3, 3, 2))
    return _model(
        np.stack([1.0 - to_passive, to_passive], axis=3), loc, loc * generator.uniform(0.12, 0.25, (3, 2))
    )


def _model(transmat: Floats, loc: Floats, scale: Floats) -> POHMM:
    return POHMM.from_parameters(EVENT_TYPES, np.full((3, 2), 0.5), transmat, [("normal", loc, scale)])
