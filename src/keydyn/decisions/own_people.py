"""Own people count: they join the cohort, and their comparisons move a calibration learnt elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from keydyn.arrays import Integers
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.comparisons import LEAST_PEOPLE, Comparisons, OwnPlace, own_place
from keydyn.decisions.calibration.trials import LARGEST_COHORT, open_set_scores, spread
from keydyn.decisions.decision import evidence
from keydyn.decisions.enrolled import Enrolled
from keydyn.detectors.detector import Detector
from keydyn.keystrokes.samples import Samples

# Comparisons that are kept of each person: others claimed, and samples that claim them.
MOST_CLAIMED, MOST_ASKED = 50, 10


def learns_from_own(background: Background) -> bool:
    """Whether own people change what scores mean: where the calibration was learnt elsewhere."""
    return background.calibrations.unsure > 0.0


def place_of(background: Background, people: Mapping[str, Enrolled]) -> OwnPlace:
    """What own people say of the background's calibration."""
    return own_place(background.calibrations, {user: one.comparisons for user, one in people.items()})


def beside_own(
    background: Background, people: Mapping[str, Enrolled], place: OwnPlace | None = None
) -> Background:
    """The background as these people, who are enrolled, change it; `place` is what they say, if known."""
    if not learns_from_own(background) or len(people) < LEAST_PEOPLE:
        return background
    place = place or place_of(background, people)
    own = _cohort(people)
    return replace(
        background,
        cohort=background.cohort + tuple(own.values()),
        members=background.members + tuple(own),
        calibrations=background.calibrations.moved(place.shift, place.unsure),
    )


def compared(
    background: Background, people: Mapping[str, Enrolled], newly: Mapping[str, Samples]
) -> dict[str, Comparisons]:
    """The samples of those who are `newly` enrolled in the names of others; no template has seen them.

    A claim is judged beside the cohort and the other people, without the typist and the person claimed.
    """
    if not learns_from_own(background) or len(people) < LEAST_PEOPLE:
        return dict.fromkeys(newly, Comparisons.none())
    cohort, users = _cohort(people), list(people)
    names, C = list(cohort), len(background.others)
    found = {}
    for user, samples in newly.items():
        asked = samples[spread(np.arange(len(samples)), MOST_ASKED)]
        others = np.array([n for n, name in enumerate(users) if name != user])
        claimed = [users[n] for n in _from(others, users.index(user), MOST_CLAIMED).tolist()]
        templates = [people[name].template for name in claimed]
        raw = type(background.pattern).score_many([*templates, *cohort.values()], asked)
        everyone = np.hstack([background.beside_scores(asked), raw[:, len(claimed) :]])
        scores = np.empty((len(asked), len(claimed)))
        for v, name in enumerate(claimed):
            counts = np.array([True] * C + [one not in (user, name) for one in names])
            beside = everyone[:, counts]
            scores[:, [v]] = open_set_scores(raw[:, [v]], beside, asked.sequences.lengths)
        keys = np.array([max(one.known, 1) for one in evidence(asked, templates[0])], dtype=np.int64)
        amounts = np.array([people[name].keys for name in claimed], dtype=np.int64)
        found[user] = Comparisons(
            tuple(claimed) * len(asked),
            scores.ravel(),
            np.repeat(keys, len(claimed)),
            np.tile(amounts, len(asked)),
        )
    return found


def _from(others: Integers, first: int, most: int) -> Integers:
    """At most this many, evenly spread, beginning at a different place for each person."""
    return np.sort(np.roll(others, -first)[: len(others)][spread(np.arange(len(others)), most)])


def _cohort(people: Mapping[str, Enrolled]) -> dict[str, Detector]:
    """Own people whom others are compared with."""
    names = list(people)
    return {
        names[n]: people[names[n]].template for n in spread(np.arange(len(names)), LARGEST_COHORT).tolist()
    }
