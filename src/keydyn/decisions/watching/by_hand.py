"""Judging whether watched sessions are typed by hand: every hundred keys are judged as a sample is.

A block is complete when it has `KEYS` keys that the population knows. Blocks do not overlap, so that the rate
of blocks wrongly called forged is that of samples of a hundred keys (`liveness.hands`). A session keeps the
keys of the incomplete block, with their times, and the judgement of the last complete one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.decision import NOT_JUDGED, Typed
from keydyn.decisions.liveness.hands import LEAST_KNOWN_SHARE, REASONS, typed_beside
from keydyn.detectors.detector import Detector
from keydyn.detectors.population_detector import PopulationDetector
from keydyn.files import Tensors, within
from keydyn.keystrokes.one_sample import without_impossible
from keydyn.keystrokes.samples import Samples, families_of
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.vocabulary import MISSING
from keydyn.population.model import PopulationModel
from keydyn.population.shared_parameters import Template
from keydyn.population.stream.streams import Rows, Runs

# Judges whether samples were typed by hand, given a population and the template of the claimed person.
Judge = Callable[[PopulationModel, Template, Samples], list[Typed]]
# The number of known keys in a block, and the most keys of a block: with more, too few of them are known.
KEYS = 100
MOST = int(KEYS / LEAST_KNOWN_SHARE)
# A session is judged again and again, so it is locked only at this share of the rate at which a claim is
# rejected.
LOCKED_SHARE = 0.2
ANSWERS: tuple[Literal["no", "unsure", "yes"], ...] = ("no", "unsure", "yes")
# The largest possible evidence of a look, in nats.
MOST_EVIDENCE = 1e6


class Look(NamedTuple):
    """The judgement of a block of a session; `event` is the number of the event that completed the block.

    A `forged` block locks the session.
    """

    event: int
    session: int
    typed: Typed
    forged: bool


class Kept(NamedTuple):
    """Copies of the block sizes of sessions, and of blocks that may be completed, with their judgements."""

    rows: Rows
    size: Integers
    due: Rows
    found: Floats
    keys: NDArray[np.float32]


class ByHand:
    """Judges whether S sessions of one population are typed by hand.

    A session is locked at a share of the rate `alarms` at which a claim is rejected.
    """

    def __init__(
        self,
        people: PopulationModel,
        claimed: Sequence[Template],
        alarms: float,
        judge: Judge = typed_beside,
    ) -> None:
        self._people, self._claimed, self._judge = people, list(claimed), judge
        self._rate = LOCKED_SHARE * alarms
        self._vocabulary = people.parameters.cells.vocabulary
        self._features = people.parameters.features
        n, F = len(claimed), len(self._features)
        # Codes and values of the keys of each incomplete block, and the number of these keys.
        self._keys: NDArray[np.float32] = np.zeros((n, MOST, 1 + F), dtype=np.float32)
        self._size: Integers = np.zeros(n, dtype=np.int64)
        # The answer, its evidence, its rate among people, and the number of the reason, −1 for none.
        self._found: Floats = np.tile(_row(NOT_JUDGED), (n, 1))

    def restart(self, which: Integers, claimed: Sequence[Template] | None = None) -> None:
        """Forget all about these sessions; `claimed` gives each another person's template."""
        self._keys[which], self._size[which], self._found[which] = 0.0, 0, _row(NOT_JUDGED)
        if claimed is not None:
            for place, template in zip(which.tolist(), claimed, strict=True):
                self._claimed[place] = template

    def typed(self, session: int) -> Typed:
        """The judgement of the last complete block of a session."""
        answer, llr, rate, reason = self._found[session].tolist()
        return Typed(ANSWERS[int(answer)], llr, rate, REASONS[int(reason)] if reason >= 0 else None)

    def take(self, runs: Runs, codes: Integers, values: NDArray[np.float32]) -> list[Look]:
        """Take events in runs, (B,) and (B, F), and judge the blocks that they complete."""
        own, offsets, sizes = runs.own, runs.offsets, runs.sizes
        if len(own) == 1:
            session = own.item()
            begin = self._size.item(session)
            end = begin + len(codes)
            if end < KEYS:
                # Most events complete no block.
                block = self._keys[session, begin:end]
                block[:, 0], block[:, 1:] = codes, values
                self._size[session] = end
                return []
        due = self._due(own, sizes)
        events = np.column_stack([codes, values]).astype(np.float32)
        adding = np.repeat(~due, sizes)
        place = np.arange(len(events)) + np.repeat(self._size[own] - offsets[:-1], sizes)
        self._keys[np.repeat(own, sizes)[adding], place[adding]] = events[adding]
        self._size[own[~due]] += sizes[~due]
        looks: list[Look] = []
        for q in np.flatnonzero(due).tolist():
            looks += self._completed(int(own[q]), int(offsets[q]), events[offsets[q] : offsets[q + 1]])
        return looks

    def tables(self) -> Tensors:
        """The arrays that events change, with one row per session."""
        return {"block": self._keys, "block_size": self._size, "by_hand": self._found}

    def kept(self, rows: Rows, runs: Runs) -> Kept:
        """Copy what `take` would change, for `put_back`; of blocks not completed, only the size."""
        own = runs.own[self._due(rows, runs.sizes)]
        # Mostly there are none, and a slice without rows is found faster than no numbers of rows.
        due = own if len(own) else slice(0)
        return Kept(rows, self._size[rows].copy(), due, self._found[due], self._keys[due])

    def put_back(self, kept: Kept) -> None:
        """Restore sessions to their state before `take`."""
        self._size[kept.rows] = kept.size
        self._found[kept.due], self._keys[kept.due] = kept.found, kept.keys

    def _due(self, rows: Rows, sizes: Integers) -> Truths:
        """Mask of the sessions in which a block may be complete after these numbers of events."""
        due: Truths = self._size[rows] + sizes >= KEYS
        return due

    def check(self, state: Tensors) -> None:
        """Raise a `ValueError` if a stored state is impossible."""
        within(0, MOST - 1)("the state's block_size", state["block_size"])
        keys = state["block"][np.arange(MOST) < state["block_size"][:, None]]
        if not np.isin(keys[:, 0], np.arange(len(self._vocabulary) + 1)).all():
            raise ValueError("the state's block has keys that do not exist")
        if np.isinf(keys).any() or (keys[:, 1:3] <= 0).any():
            raise ValueError("the state's block has values out of range")
        answer, llr, rate, reason = state["by_hand"].T
        within(-MOST_EVIDENCE, MOST_EVIDENCE)("the state's by_hand", llr)
        within(0.0, 1.0)("the state's by_hand", rate)
        if not (np.isin(answer, range(3)).all() and np.isin(reason, range(-1, len(REASONS))).all()):
            raise ValueError("the state's by_hand has answers that do not exist")

    def _completed(self, session: int, first: int, events: NDArray[np.float32]) -> list[Look]:
        """Judge the blocks of a session that these events complete; `first` numbers the first event."""
        keys = np.concatenate([self._keys[session, : self._size[session]], events])
        known = np.cumsum((keys[:, 0] < len(self._vocabulary)) & np.isfinite(keys[:, 2]))
        looks, begin, before = [], 0, len(keys) - len(events)
        while True:
            counted = int(known[begin - 1]) if begin else 0
            end = int(np.searchsorted(known, counted + KEYS)) + 1
            if min(end, begin + MOST) > len(keys):
                break
            if end <= begin + MOST:
                typed = self._judged(session, keys[begin:end])
                self._found[session] = _row(typed)
                forged = typed.reason is not None and typed.rate <= self._rate
                looks.append(Look(first + end - 1 - before, session, typed, forged))
            begin = min(end, begin + MOST)
        rest = keys[begin:]
        self._keys[session], self._size[session] = 0.0, len(rest)
        self._keys[session, : len(rest)] = rest
        return looks

    def _judged(self, session: int, keys: NDArray[np.float32]) -> Typed:
        """Judge whether these keys of a session were typed by hand."""
        values, codes = keys[:, 1:].astype(np.float64), keys[:, 0].astype(np.int64)
        codes[codes == len(self._vocabulary)] = MISSING
        # The interval before the first key does not belong to the block.
        values[0, 0] = np.nan
        parts = values, codes, self._vocabulary, np.array([0, len(keys)]), self._features
        sample = Samples([("", 0)], Sequences.of_checked(*parts), families_of(self._features))
        return self._judge(self._people, self._claimed[session], without_impossible(sample))[0]


def looks_in_name_of(claimed: Detector, sample: Samples, alarms: float) -> list[Look]:
    """The looks that watching this sample would have given; none without a population."""
    if not isinstance(claimed, PopulationDetector):
        return []
    return looks_at(ByHand(claimed.people, [claimed.template_], alarms), claimed.people, sample)


def looks_at(session: ByHand, people: PopulationModel, sample: Samples) -> list[Look]:
    """The looks at one sample that makes up a whole session."""
    sequences = sample.sequences
    known, names = people.parameters, sequences.feature_names or ()
    columns = [sequences.X[:, names.index(name)] for name in known.features]
    codes = known.cells.places(sequences.event_types)[sequences.codes]
    values = np.column_stack(columns).astype(np.float32)
    return session.take(Runs.of(np.zeros(len(codes), dtype=np.int64)), codes, values)


def _row(typed: Typed) -> Floats:
    reason = -1 if typed.reason is None else REASONS.index(typed.reason)
    return np.array([ANSWERS.index(typed.answer), typed.llr, typed.rate, reason])
