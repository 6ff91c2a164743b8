"""Compares ways to look at a session repeatedly: overlapping windows and blocks that do not overlap.

`python -m keydyn.lab.verification.forged.looking essay` prints how often people's own sessions would be
locked by the shipped detector. If its levels hold for windows of a length, looks at some rate every n keys
lock no more often than the rate divided by n per key.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers
from keydyn.decisions.liveness.hands import typed_beside, with_manner
from keydyn.keystrokes.samples import Names, Samples
from keydyn.lab.forgeries import joined
from keydyn.lab.transfer.places import load_place
from keydyn.lab.verification.forged.attacked import people_of
from keydyn.model import Sequences
from keydyn.population import PopulationModel

Ways = Sequence[tuple[int, int]]
# The number of keys from one look to the next, and the most keys in a look. A session's first look comes at
# its hundredth key.
WAYS = ((100, 100), (50, 100), (100, 200), (100, 400))
FIRST = 100
RATES = (0.01, 0.005, 0.002)


def windows(session: Samples, every: int, last: int) -> tuple[Samples, Integers]:
    """The last keys of a session at each look, as samples, and the number of keys typed by then.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.lab.verification.forged.looking import windows
    >>> looks, ends = windows(Samples.of(make_typists(1, 1, "free", 320)), 100, 200)
    >>> looks.sequences.lengths.tolist(), ends.tolist()
    ([100, 200, 200], [100, 200, 300])
    """
    of = session.sequences
    ends = np.arange(FIRST, of.n_events + 1, every)
    begins = np.maximum(ends - last, 0)
    rows = np.concatenate([np.arange(0), *map(np.arange, begins, ends)])
    offsets = np.concatenate([[0], np.cumsum(ends - begins)])
    names: Names = [("", n) for n in range(len(ends))]
    parts = of.X[rows], of.codes[rows], of.event_types, offsets, of.feature_names
    return Samples(names, Sequences(*parts), session.emission), ends


def looked_at(
    place: Samples, people: PopulationModel, ways: Ways
) -> Iterator[tuple[int, int, int, Floats, Integers]]:
    """For each person's session and each way: every, last, number of keys, rates and places of looks."""
    for person in people_of(place):
        template = with_manner(people, people.enrol(person.enrolled), person.enrolled)
        n = person.others.sequences.n_events
        session = joined(person.others, n)
        for every, last in ways if n >= FIRST else ():
            looks, ends = windows(session, every, last)
            judged = typed_beside(people, template, looks)
            yield every, last, n, np.array([one.rate if one.llr < 0.0 else 1.0 for one in judged]), ends


def figures(place: Samples, people: PopulationModel, ways: Ways = WAYS) -> pd.DataFrame:
    """How often sessions are locked at each rate, per 1,000 keys, with the bound that should hold."""
    found = list(looked_at(place, people, ways))
    rows = []
    for every, last in ways:
        mine = [one[2:] for one in found if one[:2] == (every, last)]
        for rate in RATES:
            at = [int(ends[np.argmax(low <= rate)]) if (low <= rate).any() else 0 for _, low, ends in mine]
            keys = sum(one or n for one, (n, *_) in zip(at, mine, strict=True))
            shown = {"every": every, "last": last, "rate": rate, "at most": 1000.0 * rate / every}
            rows.append(shown | {"locked per 1,000 keys": 1000.0 * np.count_nonzero(at) / keys})
    return pd.DataFrame(rows)


def main(arguments: list[str]) -> None:
    """Print the table of each named place."""
    for name in arguments or ("essay",):
        table = figures(load_place(name).samples, PopulationModel.shipped())
        print(f"\n{name}\n{table.round(3).to_string(index=False)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
