"""What a coarse clock costs: the recordings as they are, and as clocks of 1, 8 and 16 ms would give them.

`python benchmarks/clocks.py --data FOLDER` prints a table in Markdown. Every press and release is moved to
the tick of the clock before it; where the ticks fall is drawn for each sample. Identification and equal error
rates are those of keydyn study recognition, decisions those of keydyn study verification, with the detector
that decisions use. Finished parts are kept in --out, so that an interrupted run goes on.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from keydyn.datasets import load_dataset
from keydyn.decisions.decision import ACCEPT
from keydyn.detectors import PopulationDetector
from keydyn.evaluation.protocols.protocol import MonacoTappert
from keydyn.evaluation.rates.confidence import Claims, Rate, bootstrap_mean
from keydyn.evaluation.rates.identification import identification
from keydyn.evaluation.rates.verification import recognition, verification
from keydyn.keystrokes.cleaning import CleaningRules, clean
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.schema import sample_lengths, sample_starts
from keydyn.lab.frame.resuming import Parts, run_pieces
from keydyn.lab.frame.score_datasets import score_rows, scored_of
from keydyn.lab.frame.study_data import Row
from keydyn.lab.verification.measurements import pairs, strangers_piece
from keydyn.lab.verification.tables import decisions_table, whole

# What the recordings are stored in, milliseconds; a clock of that tick changes nothing.
DATASETS = {"password": 0.1, "fable": 1.0, "essay": 1.0}
TICKS = (1.0, 8.0, 16.0)
# What makes a claim the same one.
SAME = ["pair", "split", "claimed", "typist", "session"]
HEADINGS = (
    *("recording", "clock", "identified", "change", "equal error rate"),
    *("strangers accepted", "genuine accepted", "change", "genuine rejected"),
)


@dataclass(frozen=True, eq=False)
class Measured:
    """What one clock gives: rates of each person, claims that were decided, and the rates of all."""

    people: pd.DataFrame
    claims: pd.DataFrame
    cells: list[str]

    def row(self, name: str, clock: str, own: Measured | None) -> list[str]:
        """Of the table; `own` is what the recording gives as it is."""
        identified, eer, strangers, accepted, rejected = self.cells
        changes = ["–", "–"] if own is None else [self._identified(own), self._accepted(own)]
        return [name, clock, identified, changes[0], eer, strangers, accepted, changes[1], rejected]

    def _identified(self, own: Measured) -> str:
        """The change of the same people's rates, which is more certain than either rate."""
        change = (self.people["acc"] - own.people["acc"]).to_numpy()
        low, high = bootstrap_mean(change[:, None])
        return points(change.mean(), float(low[0]), float(high[0]))

    def _accepted(self, own: Measured) -> str:
        here, there = (frame[frame["genuine"]] for frame in (self.claims, own.claims))
        assert here[SAME].equals(there[SAME])
        typist = here["typist"].to_numpy()
        change = (here["answer"] == ACCEPT).to_numpy(float) - (there["answer"] == ACCEPT).to_numpy(float)
        return points(change.mean(), *Claims(typist, typist).interval(change))


def points(change: float, low: float, high: float) -> str:
    """A change of a rate in percentage points, with its interval."""
    return f"{100 * change:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})".replace("-", "−")


def on_clock(keystrokes: pd.DataFrame, tick: float, seed: int = 0) -> pd.DataFrame:
    """The recording by a clock with this tick.

    Times of 0 are left out as decisions have it: of keys pressed at once the first is kept, and a release at
    the moment of its press counts as not seen.
    """
    starts = sample_starts(keystrokes)
    drawn = np.random.default_rng(seed).uniform(0, tick, len(starts))
    phase = np.repeat(drawn, sample_lengths(starts, len(keystrokes)))
    times = {
        name: np.floor((keystrokes[name].to_numpy() + phase) / tick) * tick
        for name in ("timepress", "timerelease")
    }
    return clean(keystrokes.assign(**times), CleaningRules(equal_presses=True, zero_durations=True))[0]


def measured(name: str, tick: float | None, data: Path | None, out: Path, jobs: int) -> Measured:
    """What the recording gives by a clock with this tick, or as it is."""
    dataset = load_dataset(name, data)
    keystrokes = dataset.keystrokes if tick is None else on_clock(dataset.keystrokes, tick)
    protocol = MonacoTappert.password() if name == "password" else MonacoTappert()
    row = Row(name, recorded_samples(keystrokes), protocol, dataset.checksums, "none")
    parts = Parts(out / f"{name}-{'own' if tick is None else f'{tick:g}'}", n_jobs=jobs)
    (scores,) = scored_of(score_rows([row], [PopulationDetector()], parts)).values()
    pieces = [strangers_piece(row, pair, 0) for pair in pairs()]
    made = run_pieces(pieces, parts)
    claims = pd.concat([made[piece.names[0]].to_pandas() for piece in pieces], ignore_index=True)
    decided = decisions_table(claims.assign(dataset=name), 0).frame.iloc[0]
    cells = [
        identification(scores).accuracy.text(),
        verification(scores).own["eer"].text(),
        _rate(decided, "fmr").text(2),
        _rate(decided, "genuine_accepted").text(),
        f"{100 * decided['genuine_reject']:.1f} %",
    ]
    return Measured(recognition(scores), whole(claims), cells)


def _rate(decided: pd.Series, name: str) -> Rate:
    return Rate(decided[name], decided[f"{name}_low"], decided[f"{name}_high"], 0)


def main() -> None:
    """Measure, and print each row as soon as it is there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of the recordings; or set KEYDYN_DATA")
    parser.add_argument("--dataset", choices=list(DATASETS), action="append")
    parser.add_argument("--out", type=Path, default=Path("out/clocks"))
    parser.add_argument("--jobs", type=int, default=-1)
    given = parser.parse_args()
    print("| " + " | ".join(HEADINGS) + " |")
    print("| --- | --- |" + " ---: |" * (len(HEADINGS) - 2))
    for name, step in DATASETS.items():
        if given.dataset and name not in given.dataset:
            continue
        own = None
        for tick in (None, *(tick for tick in TICKS if tick > step)):
            found = measured(name, tick, given.data, given.out, given.jobs)
            clock = f"its own, {step:g} ms" if tick is None else f"{tick:g} ms"
            print("| " + " | ".join(found.row(name, clock, own)) + " |", flush=True)
            own = own or found


if __name__ == "__main__":
    main()
