"""The command `keydyn study calibration`: how far can the goodness-of-fit test be trusted?"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from keydyn.lab.frame.chosen import (
    DataOption,
    SecondOption,
    SeedOption,
    SurrogatesOption,
    TextOption,
    check_second,
    chosen_texts,
    text_facts,
)
from keydyn.lab.frame.study import Plan, study


@study(
    "calibration",
    tables=("calibration", "power"),
    figures=("calibration", "power"),
    frames=("tests",),
)
def calibration(
    dataset: TextOption = None,
    surrogates: SurrogatesOption = 59,
    second: SecondOption = 4,
    repeats: Annotated[
        int, typer.Option(min=1, help="Number of tests per user for which the model is right.")
    ] = 1,
    data: DataOption = None,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """How far can the goodness-of-fit test be trusted? Its size and power when the truth is known.

    Example: `keydyn study calibration --dataset fable --data recordings/`
    """
    from keydyn.lab.calibration.report import calibrate

    check_second(second)
    texts, warnings = chosen_texts(dataset, data)
    settings = {"seed": seed, "surrogates": surrogates, "second": second, "repeats": repeats}
    return Plan(partial(calibrate, texts, settings), lambda _: text_facts(texts, settings), warnings)
