"""keydyn study verification: strangers refused, sessions watched, attacks, ageing, fairness and privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keydyn.commands.shared_options import JobsOption
from keydyn.lab.frame.chosen import chosen_rows, recognition_facts
from keydyn.lab.frame.options import DataOption, DatasetOption, SeedOption
from keydyn.lab.frame.study import Facts, Plan, page_beside, study

if TYPE_CHECKING:
    from keydyn.lab.frame.outputs import Outputs
    from keydyn.lab.frame.tables import Table


def _rebuild_verification(outputs: Outputs, facts: Facts, seed: int) -> list[Table]:
    from keydyn.lab.verification.frames import read_measured
    from keydyn.lab.verification.report import write_verification

    return write_verification(outputs, read_measured(outputs.folder), facts, seed)


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
    rebuild=_rebuild_verification,
    results=page_beside(__name__),
)
def verification(
    dataset: DatasetOption = None,
    data: DataOption = None,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """How reliable are decisions? Stated and measured error rates, watching, attacks, ageing, privacy.

    Examples:
    `keydyn study verification --data recordings/`

    `keydyn study verification --dataset fable`
    """
    from keydyn.detectors import PopulationDetector
    from keydyn.lab.frame.published import DATASETS
    from keydyn.lab.verification.frames import choices_of, protocols_of, run_verification
    from keydyn.lab.verification.report import write_verification

    rows, warnings = chosen_rows(dataset, data, DATASETS)
    return Plan(
        lambda parts, show_progress: run_verification(rows, seed, parts, jobs or -1, show_progress),
        lambda measured: (
            recognition_facts("verification", rows, [PopulationDetector.name], seed)
            | {"protocols": protocols_of(rows), "choices": choices_of(measured)}
        ),
        lambda outputs, measured, facts: write_verification(outputs, measured, facts, seed),
        warnings,
    )
