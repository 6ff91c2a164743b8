"""keydyn study recognition: who is it, and is it who they say?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from keydyn.lab.frame.chosen import (
    DataOption,
    DatasetOption,
    DetectorOption,
    SeedOption,
    chosen_rows,
    known_detectors,
    recognition_facts,
)
from keydyn.lab.frame.study import Facts, Plan, report_beside, study

if TYPE_CHECKING:
    import pyarrow as pa

    from keydyn.lab.frame.outputs import Outputs
    from keydyn.lab.frame.tables import Table

TABLES = (
    *("identification", "verification", "recognition", "ranks"),
    *("open_set", "error_rates", "recommended"),
)
FIGURES = ("roc", "det", "cmc", "open_set", "marginal_density")


@study("recognition", tables=TABLES, figures=FIGURES, in_the_paper=True, report=report_beside(__name__))
def recognition(
    dataset: DatasetOption = None,
    detector: DetectorOption = None,
    data: DataOption = None,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """Who is it, and is it who they say? Identification and verification (Section 5.2).

    Examples:
    `keydyn study recognition --data recordings/`

    `keydyn study recognition --dataset fable --detector pohmm --detector hmm`
    """
    from keydyn.lab.frame.score_datasets import score_rows
    from keydyn.lab.recognition.report import DETECTORS, draw_densities, write

    detectors = known_detectors(detector) or list(DETECTORS)
    rows, warnings = chosen_rows(dataset, data)

    def with_densities(outputs: Outputs, scores: pa.Table, facts: Facts) -> list[Table]:
        draw_densities(outputs, rows)
        return write(outputs, scores, facts)

    return Plan(
        partial(score_rows, rows, detectors),
        lambda scores: recognition_facts(rows, detectors, seed, scores),
        with_densities,
        warnings,
    )
