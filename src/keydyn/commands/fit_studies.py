"""keydyn study simulation, goodness-of-fit, calibration, model-choice: do models find and fit the truth?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from keydyn.commands import study
from keydyn.commands.study import (
    DataOption,
    EngineOption,
    FreshOption,
    JobsOption,
    OutOption,
    SeedOption,
)
from keydyn.commands.terminal import fail_clearly

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from keydyn.evaluation.tables import Table
    from keydyn.studies.goodness_report import Found
    from keydyn.studies.long_texts import Text
    from keydyn.studies.outputs import Outputs
    from keydyn.studies.saved_parts import Parts
    from keydyn.studies.score_datasets import Tell

Result = TypeVar("Result")

TextOption = Annotated[
    list[str] | None, typer.Option("--dataset", help="fable, essay or simulated; repeatable.")
]
SurrogatesOption = Annotated[int, typer.Option("--surrogates", min=19, help="Surrogates of each test.")]


SecondOption = Annotated[
    int,
    typer.Option(
        "--second",
        min=0,
        help="Surrogates of each surrogate for a double bootstrap: 0 for none, or 2 or more.",
    ),
]


@fail_clearly
def simulation(
    truth: Annotated[
        list[str] | None,
        typer.Option(help="keystrokes (the default), persistent, overlapping or random-SEED; repeatable."),
    ] = None,
    samples: Annotated[int, typer.Option(min=2, help="Samples of each length.")] = 400,
    longest: Annotated[int, typer.Option(min=100, help="Events of the longest samples.")] = 100_000,
    out: OutOption = None,
    jobs: JobsOption = -1,
    engine: EngineOption = "",
    seed: SeedOption = 0,
    fresh: FreshOption = False,
) -> None:
    """Are parameters and hidden states of known models found again (Section 4)?

    Examples:
    `keydyn study simulation`

    `keydyn study simulation --truth keystrokes --truth random-7 --samples 100 --longest 10000`
    """
    from keydyn.studies.outputs import environment
    from keydyn.studies.simulation import N_VALUES
    from keydyn.studies.simulation_report import run_simulation, write_simulation
    from keydyn.studies.true_models import true_model

    truths = list(dict.fromkeys(truth or ["keystrokes"]))
    for name in truths:
        true_model(name)
    lengths = [n for n in N_VALUES if n <= longest]
    settings = {"seed": seed, "truths": truths, "samples": samples, "lengths": lengths}
    study.run_study(
        "simulation",
        out,
        engine,
        fresh,
        lambda parts, tell: run_simulation(truths, lengths, samples, seed, parts, jobs or -1, tell),
        lambda _: {"study": "simulation", **environment(), **settings},
        write_simulation,
    )


@fail_clearly
def goodness_of_fit(
    dataset: TextOption = None,
    surrogates: SurrogatesOption = 100,
    second: SecondOption = 0,
    marginal: Annotated[
        str, typer.Option(help="The model's marginal distribution: exact, printed (the paper's) or states.")
    ] = "exact",
    data: DataOption = None,
    out: OutOption = None,
    jobs: JobsOption = -1,
    engine: EngineOption = "",
    seed: SeedOption = 0,
    fresh: FreshOption = False,
) -> None:
    """Does the model fit what people type? HMM and POHMM, user by user (Section 5.1).

    Example: `keydyn study goodness-of-fit --dataset fable --data recordings/`
    """
    from keydyn.model.areas import MARGINALS
    from keydyn.studies.goodness_report import goodness_tests, write_goodness

    if marginal not in MARGINALS:
        raise ValueError(f"--marginal must be one of {', '.join(MARGINALS)}, not {marginal!r}")
    _check_second(second)

    def work(texts: Sequence[Text], parts: Parts, tell: Tell) -> Found:
        return goodness_tests(texts, surrogates, second, marginal, seed, parts, jobs or -1, tell)

    settings = {"seed": seed, "surrogates": surrogates, "second": second, "marginal": marginal}
    _study("goodness-of-fit", work, write_goodness, dataset, data, out, engine, fresh, settings)


@fail_clearly
def calibration(
    dataset: TextOption = None,
    surrogates: SurrogatesOption = 59,
    second: SecondOption = 4,
    repeats: Annotated[int, typer.Option(min=1, help="Tests of each user where the model is right.")] = 1,
    data: DataOption = None,
    out: OutOption = None,
    jobs: JobsOption = -1,
    engine: EngineOption = "",
    seed: SeedOption = 0,
    fresh: FreshOption = False,
) -> None:
    """How far can the goodness-of-fit test be trusted? Its size and power where the truth is known.

    Example: `keydyn study calibration --dataset fable --data recordings/`
    """
    from keydyn.studies.calibration_report import calibrate, write_calibration

    _check_second(second)

    def work(texts: Sequence[Text], parts: Parts, tell: Tell) -> pd.DataFrame:
        return calibrate(texts, surrogates, second, repeats, seed, parts, jobs or -1, tell)

    settings = {"seed": seed, "surrogates": surrogates, "second": second, "repeats": repeats}
    _study("calibration", work, write_calibration, dataset, data, out, engine, fresh, settings)


@fail_clearly
def model_choice(
    dataset: TextOption = None,
    data: DataOption = None,
    out: OutOption = None,
    jobs: JobsOption = -1,
    engine: EngineOption = "",
    fresh: FreshOption = False,
) -> None:
    """How many states, which family, smoothed or not? By BIC and by held-out likelihood.

    Example: `keydyn study model-choice --dataset fable --data recordings/`
    """
    from keydyn.studies.model_choice_report import choose_models, write_choice

    def work(texts: Sequence[Text], parts: Parts, tell: Tell) -> pd.DataFrame:
        return choose_models(texts, parts, jobs or -1, tell)

    _study("model-choice", work, write_choice, dataset, data, out, engine, fresh, {})


@fail_clearly
def everything(
    data: DataOption = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for results, one below it for each study.")
    ] = Path("out"),
    jobs: JobsOption = -1,
    engine: EngineOption = "",
    seed: SeedOption = 0,
    fresh: FreshOption = False,
) -> None:
    """All of the paper's studies, one after the other: recognition, continuous, simulation, goodness-of-fit.

    Example: `keydyn study all --data recordings/`
    """
    shared: dict[str, Any] = {"jobs": jobs, "engine": engine, "seed": seed, "fresh": fresh}
    for name, command in {"recognition": study.recognition, "continuous": study.continuous}.items():
        command(data=data, out=out / name, **shared)
    simulation(out=out / "simulation", **shared)
    goodness_of_fit(data=data, out=out / "goodness-of-fit", **shared)


def _check_second(second: int) -> None:
    if second == 1:
        raise ValueError("--second must be 0, or 2 or more")


def _study(
    name: str,
    work: Callable[[Sequence[Text], Parts, Tell], Result],
    write: Callable[[Outputs, Result, dict[str, Any]], list[Table]],
    dataset: Sequence[str] | None,
    data: Path | None,
    out: Path | None,
    engine: str,
    fresh: bool,
    settings: dict[str, Any],
) -> None:
    """A study on texts, from data to report."""
    from keydyn.studies.long_texts import texts_here
    from keydyn.studies.outputs import environment

    texts, told = texts_here(dataset or (), data)
    for line in told:
        typer.secho(f"keydyn: {line}", err=True, fg="yellow")
    sums = {text.name: text.checksums for text in texts}
    study.run_study(
        name,
        out,
        engine,
        fresh,
        lambda parts, tell: work(texts, parts, tell),
        lambda _: {"study": name, **environment(), "data": sums, **settings},
        write,
    )
