"""keydyn study verification: strangers refused, sessions watched, attacks, ageing, fairness and privacy."""

from __future__ import annotations

from functools import partial
from typing import Any

from keydyn.lab.frame.chosen import DataOption, DatasetOption, SeedOption, chosen_rows, recognition_facts
from keydyn.lab.frame.study import Plan, report_beside, study


@study(
    "verification",
    tables=(
        *("decisions", "targets", "keys", "few_samples", "identify", "watching", "attacks"),
        *("copies", "ageing", "poisoning", "privacy", "fairness"),
    ),
    figures=(
        *("reliability", "decisions_det", "decisions_by_keys"),
        *("watching_delay", "watching_unnoticed", "ageing"),
    ),
    frames=(
        *("claims", "identified", "watching", "choices", "speed", "attacks", "copies"),
        *("ageing", "poisoning", "privacy"),
    ),
    report=report_beside(__name__),
)
def verification(dataset: DatasetOption = None, data: DataOption = None, seed: SeedOption = 0) -> Plan[Any]:
    """How reliable are decisions? Stated and measured error rates, watching, attacks, ageing, privacy.

    Examples:
    `keydyn study verification --data recordings/`

    `keydyn study verification --dataset fable`
    """
    from keydyn.detectors import PopulationDetector
    from keydyn.lab.frame.published import DATASETS
    from keydyn.lab.verification.all_measurements import choices_of, protocols_of, run_verification
    from keydyn.lab.verification.report import write

    rows, warnings = chosen_rows(dataset, data, DATASETS)
    return Plan(
        partial(run_verification, rows, seed),
        lambda measured: (
            recognition_facts(rows, [PopulationDetector.name], seed)
            | {"protocols": protocols_of(rows), "choices": choices_of(measured)}
        ),
        write,
        warnings,
    )
