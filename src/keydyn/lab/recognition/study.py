"""The command `keydyn study recognition`: who is typing, and is it the person they claim to be?"""

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

TABLES = (
    *("identification", "verification", "recognition", "ranks"),
    *("open_set", "error_rates", "recommended"),
)
FIGURES = ("roc", "det", "cmc", "open_set", "marginal_density")


@study("recognition", tables=TABLES, figures=FIGURES, in_the_paper=True)
def recognition(
    dataset: DatasetOption = None,
    detector: DetectorOption = None,
    data: DataOption = None,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """Who is typing, and is it the person they claim to be? Identification and verification (Section 5.2).

    Examples:
    `keydyn study recognition --data recordings/`

    `keydyn study recognition --dataset fable --detector pohmm --detector hmm`
    """
    from keydyn.lab.frame.score_datasets import score_rows
    from keydyn.lab.recognition.report import DETECTORS, draw_densities

    detectors = known_detectors(detector) or list(DETECTORS)
    rows, warnings = chosen_rows(dataset, data)

    return Plan(
        work=partial(score_rows, rows, detectors),
        facts=lambda scores: recognition_facts(rows, detectors, seed, scores),
        warnings=warnings,
        more_files=(partial(draw_densities, rows),),
    )
