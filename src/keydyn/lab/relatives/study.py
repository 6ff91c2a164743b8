"""The command `keydyn study relatives`, which compares the POHMM with earlier models that use context."""

from __future__ import annotations

from functools import partial
from typing import Any

from keydyn.lab.frame.chosen import DataOption, DatasetOption, SeedOption, chosen_rows, recognition_facts
from keydyn.lab.frame.study import Plan, study


@study(
    "relatives",
    tables=("relatives", "relatives_lost_context"),
    figures=("lost_context",),
    frames=("lost_context",),
)
def relatives(dataset: DatasetOption = None, data: DataOption = None, seed: SeedOption = 0) -> Plan[Any]:
    """Compare the POHMM with context-, partly- and partially-HMM, and with contexts missing (Section 6).

    Examples:
    `keydyn study relatives --data recordings/`

    `keydyn study relatives --dataset fable`
    """
    from keydyn.lab.relatives.measurements import DETECTORS, run_relatives

    rows, warnings = chosen_rows(dataset, data)
    return Plan(
        partial(run_relatives, rows, seed),
        lambda measured: recognition_facts(rows, DETECTORS, seed, measured[0]),
        warnings,
    )
