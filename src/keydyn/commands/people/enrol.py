"""keydyn fit and users: enrol people in a folder, list and remove them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.commands.every_command import every_command
from keydyn.commands.recording_options import ReadingOptions, listed
from keydyn.commands.shared_options import KeyFileOption, ModelsOption, PopulationOption, key_of
from keydyn.exit_codes import UsageError, checking_options
from keydyn.progress import progress_bar
from keydyn.terminal import JsonOption, print_json, say, show_table, warn

if TYPE_CHECKING:
    import pandas as pd

    from keydyn.decisions.calibration.background import Background
    from keydyn.decisions.folder.folder import Change
    from keydyn.decisions.folder.manifest import Manifest
    from keydyn.decisions.verifier import Verifier
    from keydyn.keystrokes import Samples

DEFAULT_DETECTOR = "population"
# The numbers of people in a recording from which a population is learnt instead of using the shipped one. The
# second applies if the people who come with keydyn typed such texts: they are then learnt from too.
ENOUGH_PEOPLE, ENOUGH_BESIDE_SHIPPED = 20, 50
# The steps of learning a calibration, for the progress bar: four folds, and all people.
CALIBRATING = 5
# A recording with this many keystrokes per required sample can be divided into samples.
LONG = 100
# The least share of known keys with which a person can be enrolled, and the most unknown keys to name.
HARDLY_ANY, MOST_NAMED = 0.2, 8


@dataclass(frozen=True)
class Enrolling:
    """The options for enrolling people."""

    out: Annotated[Path, typer.Option("--out", help="Folder for the models.")]
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Start over: first remove everyone who is enrolled in the folder."),
    ] = False
    detector: Annotated[
        str | None,
        typer.Option(
            "--detector",
            help="population, hmm, pohmm or pohmm-recommended; by default that of the folder, or population.",
            show_default=False,
        ),
    ] = None
    population: PopulationOption = None
    sensors: Annotated[
        str | None,
        typer.Option(
            "--sensors",
            help="Further columns to use, comma-separated; by default those of the folder.",
            show_default=False,
        ),
    ] = None
    min_samples: Annotated[
        int, typer.Option("--min-samples", min=1, help="Minimum number of samples per user.")
    ] = 2
    jobs: Annotated[int, typer.Option("--jobs", min=-1, help="Threads; -1 or 0 for all cores.")] = 1
    key_file: KeyFileOption = None
    as_json: JsonOption = False

    @property
    def n_jobs(self) -> int:
        """The number of threads; −1 for all cores."""
        return self.jobs or -1


@every_command
def fit(reading: ReadingOptions, options: Enrolling) -> None:
    """Enrol people: learn a template from each user's samples, for verify, identify and watch.

    People are added to those in the folder; those who are enrolled already are enrolled again. The folder
    changes in one step at the end, or not at all.

    The population, and the calibration that gives its scores their meaning, are fixed when the folder is
    created. With 50 people or more in the file, they are learnt from these and from the people who come with
    keydyn; with fewer, those that come with keydyn are used. If all samples are the same text, or too few of
    the keys are known to keydyn, 20 people are enough to learn from; with --sensors, they are always learnt.
    A population that `keydyn population fit` wrote has its own calibration. Detectors other than population
    learn one from the people in the file, and need 10 or more.

    If the file has 10 users or more, those who are likely the same person are named.

    Examples:
    `keydyn fit typing.csv --out models/`

    `keydyn fit phone.csv --out models/ --sensors pressure,x,y --unit s`

    `keydyn fit typing.csv --out models/ --detector pohmm`
    """
    from keydyn.decisions.folder.folder import changing, storing_detector
    from keydyn.decisions.known_twice import twice_noticed

    if options.population is not None and options.detector not in (None, DEFAULT_DETECTOR):
        raise UsageError(f"a population is for the detector population, not for {options.detector}")
    if options.detector is not None:
        with checking_options():
            storing_detector(options.detector)
    keystrokes = reading.recording()[0].keystrokes
    with changing(options.out, key_of(options.key_file), anew=options.replace) as change:
        groups = _groups(keystrokes, options.min_samples)
        verifier, origin = _verifier(change, options, keystrokes)
        unknown = _unknown_keys(verifier, keystrokes)
        with progress_bar("enrolling", len(groups), hidden=options.as_json) as progress:
            enrolled = verifier.enrol_many(groups, options.n_jobs, progress)
        earlier = {person.user for person in change.before.people} if change.before else set()
        known = None if earlier else verifier.background
        manifest = change.commit(known, enrolled, verifier.secret, verifier.sensors)
    twice, texts = twice_noticed(keystrokes, n_jobs=options.n_jobs)
    for text in (*texts, *([unknown] if unknown else [])):
        warn(text)
    calibration = {"origin": origin, "people": verifier.background.calibrations.n_people}
    again = [user for user in enrolled if user in earlier]
    _report(options, manifest, list(enrolled), again, calibration, twice)


@every_command
def users(
    models: ModelsOption,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="NAME", help="Remove this user; repeatable.")
    ] = None,
    undo: Annotated[
        str | None,
        typer.Option(
            "--undo", metavar="NAME", help="Undo the last update of this user's template.", show_default=False
        ),
    ] = None,
    key_file: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the people enrolled in a folder, remove some of them, or undo an update.

    Examples:
    `keydyn users --models models/`

    `keydyn users --models models/ --remove anna`

    `keydyn users --models models/ --undo anna`
    """
    from keydyn.decisions import Verifier
    from keydyn.decisions.folder.folder import changing, read_manifest

    key = key_of(key_file)
    manifest = read_manifest(models, key)
    if remove:
        with changing(models, key) as change:
            with checking_options():
                read_manifest(models, key).without(set(remove))
            manifest = change.remove(remove)
    if undo is not None:
        with changing(models, key) as change:
            with checking_options():
                read_manifest(models, key).person(undo)
            verifier = Verifier.load(models, key, [undo])
            verifier.undo(undo)
            manifest = change.commit(None, {undo: verifier.person(undo)}, verifier.secret, verifier.sensors)
    rows = [
        {
            "user": person.user,
            "samples": person.samples,
            "keys": person.keys,
            "updated": bool(person.enrolment) and person.sha256 != person.enrolment,
        }
        for person in manifest.people
    ]
    rests_on = _rests_on(Verifier.load(models, key)) if rows else {}
    if as_json:
        print_json(
            {"models": str(models), "detector": manifest.detector, "users": rows, "error_rates": rests_on}
        )
        return
    if not rows:
        say(f"No user is enrolled in {models}.")
        return
    show_table(f"{_counted(len(rows))} enrolled with {manifest.detector}", rows)
    say(f"Error rates rest on {rests_on['words']}.")


def _rests_on(verifier: Verifier) -> dict[str, Any]:
    """Describe the basis of error rates: the calibration's people, and comparisons of those enrolled."""
    place, rate = verifier.place, verifier.own_rate()
    elsewhere = verifier.background.calibrations.unsure > 0.0
    words = f"{verifier.background.calibrations.n_people} people" + (
        " of the recordings that keydyn comes with" if elsewhere else " of the recordings it was learnt from"
    )
    if rate is not None:
        words += (
            f", and {place.comparisons:,} comparisons among {place.people} of your own people, of which "
            f"{rate.text()} would be accepted where 1 % is stated"
        )
    elif elsewhere:
        words += "; your own people count from the third on, as they are enrolled"
    own = None if rate is None else rate.columns("accepted")
    return {"words": words, "own_people": place.people, "comparisons": place.comparisons, "own": own}


def _settings(before: Manifest | None, options: Enrolling) -> tuple[str, tuple[str, ...]]:
    """Choose the detector and the sensors from the options, the folder, or the defaults."""
    detector, out = options.detector, options.out
    used = None if options.sensors is None else tuple(listed(options.sensors))
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


def _verifier(change: Change, options: Enrolling, keystrokes: pd.DataFrame) -> tuple[Verifier, str]:
    """Return the verifier to enrol people with, and a description of the origin of its calibration."""
    from keydyn.decisions.folder.folder import new_secret, read_folder
    from keydyn.decisions.verifier import Verifier
    from keydyn.keystrokes.one_sample import recorded_samples

    detector, sensors = _settings(change.before, options)
    if change.before is not None and change.before.people:
        if options.population is not None:
            raise UsageError(
                f"people in {change.folder} are enrolled with a population already: leave out --population, "
                "give another folder, or start over with --replace"
            )
        found = read_folder(change.folder, change.key, ())
        verifier = Verifier.of(found.background, sensors=sensors, secret=found.secret, people=found.others)
        return verifier, "that of the folder"
    with progress_bar("calibrating", CALIBRATING, hidden=options.as_json) as progress:
        background, origin = new_background(
            recorded_samples(keystrokes, sensors), options.population, detector, options.n_jobs, progress
        )
    return Verifier.of(background, sensors=sensors, secret=new_secret(change.key)), origin


def new_background(
    samples: Samples,
    population: Path | None = None,
    detector: str = DEFAULT_DETECTOR,
    n_jobs: int = -1,
    progress: Callable[[int], object] | None = None,
) -> tuple[Background, str]:
    """Choose the population and calibration of a new folder, and describe their origin.

    The population is the one that is named, the one that comes with keydyn, or one that is learnt here.
    """
    from keydyn.decisions.calibration.background import Background, shipped_background, shipped_prior
    from keydyn.decisions.folder.folder import storing_detector

    if population is not None:
        return _given(population, samples, n_jobs)
    if detector == DEFAULT_DETECTOR and shipped_is_better(samples):
        return shipped_background(), "the one that comes with keydyn"
    prior = shipped_prior(samples) if detector == DEFAULT_DETECTOR else None
    pattern = storing_detector(detector)
    learnt = Background.learnt(pattern, samples, prior=prior, n_jobs=n_jobs, progress=progress)
    return learnt, "learnt from these people"


def shipped_is_better(samples: Samples) -> bool:
    """Whether there are too few people with two samples or more to learn a population from."""
    import numpy as np

    from keydyn.decisions.calibration.background import shipped_prior

    several = int((np.bincount(samples.people[0]) > 1).sum())
    if samples.sequences.n_features > 2 or several >= ENOUGH_BESIDE_SHIPPED:
        return False
    return several < ENOUGH_PEOPLE or shipped_prior(samples) is not None


def _unknown_keys(verifier: Verifier, keystrokes: pd.DataFrame) -> str:
    """Describe the keys that the population lacks; a `ValueError` if a person has hardly any others."""
    from keydyn.detectors import PopulationDetector

    pattern = verifier.pattern
    if not isinstance(pattern, PopulationDetector) or pattern.population is None:
        return ""
    known = keystrokes["keyname"].isin(pattern.population.parameters.cells.vocabulary.tolist())
    counts = keystrokes.loc[~known, "keyname"].value_counts()
    if known.all():
        return ""
    named = ", ".join(f"{name} ({n})" for name, n in counts.head(MOST_NAMED).items())
    named += f" and {len(counts) - MOST_NAMED} more" if len(counts) > MOST_NAMED else ""
    shares = known.groupby(keystrokes["user"], sort=False).mean()
    strangers = shares.index[shares < HARDLY_ANY]
    if len(strangers):
        raise ValueError(
            f"the population knows hardly any of the keys of user {strangers[0]} "
            f"({shares[strangers[0]]:.0%} of the keystrokes): {named}. Keys are called a, 1, space, enter, "
            "period; names of browsers, pynput, Windows, X11 and evdev are understood too"
        )
    return f"the population does not know {len(counts)} of the keys, which carry less information: {named}"


def _given(path: Path, samples: Samples, n_jobs: int) -> tuple[Background, str]:
    """Read a population with its calibration, or else learn a calibration from these people's samples."""
    from keydyn.decisions.calibration.background import Background, read_background
    from keydyn.detectors import PopulationDetector
    from keydyn.population import PopulationModel

    people = PopulationModel.load(path)
    beside = read_background(path, people)
    if beside is not None:
        return beside, f"that of {path}"
    pattern = PopulationDetector(population=people)
    try:
        learnt = Background.calibrated(pattern, samples, n_jobs=n_jobs)
    except ValueError as error:
        raise ValueError(
            f"{path} has no calibration beside it, and none can be learnt here: {error}; "
            "`keydyn population fit` writes both"
        ) from None
    return learnt, "learnt from these people"


def _groups(keystrokes: pd.DataFrame, min_samples: int) -> dict[str, pd.DataFrame]:
    """Divide keystrokes by user; a `ValueError` if a user has too few samples, or two have the same name."""
    groups: dict[str, pd.DataFrame] = {}
    for user, typed in keystrokes.groupby("user", sort=False):
        if str(user) in groups:
            raise ValueError(f"two users are called {user}")
        n = typed["session"].nunique()
        if n < min_samples:
            long = len(typed) >= LONG * min_samples
            raise ValueError(
                f"user {user} has {n} sample{'s' if n != 1 else ''}; at least {min_samples} are required"
                + (f"; `--keys {LONG}` divides a long recording into samples" if long else "")
            )
        groups[str(user)] = typed.reset_index(drop=True)
    return groups


def _report(
    options: Enrolling,
    manifest: Manifest,
    newly: list[str],
    again: list[str],
    calibration: dict[str, Any],
    twice: pd.DataFrame,
) -> None:
    """Report the people enrolled, and the calibration used."""
    rows: list[dict[str, Any]] = [
        {"user": person.user, "samples": person.samples, "keys": person.keys}
        for person in manifest.people
        if person.user in newly
    ]
    if options.as_json:
        print_json(
            {
                "models": str(options.out),
                "detector": manifest.detector,
                "calibration": calibration,
                "users": rows,
                "replaced": again,
                "enrolled": len(manifest.people),
                "twice": twice.to_dict("records"),
            }
        )
        return
    show_table(f"{_counted(len(rows))} enrolled with {manifest.detector}", rows)
    say(
        f"Models are in {options.out}: {_counted(len(manifest.people))}, {len(rows) - len(again)} new, "
        f"{len(again)} enrolled again"
    )
    kind = "Population and calibration" if manifest.population else "Calibration"
    say(f"{kind}: {calibration['origin']} ({calibration['people']} people)")


def _counted(n_users: int) -> str:
    return f"{n_users} user{'' if n_users == 1 else 's'}"
