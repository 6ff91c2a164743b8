"""The command `keydyn study verification`: strangers, watched sessions, attacks, ageing, fairness."""

from __future__ import annotations

from functools import partial
from typing import Any

from keydyn.lab.frame.chosen import (
    SIMULATED,
    DataOption,
    DatasetOption,
    SeedOption,
    chosen_rows,
    recognition_facts,
)
from keydyn.lab.frame.study import Plan, study


@study(
    "verification",
    tables=(
        *("decisions", "targets", "keys", "few_samples", "identify", "watching", "attacks"),
        *("copies", "forgeries", "false_alarms", "ageing", "poisoning", "fairness"),
    ),
    figures=(
        *("reliability", "decisions_det", "decisions_by_keys"),
        *("watching_delay", "watching_unnoticed", "forgeries", "ageing"),
    ),
    frames=(
        *("claims", "identified", "watching", "choices", "speed", "attacks", "copies"),
        *("forgeries", "false_alarms", "ageing", "poisoning"),
    ),
)
def verification(dataset: DatasetOption = None, data: DataOption = None, seed: SeedOption = 0) -> Plan[Any]:
    """How reliable are decisions? Stated and measured error rates, watching, attacks, ageing.

    Examples:
    `keydyn study verification --data recordings/`

    `keydyn study verification --dataset fable`
    """
    from keydyn.detectors import PopulationDetector
    from keydyn.lab.frame.published import DATASETS
    from keydyn.lab.transfer.places import free_places
    from keydyn.lab.verification.all_measurements import choices_of, protocols_of, run_verification

    rows, warnings = chosen_rows(dataset, data, DATASETS)
    simulated = [row.name for row in rows] == [SIMULATED]
    places, absent = free_places([SIMULATED] if simulated else dataset or None, data)
    return Plan(
        work=partial(run_verification, rows, places, seed),
        facts=lambda measured: (
            recognition_facts(rows, [PopulationDetector.name], seed)
            | {"protocols": protocols_of(rows), "choices": choices_of(measured)}
        ),
        warnings=[*warnings, *(message for message in absent if message not in warnings)],
    )
