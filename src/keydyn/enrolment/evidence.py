"""How much a sample has to say: too little is an answer of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.keystrokes.samples import Samples
from keydyn.model import POHMM
from keydyn.model.data.vocabulary import find

LEAST_KEYSTROKES = 6
LEAST_KNOWN = 4


@dataclass(frozen=True)
class Evidence:
    """What there is of a sample: keystrokes with a time to score, and those of keys that the model knows."""

    keystrokes: int
    known: int

    def shortage(self, least_keystrokes: int = LEAST_KEYSTROKES, least_known: int = LEAST_KNOWN) -> list[str]:
        """What is too little for a decision, in words; nothing if there is enough."""
        reasons = []
        if self.keystrokes < least_keystrokes:
            reasons.append(f"{_counted(self.keystrokes)}, fewer than {least_keystrokes}")
        if self.known < least_known:
            reasons.append(f"{_counted(self.known)} of known keys, fewer than {least_known}")
        return reasons


def evidence(samples: Samples, model: POHMM) -> list[Evidence]:
    """The evidence in each sample, for or against the person whose model it is."""
    sequences = samples.sequences
    scored = np.isfinite(sequences.X).any(axis=1)
    # A model without event types knows every key.
    places, _ = find(sequences.codes, sequences.event_types, model.event_types_)
    known = scored & (places < len(model.event_types_))
    starts = sequences.offsets[:-1]
    counts = (np.add.reduceat(flags.astype(np.int64), starts) for flags in (scored, known))
    return [Evidence(int(n), int(k)) for n, k in zip(*counts, strict=True)]


def _counted(n: int) -> str:
    return f"{n} keystroke{'' if n == 1 else 's'}"
