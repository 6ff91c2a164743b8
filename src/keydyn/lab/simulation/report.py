"""Runs and reports the simulation study, piece by piece, so that an interrupted study resumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Floats
from keydyn.lab.frame.names import of_all, percent
from keydyn.lab.frame.outputs import Outputs
from keydyn.lab.frame.report import Picture, Section
from keydyn.lab.frame.resuming import Parts, Piece, frame_of, run_pieces
from keydyn.lab.frame.study import PageRun, ResultsPage, Values
from keydyn.lab.frame.tables import Table, plain_table
from keydyn.lab.simulation.figures import draw_accuracy, draw_errors, draw_residuals, draw_truths
from keydyn.lab.simulation.measurements import SCENARIOS, SampleBatch, Simulation, batches, fit_batch

LEAD = (
    "Data are drawn from a known model, a model is fitted to them, and what it finds is compared with the "
    "truth, for longer and longer samples (Section 4 of the paper). Everything here was measured by this run."
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
    "The result must not depend on one choice of the truth. keystrokes: all states equally probable after "
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
) -> dict[str, Simulation]:
    """Run the study of every true model; finished pieces are reused."""
    numbers = [scenario.number for scenario in SCENARIOS]
    of_truths = {
        truth: [_piece(batch) for batch in batches(truth, n_values, n_samples, numbers, seed)]
        for truth in truths
    }
    made = run_pieces([piece for pieces in of_truths.values() for piece in pieces], parts)
    keys = ["truth", "scenario", "n", "sample"]
    return {
        truth: Simulation(
            *(
                frame_of(made, pieces, place).sort_values(keys, kind="stable", ignore_index=True)
                for place in (0, 1)
            )
        )
        for truth, pieces in of_truths.items()
    }


def write(outputs: Outputs, simulations: Mapping[str, Simulation], facts: Mapping[str, Any]) -> list[Table]:
    """Write all tables, figures and the report; returns the verdicts for the terminal."""
    estimates = pd.concat([one.estimates for one in simulations.values()], ignore_index=True)
    error_table, verdict = errors(estimates), verdicts(estimates)
    verdict.insert(2, "what", [TITLES[number] for number in verdict["scenario"]])
    columns_to_read = verdict[["truth", "what", "part", "slope", "bias_share", "verdict"]]
    tables = [
        plain_table(
            "simulation",
            "Are the parameters recovered?",
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
    # The file has all columns, the page only those meant for readers.
    tables[0] = replace(tables[0], frame=verdict)
    # Two further tables, for programs only, with each parameter by itself.
    for table in tables[1:3]:
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
    """The shares of hidden states found with the fitted and the true model, by scenario and length."""
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
            "Root mean square error over the number of events, with the slope of −½ that consistency "
            "requires.",
            "Falling lines on logarithmic axes, a line for each scenario.",
        ),
        outputs.drawn(
            partial(draw_accuracy, simulation.accuracies),
            "states",
            "Hidden states found by the fitted models, and by the true one.",
            "Lines of accuracy over the number of events, a line for each scenario and its best.",
        ),
    ]


def _piece(batch: SampleBatch) -> Piece:
    stem = f"{batch.truth}-{batch.source}-{batch.n}-{batch.first_sample}"
    names = tuple(f"{stem}-{name}" for name in Simulation._fields)
    inputs = {**vars(batch), "scenarios": list(batch.scenarios)}
    what = f"{batch.truth} · N = {batch.n:,}"
    return Piece(names, inputs, [partial(fit_batch, batch)], what, float(batch.work))


CONSISTENT, EVENTS = "consistent", 1000


def answer(values: Values) -> str:
    """Whether the errors of a POHMM vanish with longer samples, and those of an HMM do not."""
    frame = values["simulation"]
    is_hmm = frame["what"].str.startswith("HMM")
    of_pohmm, of_hmm = frame[~is_hmm], frame[is_hmm]
    found = int((of_pohmm["verdict"] == CONSISTENT).sum())
    biased = int(of_hmm["verdict"].str.startswith("biased").sum())
    slopes = of_pohmm["slope"].dropna()
    ends = " to ".join(dict.fromkeys(f"{one:.2f}".replace("-", "−") for one in (slopes.min(), slopes.max())))
    falling = f", with errors that fall as the number of events to the power of {ends} (−0.50 is expected)"
    first = (
        f"{'Yes' if found == len(of_pohmm) else 'Not always'}: a POHMM finds the true parameters in "
        f"{of_all(found, len(of_pohmm), 'comparison')}{falling if len(slopes) else ''}"
    )
    if len(of_hmm):
        first += (
            "; an HMM, which does not see event types, stays biased in "
            f"{of_all(biased, len(of_hmm), 'comparison')}"
        )
    return " ".join([first + ".", *_states(values)])


def _states(values: Values) -> list[str]:
    """A sentence about hidden states, if there is one true model with long enough samples."""
    if "accuracy" not in values:
        return []
    shares = values["accuracy"]
    shares = shares[(shares["scenario"] == 1) & (shares["n"] == EVENTS)]
    if len(shares) != 1:
        return []
    accuracy, best = (percent(shares[name].iloc[0]) for name in ("accuracy", "best"))
    return [
        f"Fitted to {EVENTS:,} events, a POHMM finds {accuracy} of the hidden states; with the true "
        f"parameters {best} are found."
    ]


VERDICTS = (
    "Each line is a kind of model fitted to a kind of data, and a part of its parameters; the last column is "
    "the verdict."
)

PAGE = ResultsPage(
    "Simulated data",
    "Does fitting find the parameters and hidden states of a known model?",
    answer,
    ("simulation", "accuracy"),
    {
        "simulation": VERDICTS,
        "accuracy": "Read down a scenario: with more events, the fitted model's accuracy comes close to the "
        "best. Scenarios 1 and 2 are a POHMM on data of a POHMM, without and with smoothing, 3 a POHMM on "
        "data of an HMM, and 4 an HMM on data of a POHMM.",
    },
    {
        "simulation": "Errors of every parameter by the number of events: lines that come to zero are "
        "parameters that are found. Bands are one standard deviation.",
        "errors": "Root mean square errors by the number of events, on logarithmic axes, with the slope of "
        "−½ of a consistent estimate.",
        "states": "The share of hidden states that are found, by the number of events.",
    },
    others=(
        # That what is found does not depend on one true model: three more, with fewer and shorter samples.
        PageRun(
            {"simulation": VERDICTS},
            {"truths": "Root mean square errors by the number of events, for each true model."},
            title="Other true models",
            folder="simulation-truths",
            arguments=(
                *("--truth", "persistent", "--truth", "overlapping", "--truth", "random-7"),
                *("--samples", "100", "--longest", "10000"),
            ),
        ),
    ),
)


GROUP = ["truth", "scenario", "part", "parameter"]
# The least share of bias in the mean squared error with which an estimate counts as biased.
BIASED_FROM = 0.5


def with_residuals(estimates: pd.DataFrame) -> pd.DataFrame:
    """Add the residual, θ̂ − θ₀ divided by the largest |θ̂ − θ₀| of the parameter over all N (Eq. 37)."""
    error = estimates["estimate"] - estimates["true"]
    keys = [estimates[name] for name in GROUP]
    largest = error.abs().groupby(keys, sort=False).transform("max")
    return estimates.assign(residual=np.where(largest > 0, error / largest.where(largest > 0, 1.0), 0.0))


def errors(estimates: pd.DataFrame) -> pd.DataFrame:
    """One row per parameter and N: bias, its standard error, rmse, and mean and deviation of the residual."""
    table = with_residuals(estimates)
    table = table.assign(
        error=table["estimate"] - table["true"], square=(table["estimate"] - table["true"]) ** 2
    )
    summary = (
        table.groupby([*GROUP, "n"], sort=False)
        .agg(
            true=("true", "first"),
            bias=("error", "mean"),
            bias_error=("error", "sem"),
            square=("square", "mean"),
            residual_mean=("residual", "mean"),
            residual_deviation=("residual", "std"),
            samples=("error", "size"),
        )
        .reset_index()
    )
    return summary.assign(rmse=np.sqrt(summary["square"])).drop(columns="square")


def slopes(error_table: pd.DataFrame) -> pd.DataFrame:
    """The slope of ln rmse over ln N of each parameter: −½ for a consistent estimate, 0 for a biased one."""
    rows = [
        {
            **dict(zip(GROUP, key, strict=True)),
            "slope": _slope(parameter_errors["n"].to_numpy(), parameter_errors["rmse"].to_numpy()),
        }
        for key, parameter_errors in error_table.groupby(GROUP, sort=False)
    ]
    return pd.DataFrame(rows)


def verdicts(estimates: pd.DataFrame) -> pd.DataFrame:
    """One row per scenario and part, with the slope of the joint error of all parameters and a verdict.

    `slope` is that of the root mean square error, in units of each parameter's largest error. `bias_share` is
    the share of bias, as opposed to scatter, in the mean square error at the largest N: nearly 0 for a
    consistent estimate, nearly 1 for a biased one. The verdict is "consistent" below one half and "biased"
    otherwise, and names the parameter whose bias is largest relative to its true value (relative to one for a
    probability).
    """
    error_table, rows = errors(estimates), []
    for (truth, scenario, part), group in error_table.groupby(["truth", "scenario", "part"], sort=False):
        square = group["residual_mean"] ** 2 + group["residual_deviation"] ** 2 * (
            1.0 - 1.0 / group["samples"]
        )
        together = np.sqrt(square.groupby(group["n"]).mean())
        n = int(group["n"].max())
        last = group[group["n"] == n]
        share = float((last["residual_mean"] ** 2).sum() / max(square[group["n"] == n].sum(), 1e-300))
        worst = last.iloc[int(np.argmax((last["bias"].abs() / _relative_to(last)).to_numpy()))]
        rows.append(
            {
                "truth": truth,
                "scenario": scenario,
                "part": part,
                "slope": _slope(together.index.to_numpy(), together.to_numpy()),
                "n": n,
                "bias_share": share,
                "worst_parameter": worst["parameter"],
                "true": worst["true"],
                "bias": worst["bias"],
                "bias_error": worst["bias_error"],
                "verdict": "consistent" if share < BIASED_FROM else f"biased: {_how_much(worst)}",
            }
        )
    return pd.DataFrame(rows).sort_values(["truth", "scenario", "part"], ignore_index=True)


def _relative_to(last: pd.DataFrame) -> pd.Series:
    """The reference value of a bias: the parameter itself, or one for a probability."""
    return last["true"].abs().where(last["part"] == "emission", 1.0)


def _how_much(worst: pd.Series) -> str:
    if worst["part"] == "emission":
        return f"{worst['parameter']} by {worst['bias']:+.1f} ms ({worst['bias'] / worst['true']:+.0%})"
    return f"{worst['parameter']} by {worst['bias']:+.3f}"


def _slope(n: Floats, rmse: Floats) -> float:
    """The slope of ln rmse over ln N; NaN if there is only one length."""
    if len(n) < 2:
        return float("nan")
    return float(np.polyfit(np.log(n), np.log(np.maximum(rmse, 1e-300)), 1)[0])
