"""keydyn evaluate: the paper's tables for recordings of one's own."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.commands.every_command import grouped
from keydyn.commands.recording_options import Reading, listed
from keydyn.commands.shared_options import JobsOption, PopulationOption, population_of, with_population
from keydyn.exit_codes import checking_options
from keydyn.lab.continuous import study as continuous
from keydyn.lab.frame.chosen import known_detectors, recognition_facts
from keydyn.lab.frame.options import DetectorOption, SeedOption
from keydyn.lab.frame.study import Facts, Plan, report_beside, study
from keydyn.lab.recognition import study as recognition

if TYPE_CHECKING:
    import pyarrow as pa

    from keydyn.lab.frame.outputs import Outputs
    from keydyn.lab.frame.resuming import Parts, ShowProgress
    from keydyn.lab.frame.tables import Table

    ScoresAndRanks = tuple[pa.Table, pa.Table | None]

# Where a protocol fits more templates than this, others that fit fewer are pointed out.
MANY_TEMPLATES = 10_000


@study(
    "evaluate",
    tables=(*recognition.TABLES, *continuous.TABLES, "failures_to_acquire", "failures_to_enrol"),
    figures=(*recognition.FIGURES, *continuous.FIGURES),
    subcommand=False,
    report=report_beside(__name__),
)
@grouped
def evaluate(
    reading: Reading,
    protocol: Annotated[
        str,
        typer.Option(
            help="leave-one-out: each sample in turn is a query, and all others are for training. "
            "chronological: the first --share of a user's samples are for training. enrolment: the first "
            "--enrol samples are for training. open-set: leave-one-out with impostors who are not enrolled. "
            "published: as in the paper. killourhy-maxion: as in their paper, for fixed texts with many "
            "repetitions."
        ),
    ] = "leave-one-out",
    detector: DetectorOption = None,
    population: PopulationOption = None,
    sensors: Annotated[str, typer.Option(help="Further columns to use, comma-separated.")] = "",
    enrol: Annotated[
        int, typer.Option(min=1, help="Number of samples to train on (protocol enrolment).")
    ] = 5,
    share: Annotated[
        float, typer.Option(help="Share of samples to train on (protocol chronological).")
    ] = 0.5,
    groups: Annotated[
        int, typer.Option(min=2, help="Number of groups of users; each in turn is unknown in an open set.")
    ] = 10,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """Evaluate detectors on your own recordings: tables, figures and a report.

    Users with too few samples and samples that cannot be used are left out and listed. Unless the protocol is
    already an open set, an open set is evaluated too. With --population, the detector population enrols
    people with that population; otherwise it learns one from the training samples.

    Examples:
    `keydyn evaluate typing.csv --out results/`

    `keydyn evaluate typing.csv --protocol enrolment --enrol 3 --detector pohmm --detector manhattan-scaled`
    """
    from keydyn.detectors import make_detector
    from keydyn.evaluation.protocols.running import n_templates
    from keydyn.lab.frame.resuming import Parts
    from keydyn.lab.frame.score_datasets import rank_rows, score_rows
    from keydyn.lab.own_recordings.report import failures_facts, own_rows, protocol_of, write_evaluation
    from keydyn.lab.recognition.report import DETECTORS, draw_densities

    detectors = with_population(known_detectors(detector) or list(DETECTORS), population_of(population))
    with checking_options():
        chosen = protocol_of(protocol, enrol, share, groups)
    recording, notes = reading.recording()
    used = tuple(listed(sensors))
    scoring_events = [name for name in detectors if make_detector(name).scores_events]
    vectors = len(scoring_events) < len(detectors)
    rows, failures = own_rows(recording, chosen, used, groups, vectors)
    warnings = []
    if len(failures.to_acquire) or len(failures.to_enrol):
        warnings.append(f"{failures.text()}; the report names them")
    n_fits = n_templates(chosen, detectors[0], rows[0].samples)
    if n_fits > MANY_TEMPLATES:
        warnings.append(
            f"{chosen.name} fits {n_fits:,} templates for each detector; --protocol chronological or "
            "enrolment fits one per user"
        )

    def work(parts: Parts, show_progress: ShowProgress) -> ScoresAndRanks:
        scores = score_rows(rows, detectors, parts, jobs or -1, show_progress)
        if not scoring_events:
            return scores, None
        rank_parts = Parts(parts.folder / "ranks", parts.fresh)
        return scores, rank_rows(rows[:1], scoring_events, rank_parts, jobs or -1, show_progress)

    def facts(measured: ScoresAndRanks) -> Facts:
        return recognition_facts("evaluate", rows, detectors, seed, measured[0]) | {
            "file": reading.file.name,
            "reading": {**asdict(reading), "file": reading.file.name, "unit": recording.unit},
            "notes": notes.to_dict(reading.as_options),
            "sensors": list(used),
            "failures": failures_facts(failures),
        }

    def write(outputs: Outputs, measured: ScoresAndRanks, facts: Facts) -> list[Table]:
        draw_densities(outputs, rows[:1])
        return write_evaluation(outputs, *measured, facts, seed)

    return Plan(work, facts, write, warnings)
