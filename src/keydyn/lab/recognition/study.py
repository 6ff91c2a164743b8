"""keydyn study recognition: who is it, and is it who they say?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keydyn.commands.shared_options import JobsOption
from keydyn.lab.frame.chosen import chosen_rows, known_detectors, recognition_facts
from keydyn.lab.frame.options import DataOption, DatasetOption, DetectorOption, SeedOption
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
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """Who is it, and is it who they say? Identification and verification (Section 5.2).

    Examples:
    `keydyn study recognition --data recordings/`

    `keydyn study recognition --dataset fable --detector pohmm --detector hmm`
    """
    from keydyn.lab.frame.score_datasets import score_rows
    from keydyn.lab.recognition.report import DETECTORS, draw_densities, write_recognition

    detectors = known_detectors(detector) or list(DETECTORS)
    rows, warnings = chosen_rows(dataset, data)

    def write(outputs: Outputs, scores: pa.Table, facts: Facts) -> list[Table]:
        draw_densities(outputs, rows)
        return write_recognition(outputs, scores, facts, seed)

    return Plan(
        lambda parts, show_progress: score_rows(rows, detectors, parts, jobs or -1, show_progress),
        lambda scores: recognition_facts("recognition", rows, detectors, seed, scores),
        write,
        warnings,
    )
