"""How people's typing changes between enrolment and use, where queries are later than training samples.

Times are compared key by key as logarithms: the median of the later samples against that at enrolment, in
units of the spread that is usual on that key, the median over users of their spread at enrolment.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers
from keydyn.evaluation.protocols.protocol import Protocol
from keydyn.keystrokes.samples import Samples
from keydyn.model.data.vocabulary import Types

# The number of parts that later samples are looked at in, from the earliest to the latest.
PARTS = 4
TIMES = ["interval", "hold"]
# A median deviation of normal values in units of their standard deviation.
NORMAL = 1.4826
COLUMNS = ["user", "part", *TIMES, "change", "spread", "nearest"]


def typing_changes(samples: Samples, protocol: Protocol) -> pd.DataFrame:
    """One row per user and part of the later samples, of `COLUMNS`; none if queries are not later.

    `interval` and `hold` are how many times as long as at enrolment, the median over keys. `change` is the
    root mean square of the change over keys and both times, `spread` the mean of the part's own spread, both
    in units of the usual spread. `nearest` is the distance at enrolment to the nearest other user, likewise.
    """
    splits, number = protocol.splits(samples), samples.numbers
    train, query = splits[0].train, splits[0].genuine
    if len(splits) > 1 or number[train].max() >= number[query].min():
        return pd.DataFrame(columns=COLUMNS)
    begin, end = int(number[query].min()), int(number[query].max()) + 1
    part = np.where(query, 1 + PARTS * (number - begin) // (end - begin), 0)
    some = train | query
    users = pd.unique(samples.users)
    centre, spread = _centres_and_spreads(samples[some], part[some], users)
    # A key may never have been typed, and the first of a fixed text has no interval.
    there = np.isfinite(spread[:, 0]).any(axis=0)
    usual = np.full(there.shape, np.nan)
    usual[there] = np.nanmedian(spread[:, 0][:, there], axis=0)
    usual[usual <= 0.0] = np.nan
    nearest = _nearest(centre[:, 0] / usual)
    rows = []
    for u, k in np.argwhere(np.isfinite(centre).any(axis=(2, 3))):
        if k == 0:
            continue
        moved = centre[u, k] - centre[u, 0]
        ratios = np.exp(np.nanmedian(moved, axis=0))
        change, own = np.sqrt(np.nanmean((moved / usual) ** 2)), np.nanmean(spread[u, k] / usual)
        rows.append((str(users[u]), int(k), *ratios.tolist(), float(change), float(own), float(nearest[u])))
    return pd.DataFrame(rows, columns=COLUMNS)


def _centres_and_spreads(samples: Samples, part: Integers, users: Types) -> tuple[Floats, Floats]:
    """Medians of ln interval and ln hold, and deviations from them: (user, part, key, time); NaN if none."""
    sequences = samples.sequences
    names = list(sequences.feature_names or ())
    times = np.log(sequences.X[:, [names.index("tau"), names.index("duration")]])
    # A sample's first interval is unknown, whatever stands in for it.
    times[sequences.offsets[:-1], 0] = np.nan
    user = pd.Index(users).get_indexer(pd.Index(samples.users))
    by = [*(np.repeat(values, sequences.lengths) for values in (user, part)), sequences.codes]
    shape = (len(users), PARTS + 1, int(sequences.codes.max()) + 1, len(TIMES))
    centre, spread = np.full(shape, np.nan), np.full(shape, np.nan)
    for values, deviations in ((centre, False), (spread, True)):
        frame = pd.DataFrame(NORMAL * np.abs(times - centre[tuple(by)]) if deviations else times)
        medians = frame.groupby(by).median()
        places = (medians.index.get_level_values(level) for level in range(3))
        values[tuple(np.asarray(place) for place in places)] = medians.to_numpy()
    return centre, spread


def _nearest(centres: Floats) -> Floats:
    """The distance of each user's centres, (U, keys, times), to the nearest other's, over common keys."""
    flat = centres.reshape(len(centres), -1)
    apart: Floats = np.sqrt(np.nanmean((flat[:, None] - flat[None]) ** 2, axis=2))
    np.fill_diagonal(apart, np.inf)
    return np.asarray(apart.min(axis=1))
