"""The command `keydyn study continuous`: is it still the same person, keystroke by keystroke?"""

from __future__ import annotations

from functools import partial
from typing import Any

from keydyn.lab.frame.chosen import (
    DataOption,
    DatasetOption,
    DetectorOption,
    SeedOption,
    chosen_rows,
    known_detectors,
    recognition_facts,
)
from keydyn.lab.frame.study import Plan, study

TABLES = ("continuous", "watching")
FIGURES = ("rejection", "penalty")


@study("continuous", tables=TABLES, figures=FIGURES, in_the_paper=True)
def continuous(
    dataset: DatasetOption = None,
    detector: DetectorOption = None,
    data: DataOption = None,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """Is it still the same person, keystroke by keystroke? Continuous verification (Section 5.3).

    Example: `keydyn study continuous --dataset fable --data recordings/`
    """
    from keydyn.lab.continuous.report import DETECTORS
    from keydyn.lab.frame.score_datasets import rank_rows

    detectors = known_detectors(detector) or list(DETECTORS)
    rows, warnings = chosen_rows(dataset, data)
    return Plan(
        partial(rank_rows, rows, detectors),
        lambda ranks: recognition_facts(rows, detectors, seed, ranks),
        warnings,
    )
