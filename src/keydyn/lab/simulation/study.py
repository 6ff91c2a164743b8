"""The command `keydyn study simulation`: are the parameters of known models recovered?"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from keydyn.exit_codes import checking_options
from keydyn.lab.frame.chosen import SeedOption
from keydyn.lab.frame.study import Plan, study


@study(
    "simulation",
    tables=("simulation", "errors", "slopes", "accuracy"),
    figures=("simulation", "errors", "states", "truths"),
    in_the_paper=True,
)
def simulation(
    truth: Annotated[
        list[str] | None,
        typer.Option(help="keystrokes (the default), persistent, overlapping or random-SEED; repeatable."),
    ] = None,
    samples: Annotated[int, typer.Option(min=2, help="Number of samples of each length.")] = 400,
    longest: Annotated[int, typer.Option(min=100, help="Number of events in the longest samples.")] = 100_000,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """Are the parameters and hidden states of known models recovered (Section 4)?

    Examples:
    `keydyn study simulation`

    `keydyn study simulation --truth keystrokes --truth random-7 --samples 100 --longest 10000`
    """
    from keydyn.lab.simulation.measurements import N_VALUES, true_model
    from keydyn.lab.simulation.report import run_simulation

    truths = list(dict.fromkeys(truth or ["keystrokes"]))
    with checking_options():
        for name in truths:
            true_model(name)
    lengths = [n for n in N_VALUES if n <= longest]
    settings = {"seed": seed, "truths": truths, "samples": samples, "lengths": lengths}
    return Plan(partial(run_simulation, truths, lengths, samples, seed), lambda _: settings)
