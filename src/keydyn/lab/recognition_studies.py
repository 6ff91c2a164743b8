"""keydyn study recognition, recommended, continuous, relatives, population: who is recognised how well?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keydyn.commands.shared_options import JobsOption
from keydyn.exit_codes import checking_options
from keydyn.lab.continuous import page as continuous_page
from keydyn.lab.frame.chosen_recordings import chosen_rows
from keydyn.lab.frame.options import DataOption, DatasetOption, DetectorOption, SeedOption
from keydyn.lab.frame.study import Facts, Plan, study
from keydyn.lab.population import page as population_page
from keydyn.lab.recognition import page as recognition_page
from keydyn.lab.recommended import page as recommended_page
from keydyn.lab.relatives import page as relatives_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from keydyn.detectors import Detector
    from keydyn.lab.frame.dataset_rows import Row
    from keydyn.lab.frame.outputs import Outputs
    from keydyn.lab.frame.tables import Table

RECOGNITION_TABLES = (
    *("identification", "verification", "recognition", "ranks"),
    *("open_set", "error_rates", "recommended"),
)
RECOGNITION_FIGURES = ("roc", "det", "cmc", "open_set", "marginal_density")
CONTINUOUS_TABLES = ("continuous", "watching")
CONTINUOUS_FIGURES = ("rejection", "penalty")


def known_detectors(names: Sequence[str] | None) -> list[str]:
    """Detectors by name; an unknown one is reported before any work is done."""
    from keydyn.detectors import make_detector

    with checking_options():
        return [make_detector(name).name for name in dict.fromkeys(names or ())]


def recognition_facts(
    study_name: str,
    rows: Sequence[Row],
    detectors: Sequence[str | Detector],
    seed: int,
    table: pa.Table | None = None,
) -> Facts:
    """What run.json says of a study that enrols people; `table` has its scores or ranks."""
    from keydyn.detectors import make_detector
    from keydyn.lab.frame.outputs import environment
    from keydyn.lab.frame.recommended_settings import detector_for
    from keydyn.lab.frame.saved_parts import detector_settings
    from keydyn.lab.frame.score_datasets import limited_fits

    return {
        "study": study_name,
        **environment(),
        "seed": seed,
        "data": {row.name: row.checksums for row in rows},
        "vectors": {row.name: row.vectors for row in rows},
        "protocols": {row.name: row.protocol.describe() for row in rows},
        "detectors": {
            row.name: {
                make_detector(one).name: detector_settings(detector_for(row.name, one)) for one in detectors
            }
            for row in rows
        },
        "fits that reached the limit of iterations": {} if table is None else limited_fits(table),
    }


def _rebuild_recognition(outputs: Outputs, facts: Facts, seed: int) -> list[Table]:
    from keydyn.lab.frame.outputs import read_scores
    from keydyn.lab.recognition.report import write_recognition

    return write_recognition(outputs, read_scores(outputs.folder), facts, seed)


@study(
    "recognition",
    tables=RECOGNITION_TABLES,
    figures=RECOGNITION_FIGURES,
    in_the_paper=True,
    rebuild=_rebuild_recognition,
    results=recognition_page.PAGE,
)
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


@study(
    "recommended",
    tables=("choices", "candidates"),
    results=recommended_page.PAGE,
)
def recommended(
    dataset: DatasetOption = None,
    data: DataOption = None,
    jobs: JobsOption = -1,
) -> Plan[Any]:
    """Choose the recommended settings, for each dataset from the others alone. Takes a few minutes.

    Example: `keydyn study recommended --data recordings/`
    """
    from keydyn.lab.recommended.report import check_rows, try_candidates, write_recommended

    rows, warnings = chosen_rows(dataset, data)
    check_rows(rows)
    return Plan(
        lambda parts, show_progress: try_candidates(rows, parts, jobs or -1, show_progress),
        lambda _: recognition_facts("recommended", rows, [], 0),
        write_recommended,
        warnings,
    )


def _rebuild_continuous(outputs: Outputs, facts: Facts, seed: int) -> list[Table]:
    from keydyn.lab.continuous.report import write_continuous
    from keydyn.lab.frame.outputs import read_ranks

    return write_continuous(outputs, read_ranks(outputs.folder), facts, seed)


@study(
    "continuous",
    tables=CONTINUOUS_TABLES,
    figures=CONTINUOUS_FIGURES,
    in_the_paper=True,
    rebuild=_rebuild_continuous,
    results=continuous_page.PAGE,
)
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


def _rebuild_relatives(outputs: Outputs, facts: Facts, seed: int) -> list[Table]:
    from keydyn.lab.frame.outputs import read_ranks, read_scores
    from keydyn.lab.relatives.report import read_losses, write_relatives

    folder = outputs.folder
    scores, ranks, losses = read_scores(folder), read_ranks(folder), read_losses(folder)
    return write_relatives(outputs, scores, ranks, losses, facts, seed)


@study(
    "relatives",
    tables=("relatives", "relatives_lost_context"),
    figures=("lost_context",),
    frames=("lost_context",),
    rebuild=_rebuild_relatives,
    results=relatives_page.PAGE,
)
def relatives(
    dataset: DatasetOption = None,
    data: DataOption = None,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """Compare the POHMM with context-, partly- and partially-HMM, and with contexts missing (Section 6).

    Examples:
    `keydyn study relatives --data recordings/`

    `keydyn study relatives --dataset fable`
    """
    from keydyn.lab.relatives.measurements import DETECTORS, run_relatives
    from keydyn.lab.relatives.report import write_relatives

    rows, warnings = chosen_rows(dataset, data)
    return Plan(
        lambda parts, show_progress: run_relatives(rows, seed, parts, jobs or -1, show_progress),
        lambda measured: recognition_facts("relatives", rows, DETECTORS, seed, measured[0]),
        lambda outputs, measured, facts: write_relatives(outputs, *measured, facts, seed),
        warnings,
    )


def _rebuild_population(outputs: Outputs, facts: Facts, seed: int) -> list[Table]:
    from keydyn.lab.population.report import read_measured, write_population

    return write_population(outputs, read_measured(outputs.folder), facts, seed)


@study(
    "population",
    tables=(
        *("population", "error_rates", "significance", "enrolment", "keystrokes", "people"),
        *("parts", "across", "worst_users"),
    ),
    figures=(
        *("population", "population_enrolment", "population_keystrokes", "population_people"),
        *("population_parts", "population_changes"),
    ),
    frames=("user_figures", "typing_changes"),
    rebuild=_rebuild_population,
    results=population_page.PAGE,
)
def population(
    dataset: DatasetOption = None,
    data: DataOption = None,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """Compare the population model with the POHMM: few samples, keys or people, and without each part.

    Examples:
    `keydyn study population --data recordings/`

    `keydyn study population --dataset fable --dataset essay`
    """
    from keydyn.lab.population.measurements import DATASETS, DETECTORS, run_population
    from keydyn.lab.population.report import write_population

    rows, warnings = chosen_rows(dataset, data, DATASETS)
    return Plan(
        lambda parts, show_progress: run_population(rows, seed, parts, jobs or -1, show_progress),
        lambda measured: recognition_facts("population", rows, DETECTORS, seed, measured.scores),
        lambda outputs, measured, facts: write_population(outputs, measured, facts, seed),
        warnings,
    )
