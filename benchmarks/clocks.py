"""What a coarse clock costs: the recordings as they are, and as clocks of 1, 8 and 16 ms would give them.

`python benchmarks/clocks.py --data FOLDER` prints a table in Markdown. Every press and release is moved to
the tick of the clock before it; where the ticks fall is drawn for each sample. Identification and equal error
rates are those of keydyn study recognition, decisions those of keydyn study verification, with the detector
that decisions use. Finished parts are kept in --out, so that an interrupted run goes on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from keydyn.datasets import load_dataset
from keydyn.decisions.recorded_samples import recorded_samples
from keydyn.detectors import PopulationDetector
from keydyn.evaluation.confidence import Rate
from keydyn.evaluation.identification import identification
from keydyn.evaluation.protocols import MonacoTappert
from keydyn.evaluation.running import score_protocol
from keydyn.evaluation.verification import verification
from keydyn.keystrokes.cleaning import CleaningRules, clean
from keydyn.keystrokes.schema import sample_lengths, sample_starts
from keydyn.studies.dataset_rows import Row
from keydyn.studies.pieces import run_pieces
from keydyn.studies.saved_parts import Parts
from keydyn.studies.verification_measurements import pairs, strangers_piece
from keydyn.studies.verification_tables import decisions_table

# What the recordings are stored in, milliseconds; a clock of that tick changes nothing.
DATASETS = {"password": 0.1, "fable": 1.0, "essay": 1.0}
TICKS = (1.0, 8.0, 16.0)
HEADINGS = (
    *("recording", "clock", "times of 0", "identified", "equal error rate"),
    *("strangers accepted", "genuine accepted", "genuine rejected"),
)


def on_clock(keystrokes: pd.DataFrame, tick: float, seed: int = 0) -> tuple[pd.DataFrame, float]:
    """The recording by a clock with this tick, and the share of times that it makes 0.

    Those are left out as decisions have it: of keys pressed at once the first is kept, and a release at the
    moment of its press counts as not seen.
    """
    starts = sample_starts(keystrokes)
    drawn = np.random.default_rng(seed).uniform(0, tick, len(starts))
    phase = np.repeat(drawn, sample_lengths(starts, len(keystrokes)))
    times = {
        name: np.floor((keystrokes[name].to_numpy() + phase) / tick) * tick
        for name in ("timepress", "timerelease")
    }
    moved = keystrokes.assign(**times)
    interval = np.diff(times["timepress"], prepend=-1.0)
    interval[starts] = 1.0
    held = times["timerelease"] - times["timepress"]
    zeros = float(((interval == 0).sum() + (held == 0).sum()) / (2 * len(moved) - len(starts)))
    return clean(moved, CleaningRules(equal_presses=True, zero_durations=True))[0], zeros


def measured(name: str, tick: float | None, data: Path | None, out: Path, jobs: int) -> list[str]:
    """A row of the table; without a tick, of the recording as it is."""
    dataset = load_dataset(name, data)
    keystrokes, zeros = (dataset.keystrokes, 0.0) if tick is None else on_clock(dataset.keystrokes, tick)
    protocol = MonacoTappert.password() if name == "password" else MonacoTappert()
    row = Row(name, recorded_samples(keystrokes), protocol, dataset.checksums, "none")
    scores = score_protocol(protocol, PopulationDetector(), row.samples, jobs)
    parts = Parts(out / f"{name}-{'own' if tick is None else f'{tick:g}'}", False)
    pieces = [strangers_piece(row, pair, 0) for pair in pairs()]
    made = run_pieces(pieces, parts, jobs, None)
    claims = pd.concat([made[piece.names[0]].to_pandas() for piece in pieces], ignore_index=True)
    decided = decisions_table(claims.assign(dataset=name), 0).frame.iloc[0]
    return [
        name,
        f"its own, {DATASETS[name]:g} ms" if tick is None else f"{tick:g} ms",
        f"{100 * zeros:.2f} %",
        identification(scores).accuracy.text(),
        verification(scores).own["eer"].text(),
        _rate(decided, "fmr").text(2),
        _rate(decided, "genuine_accepted").text(),
        f"{100 * decided['genuine_reject']:.1f} %",
    ]


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
    for name in given.dataset or DATASETS:
        for tick in (None, *(tick for tick in TICKS if tick > DATASETS[name])):
            row = measured(name, tick, given.data, given.out, given.jobs)
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
