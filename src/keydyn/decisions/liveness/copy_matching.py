"""How close the times of a sample are to those of known samples, and what that says. Compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers, compiled

Hashes = NDArray[np.uint32]


@compiled
def fill_copy_evidence(
    probes: Hashes, known: Hashes, offsets: Integers, fresh: Floats, copied: Floats, evidence: Floats
) -> None:
    """For each of n known samples: the logarithm of the likelihood ratio, with the jitter that fits best.

    `probes` (v, m) are the hashes of each time of the sample, moved by −m // 2 to m // 2 steps, and `known`
    those of the known samples, sample s from offsets[s] to offsets[s + 1]. `fresh` (v, m + 1) and `copied`
    (jitters, m + 1) are the logarithms of the probability of each move, the last of none. Where several moves
    lead to a known sample the least counts, of two as small the one forward.
    """
    v, m = probes.shape
    size = 64
    while size < 2 * v * m:
        size *= 2
    # A table of the probes: the first of each place, and the next of the same place.
    last = np.uint32(size - 1)
    first, following = np.full(size, -1), np.empty(v * m, dtype=np.int64)
    for i in range(v * m):
        place = np.int64(probes[i // m, i % m] & last)
        following[i] = first[place]
        first[place] = i
    nearest = np.empty(v, dtype=np.int64)
    for s in range(len(offsets) - 1):
        nearest[:] = m
        for k in range(offsets[s], offsets[s + 1]):
            i = first[np.int64(known[k] & last)]
            while i >= 0:
                time, move = i // m, i % m
                if probes[time, move] == known[k]:
                    away, least = abs(move - m // 2), abs(nearest[time] - m // 2)
                    if nearest[time] == m or away < least or (away == least and move > nearest[time]):
                        nearest[time] = move
                i = following[i]
        evidence[s] = -np.inf
        for j in range(len(copied)):
            ratio = 0.0
            for time in range(v):
                ratio += copied[j, nearest[time]] - fresh[time, nearest[time]]
            evidence[s] = max(evidence[s], ratio)
