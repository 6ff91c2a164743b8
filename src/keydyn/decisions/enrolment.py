"""Whether a sample is good enough to enrol a person with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.evidence import Evidence, evidence
from keydyn.decisions.liveness.copies import Fingerprints, copy_evidence
from keydyn.decisions.liveness.not_typed import not_typed, remarks
from keydyn.decisions.liveness.sample_times import tick_of, times_of
from keydyn.detectors import PopulationDetector
from keydyn.keystrokes.samples import Samples


@dataclass(frozen=True)
class EnrolmentQuality:
    """The quality of a sample that a person is to be enrolled with.

    Attributes
    ----------
    keystrokes : how many have a time
    known : how many of these are of keys that the population knows; all, if there is no population
    tick : of the clock, milliseconds; 0 if it is not coarse
    reasons : in words, why the sample is refused
    remarks : in words, what makes it worth less without refusing it

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import enrolment_quality, shipped_background
    >>> from keydyn.keystrokes import Samples
    >>> quality = enrolment_quality(Samples.of(make_typists(1, 1, "free", 80)), shipped_background())
    >>> quality.accepted, quality.keystrokes, quality.tick
    (True, 80, 0.0)
    """

    keystrokes: int
    known: int
    tick: float
    reasons: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Whether the sample may be enrolled with."""
        return not self.reasons


def enrolment_quality(
    sample: Samples,
    background: Background | None,
    earlier: Fingerprints | None = None,
    secret: bytes | None = None,
) -> EnrolmentQuality:
    """Check one sample; with the fingerprints of `earlier` ones, and their secret, copies are refused too.

    Without a background, as long as none has been learnt, every key is as good as any other.

    Examples
    --------
    >>> from keydyn.decisions import enrolment_quality, shipped_background
    >>> from keydyn.keystrokes import one_sample
    >>> presses = [100.0 * n for n in range(60)]  # no person types like a clock
    >>> sample = one_sample(list("the cats " * 7)[:60], presses, [press + 50.0 for press in presses])
    >>> quality = enrolment_quality(sample, shipped_background())
    >>> quality.accepted, len(quality.reasons) > 0
    (False, True)
    """
    if len(sample) != 1:
        raise ValueError(f"the quality is that of one sample, not of {len(sample)}")
    copied = -np.inf
    if earlier is not None:
        if secret is None:
            raise ValueError("earlier fingerprints can be compared only with the secret that keys them")
        copied = float(copy_evidence(sample, earlier, secret)[0])
    counts = _counts(sample, background)
    reasons = [*_zero_times(sample), *not_typed(sample, copied), *counts.shortage()]
    tick = tick_of(times_of(sample))
    return EnrolmentQuality(
        counts.keystrokes, counts.known, tick, tuple(reasons), tuple(remarks(sample, counts))
    )


def _counts(sample: Samples, background: Background | None) -> Evidence:
    """Keystrokes, and those of known keys; before an enrolment, no pairs of keys are familiar."""
    if background is not None and isinstance(background.pattern, PopulationDetector):
        found = evidence(sample, background.pattern)[0]
        return Evidence(found.keystrokes, found.known)
    there = int(np.isfinite(sample.sequences.X).any(axis=1).sum())
    return Evidence(there, there)


def _zero_times(sample: Samples) -> list[str]:
    """Times that have no logarithm."""
    intervals, holds = (int(count) for count in (times_of(sample) <= 0).sum(axis=0))
    if intervals + holds == 0:
        return []
    return [f"times of 0 ms, which no model of times can take: {intervals} intervals, {holds} holds"]
