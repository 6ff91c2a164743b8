"""Rates of claims, each by one person in the name of another, with intervals over people in both roles."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.evaluation.rates.confidence import REPLICATES, Rate, interval, user_weights


class Claims:
    """Who claimed to be whom; people are drawn with replacement, and a claim counts for both of its people.

    `claimed` and `typist` (n,) are the numbers of the people in each claim.
    """

    def __init__(
        self, claimed: Integers, typist: Integers, replicates: int = REPLICATES, seed: int = 0
    ) -> None:
        people, places = np.unique(np.concatenate([claimed, typist]), return_inverse=True)
        n, self.n_people = len(claimed), len(people)
        self.pairs = places[:n] * self.n_people + places[n:]
        self.weights = user_weights(self.n_people, replicates, seed)
        self.totals = self._drawn(np.ones(n))

    def interval(self, counted: Truths | Floats) -> tuple[float, float]:
        """95 % interval of the share of claims that are counted, (n,)."""
        there = self.totals > 0
        low, high = interval(self._drawn(counted.astype(np.float64))[there] / self.totals[there])
        return float(low), float(high)

    def rate(self, counted: Truths) -> Rate:
        """The share with its interval."""
        return Rate(float(counted.mean()), *self.interval(counted), trials=len(counted))

    def _drawn(self, counted: Floats) -> Floats:
        """(R,) claims counted as often as both of their people were drawn."""
        n = self.n_people
        counts = np.bincount(self.pairs, counted, n * n).reshape(n, n)
        # Somebody who claims to be themselves was drawn once, not twice.
        own = np.diag(counts).copy()
        np.fill_diagonal(counts, 0.0)
        drawn: Floats = ((self.weights @ counts) * self.weights).sum(axis=1) + self.weights @ own
        return drawn
