"""How much a sample has to say: too little is an answer of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Integers, Truths
from keydyn.detectors import Detector
from keydyn.keystrokes.samples import Samples
from keydyn.model.data.vocabulary import find
from keydyn.population.cells import located

LEAST_KEYSTROKES = 6
LEAST_KNOWN = 4
# With fewer of its pairs of keys typed at enrolment, a sample is of another text. In the paper's datasets the
# share is 0.5 or more for samples of the same kind of text, and at most 0.2 for digits under essays' models.
LEAST_FAMILIAR = 0.25
# Samples with fewer pairs are too short to tell.
LEAST_PAIRS = 8


@dataclass(frozen=True)
class Evidence:
    """What there is of a sample: keystrokes with a time to score, and those of keys that the model knows.

    `pairs` are the pairs of a key and the next, and `familiar` those that were typed at enrolment.

    Examples
    --------
    >>> from keydyn.decisions import Evidence
    >>> Evidence(keystrokes=80, known=78).shortage()
    []
    >>> len(Evidence(keystrokes=3, known=3).shortage()) > 0
    True
    """

    keystrokes: int
    known: int
    pairs: int = 0
    familiar: int = 0

    @property
    def other_text(self) -> bool:
        """Whether the sample is of another text than the model."""
        return self.pairs >= LEAST_PAIRS and self.familiar < LEAST_FAMILIAR * self.pairs

    def shortage(self, least_keystrokes: int = LEAST_KEYSTROKES, least_known: int = LEAST_KNOWN) -> list[str]:
        """What is too little for a decision, in words; nothing if there is enough."""
        reasons = []
        if self.keystrokes < least_keystrokes:
            reasons.append(f"{_counted(self.keystrokes)}, fewer than {least_keystrokes}")
        if self.known < least_known:
            reasons.append(f"{_counted(self.known)} of known keys, fewer than {least_known}")
        elif least_known > 0 and self.other_text:
            reasons.append(
                f"a different text than at enrolment: {self.familiar} of its {self.pairs} pairs of keys "
                "were typed then"
            )
        return reasons


def evidence(samples: Samples, template: Detector) -> list[Evidence]:
    """The evidence in each sample, for or against the person whose template it is."""
    starts = samples.sequences.offsets[:-1]
    counts = np.add.reduceat(evidence_by_key(samples, template), starts, axis=0)
    return [Evidence(*each) for each in counts.tolist()]


def evidence_by_key(samples: Samples, template: Detector) -> Integers:
    """What each keystroke adds to the counts of `Evidence`, (N, 4)."""
    sequences = samples.sequences
    scored = np.isfinite(sequences.X).any(axis=1)
    keys = template.known_keys
    if keys is None:
        # Without event types every key is as good as any other, and pairs mean nothing.
        nothing = np.zeros_like(scored)
        return np.column_stack([scored, scored, nothing, nothing]).astype(np.int64)
    places, _ = find(sequences.codes, sequences.event_types, keys)
    known = scored & (places < len(keys))
    pairs = np.full(len(places), len(keys) > 1)
    pairs[sequences.offsets[:-1]] = False
    familiar = _familiar(places, len(keys), template.known_pairs)
    return np.column_stack([scored, known, pairs, pairs & familiar]).astype(np.int64)


def _familiar(places: Integers, m: int, pairs: Integers) -> Truths:
    """Whether each key is known to come after the one before it."""
    seen = np.sort(pairs[:, 0] * (m + 1) + pairs[:, 1])
    familiar = np.zeros(len(places), dtype=bool)
    _, familiar[1:] = located(seen, places[:-1] * (m + 1) + places[1:])
    return familiar


def _counted(n: int) -> str:
    return f"{n} keystroke{'' if n == 1 else 's'}"
