"""Speed of fitting and scoring, side by side with hmmlearn: nanoseconds of processor time an observation.

Run with `make bench`. All figures of a table are from one run on one machine; compare ratios, not runs.
Before timing it is checked that both libraries reach the same log-likelihood from the same start.
"""

from __future__ import annotations

import csv
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hmmlearn.hmm import GaussianHMM
from rich.console import Console
from rich.table import Table

from keydyn import HMM, POHMM, Sequences

OUT = Path("out") / "bench"
ITERATIONS, REPEATS, N_TYPES = 20, 5, 12
WORKLOADS = {"one sequence of 100,000": [100_000], "5,000 sequences of 11": [11] * 5_000}


def main() -> None:
    """Measure, print and write the table."""
    warnings.simplefilter("ignore")
    rows = []
    for name, lengths in WORKLOADS.items():
        sequences = simulated(lengths)
        check_same_likelihood(sequences)
        n = sequences.n_events
        fits = {
            "keydyn POHMM, 12 types": lambda s=sequences: ours(POHMM).fit(s),
            "keydyn HMM": lambda s=sequences: ours(HMM).fit(s),
            "hmmlearn, scaling": lambda s=sequences: theirs(s).fit(np.log(s.X), s.lengths),
        }
        for library, run in fits.items():
            rows.append((f"fit, {name}", library, nanoseconds(run) / n / ITERATIONS))
        model, peer = (
            ours(POHMM).fit(sequences),
            theirs(sequences).fit(np.log(sequences.X), sequences.lengths),
        )
        scores = {
            "keydyn POHMM, 12 types": lambda m=model, s=sequences: m.score_sequences(s),
            "hmmlearn, scaling": lambda m=peer, s=sequences: [m.score(np.log(item.X)) for item in s],
        }
        for library, run in scores.items():
            rows.append((f"score each, {name}", library, nanoseconds(run) / n))
    show(rows)


def simulated(lengths: list[int]) -> Sequences:
    """Two log-normal features, twelve event types."""
    rng = np.random.default_rng(1)
    n = sum(lengths)
    slow = rng.random(n) < 0.3
    X = np.exp(
        np.stack([5.0 + slow + 0.3 * rng.standard_normal(n), 4.5 + 0.2 * rng.standard_normal(n)], axis=1)
    )
    return Sequences.from_arrays(X, rng.integers(0, N_TYPES, n), lengths)


def ours(kind: type[POHMM]) -> POHMM:
    return kind(smoothing=None, max_iter=ITERATIONS, tol=0.0, order_states=False, spread=1.0)


def theirs(sequences: Sequences) -> GaussianHMM:
    """hmmlearn on ln x, from the same start as ours, without priors."""
    begin = HMM(max_iter=1, order_states=False, spread=1.0, fixed=("start", "transitions", "emission")).fit(
        sequences
    )
    peer = GaussianHMM(
        2,
        "diag",
        n_iter=ITERATIONS,
        tol=-np.inf,
        init_params="",
        implementation="scaling",
        min_covar=0,
        covars_prior=0,
        covars_weight=1,
    )
    peer.startprob_, peer.transmat_ = begin.startprob_[0], begin.transmat_[0, 0]
    peer.means_ = np.stack([e.loc[0] for e in begin.emission_], axis=1)
    peer.covars_ = np.stack([e.scale[0] ** 2 for e in begin.emission_], axis=1)
    return peer


def check_same_likelihood(sequences: Sequences) -> None:
    """The log-normal density has the factor 1/x that a normal of ln x has not."""
    found = ours(HMM).fit(sequences).log_likelihood_ + np.log(sequences.X).sum()
    expected = (
        theirs(sequences)
        .fit(np.log(sequences.X), sequences.lengths)
        .score(np.log(sequences.X), sequences.lengths)
    )
    if not np.isclose(found, expected, rtol=1e-9):
        raise SystemExit(f"keydyn {found} and hmmlearn {expected} disagree: nothing to time")


def nanoseconds(run: Callable[[], object]) -> float:
    """Median processor time, compilation and caches warmed up before."""
    run()
    times = []
    for _ in range(REPEATS):
        began = time.process_time_ns()
        run()
        times.append(time.process_time_ns() - began)
    return statistics.median(times)


def show(rows: list[tuple[str, str, float]]) -> None:
    table = Table(title=f"ns an observation (fits: and iteration), median of {REPEATS}", title_justify="left")
    for column in ("workload", "library", "ns", "hmmlearn / this"):
        table.add_column(column, justify="left" if column in ("workload", "library") else "right")
    peers = {workload: ns for workload, library, ns in rows if library.startswith("hmmlearn")}
    for workload, library, ns in rows:
        table.add_row(workload, library, f"{ns:,.0f}", f"{peers[workload] / ns:.1f}")
    Console().print(table)
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / "speed.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["workload", "library", "ns", "hmmlearn_ratio"])
        writer.writerows([w, lib, f"{ns:.1f}", f"{peers[w] / ns:.2f}"] for w, lib, ns in rows)
    Console().print(f"Wrote {OUT / 'speed.csv'}")


if __name__ == "__main__":
    main()
