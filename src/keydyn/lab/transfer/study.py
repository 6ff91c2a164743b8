"""The command `keydyn study transfer`: do stated error rates hold where nothing was learnt?"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from keydyn.lab.frame.chosen import DataOption, SeedOption
from keydyn.lab.frame.study import Plan, study

PlaceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset", help="fable, essay, aalto, password, keypad, mobile, simulated; repeatable, two or more."
    ),
]


@study(
    "transfer",
    tables=("headline", "transfer", "fixed_texts", "disturbed", "watching"),
    figures=("stated", "genuine"),
    frames=("watching", "disturbed", "repeats"),
)
def transfer(dataset: PlaceOption = None, data: DataOption = None, seed: SeedOption = 0) -> Plan[Any]:
    """Do stated error rates hold away from home? Everything is learnt in one place and tested in another.

    This takes ten minutes on two cores.

    Examples:
    `keydyn study transfer --data recordings/`

    `keydyn study transfer --dataset simulated`
    """
    from keydyn.lab.transfer.measurements import run_transfer
    from keydyn.lab.transfer.places import chosen_places
    from keydyn.lab.transfer.report import facts_of

    places, warnings = chosen_places(dataset, data)
    return Plan(partial(run_transfer, places, seed), lambda _: facts_of(places, seed), warnings)
