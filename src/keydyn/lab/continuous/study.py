"""keydyn study continuous: is it still them, keystroke by keystroke?"""

from __future__ import annotations

from typing import Any

from keydyn.commands.shared_options import JobsOption
from keydyn.lab.frame.chosen import chosen_rows, known_detectors, recognition_facts
from keydyn.lab.frame.options import DataOption, DatasetOption, DetectorOption, SeedOption
from keydyn.lab.frame.study import Plan, report_beside, study

TABLES = ("continuous", "watching")
FIGURES = ("rejection", "penalty")


@study("continuous", tables=TABLES, figures=FIGURES, in_the_paper=True, report=report_beside(__name__))
def continuous(
    dataset: DatasetOption = None,
    detector: DetectorOption = None,
    data: DataOption = None,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """Is it still them, keystroke by keystroke? Continuous verification (Section 5.3).

    Example: `keydyn study continuous --dataset fable --data recordings/`
    """
    from keydyn.lab.continuous.report import DETECTORS, write_continuous
    from keydyn.lab.frame.score_datasets import rank_rows

    detectors = known_detectors(detector) or list(DETECTORS)
    rows, warnings = chosen_rows(dataset, data)
    return Plan(
        lambda parts, show_progress: rank_rows(rows, detectors, parts, jobs or -1, show_progress),
        lambda ranks: recognition_facts("continuous", rows, detectors, seed, ranks),
        lambda outputs, ranks, facts: write_continuous(outputs, ranks, facts, seed),
        warnings,
    )
