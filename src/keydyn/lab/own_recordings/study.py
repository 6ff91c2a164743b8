"""keydyn evaluate: the paper's tables for recordings of one's own."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.commands.every_command import grouped
from keydyn.commands.recording_options import Reading, listed
from keydyn.commands.shared_options import PopulationOption, population_of, with_population
from keydyn.exit_codes import checking_options
from keydyn.lab.continuous import study as continuous
from keydyn.lab.frame.chosen import known_detectors, recognition_facts
from keydyn.lab.frame.options import DetectorOption, SeedOption
from keydyn.lab.frame.study import Facts, Plan, report_beside, study
from keydyn.lab.recognition import study as recognition

if TYPE_CHECKING:
    import pyarrow as pa

    from keydyn.lab.frame.outputs import Outputs
    from keydyn.lab.frame.resuming import Parts
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
    twice_as_impostors: Annotated[
        bool,
        typer.Option(
            "--twice-as-impostors",
            help="Count users who are likely one person as impostors of each other.",
        ),
    ] = False,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """Evaluate detectors on your own recordings: tables, figures and a report.

    Users with too few samples and samples that cannot be used are left out and listed. Where there are 10
    users or more, those who are likely one person are named, and are not impostors of each other. Unless the
    protocol is already an open set, an open set is evaluated too. With --population, the detector population
    enrols people with that population; otherwise it learns one from the training samples.

    Examples:
    `keydyn evaluate typing.csv --out results/`

    `keydyn evaluate typing.csv --protocol enrolment --enrol 3 --detector pohmm --detector manhattan-scaled`
    """
    from keydyn.decisions.known_twice import twice_noticed
    from keydyn.detectors import make_detector
    from keydyn.evaluation.protocols.running import n_templates
    from keydyn.lab.frame.score_datasets import rank_rows, score_rows
    from keydyn.lab.own_recordings.report import failures_facts, own_rows, protocol_of, write
    from keydyn.lab.own_recordings.twice import twice_facts
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
    twice, texts = twice_noticed(recording.keystrokes, n_jobs=-1)
    warnings += texts
    n_fits = n_templates(chosen, detectors[0], rows[0].samples)
    if n_fits > MANY_TEMPLATES:
        warnings.append(
            f"{chosen.name} fits {n_fits:,} templates for each detector; --protocol chronological or "
            "enrolment fits one per user"
        )

    def work(parts: Parts) -> ScoresAndRanks:
        scores = score_rows(rows, detectors, parts)
        return scores, rank_rows(rows[:1], scoring_events, parts.below("ranks")) if scoring_events else None

    def facts(measured: ScoresAndRanks) -> Facts:
        return recognition_facts(rows, detectors, seed, measured[0]) | {
            "file": reading.file.name,
            "reading": {**asdict(reading), "file": reading.file.name, "unit": recording.unit},
            "notes": notes.to_dict(reading.as_options),
            "sensors": list(used),
            "failures": failures_facts(failures),
            "twice": twice_facts(twice, twice_as_impostors),
        }

    def with_densities(outputs: Outputs, measured: ScoresAndRanks, facts: Facts) -> list[Table]:
        draw_densities(outputs, rows[:1])
        return write(outputs, measured, facts)

    return Plan(work, facts, with_densities, warnings)
