"""Killourhy and Maxion's table for the CMU password data (DSN 2009), measured and compared with published.

Vectors hold all 31 times: 11 hold times, 10 press-press and 10 release-press intervals. The equal
error rate and the zero-miss false-alarm rate are computed for each user, then averaged.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from keydyn.detectors import Detector, make_detector
from keydyn.evaluation.protocols.protocol import KillourhyMaxion
from keydyn.evaluation.protocols.running import score_protocol
from keydyn.evaluation.rates.error_curve import equal_error_rate, zero_miss_rate
from keydyn.keystrokes.fixed_text import fixed_text_vectors
from keydyn.keystrokes.samples import Samples

TIMINGS = ("duration", "tau", "release_press")

#: Published figures by detector: mean equal error rate, its standard deviation over users, and mean zero-miss
#: rate; None if unknown.
PUBLISHED: dict[str, tuple[float | None, float | None, float | None]] = {
    "manhattan-scaled": (0.0962, 0.0694, 0.601),
    "nearest-neighbour": (0.0996, 0.0642, 0.468),
    "outlier-count": (0.1022, 0.0767, 0.782),
    "svm": (0.1025, None, None),
    "mahalanobis": (0.1101, 0.0645, 0.482),
    "mahalanobis-normed": (None, None, None),
    "manhattan-filtered": (0.1360, 0.083, 0.755),
    "manhattan": (0.1529, 0.0925, 0.843),
    "euclidean": (0.1706, 0.0952, 0.875),
    "euclidean-normed": (0.2153, 0.1187, 0.912),
    "k-means": (0.3722, None, None),
}


def password_samples(keystrokes: pd.DataFrame) -> Samples:
    """Samples of the password data whose vectors hold all 31 times, in seconds as the authors use them.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.lab.killourhy_maxion import password_samples
    >>> samples = password_samples(make_typists(2, 3))
    >>> samples.vectors.shape  # 11 hold times, and 10 intervals of either kind
    (6, 31)
    """
    samples = Samples.of(keystrokes)
    return replace(samples, feature_table=fixed_text_vectors(keystrokes, TIMINGS) / 1000.0)


def killourhy_maxion(detector: str | Detector, samples: Samples) -> pd.DataFrame:
    """Equal error rate and zero-miss rate of each user.

    `manhattan-scaled` and `svm` given by name scale by the training samples, as the authors do.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.lab.killourhy_maxion import killourhy_maxion, password_samples
    >>> samples = password_samples(make_typists(3, 205))
    >>> table = killourhy_maxion("manhattan", samples)
    >>> table.shape[0], table.columns.tolist()
    (3, ['eer', 'zero_miss'])
    """
    if isinstance(detector, str) and detector in ("manhattan-scaled", "svm"):
        detector = make_detector(detector, scale="template")
    scores = score_protocol(KillourhyMaxion(), detector, samples)
    trials = [scores.trials_of(u) for u in range(len(scores.users))]
    rows = [
        (user, equal_error_rate(*one), zero_miss_rate(*one))
        for user, one in zip(scores.users, trials, strict=True)
    ]
    return pd.DataFrame(rows, columns=["user", "eer", "zero_miss"]).set_index("user")


def main() -> None:
    """Print the measured and published figures of every detector side by side."""
    from keydyn.datasets import load_dataset

    samples = password_samples(load_dataset("password").keystrokes)
    print("| detector | measured | published |\n| --- | --- | --- |")
    for name, published in PUBLISHED.items():
        users = killourhy_maxion(name, samples)
        measured = (users["eer"].mean(), users["eer"].std(), users["zero_miss"].mean())
        print(f"| `{name}` | {_cells(measured)} | {_cells(published)} |")


def _cells(figures: tuple[float | None, float | None, float | None]) -> str:
    eer, std = ("–" if value is None else f"{value:.4f}" for value in figures[:2])
    return f"{eer} ({std}), " + ("–" if figures[2] is None else f"{figures[2]:.3f}")


if __name__ == "__main__":
    main()
