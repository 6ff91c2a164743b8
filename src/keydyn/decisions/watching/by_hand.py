"""Whether hands type sessions that are watched, looked at again and again on the last keys of each.

A session is looked at every `EVERY` keys, on its last `LAST` keys at most, by the ratio of typed against
forged that judges whole samples (`liveness.hands`). A look may be wrong about as many people as a sample may;
there is one for each hundred keys, so that a hundred keys that are watched are as often called forged by
mistake as a hundred keys that are verified. What is kept of a session are those last keys with their times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.decisions.decision import NOT_JUDGED, Typed
from keydyn.decisions.liveness.hands import REASONS, REJECTED_FROM, typed_beside
from keydyn.files import Tensors, within
from keydyn.keystrokes.one_sample import without_impossible
from keydyn.keystrokes.samples import Samples, families_of
from keydyn.model.data.sequences import Sequences
from keydyn.population.model import PopulationModel
from keydyn.population.parameters import Template

# Keys from one look to the next, and the most that a look is of.
EVERY, LAST = 100, 200
ANSWERS = ("no", "unsure", "yes")
# Beyond this no evidence of a look can come.
MOST_EVIDENCE = 1e6


class Look(NamedTuple):
    """What was found after which of the events that came, of which session; `forged` ones lock it."""

    event: int
    session: int
    typed: Typed
    forged: bool


class ByHand:
    """What is known of whether hands type S sessions of one population.

    A session is locked where a claim would be rejected: at most a share `alarms` of people's looks are.
    Reading the next events changes nothing before `take`, so that what is interrupted is as it was.
    """

    def __init__(self, people: PopulationModel, claimed: Sequence[Template], alarms: float) -> None:
        self._people, self._claimed, self._alarms = people, list(claimed), alarms
        self._vocabulary = people.parameters.cells.vocabulary
        self._features = people.parameters.features
        n, F = len(claimed), len(self._features)
        # Codes and values of the last keys; event n of a session is at n modulo `LAST`.
        self._keys: NDArray[np.float32] = np.zeros((n, LAST, 1 + F), dtype=np.float32)
        # The answer, its evidence, how rare that is in people, and the reason against it, −1 for none.
        self._found: Floats = np.tile(_row(NOT_JUDGED), (n, 1))

    def restart(self, which: Integers, claimed: Sequence[Template] | None = None) -> None:
        """Nothing is known of these sessions; `claimed` gives each another person's template."""
        self._keys[which], self._found[which] = 0.0, _row(NOT_JUDGED)
        for place, template in zip(which.tolist(), claimed or (), strict=claimed is not None):
            self._claimed[place] = template

    def typed(self, session: int) -> Typed:
        """What the last look at a session found."""
        answer, llr, rate, reason = self._found[session].tolist()
        found = NOT_JUDGED._replace(llr=llr, rate=rate, reason=REASONS[int(reason)] if reason >= 0 else None)
        return found._replace(answer=ANSWERS[int(answer)])

    def looks(self, own: Integers, offsets: Integers, before: Integers, events: Floats) -> list[Look]:
        """What is found by looks that are due within these events, session by session.

        `events`, (B, 1 + F), are codes and values of the sessions `own`, which begin at `offsets`; each had
        `before` events until now.
        """
        due = np.flatnonzero((before + np.diff(offsets)) // EVERY > before // EVERY)
        found = []
        for q in due.tolist():
            s, n, begin, end = int(own[q]), int(before[q]), int(offsets[q]), int(offsets[q + 1])
            earlier = self._keys[s, np.arange(max(n - LAST, 0), n) % LAST]
            keys = np.concatenate([earlier, events[begin:end]], dtype=np.float32)
            for at in range((n // EVERY + 1) * EVERY, n + end - begin + 1, EVERY):
                last = len(keys) - (n + end - begin - at)
                typed, forged = self._judged(s, keys[max(last - LAST, 0) : last])
                found.append(Look(begin + at - n - 1, s, typed, forged))
        return found

    def take(
        self, own: Integers, offsets: Integers, before: Integers, events: Floats, looks: Sequence[Look]
    ) -> None:
        """Go on from these events and what was found in them."""
        sizes = np.diff(offsets)
        place = np.arange(len(events)) + np.repeat(before - offsets[:-1], sizes)
        session = np.repeat(own, sizes)
        # Of one place, the last key that came there stays.
        left = np.repeat(offsets[1:], sizes) - np.arange(len(events)) <= LAST
        self._keys[session[left], place[left] % LAST] = events[left]
        for look in looks:
            self._found[look.session] = _row(look.typed)

    def kept(self) -> Tensors:
        """What changes with events, a row per session."""
        return {"last_keys": self._keys, "by_hand": self._found}

    def check(self, state: Tensors) -> None:
        """A `ValueError` if what `kept` gave cannot be."""
        code, values, unknown = state["last_keys"][..., 0], state["last_keys"][..., 1:], len(self._vocabulary)
        if not ((code >= 0) & (code <= unknown) & (code % 1 == 0)).all():
            raise ValueError("the state's last_keys has keys that there are not")
        if np.isinf(values).any():
            raise ValueError("the state's last_keys has values out of range")
        answer, llr, rate, reason = state["by_hand"].T
        within(-MOST_EVIDENCE, MOST_EVIDENCE)("by_hand", llr)
        within(0.0, 1.0)("by_hand", rate)
        if not (np.isin(answer, range(3)).all() and np.isin(reason, range(-1, len(REASONS))).all()):
            raise ValueError("the state's by_hand has answers that there are not")

    def _judged(self, session: int, keys: NDArray[np.float32]) -> tuple[Typed, bool]:
        """Whether a hand typed these keys of a session, and whether that locks it."""
        values, codes = keys[:, 1:].astype(np.float64), keys[:, 0].astype(np.int64)
        known = int(np.count_nonzero((codes < len(self._vocabulary)) & np.isfinite(values[:, 1])))
        # Whatever came before the first of them.
        values[0, 0] = np.nan
        parts = values, codes, self._vocabulary, np.array([0, len(keys)]), self._features
        sample = Samples([("", 0)], Sequences.of_checked(*parts), families_of(self._features))
        typed = typed_beside(self._people, self._claimed[session], without_impossible(sample))[0]
        forged = typed.reason is not None and typed.rate <= self._alarms and known >= REJECTED_FROM
        return typed, forged


def _row(typed: Typed) -> Floats:
    reason = -1 if typed.reason is None else REASONS.index(typed.reason)
    return np.array([ANSWERS.index(typed.answer), typed.llr, typed.rate, reason])
