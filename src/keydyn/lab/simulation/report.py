"""The simulation study from start to report, piece by piece, so that an interrupted one resumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa

from keydyn.lab.frame.outputs import Outputs
from keydyn.lab.frame.report import Picture, Section
from keydyn.lab.frame.resuming import Parts, ShowProgress, in_processes
from keydyn.lab.frame.tables import Table, plain_table
from keydyn.lab.simulation.consistency import errors, slopes, verdicts
from keydyn.lab.simulation.figures import draw_accuracy, draw_errors, draw_residuals, draw_truths
from keydyn.lab.simulation.measurements import SCENARIOS, Piece, Simulation, fit_piece, merged, pieces

LEAD = (
    "Data are drawn from a known model, a model is fitted to them, and what it finds is compared with the "
    "truth, for ever longer samples (Section 4 of the paper). Everything here was measured by this run."
)
PARAGRAPHS = (
    "1 and 2: a POHMM, without and with smoothing, on data from a POHMM. 3: a POHMM on data from an HMM "
    "with random event types, judged by its marginals. 4: an HMM on the POHMM's data, against the marginal "
    "model of the truth. An HMM cannot see event types, so that 4 is expected to be biased and 1 to 3 are "
    "not.",
    "States have no names: fitted ones are matched with the true ones, type by type, by how often they agree "
    "with the states that were drawn.",
)
TRUTHS_NOTE = (
    "What is found must not depend on one choice of the truth. keystrokes: all states equally probable after "
    "any other, as in the paper; persistent: states last; overlapping: they last, and are closer together; "
    "random-SEED: locations, scales and transition probabilities drawn at random."
)
ACCURACY_NOTE = (
    "Share of hidden states found by the fitted model, mean over samples, and by the true parameters, "
    "which is the best that is possible."
)
TITLES = {scenario.number: scenario.title for scenario in SCENARIOS}


def run_simulation(
    truths: Sequence[str],
    n_values: Sequence[int],
    n_samples: int,
    seed: int,
    parts: Parts,
    n_jobs: int | None = None,
    show_progress: ShowProgress | None = None,
) -> dict[str, Simulation]:
    """Every true model's study; finished pieces are read, not fitted again."""
    todo = [piece for truth in truths for piece in pieces(truth, n_values, n_samples, (1, 2, 3, 4), seed)]
    # The longest first, so that the other processes do not wait for them at the end.
    todo.sort(key=lambda piece: -piece.work)
    open_pieces = [piece for piece in todo if not parts.has(_name(piece), _inputs(piece))]
    total, done = sum(piece.work for piece in open_pieces), 0
    fitted = in_processes(fit_piece, [{"piece": piece} for piece in open_pieces], n_jobs)
    for piece, simulation in zip(open_pieces, fitted, strict=True):
        parts.get(_name(piece), _inputs(piece), partial(_table, simulation))
        done += piece.work
        if show_progress is not None:
            show_progress(f"{piece.truth} · N = {piece.n:,}", done / total)
    read = {piece: _read(parts.get(_name(piece), _inputs(piece), _missing)) for piece in todo}
    return {truth: merged([read[piece] for piece in todo if piece.truth == truth]) for truth in truths}


def write_simulation(
    outputs: Outputs, simulations: Mapping[str, Simulation], facts: Mapping[str, Any]
) -> list[Table]:
    """All tables, figures and the report; the verdicts, for the terminal."""
    estimates = pd.concat([one.estimates for one in simulations.values()], ignore_index=True)
    error_table, verdict = errors(estimates), verdicts(estimates)
    verdict.insert(2, "what", [TITLES[number] for number in verdict["scenario"]])
    columns_to_read = verdict[["truth", "what", "part", "slope", "bias_share", "verdict"]]
    tables = [
        plain_table(
            "simulation",
            "Are the parameters found again?",
            "Slope: that of ln root mean square error over ln N, −½ for a consistent estimate. Bias share: "
            "how much of the mean squared error at the largest N is bias and not scatter; one half or more "
            "counts as biased, and the verdict names the parameter with the largest bias.",
            columns_to_read,
            digits=2,
            labels=3,
        ),
        plain_table("errors", "Bias and error of every parameter", "", error_table, labels=5),
        plain_table("slopes", "How every parameter's error falls with N", "", slopes(error_table)),
        plain_table("accuracy", "Hidden states found", ACCURACY_NOTE, accuracy_frame(simulations), labels=3),
    ]
    # The file has all columns, the page those that a person reads.
    tables[0] = replace(tables[0], frame=verdict)
    for table in tables:
        outputs.table(table)
    sections = [Section("Verdicts", PARAGRAPHS, [tables[0]])]
    first, one = next(iter(simulations.items()))
    sections.append(Section(f"True model: {first}", (), (), _figures(outputs, one)))
    if len(simulations) > 1:
        sections.append(Section("All true models", (TRUTHS_NOTE,), (), [_truths(outputs, error_table)]))
    sections.append(Section("Hidden states", (), [tables[3]]))
    outputs.report("Simulation study", [LEAD], sections, facts)
    return tables[:1]


def accuracy_frame(simulations: Mapping[str, Simulation]) -> pd.DataFrame:
    """Hidden states found, by the fitted and the true model, for each scenario and length."""
    accuracies = pd.concat([one.accuracies for one in simulations.values()], ignore_index=True)
    keys = ["truth", "scenario", "n"]
    return accuracies.groupby(keys, sort=True)[["accuracy", "best"]].mean().reset_index()


def _truths(outputs: Outputs, error_table: pd.DataFrame) -> Picture:
    return outputs.drawn(
        partial(draw_truths, error_table),
        "truths",
        "Root mean square error over the number of events for every true model, with the slope of −½.",
        "Falling lines on logarithmic axes, one for each true model, in a panel for each scenario.",
    )


def _figures(outputs: Outputs, simulation: Simulation) -> list[Picture]:
    table = errors(simulation.estimates)
    return [
        outputs.drawn(
            partial(draw_residuals, table),
            "simulation",
            "Residuals of every parameter over the number of events: mean error as a share of its largest, "
            "and a band of one standard deviation.",
            "Panels for four scenarios; lines go to zero in the first three and not in the last.",
        ),
        outputs.drawn(
            partial(draw_errors, table),
            "errors",
            "Root mean square error over the number of events, with the slope of −½ that consistency asks "
            "for.",
            "Falling lines on logarithmic axes, a line for each scenario.",
        ),
        outputs.drawn(
            partial(draw_accuracy, simulation.accuracies),
            "states",
            "Hidden states found by the fitted models, and by the true one.",
            "Lines of accuracy over the number of events, a line for each scenario and its best.",
        ),
    ]


def _name(piece: Piece) -> str:
    return f"{piece.truth}-{piece.source}-{piece.n}-{piece.first_sample}"


def _inputs(piece: Piece) -> dict[str, Any]:
    return {**vars(piece), "scenarios": list(piece.scenarios)}


def _table(simulation: Simulation) -> pa.Table:
    """Both tables as one; a row belongs to the second where it has an accuracy."""
    return pa.Table.from_pandas(
        pd.concat([simulation.estimates, simulation.accuracies]), preserve_index=False
    )


def _read(table: pa.Table) -> Simulation:
    frame = table.to_pandas()
    second = frame["accuracy"].notna()
    shared = ["truth", "scenario", "n", "sample"]
    return Simulation(
        frame.loc[~second, [*shared, "part", "parameter", "estimate", "true"]].reset_index(drop=True),
        frame.loc[second, [*shared, "accuracy", "best"]].reset_index(drop=True),
    )


def _missing() -> pa.Table:
    raise ValueError("a part that was just written is gone: is another study running in the same folder?")
