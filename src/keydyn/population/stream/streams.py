"""Streams that score samples key by key while they are being typed: thousands at a time, or one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keydyn.arrays import Direct, Floats, Integers, Truths, without_counting
from keydyn.files import Tensors
from keydyn.model.data.label_codes import LabelCodes
from keydyn.population.cells import LAST_IN_WORD, NO_EFFECTS, place_in_word, standardise
from keydyn.population.features import HOLD, INTERVAL, Around, Typing
from keydyn.population.score.fitted import Fitted, one_by_one, side_by_side, together
from keydyn.population.score.kernel import Asked, Sessions, TemplateColumns, Work, parts_left, score
from keydyn.population.shared_parameters import Template
from keydyn.population.stream.session_state import LARGEST_VALUE, checked, fingerprint

# Events times templates per compiled call; signals are handled only between calls.
AT_A_TIME = 2_000_000
# The parts of a session's state under each template.
LEFT = ("residuals", "tempo", "variance", "states")


class Runs(NamedTuple):
    """Runs of events by session: the events in `order`, the sessions that have any, offsets and sizes."""

    order: Integers
    own: Integers
    offsets: Integers
    sizes: Integers

    @classmethod
    def of(cls, sessions: Integers) -> Runs:
        """The runs of events of these sessions, (B,)."""
        if len(sessions) == 1:
            return cls(_ONE[:1], sessions, _ONE, _ONE[1:])
        order = np.argsort(sessions, kind="stable")
        s = sessions[order]
        begins = np.flatnonzero(begins_of(s))
        offsets = np.append(begins, len(s))
        return cls(order, s[begins], offsets, np.diff(offsets))


_ONE: Integers = np.arange(2)
# Some rows of a table: as a slice, where they follow each other, they are found and copied faster.
Rows = Integers | slice


def rows_of(own: Integers) -> Rows:
    """The rows of sessions, whose numbers rise."""
    if len(own) == 0:
        return own
    first, last = own.item(0), own.item(-1)
    return own if last - first >= len(own) else slice(first, last + 1)


def begins_of(sessions: Integers) -> Truths:
    """Whether a run of one session begins at each place, among sorted sessions."""
    begins = np.ones(len(sessions), dtype=bool)
    begins[1:] = sessions[1:] != sessions[:-1]
    return begins


class Followed(NamedTuple):
    """The number of events in each of S sessions, (S,), and the last events."""

    number: Integers
    codes: Integers  # (S, 3) keys of the last three events
    in_word: Integers  # (S,) place of the last key in its word
    values: Floats  # (S, F) values of the last event


class Kinds(NamedTuple):
    """Which values are times, (F,), which keys are spaces, and the class of each key."""

    times: Truths
    spaces: Integers
    classes: Integers


class Moved(NamedTuple):
    """The events before those of B events in n runs, whose terms these make known."""

    around: Around
    classes: Integers  # (B,) of the keys
    # (n,) for the first of each run: the position in its sample, and the class of the key before it
    position: Integers
    before: Integers
    # (B, F) from log-densities of logarithms to those of times, and what `standardise` finds
    shift: Floats
    y: Floats
    cell: Integers

    @classmethod
    def room(cls, B: int, n: int, F: int) -> Moved:
        """Room for as many events, runs and features."""
        *around, classes = np.empty((len(Around._fields) + 1, B), dtype=np.int64)
        position, before = np.empty((2, n), dtype=np.int64)
        shift, y = np.empty((2, B, F))
        cell = np.empty((B, F), dtype=np.int64)
        return cls(Around(*around), classes, position, before, shift, y, cell)


class PopulationStreams:
    """Streams of S sessions that give the terms of `PopulationModel.event_log_likelihoods` as keys are typed.

    Each session is scored under a template of its own, the one claimed, and under a cohort of C templates
    that all sessions share. An event's term needs the next key, so each event gives the term of the one
    before. Neither memory nor the time of an update grows with the length of sessions.
    """

    def __init__(self, fitted: Fitted, claimed: Sequence[Template], cohort: Sequence[Template] = ()) -> None:
        if len(claimed) == 0:
            raise ValueError("there are no sessions: give the template that each one claims")
        self._fitted, self._known = fitted, fitted.parameters
        known = fitted.parameters
        vocabulary = known.cells.vocabulary
        self._labels = LabelCodes(vocabulary)
        times = np.array([name in (INTERVAL, HOLD) for name in known.features])
        self._kinds = Kinds(times, known.cells.spaces, known.classes)
        self._check(cohort)
        F, n = len(known.features), len(claimed)
        self._templates = together(self._rows(claimed), side_by_side(cohort) if len(cohort) else None)
        self._cohort_print = fingerprint(self._templates.beside)
        self._left: Floats = np.zeros((n, 5 * F + known.chain.n_states, 1 + len(cohort)))
        self._parts = dict(zip(LEFT, parts_left(self._left, F), strict=True))
        # The SHA-256 of each session's template, and whether it has been computed
        self._prints: NDArray[np.uint8] = np.zeros((len(claimed), 32), dtype=np.uint8)
        self._printed = np.zeros(len(claimed), dtype=bool)
        # The number of events, keys of the last three, and the last event's place in its word and values
        self._count: Integers = np.zeros(n, dtype=np.int64)
        self._codes: Integers = np.empty((n, 3), dtype=np.int64)
        self._in_word: Integers = np.empty(n, dtype=np.int64)
        self._values: Floats = np.empty((n, F))
        self._followed = Followed(self._count, self._codes, self._in_word, self._values)
        self._changing = *self._followed, self._left
        # Room for a single event, the usual case.
        self._one = Moved.room(1, 1, F)
        self.restart()

    def __len__(self) -> int:
        return len(self._count)

    @property
    def n_states(self) -> int:
        """The population's number of hidden states; 1 if it has none."""
        return self._known.chain.n_states

    @property
    def n_templates(self) -> int:
        """The number of templates that each session is scored under: the one claimed and the cohort."""
        return int(self._left.shape[2])

    @property
    def states(self) -> Floats:
        """Filtered probabilities of the hidden states at each session's last scored event, as claimed.

        There is one row per session, NaN before its first scored event, and one column per state.
        """
        found: Floats = self._parts["states"][:, :, 0].copy()
        found[self._count < 2] = np.nan
        return found

    @property
    def n_events(self) -> Integers:
        """(S,) number of events in each session."""
        return self._count.copy()

    def events_in(self, s: Integers) -> Integers:
        """The numbers of events in these sessions."""
        return self._count[s]

    def encode(self, keys: Any) -> Integers:
        """The codes of keys, given their names, for `update(codes=…)`."""
        if type(keys) is list and len(keys) == 1:
            # A shortcut for one key at a time, the usual case
            return np.array([min(self._labels.one(keys[0]), self._labels.missing)])
        return np.minimum(self._labels.many(keys), self._labels.missing)

    def restart(self, sessions: ArrayLike | None = None, claimed: Sequence[Template] | None = None) -> None:
        """Begin another sample in these sessions (all by default); `claimed` gives each a new template."""
        which = self.numbers(sessions)
        if claimed is not None:
            if len(claimed) != len(which):
                raise ValueError(f"there are {len(claimed)} templates for {len(which)} sessions")
            rows = self._rows(claimed)
            self._printed[which] = False
            for table, own in zip(self._templates.own, rows, strict=True):
                table[which] = own
        self._count[which], self._in_word[which] = 0, 0
        self._codes[which] = self._labels.missing
        self._values[which] = np.nan
        self._left[which] = 0.0

    def update(
        self,
        values: ArrayLike,
        keys: Any = None,
        sessions: ArrayLike | None = None,
        *,
        codes: ArrayLike | None = None,
        states: Floats | None = None,
    ) -> Floats:
        """Add B events and return the terms, (B, 1 + C), of the events before them.

        Terms are NaN at the first event of a sample. `values` are (B, F): interval and hold in milliseconds,
        then further features, in the order of the population's features; NaN where one is missing. `sessions`
        gives the session of each event; without it there is one event per session. Events of one session are
        in the order in which they were typed. `codes` from `encode` may replace `keys`. `states`, (B, number
        of states), is filled with the filtered probabilities of the hidden states at the events that the
        terms belong to, as claimed.
        """
        which = self.numbers(sessions, distinct=False)
        rows, typed = self.given(values, keys, codes, len(which))
        runs = Runs.of(which)
        found = self.advance(runs, rows[runs.order], typed[runs.order])
        terms = np.empty(found.events.shape)
        terms[runs.order] = found.events
        if states is not None:
            states[runs.order] = found.states
        return terms

    def given(self, values: ArrayLike, keys: Any, codes: ArrayLike | None, n: int) -> tuple[Floats, Integers]:
        """Copy the values of n events and encode their keys; a `ValueError` if they do not fit."""
        rows = np.array(values, dtype=np.float64, order="C")
        F = len(self._kinds.times)
        if rows.shape != (n, F):
            raise ValueError(f"an event has {F} values: ({n}, {F}), not {rows.shape}")
        return rows, self._typed(keys, codes, n)

    def advance(self, runs: Runs, rows: Floats, codes: Integers) -> Asked:
        """Add events that are sorted in runs, and return their terms and states as `update` does.

        The values are overwritten. If values are refused, nothing else changes.
        """
        moved = self._one if len(rows) == 1 else Moved.room(len(rows), len(runs.own), rows.shape[1])
        # Each event makes the term of the one before it known, so `follow` replaces its values by that one's.
        if not _follow(runs.own, runs.offsets, codes, rows, self._kinds, self._followed, moved):
            given = np.empty(rows.shape)
            given[runs.order] = rows
            raise ValueError(self._complaint(given))
        return self._terms(runs, rows, moved)

    def end(self, sessions: ArrayLike | None = None) -> Floats:
        """Return the terms, (B, 1 + C), of the last events, after which no key comes, and `restart`."""
        s = self.numbers(sessions)
        if (self._count[s] == 0).any():
            raise ValueError("there was no event")
        none = np.full(len(s), self._labels.missing)
        two_before, before, key = map(np.ascontiguousarray, self._codes[s].T)
        around = Around(two_before, before, key, none, self._count[s] - 1, self._in_word[s])
        runs = Runs(np.arange(len(s)), s, np.arange(len(s) + 1), np.ones(len(s), dtype=np.int64))
        values, classes = self._values[s], self._kinds.classes
        shift = np.where(self._kinds.times, -values, 0.0)
        known = {"around": around, "classes": classes[key], "before": classes[before], "shift": shift}
        moved = Moved.room(len(s), len(s), values.shape[1])._replace(position=around.position, **known)
        terms = self._terms(runs, values, moved).events
        self.restart(s)
        return terms

    def state(self, sessions: ArrayLike | None = None) -> Tensors:
        """The state from which these sessions (all by default) can go on later, as plain arrays.

        Of each session it holds the last three keys, the last event's values, residuals of the three events
        before it and, of earlier typing, only sums. `session_state.packed` turns it into bytes.
        """
        s = self.numbers(sessions)
        return self._common(s) | {name: table[s] for name, table in self._tables().items()}

    def _common(self, s: Integers) -> Tensors:
        """The arrays that must agree between a state and the sessions that go on from it."""
        return {
            "population": np.frombuffer(bytes.fromhex(self._fitted.sha256), dtype=np.uint8),
            "cohort": self._cohort_print,
            "claimed": self._fingerprints(s),
        }

    def _tables(self) -> Tensors:
        """The arrays that change with every event, with one row per session."""
        tables: Tensors = {
            "count": self._count,
            "codes": self._codes,
            "in_word": self._in_word,
            "values": self._values,
        }
        return tables | self._parts

    def kept(self, s: Rows) -> tuple[NDArray[Any], ...]:
        """Copy the arrays that change with every event of these sessions, for `put_back`."""
        return tuple(table[s].copy() for table in self._changing)

    def put_back(self, s: Rows, kept: tuple[NDArray[Any], ...]) -> None:
        """Restore these sessions from the copies that `kept` made."""
        for table, copy in zip(self._changing, kept, strict=True):
            table[s] = copy

    def restore(self, state: Tensors, sessions: ArrayLike | None = None) -> None:
        """Let these sessions (all by default) go on from a `state`; a `ValueError` says what does not fit.

        They must claim the same templates as then, with the same cohort.
        """
        s = self.numbers(sessions)
        # One row per session; only their shape matters.
        present = self._common(s) | {name: table[: len(s)] for name, table in self._tables().items()}
        found = checked(state, present, self._labels.missing, self._kinds.times)
        for name, table in self._tables().items():
            table[s] = found[name]

    def _terms(self, runs: Runs, values: Floats, moved: Moved) -> Asked:
        """Compute the terms, (B, 1 + C), of events in runs, and their hidden states as claimed.

        They are NaN where the position is before a sample. To the shift, that of scales is added.
        """
        known, offsets, (around, classes, position, before, shift, y, cell) = self._known, runs.offsets, moved
        _standardise(values, around, known.contexts, y, cell, shift, NO_EFFECTS)
        S, U = known.chain.n_states, self.n_templates
        found = Asked(events=np.empty((len(y), U)), states=np.empty((len(y), S)))
        room = Work.room(values.shape[1], S)
        if len(y) * U <= AT_A_TIME:
            # All shapes are known here, so nothing needs to be checked.
            typing = Typing(y, cell, offsets, classes)
            sessions = Sessions(runs.own, position, before, self._left)
            _score(typing, self._templates, self._fitted.shared, sessions, room, found)
        else:
            for some, b in _pieces(offsets, U):
                typing = Typing(y[b], cell[b], offsets[some.start : some.stop + 1] - b.start, classes[b])
                sessions = Sessions(runs.own[some], position[some], before[some], self._left)
                part = Asked(events=found.events[b], states=found.states[b])
                _score(typing, self._templates, self._fitted.shared, sessions, room, part)
        _add_shift(found.events, shift)
        return found

    def _check(self, templates: Sequence[Template]) -> None:
        self._fitted.check(templates)
        if not all(map(self._fitted.fits, templates)):
            raise ValueError("the template has a different size from those of its population")

    def _rows(self, templates: Sequence[Template]) -> TemplateColumns:
        """Put templates one after the other, each in a row."""
        self._check(templates)
        return one_by_one(templates)

    def _fingerprints(self, s: Integers) -> NDArray[np.uint8]:
        for row in s[~self._printed[s]].tolist():
            self._prints[row] = fingerprint([table[row] for table in self._templates.own])
            self._printed[row] = True
        return self._prints[s]

    def numbers(self, sessions: ArrayLike | None, distinct: bool = True) -> Integers:
        """The numbers of these sessions, all by default; a `ValueError` if one does not exist."""
        return session_numbers(sessions, len(self), distinct)

    def _complaint(self, rows: Floats) -> str:
        """The message that says what is wrong with values."""
        times = rows[:, self._kinds.times]
        wrong = np.isinf(rows).any(axis=1) | (times <= 0).any(axis=1)
        if not wrong.any():
            return f"a value is beyond ±{LARGEST_VALUE:g}"
        b = int(np.argmax(wrong))
        return (
            f"times must be positive and finite, or NaN if missing; those of event {b} are {rows[b].tolist()}"
        )

    def _typed(self, keys: Any, codes: ArrayLike | None, n: int) -> Integers:
        if (keys is None) == (codes is None):
            raise ValueError("give keys or codes")
        if codes is not None:
            return np.minimum(self._labels.check(codes, n, "event"), self._labels.missing)
        found = self.encode(keys)
        if len(found) != n:
            raise ValueError(f"there are {len(found)} keys for {n} events")
        return found


@without_counting
def follow(
    own: Integers,
    offsets: Integers,
    key: Integers,
    rows: Floats,
    kinds: Kinds,
    followed: Followed,
    moved: Moved,
) -> bool:
    """Add events to `followed`, and fill in `moved` and, in `rows`, the values of the event before each.

    `key` and `rows` are those of events of the sessions `own`, one after the other from `offsets` on. Of the
    values that are times, logarithms are taken. Return False, without changing anything, if there are
    impossible values.
    """
    F, around = rows.shape[1], moved.around
    for b in range(len(rows)):
        for f in range(F):
            value = rows[b, f]
            if np.isinf(value) or abs(value) > LARGEST_VALUE or (kinds.times[f] and value <= 0.0):
                return False
    for q in range(len(own)):
        s = own[q]
        last = followed.codes[s]
        moved.position[q], moved.before[q] = followed.number[s] - 1, kinds.classes[last[1]]
        for b in range(offsets[q], offsets[q + 1]):
            number = followed.number[s]
            around.two_before[b], around.before[b], around.key[b] = last[0], last[1], last[2]
            around.after[b], around.position[b], around.in_word[b] = key[b], number - 1, followed.in_word[s]
            moved.classes[b] = kinds.classes[last[2]]
            if number == 0:
                # The first interval is unknown, whatever value stands there.
                rows[b, 0] = np.nan
            for f in range(F):
                value = math.log(rows[b, f]) if kinds.times[f] else rows[b, f]
                rows[b, f], followed.values[s, f] = followed.values[s, f], value
                moved.shift[b, f] = -rows[b, f] if kinds.times[f] else 0.0
            in_word = place_in_word(followed.in_word[s], number == 0, last[2], kinds.spaces)
            followed.in_word[s] = min(in_word, LAST_IN_WORD)
            last[0], last[1], last[2] = last[1], last[2], key[b]
            followed.number[s] = number + 1
    return True


@without_counting
def add_shift(events: Floats, shift: Floats) -> None:
    """Add the shift of each event's values, (B, F), to its terms, (B, U)."""
    for b in range(len(shift)):
        for f in range(shift.shape[1]):
            for u in range(events.shape[1]):
                events[b, u] += shift[b, f]


# A live session calls these with every event.
_follow, _standardise, _score, _add_shift = (Direct(one) for one in (follow, standardise, score, add_shift))


def _pieces(offsets: Integers, n_templates: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices of whole runs, and of their events, for calls of limited size."""
    begin, n = 0, len(offsets) - 1
    while begin < n:
        limit = offsets[begin] + max(AT_A_TIME // n_templates, 1)
        end = max(int(np.searchsorted(offsets, limit, side="right")) - 1, begin + 1)
        yield slice(begin, end), slice(int(offsets[begin]), int(offsets[end]))
        begin = end


def session_numbers(sessions: ArrayLike | None, n: int, distinct: bool) -> Integers:
    """The numbers of these of n sessions, all by default; a `ValueError` if one does not exist."""
    if sessions is None:
        return np.arange(n)
    which = np.asarray(sessions)
    if which.dtype == np.int64 and which.shape == (1,) and 0 <= which[0] < n:
        return which
    if which.ndim != 1 or (len(which) and which.dtype.kind not in "iu"):
        raise ValueError("sessions must be a list of whole numbers")
    if len(which) and (which.min() < 0 or which.max() >= n):
        raise ValueError(f"sessions are numbered 0 to {n - 1}")
    if distinct and len(which) > 1 and len(np.unique(which)) < len(which):
        raise ValueError("a session is named twice")
    return which.astype(np.int64)


class PopulationStream:
    """A stream that scores one sample under several templates; `PopulationStreams` of one session."""

    def __init__(self, fitted: Fitted, templates: Sequence[Template]) -> None:
        self._streams = PopulationStreams(fitted, templates[:1], templates[1:])

    def restart(self) -> None:
        """Begin another sample."""
        self._streams.restart()

    def update(self, values: ArrayLike, key: Any) -> Floats | None:
        """Add an event and return the terms, (U,), of the one before it; None at a sample's first event.

        `values` are those of this event, as `PopulationStreams.update` takes them.
        """
        first = self._streams.n_events[0] == 0
        terms = self._streams.update(np.asarray(values)[None], [key])[0]
        return None if first else terms

    def end(self) -> Floats:
        """Return the terms, (U,), of the last event, after which no key comes, and `restart`."""
        terms: Floats = self._streams.end()[0]
        return terms
