"""keydyn study simulation, goodness-of-fit, calibration, model-choice: do models find and fit the truth?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.commands.shared_options import JobsOption
from keydyn.exit_codes import UsageError, checking_options
from keydyn.lab.calibration import page as calibration_page
from keydyn.lab.frame.chosen_recordings import chosen_texts
from keydyn.lab.frame.options import DataOption, SecondOption, SeedOption, SurrogatesOption, TextOption
from keydyn.lab.frame.study import Facts, Plan, study
from keydyn.lab.goodness_of_fit import page as goodness_of_fit_page
from keydyn.lab.model_choice import page as model_choice_page
from keydyn.lab.simulation import page as simulation_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keydyn.lab.frame.long_texts import Text


@study(
    "simulation",
    tables=("simulation", "errors", "slopes", "accuracy"),
    figures=("simulation", "errors", "states", "truths"),
    in_the_paper=True,
    results=simulation_page.PAGE,
)
def simulation(
    truth: Annotated[
        list[str] | None,
        typer.Option(help="keystrokes (the default), persistent, overlapping or random-SEED; repeatable."),
    ] = None,
    samples: Annotated[int, typer.Option(min=2, help="Number of samples of each length.")] = 400,
    longest: Annotated[int, typer.Option(min=100, help="Number of events in the longest samples.")] = 100_000,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """Are the parameters and hidden states of known models recovered (Section 4)?

    Examples:
    `keydyn study simulation`

    `keydyn study simulation --truth keystrokes --truth random-7 --samples 100 --longest 10000`
    """
    from keydyn.lab.frame.outputs import environment
    from keydyn.lab.simulation.measurements import N_VALUES
    from keydyn.lab.simulation.report import run_simulation, write_simulation
    from keydyn.lab.simulation.true_models import true_model

    truths = list(dict.fromkeys(truth or ["keystrokes"]))
    with checking_options():
        for name in truths:
            true_model(name)
    lengths = [n for n in N_VALUES if n <= longest]
    settings = {"seed": seed, "truths": truths, "samples": samples, "lengths": lengths}
    return Plan(
        lambda parts, show_progress: run_simulation(
            truths, lengths, samples, seed, parts, jobs or -1, show_progress
        ),
        lambda _: {"study": "simulation", **environment(), **settings},
        write_simulation,
    )


@study(
    "goodness-of-fit",
    tables=("goodness_of_fit", "p_values", "marginals", "residuals"),
    figures=("p_values", "residuals"),
    frames=("tests",),
    in_the_paper=True,
    results=goodness_of_fit_page.PAGE,
)
def goodness_of_fit(
    dataset: TextOption = None,
    surrogates: SurrogatesOption = 100,
    second: SecondOption = 0,
    marginal: Annotated[
        str, typer.Option(help="The model's marginal distribution: exact, printed (the paper's) or states.")
    ] = "exact",
    data: DataOption = None,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """Does the model fit what people type? HMM and POHMM, user by user (Section 5.1).

    Example: `keydyn study goodness-of-fit --dataset fable --data recordings/`
    """
    from keydyn.lab.goodness_of_fit.report import goodness_tests, write_goodness
    from keydyn.model.check.areas import MARGINALS

    if marginal not in MARGINALS:
        raise UsageError(f"--marginal must be one of {', '.join(MARGINALS)}, not {marginal!r}")
    _check_second(second)
    texts, warnings = chosen_texts(dataset, data)
    settings = {"seed": seed, "surrogates": surrogates, "second": second, "marginal": marginal}
    return Plan(
        lambda parts, show_progress: goodness_tests(
            texts, surrogates, second, marginal, seed, parts, jobs or -1, show_progress
        ),
        lambda _: _facts("goodness-of-fit", texts, settings),
        write_goodness,
        warnings,
    )


@study(
    "calibration",
    tables=("calibration", "power"),
    figures=("calibration", "power"),
    frames=("tests",),
    results=calibration_page.PAGE,
)
def calibration(
    dataset: TextOption = None,
    surrogates: SurrogatesOption = 59,
    second: SecondOption = 4,
    repeats: Annotated[
        int, typer.Option(min=1, help="Number of tests per user for which the model is right.")
    ] = 1,
    data: DataOption = None,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """How far can the goodness-of-fit test be trusted? Its size and power when the truth is known.

    Example: `keydyn study calibration --dataset fable --data recordings/`
    """
    from keydyn.lab.calibration.report import calibrate, write_calibration

    _check_second(second)
    texts, warnings = chosen_texts(dataset, data)
    settings = {"seed": seed, "surrogates": surrogates, "second": second, "repeats": repeats}
    return Plan(
        lambda parts, show_progress: calibrate(
            texts, surrogates, second, repeats, seed, parts, jobs or -1, show_progress
        ),
        lambda _: _facts("calibration", texts, settings),
        write_calibration,
        warnings,
    )


@study(
    "model-choice",
    tables=("model_choice",),
    figures=("model_choice",),
    frames=("models",),
    results=model_choice_page.PAGE,
)
def model_choice(
    dataset: TextOption = None,
    data: DataOption = None,
    jobs: JobsOption = -1,
) -> Plan[Any]:
    """How many states, which family, smoothed or not? By BIC and by held-out likelihood.

    Example: `keydyn study model-choice --dataset fable --data recordings/`
    """
    from keydyn.lab.model_choice.report import choose_models, write_choice

    texts, warnings = chosen_texts(dataset, data)
    return Plan(
        lambda parts, show_progress: choose_models(texts, parts, jobs or -1, show_progress),
        lambda _: _facts("model-choice", texts, {}),
        write_choice,
        warnings,
    )


def _check_second(second: int) -> None:
    if second == 1:
        raise UsageError("--second must be 0, or 2 or more")


def _facts(name: str, texts: Sequence[Text], settings: Facts) -> Facts:
    """What run.json says of a study on long texts."""
    from keydyn.lab.frame.outputs import environment

    checksums = {text.name: text.checksums for text in texts}
    return {"study": name, **environment(), "data": checksums, **settings}
