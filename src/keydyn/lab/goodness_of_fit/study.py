"""The command `keydyn study goodness-of-fit`: does the model fit what people type?"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from keydyn.exit_codes import UsageError
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
    "goodness-of-fit",
    tables=("goodness_of_fit", "p_values", "marginals", "residuals"),
    figures=("p_values", "residuals"),
    frames=("tests",),
    in_the_paper=True,
)
def goodness_of_fit(
    dataset: TextOption = None,
    surrogates: SurrogatesOption = 100,
    second: SecondOption = 0,
    marginal: Annotated[
        str, typer.Option(help="The model's marginal distribution: exact, printed (the paper's) or states.")
    ] = "exact",
    data: DataOption = None,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """Does the model fit what people type? HMM and POHMM, user by user (Section 5.1).

    Example: `keydyn study goodness-of-fit --dataset fable --data recordings/`
    """
    from keydyn.lab.goodness_of_fit.report import goodness_tests
    from keydyn.model.check.areas import MARGINALS

    if marginal not in MARGINALS:
        raise UsageError(f"--marginal must be one of {', '.join(MARGINALS)}, not {marginal!r}")
    check_second(second)
    texts, warnings = chosen_texts(dataset, data)
    settings = {"seed": seed, "surrogates": surrogates, "second": second, "marginal": marginal}
    return Plan(partial(goodness_tests, texts, settings), lambda _: text_facts(texts, settings), warnings)
