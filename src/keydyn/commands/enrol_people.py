"""keydyn fit and users: who is enrolled in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.commands.every_command import every_command
from keydyn.commands.models_options import KeyFileOption, ModelsOption, key_of
from keydyn.commands.population_options import PopulationOption, population_of
from keydyn.commands.recording_options import Reading, listed, reads_recording
from keydyn.exit_codes import UsageError, checking_options
from keydyn.progress import progress_bar
from keydyn.terminal import JsonOption, print_json, say, show_table

if TYPE_CHECKING:
    import pandas as pd

    from keydyn.enrolment import Enrolled, Manifest

DEFAULT_DETECTOR = "pohmm"
# Why a fit stopped, in words; and what these mean where they could worry somebody.
STOPPED = {"tol": "convergence", "max_iter": "limit of iterations", "decrease": "no further gain"}
EXPLAINED = {
    "max_iter": "Limit of iterations: the fit was still improving; its model is used as it is.",
    "decrease": "No further gain: the last step lowered the log-likelihood a little, which can happen "
    "because parameters are smoothed. It is a normal end of a fit.",
}


@every_command
@reads_recording
def fit(
    reading: Reading,
    out: Annotated[Path, typer.Option("--out", help="Folder for the models.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Start over: remove everybody who is enrolled in the folder.")
    ] = False,
    detector: Annotated[
        str | None,
        typer.Option(
            help="hmm, pohmm, pohmm-recommended or population; by default that of the folder, or pohmm.",
            show_default=False,
        ),
    ] = None,
    population: PopulationOption = None,
    sensors: Annotated[
        str | None,
        typer.Option(
            help="Further columns to use, comma-separated; by default those of the folder.",
            show_default=False,
        ),
    ] = None,
    min_samples: Annotated[int, typer.Option(min=1, help="Samples that each user must have.")] = 2,
    jobs: Annotated[int, typer.Option(min=-1, help="Threads; -1 or 0 for all cores.")] = 1,
    key_file: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Enrol: fit a model to each user's samples, and find the thresholds for verify and watch.

    People are added to those in the folder; anybody who is there already is enrolled again. The folder
    changes in one step at the very end, or not at all.

    Examples:
    `keydyn fit typing.csv --out models/`

    `keydyn fit phone.csv --out models/ --sensors pressure,x,y --unit s`

    `keydyn fit typing.csv --out models/ --detector population`
    """
    from keydyn.enrolment import changing, enrol, n_steps
    from keydyn.enrolment.enrolling import storing_detector

    key = key_of(key_file)
    people = population_of(population)
    detector = "population" if people is not None and detector is None else detector
    if detector is not None:
        with checking_options():
            storing_detector(detector, people)
    keystrokes = reading.recording()[0].keystrokes
    with changing(out, key, anew=replace) as change:
        chosen = _settings(change.before, detector, sensors, out)
        beside = change.beside(keystrokes["user"].astype(str).unique())
        n_others = 0 if beside is None else len(beside.templates)
        with progress_bar("fitting", n_steps(keystrokes, n_others), hidden=as_json) as progress:
            enrolled = enrol(keystrokes, *chosen, min_samples, jobs or -1, progress, beside, people)
        manifest = change.commit(enrolled)
    _report(enrolled, manifest, change.before, keystrokes, out, as_json)


@every_command
def users(
    models: ModelsOption,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="NAME", help="Remove this user; repeatable.")
    ] = None,
    key_file: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the people enrolled in a folder, or remove some of them.

    Examples:
    `keydyn users --models models/`

    `keydyn users --models models/ --remove anna`
    """
    from keydyn.enrolment import Enrolled, changing, read_manifest

    key = key_of(key_file)
    manifest = read_manifest(models, key)
    if remove:
        with changing(models, key) as change:
            with checking_options():
                manifest = read_manifest(models, key).without(set(remove))
            change.commit(Enrolled(manifest, {}))
    rows = [
        {
            "user": person.user,
            "samples": person.samples,
            "threshold": person.threshold,
            "penalty": person.penalty,
            "judged_beside": len(manifest.cohort(person)),
        }
        for person in manifest.people
    ]
    if as_json:
        print_json({"models": str(models), "detector": manifest.detector, "users": rows})
        return
    if rows:
        show_table(f"{_counted(len(rows))} enrolled with {manifest.detector}", rows)
    else:
        say(f"Nobody is enrolled in {models}.")


def _settings(
    before: Manifest | None, detector: str | None, sensors: str | None, out: Path
) -> tuple[str, tuple[str, ...]]:
    """The detector and the sensors: as the options say, as in the folder, or the defaults."""
    used = None if sensors is None else tuple(listed(sensors))
    if before is None or not before.people:
        return detector or DEFAULT_DETECTOR, used or ()
    if detector not in (None, before.detector):
        raise UsageError(
            f"people in {out} are enrolled with {before.detector}, and {detector} cannot be compared with "
            "it: leave out --detector, give another folder, or start over with --replace"
        )
    if used not in (None, before.sensors):
        raise UsageError(
            f"people in {out} are enrolled with the sensors {', '.join(before.sensors) or 'none'}: leave out "
            "--sensors, give another folder, or start over with --replace"
        )
    return before.detector, before.sensors


def _report(
    enrolled: Enrolled,
    manifest: Manifest,
    before: Manifest | None,
    keystrokes: pd.DataFrame,
    out: Path,
    as_json: bool,
) -> None:
    from keydyn.detectors import Markov

    n_keys = keystrokes["user"].astype(str).value_counts()
    earlier = {person.user for person in before.people} if before else set()
    rows: list[dict[str, Any]] = []
    for person in manifest.people:
        if person.user not in n_keys:
            continue
        row: dict[str, Any] = {"user": person.user, "samples": person.samples}
        template = enrolled.templates[person.user]
        if isinstance(template, Markov):
            model = template.model_
            row["log_likelihood_per_key"] = model.log_likelihood_ / int(n_keys[person.user])
            row |= {"iterations": model.n_iter_, "stopped_by": model.stop_reason_}
        rows.append(row | {"threshold": person.threshold})
    again = [row["user"] for row in rows if row["user"] in earlier]
    if as_json:
        print_json(
            {
                "models": str(out),
                "detector": manifest.detector,
                "users": rows,
                "replaced": again,
                "enrolled": len(manifest.people),
            }
        )
        return
    reasons = {row["stopped_by"] for row in rows if "stopped_by" in row}
    shown = [
        {name: STOPPED.get(value, value) if name == "stopped_by" else value for name, value in row.items()}
        for row in rows
    ]
    show_table(f"{_counted(len(rows))} enrolled with {manifest.detector}", shown)
    for reason in reasons & {*EXPLAINED}:
        say(EXPLAINED[reason])
    say(
        f"Models are in {out}: {_counted(len(manifest.people))}, {len(rows) - len(again)} new, "
        f"{len(again)} enrolled again"
    )
    if rows[0]["threshold"] is None:
        say(
            "No thresholds: they need two users or more, with two samples or more each. When there are more "
            "users, enrol these again."
        )


def _counted(n_users: int) -> str:
    return f"{n_users} user{'' if n_users == 1 else 's'}"
