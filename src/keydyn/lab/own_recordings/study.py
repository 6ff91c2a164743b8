"""The command `keydyn evaluate`: the paper's tables for a user's own recordings."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.commands.every_command import grouped
from keydyn.commands.people.enrol import new_background, shipped_is_better
from keydyn.commands.recording_options import ReadingOptions, listed
from keydyn.commands.shared_options import PopulationOption, population_of, with_population
from keydyn.exit_codes import UsageError, checking_options
from keydyn.lab.continuous import study as continuous
from keydyn.lab.frame.chosen import DetectorOption, SeedOption, known_detectors, recognition_facts
from keydyn.lab.frame.study import Facts, Plan, study
from keydyn.lab.recognition import study as recognition
from keydyn.lab.system_scores import study as system_scores
from keydyn.progress import working

if TYPE_CHECKING:
    import pyarrow as pa

    from keydyn.datasets.files.recordings import Recording
    from keydyn.evaluation.protocols.protocol import Protocol
    from keydyn.lab.frame.resuming import Parts

    ScoresAndRanks = tuple[pa.Table, pa.Table | None]

# Stands for no file, since a folder is not a recording.
NO_FILE = Path()
OWN_TABLES = ("decisions", "failures_to_acquire", "failures_to_enrol", "groups", "group_differences")
# Further tables of the standard report.
STANDARD_TABLES = (
    *("facts_test", "facts_people", "facts_recording", "facts_system", "facts_limits"),
    *("recorded", "noticed", "left_out", "left_out_by_user", "operating_points"),
    *("presentation_attacks", "limits"),
)
STANDARD = "standard"
# If a protocol fits more templates than this, protocols that fit fewer are pointed out.
MANY_TEMPLATES = 10_000


@dataclass(frozen=True)
class Design:
    """The options that divide samples into training samples and queries."""

    protocol: Annotated[
        str,
        typer.Option(
            help="leave-one-out: each sample in turn is a query, and all others are for training. "
            "chronological: the first --share of a user's samples are for training. enrolment: the first "
            "--enrol samples are for training. open-set: leave-one-out with impostors who are not enrolled. "
            "published: as in the paper. killourhy-maxion: as in their paper, for fixed texts with many "
            "repetitions."
        ),
    ] = "leave-one-out"
    enrol: Annotated[int, typer.Option(min=1, help="Number of samples to train on (protocol enrolment).")] = 5
    share: Annotated[float, typer.Option(help="Share of samples to train on (protocol chronological).")] = 0.5
    enrol_on: Annotated[
        str,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Train on the samples with this value in this column, such as device=laptop or session=1,2, "
            "instead of a protocol; test on --test-on, or on all others.",
        ),
    ] = ""
    test_on: Annotated[str, typer.Option(metavar="COLUMN=VALUE", help="Test on these samples.")] = ""
    groups: Annotated[
        int, typer.Option(min=2, help="Number of groups of users; each in turn is unknown in an open set.")
    ] = 10

    def applied(self, recording: Recording) -> tuple[Recording, Protocol]:
        """The samples to use, and the protocol."""
        from keydyn.lab.own_recordings.report import across, protocol_of

        with checking_options():
            if self.enrol_on or self.test_on:
                return across(recording, self.enrol_on, self.test_on)
            return recording, protocol_of(self.protocol, self.enrol, self.share, self.groups)


@dataclass(frozen=True)
class RecordingOrScores(ReadingOptions):
    """The options for reading a file of recordings, if one is named."""

    file: Annotated[
        Path,
        typer.Argument(
            metavar="[FILE]",
            help="CSV, JSON lines or Parquet: user, session, keyname, timepress, timerelease; or - for "
            "standard input. Or none, with --scores.",
            show_default=False,
        ),
    ] = NO_FILE


@dataclass(frozen=True)
class Reporting:
    """The options for reports in addition to the usual tables."""

    report: Annotated[
        str,
        typer.Option(
            metavar="standard",
            help="Write standard.html and standard.json too: a test report in the order of ISO/IEC 19795-1, "
            "with attacks in the terms of ISO/IEC 30107-3 and the claims that it supports.",
        ),
    ] = ""
    facts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="File of facts that only the people who ran the test know, for --report standard. Without "
            "it a template, facts.toml, is written, and the report marks what is missing.",
        ),
    ] = None
    by: Annotated[
        str,
        typer.Option(
            metavar="COLUMNS",
            help="Compare people by these columns, comma-separated, such as age,layout: error rates of each "
            "group, and how far groups differ.",
        ),
    ] = ""

    def stated(self) -> dict[str, dict[str, str]] | None:
        """The facts stated for the standard report; None if that report was not requested."""
        from keydyn.lab.standard_report.stated_facts import read_facts

        if self.report not in ("", STANDARD):
            raise UsageError(f"--report must be {STANDARD}, not {self.report!r}")
        if self.facts is not None and not self.report:
            raise UsageError("--facts are for --report standard")
        if not self.report:
            return None
        return read_facts(self.facts) if self.facts is not None else {}

    def with_template(self, plan: Plan[Any]) -> Plan[Any]:
        """The plan, which also writes the template of facts if they are needed and were not given."""
        if not self.report or self.facts is not None:
            return plan
        from keydyn.lab.standard_report.stated_facts import write_template

        more_files = (*plan.more_files, lambda outputs: write_template(outputs.folder))
        return replace(plan, more_files=more_files)


@study(
    "evaluate",
    tables=(
        *(*recognition.TABLES, *continuous.TABLES, *OWN_TABLES),
        *(*STANDARD_TABLES, *system_scores.TABLES),
    ),
    figures=(*recognition.FIGURES, *continuous.FIGURES, *system_scores.FIGURES),
    subcommand=False,
)
@grouped
def evaluate(
    reading: RecordingOrScores,
    given: system_scores.ScoreOptions,
    design: Design,
    reporting: Reporting,
    detector: DetectorOption = None,
    population: PopulationOption = None,
    sensors: Annotated[str, typer.Option(help="Further columns to use, comma-separated.")] = "",
    twice_as_impostors: Annotated[
        bool,
        typer.Option(
            "--twice-as-impostors",
            help="Count users who are likely the same person as impostors of each other.",
        ),
    ] = False,
    seed: SeedOption = 0,
) -> Plan[Any]:
    """Evaluate detectors on your own recordings, or the scores of any system: tables, figures, a report.

    Users with too few samples and samples that cannot be used are left out and listed. If there are 10 users
    or more, those who are likely the same person are named, and are not impostors of each other. Unless the
    protocol is already an open set, an open set is evaluated too. The detector population comes first: it is
    what `keydyn fit` uses, with the same population, and the table of decisions says what `keydyn verify`
    would have answered. --population names another one.

    With --scores, files of any system's scores take the place of recordings, and options about detectors and
    protocols do not apply. Several files, and several detectors in one, are compared side by side.

    --report standard writes what an auditor asks for: who was tested, what was left out, error rates with
    intervals over people, attacks, and which claims this many people can support. The same input gives the
    same bytes.

    Examples:
    `keydyn evaluate typing.csv --out results/`

    `keydyn evaluate typing.csv --protocol enrolment --enrol 3 --detector pohmm --detector manhattan-scaled`

    `keydyn evaluate typing.csv --enrol-on device=laptop --test-on device=desktop`

    `keydyn evaluate --scores svm.txt --scores network.csv --prior 0.99`

    `keydyn evaluate typing.csv --by age,layout`

    `keydyn evaluate typing.csv --report standard --facts facts.toml --out report/`

    `keydyn evaluate --scores svm.txt --report standard`
    """
    if bool(given.scores) == (reading.file != NO_FILE):
        raise UsageError("name either a FILE of recordings or files of scores with --scores")
    stated = reporting.stated()
    if given.scores:
        if reporting.by:
            raise UsageError("--by takes columns of recordings, which files of scores do not have")
        return reporting.with_template(system_scores.plan(given, seed, stated))
    from keydyn.decisions.known_twice import twice_noticed
    from keydyn.detectors import PopulationDetector, make_detector
    from keydyn.evaluation.protocols.running import n_templates
    from keydyn.keystrokes.one_sample import recorded_samples
    from keydyn.lab.frame.score_datasets import rank_rows, score_rows
    from keydyn.lab.own_recordings.decisions import decided
    from keydyn.lab.own_recordings.report import failures_facts, learnt_from, own_rows, twice_facts
    from keydyn.lab.recognition.report import DETECTORS, draw_densities
    from keydyn.lab.standard_report.group_rates import groups_of
    from keydyn.lab.standard_report.recorded_facts import recorded_facts
    from keydyn.population import PopulationModel

    names = known_detectors(detector) or [PopulationDetector.name, *DETECTORS]
    whole, notes = reading.recording()
    with checking_options():
        groups = groups_of(whole.keystrokes, listed(reporting.by))
    recording, chosen = design.applied(whole)
    used = tuple(listed(sensors))
    typed = recorded_samples(recording.keystrokes, used)
    people = population_of(population)
    if people is None and PopulationDetector.name in names and shipped_is_better(typed):
        people = PopulationModel.shipped()
    detectors = with_population(names, people)
    scoring_events = [name for name in detectors if make_detector(name).scores_events]
    vectors = len(scoring_events) < len(detectors)
    rows, failures = own_rows(recording, chosen, used, design.groups, vectors)
    warnings = []
    if len(failures.to_acquire) or len(failures.to_enrol):
        warnings.append(f"{failures.text()}; the report names them")
    twice, texts = twice_noticed(recording.keystrokes, n_jobs=-1)
    warnings += texts
    if population is None and PopulationDetector.name in names and learnt_from(whole):
        warnings.append(
            f"the population that comes with keydyn was learnt from {whole.name}: its decisions on these "
            "people look better than on others; --population names another one"
        )
    n_fits = n_templates(chosen, detectors[0], rows[0].samples)
    if n_fits > MANY_TEMPLATES:
        warnings.append(
            f"{chosen.name} fits {n_fits:,} templates for each detector; --protocol chronological or "
            "enrolment fits one per user"
        )

    def work(parts: Parts) -> ScoresAndRanks:
        scores = score_rows(rows, detectors, parts)
        return scores, rank_rows(rows[:1], scoring_events, parts.below("ranks")) if scoring_events else None

    def decisions() -> Facts:
        """Compute decisions if the population is evaluated: only it decides at a stated rate."""
        if not any(make_detector(one).name == PopulationDetector.name for one in detectors) or used:
            return {}
        same = {frozenset((str(pair.user), str(pair.other))) for pair in twice.itertuples(index=False)}
        with working("deciding"):
            chosen_for = partial(new_background, population=population)
            apart = () if twice_as_impostors else same
            attacks_seed = None if stated is None else seed
            return decided(rows[0].samples, chosen, chosen_for, apart, attacks_seed)

    def facts(measured: ScoresAndRanks) -> Facts:
        return recognition_facts(rows, detectors, seed, measured[0]) | {
            "file": reading.file.name,
            "reading": {**asdict(reading), "file": reading.file.name, "unit": recording.unit},
            "notes": notes.to_dict(reading.as_options),
            "sensors": list(used),
            "failures": failures_facts(failures),
            "twice": twice_facts(twice, twice_as_impostors),
            "decisions": decisions(),
            **({"groups": groups} if groups else {}),
            **({} if stated is None else {"standard": {"stated": stated}, "recorded": recorded_facts(whole)}),
        }

    return reporting.with_template(Plan(work, facts, warnings, (partial(draw_densities, rows[:1]),)))
