"""One event after another of many sessions under their templates. Compiled."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, merged
from keydyn.population.cells import LAST_IN_WORD
from keydyn.population.features import Around
from keydyn.population.score.kernel import TEMPLATES, Block, Columns, Event, Shared, Work, begin_sample, step


class Arrived(NamedTuple):
    """Events of sessions whose terms are now known."""

    # (B,) whose event it is, and its number in the sample; below 0 it is no event
    session: Integers
    position: Integers
    # (B, F) values without what people share, and their cells
    y: Floats
    cell: Integers
    # (B,) classes of the key before and of its own
    before: Integers
    key: Integers


class Followed(NamedTuple):
    """How many events came in each of S sessions, (S,), and what is known of the last ones."""

    number: Integers
    codes: Integers  # (S, 3) the keys of the last three
    in_word: Integers  # (S,) the place of the last in its word
    values: Floats  # (S, F) of the last


class Left(NamedTuple):
    """What the events so far have left, a row per session, under the claimed template and the cohort.

    `residuals` are (n, 3, F, U), `tempo` and `variance` (n, F, U), and `states` (n, S, U).
    """

    residuals: Floats
    tempo: Floats
    variance: Floats
    states: Floats


class Gathered(NamedTuple):
    """Room for the templates' values in the cells of one event: as columns of F cells, numbered in `cell`."""

    columns: Columns
    cell: Integers


class Sessions(NamedTuple):
    """The templates that sessions claim, a row each, those of the cohort as columns, and what is left."""

    claimed: Columns
    cohort: Columns
    left: Left
    gathered: Gathered

    @classmethod
    def of(cls, claimed: Columns, cohort: Columns, n_states: int) -> Sessions:
        """Sessions that have not begun."""
        (n, F), U = claimed.per_gain.shape, 1 + cohort.mean.shape[1]
        left = Left(*(np.empty((n, *shape)) for shape in ((3, F, U), (F, U), (F, U), (n_states, U))))
        columns = Columns(np.empty((F, U)), np.empty((F, U)), np.empty((F, 3, U)), np.empty((F, U)))
        columns.slopes[..., 1:], columns.per_gain[:, 1:] = cohort.slopes, cohort.per_gain
        return cls(claimed, cohort, left, Gathered(columns, np.arange(F)))


class Found(NamedTuple):
    """(B, U) the terms of events, and (B, S) the hidden states at them under the claimed template."""

    terms: Floats
    states: Floats


def advanced(arrived: Arrived, sessions: Sessions, shared: Shared) -> Found:
    """What becomes known; `sessions.left` is brought up to date. NaN where there is no event."""
    B, F = arrived.y.shape
    U, S = sessions.left.tempo.shape[2], len(shared.start)
    found = Found(np.full((B, U), np.nan), np.full((B, S), np.nan))
    _advance(arrived, sessions, shared, Work.room(F, S), found)
    return found


@partial(compiled, _nrt=False)
def follow(
    session: Integers, key: Integers, rows: Floats, followed: Followed, is_space: Integers, around: Around
) -> None:
    """What stands around the event before each of these, and its values in `rows`; `followed` goes on.

    `session`, `key` and `rows` are those of events in the order in which they came.
    """
    for b in range(len(session)):
        s = session[b]
        number, last = followed.number[s], followed.codes[s]
        around.two_before[b], around.before[b], around.key[b] = last[0], last[1], last[2]
        around.after[b], around.position[b], around.in_word[b] = key[b], number - 1, followed.in_word[s]
        if number == 0:
            # The first interval is unknown, whatever stands in for it.
            rows[b, 0] = np.nan
        for f in range(rows.shape[1]):
            rows[b, f], followed.values[s, f] = followed.values[s, f], rows[b, f]
        if len(is_space) == 0:
            followed.in_word[s] = -1
        elif number == 0 or is_space[last[2]] == 1:
            followed.in_word[s] = 0
        else:
            followed.in_word[s] = min(followed.in_word[s] + 1, LAST_IN_WORD)
        last[0], last[1], last[2] = last[1], last[2], key[b]
        followed.number[s] = number + 1


@partial(compiled, _nrt=False)
def _advance(arrived: Arrived, sessions: Sessions, shared: Shared, work: Work, found: Found) -> None:
    left, gathered = sessions.left, sessions.gathered
    U = gathered.columns.mean.shape[1]
    for b in range(len(arrived.session)):
        position, session = arrived.position[b], arrived.session[b]
        if position < 0:
            continue
        _gather(sessions, session, arrived.cell[b], gathered.columns)
        before = arrived.before[b] if position > 0 else -1
        event = Event(arrived.y[b], gathered.cell, before, arrived.key[b], position % 3)
        for begin in range(0, U, TEMPLATES):
            block = Block(begin, min(TEMPLATES, U - begin), 0)
            if position == 0:
                begin_sample(shared, work, block)
            else:
                _resume(left, session, work, block)
            step(event, gathered.columns, shared, work, block)
            _leave(left, session, work, block)
            for u in range(block.size):
                found.terms[b, begin + u] = math.log(work.density[u])
        for s in range(found.states.shape[1]):
            found.states[b, s] = left.states[session, s, 0]


@merged
def _gather(sessions: Sessions, session: int, cell: Integers, columns: Columns) -> None:
    """The claimed template comes first, then the cohort, whose slopes and gains are there already."""
    claimed, cohort = sessions.claimed, sessions.cohort
    for f in range(len(cell)):
        c = cell[f]
        columns.mean[f, 0], columns.per_scale[f, 0] = claimed.mean[session, c], claimed.per_scale[session, c]
        columns.per_gain[f, 0] = claimed.per_gain[session, f]
        for j in range(3):
            columns.slopes[f, j, 0] = claimed.slopes[session, f, j]
        for u in range(1, columns.mean.shape[1]):
            columns.mean[f, u], columns.per_scale[f, u] = cohort.mean[c, u - 1], cohort.per_scale[c, u - 1]


@merged
def _resume(left: Left, session: int, work: Work, block: Block) -> None:
    """Go on from what the session's events have left."""
    for u in range(block.size):
        at = block.begin + u
        for f in range(left.tempo.shape[1]):
            work.d[f, u], work.unsure[f, u] = left.tempo[session, f, at], left.variance[session, f, at]
            for k in range(3):
                work.r[k, f, u] = left.residuals[session, k, f, at]
        for s in range(left.states.shape[1]):
            work.alpha[s, u] = left.states[session, s, at]


@merged
def _leave(left: Left, session: int, work: Work, block: Block) -> None:
    """Keep what the session's next event needs."""
    for u in range(block.size):
        at = block.begin + u
        for f in range(left.tempo.shape[1]):
            left.tempo[session, f, at], left.variance[session, f, at] = work.d[f, u], work.unsure[f, u]
            for k in range(3):
                left.residuals[session, k, f, at] = work.r[k, f, u]
        for s in range(left.states.shape[1]):
            left.states[session, s, at] = work.alpha[s, u]
