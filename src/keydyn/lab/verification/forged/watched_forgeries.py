"""Watched sessions: how often people are locked out as forgers, and how soon forgers are.

`python -m keydyn.lab.verification.forged.watched_forgeries` prints a table per place. A session is everything
that a person typed after enrolment, one sample after the other. Each place is judged by a defence learnt
elsewhere, and each forgery by a detector trained without its family; with the argument `shipped`, by the
shipped detector, which was trained on fable, essay and all families.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from keydyn.decisions.calibration.trials import spread
from keydyn.decisions.decision import ALARMS, Typed
from keydyn.decisions.liveness.hands import typed_beside, with_manner
from keydyn.decisions.watching.by_hand import ByHand, Judge, looks_at
from keydyn.keystrokes.samples import Samples
from keydyn.lab.forgeries import forgers, joined
from keydyn.lab.frame.study_data import stream
from keydyn.lab.transfer.places import Place, load_place
from keydyn.lab.verification.forged.attacked import DRAWN, OWN, ForgeryDetector, people_of
from keydyn.lab.verification.forged.defences import Learnt, elsewhere, shipped
from keydyn.lab.verification.forged.measurements import SOURCES
from keydyn.population import PopulationModel, Template

PLACES = ("fable", "essay", "aalto")
# The attacks tried by attackers who have ten samples of a person.
ATTACKS = (
    *(f"{method} by pair" for method in ("averages", "uniform", "normal")),
    *(f"{method} by context" for method in ("histograms", "recent histograms")),
    *("robot, random delays", "browser automation, random waits", DRAWN),
)
SAMPLES, SEED = 10, 1
# The number of people whose sessions are forged, evenly spread.
FORGED = 60
MILLISECONDS = 3.6e6


class Session(NamedTuple):
    """A session: its user, its typist or forgery, keys and hours until it was locked or over, and results."""

    user: str
    by: str
    keys: int
    hours: float
    blocks: int
    called_forged: int
    locked: bool


def sessions(
    place: Samples, people: PopulationModel, judges: dict[str, Judge], n_forged: int = FORGED
) -> Iterator[Session]:
    """Each person's own session, and forgeries of it for at most `n_forged` people.

    `judges` are given by family and for typed sessions.
    """
    attacks = {name: forger for name, forger in forgers(people).items() if name in ATTACKS}
    everyone = list(people_of(place))
    attacked = set(spread(np.arange(len(everyone)), n_forged).tolist())
    for n, person in enumerate(everyone):
        template = with_manner(people, people.enrol(person.enrolled), person.enrolled)
        sent = {OWN: (OWN, person.others)}
        random = stream(SEED, "watched", str(person.user))
        for name, forger in attacks.items() if n in attacked else ():
            made = forger.forge(person.others[:SAMPLES], person.others, random)
            sent[name] = forger.family, made
        for name, (family, typed) in sent.items():
            whole = joined(typed, typed.sequences.n_events)
            watched = ByHand(people, [template], ALARMS, judges[family])
            looks = looks_at(watched, people, whole)
            locked = next((look for look in looks if look.forged), None)
            keys = whole.sequences.n_events if locked is None else locked.event + 1
            before = [look for look in looks if look.event < keys]
            intervals = whole.sequences.X[:keys, list(whole.sequences.feature_names or ()).index("tau")]
            hours = float(np.nansum(intervals)) / MILLISECONDS
            called = sum(look.typed.answer == "no" for look in before)
            yield Session(str(person.user), name, keys, hours, len(before), called, locked is not None)


def judged_elsewhere(place: Place) -> pd.DataFrame:
    """The sessions of a place, judged by defences learnt in other places."""
    sources = [load_place(name).known for name in SOURCES[place.name]]
    defence = shipped(sources, SEED) if len(sources) > 1 else elsewhere(sources[0], SEED)
    judges = {family: _judge(detector) for family, detector in defence.without.items()}
    judges[OWN] = _judge(defence.complete)
    return pd.DataFrame(sessions(place.samples, defence.background.population, judges))


def judged_as_shipped(place: Place) -> pd.DataFrame:
    """The sessions of a place, judged by the shipped detector."""
    people = PopulationModel.shipped()
    families = {forger.family for forger in forgers().values()}
    judges: dict[str, Judge] = dict.fromkeys([OWN, *families], typed_beside)
    return pd.DataFrame(sessions(place.samples, people, judges))


def figures(found: pd.DataFrame) -> pd.DataFrame:
    """The outcome of sessions by typist or forgery; rates have exact intervals of 95 %."""
    rows = []
    for by, some in found.groupby("by", sort=False):
        keys, locked = int(some["keys"].sum()), int(some["locked"].sum())
        low, high = (1000.0 * end / keys for end in counts_interval(locked))
        rows.append(
            {
                "by": by,
                "sessions": len(some),
                "keys": keys,
                "hours": some["hours"].sum(),
                "called forged, of blocks": some["called_forged"].sum() / max(some["blocks"].sum(), 1),
                "locked, of sessions": locked / len(some),
                "locked per 1,000 keys": 1000.0 * locked / keys,
                "from": low,
                "to": high,
                "locked per hour": locked / some["hours"].sum(),
            }
        )
    return pd.DataFrame(rows)


def counts_interval(count: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of the expected number of events, given that `count` happened (Garwood, 1936)."""
    from scipy.special import gammaincinv

    tail = (1.0 - confidence) / 2.0
    low = float(gammaincinv(count, tail)) if count else 0.0
    return low, float(gammaincinv(count + 1, 1.0 - tail))


def _judge(detector: ForgeryDetector) -> Judge:
    assert isinstance(detector, Learnt)

    def judge(people: PopulationModel, template: Template, samples: Samples) -> list[Typed]:
        return detector.hands.judged(people, samples, template)

    return judge


def main(arguments: list[str]) -> None:
    """Print the table of each named place, or of all places."""
    judged = judged_as_shipped if "shipped" in arguments else judged_elsewhere
    for name in [one for one in PLACES if one in arguments] or PLACES:
        print(f"\n{name}\n{figures(judged(load_place(name))).round(3).to_string(index=False)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
