"""keydyn score, identify, verify and watch: recognition on files in the schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.atomic import replacing
from keydyn.commands.every_command import every_command
from keydyn.commands.models_options import KeyFileOption, ModelsOption, key_of
from keydyn.commands.recording_options import STANDARD_INPUT, Reading, reads_recording
from keydyn.exit_codes import ExitCode, UsageError, checking_options
from keydyn.progress import working
from keydyn.terminal import JsonOption, heading, print_json, say, show_table, warn

if TYPE_CHECKING:
    from keydyn.datasets.recordings import Recording
    from keydyn.decisions import Decision, Verifier

OutOption = Annotated[Path | None, typer.Option("--out", help="Write the table to this CSV file too.")]
# As in keydyn.decisions.evidence, which needs the numerical stack.
LEAST_KEYSTROKES, LEAST_KNOWN = 6, 4
MinKeystrokesOption = Annotated[
    int, typer.Option("--min-keystrokes", min=1, help="With fewer keystrokes there is not enough evidence.")
]
MinKnownOption = Annotated[
    int,
    typer.Option(
        "--min-known",
        min=0,
        help="The same for keystrokes of keys that the user has typed before. With 0, samples of another "
        "text are judged too.",
    ),
]
FalseMatchOption = Annotated[
    float | None,
    typer.Option(
        "--false-match-rate",
        min=0,
        max=1,
        help="The largest share of strangers to accept; by default 0.01.",
        show_default=False,
    ),
]
MOST_WARNINGS = 5
WORDS = {"accept": "accepted", "reject": "rejected", "unsure": "unsure"}


@every_command
@reads_recording
def score(
    reading: Reading,
    models: ModelsOption,
    key_file: KeyFileOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score: the log-likelihood of every sample under every user's model.

    Example: `keydyn score typing.csv --models models/ --out scores.csv`
    """
    from keydyn.decisions.evidence import evidence
    from keydyn.decisions.recorded_samples import recorded_samples

    verifier = _opened(models, key_file)
    recording, _ = reading.recording(anonymous=True)
    samples = recorded_samples(recording.keystrokes, verifier.sensors)
    with working("scoring"):
        scores = verifier.log_likelihoods(samples)
    first = verifier.person(verifier.users[0]).template
    if all(said.other_text for said in evidence(samples, first)):
        warn("these samples are of another text than those enrolled; their scores say little")
    rows = [
        {
            "user": _typist(recording, user),
            "session": str(session),
            "model": name,
            "log_likelihood": float(value),
            "keys": int(n),
        }
        for (user, session), n, line in zip(samples.index, samples.sequences.lengths, scores, strict=True)
        for name, value in zip(verifier.users, line, strict=True)
    ]
    _deliver(f"{len(samples)} samples under {len(verifier.users)} models", rows, out, as_json)


@every_command
@reads_recording
def identify(
    reading: Reading,
    models: ModelsOption,
    top: Annotated[int, typer.Option(min=1, help="How many candidates to show for each sample.")] = 3,
    false_match_rate: FalseMatchOption = None,
    min_keystrokes: MinKeystrokesOption = LEAST_KEYSTROKES,
    min_known: MinKnownOption = LEAST_KNOWN,
    key_file: KeyFileOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Identify: which of the enrolled users typed each sample, if any of them did?

    The file need not say who typed. Without a column `session` it is a single sample. Probabilities are those
    of the enrolled users and of nobody among them, which is as probable as all of them together before the
    sample is looked at. The answer is nobody unless the first candidate would also pass `verify`.

    Exit code: 3 if a sample has too little evidence, otherwise 0.

    Example: `keydyn identify unknown.csv --models models/ --top 5`
    """
    verifier = _opened(models, key_file, None, false_match_rate, min_keystrokes, min_known)
    recording, _ = reading.recording(anonymous=True)
    with working("scoring"):
        found = verifier.identify_many(recording.keystrokes)
    index = _samples_in(recording)
    rows: list[dict[str, Any]] = []
    objects: list[dict[str, Any]] = []
    unsure: list[str] = []
    for (user, session), one in zip(index, found, strict=True):
        who = _typist(recording, user)
        short = one.evidence.shortage(min_keystrokes, min_known)
        if short:
            sample = f"session {session}" if who is None else f"user {user}, session {session}"
            unsure.append(f"{sample}: not enough evidence: {'; '.join(short)}")
        objects.append(
            {
                "user": who,
                "session": str(session),
                "candidates": [
                    {
                        "user": candidate.user,
                        "probability": candidate.probability,
                        "llr": candidate.llr,
                        "false_match_rate": candidate.false_match_rate,
                    }
                    for candidate in one.candidates[:top]
                ],
                "nobody": one.nobody,
                "nobody_probability": one.nobody_probability,
                "enough_evidence": not short,
                "reasons": list(one.reasons),
            }
        )
        listed = [(candidate.user, candidate.probability) for candidate in one.candidates[:top]]
        for place, (name, probability) in enumerate([*listed, ("none of these", one.nobody_probability)]):
            answer = "unsure" if short else "nobody" if one.nobody else one.candidates[0].user
            rows.append(
                {
                    "user": who,
                    "session": str(session),
                    "rank": place + 1 if place < len(listed) else None,
                    "candidate": name,
                    "probability": probability,
                    "answer": answer if place == 0 else None,
                }
            )
    for text in unsure[:MOST_WARNINGS]:
        warn(text)
    if len(unsure) > MOST_WARNINGS:
        warn(f"and {len(unsure) - MOST_WARNINGS} more; `enough_evidence` in the JSON says which")
    _deliver("Who typed it?", rows, out, as_json, objects=objects)
    if unsure:
        raise typer.Exit(ExitCode.UNSURE)


@every_command
@reads_recording
def verify(
    reading: Reading,
    models: ModelsOption,
    user: Annotated[str, typer.Option("--user", help="Who it is claimed to be.")],
    false_match_rate: FalseMatchOption = None,
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="Let the user's template follow samples that are accepted with confidence, within bounds, "
            "and recognise copies of them; `keydyn users --undo` takes the last one back.",
        ),
    ] = False,
    min_keystrokes: MinKeystrokesOption = LEAST_KEYSTROKES,
    min_known: MinKnownOption = LEAST_KNOWN,
    key_file: KeyFileOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Verify: is each sample typed by the user it is claimed to be?

    The file need not say who typed. Without a column `session` it is a single sample. A claim is accepted
    where at most one stranger in a hundred would score as high, and rejected where at most one genuine sample
    in a hundred would score as low; in between, with too few keystrokes, or with another text, the answer is
    `unsure`, which counts as not accepted. Copies of earlier samples and keys that no hand has typed are
    rejected.

    Exit code: 1 if a sample is rejected, otherwise 3 if one is `unsure`, otherwise 0.

    Example: `keydyn verify login.csv --models models/ --user anna`
    """
    from keydyn.decisions.decision import as_json as fields

    verifier = _opened(models, key_file, user, false_match_rate, min_keystrokes, min_known)
    recording, _ = reading.recording(anonymous=True)
    with working("scoring"):
        if update:
            verifier, decisions, updated = _updating(verifier, models, key_file, user, recording)
        else:
            decisions = verifier.verify_many(user, recording.keystrokes)
    index = _samples_in(recording)
    objects = [
        {"user": _typist(recording, who), "session": str(session), **fields(decision)}
        for (who, session), decision in zip(index, decisions, strict=True)
    ]
    if update:
        objects = [one | {"updated": moved} for one, moved in zip(objects, updated, strict=True)]
    rows = [
        {
            "user": _typist(recording, who),
            "session": str(session),
            "claimed": user,
            "keys": decision.evidence.keystrokes,
            "llr": decision.llr,
            "false_match_rate": decision.false_match_rate,
            "answer": decision.answer,
            "verdict": WORDS[decision.answer],
            "reasons": list(decision.reasons),
        }
        for (who, session), decision in zip(index, decisions, strict=True)
    ]
    _deliver(f"Is it {user}?", rows, out, as_json, ("claimed", "answer"), objects)
    if not as_json and len(decisions) == 1:
        _explain(decisions[0], verifier)
    if update and not as_json:
        say(f"{sum(updated)} of {len(updated)} samples updated the template of {user}.")
    _exit_by_verdict(rows)


@every_command
@reads_recording
def watch(
    reading: Reading,
    models: ModelsOption,
    user: Annotated[str, typer.Option("--user", help="Whose session it is said to be.")],
    threshold: Annotated[
        float | None, typer.Option(min=0, help="Suspicion to lock at, instead of the calibrated one.")
    ] = None,
    lockouts_per_hour: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="How often the right person may be locked out, per hour of typing; by default 1.",
            show_default=False,
        ),
    ] = None,
    min_keystrokes: MinKeystrokesOption = LEAST_KEYSTROKES,
    min_known: MinKnownOption = LEAST_KNOWN,
    key_file: KeyFileOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Watch: is it still them, keystroke by keystroke?

    Each key adds to the suspicion that somebody else types, or takes from it; it never falls below 0, so that
    a change of person in mid-session is noticed. The session is rejected when it rises above the level that
    genuine sessions reach once per hour of typing. A session with too few keystrokes, or of another text, is
    neither accepted nor rejected: the verdict is `unsure`.

    With `-` for a file, lines of CSV are answered as they come, one line for each; the first line is the
    header. With --json each answer is an object on a line of its own.

    Exit code: 1 if a session is rejected, otherwise 3 if one is `unsure`, otherwise 0.

    Examples:
    `keydyn watch session.csv --models models/ --user anna`

    `tail -f -n +1 session.csv | keydyn watch - --models models/ --user anna`
    """
    import numpy as np

    from keydyn.decisions.evidence import evidence
    from keydyn.decisions.operating_point import LOCKOUTS_PER_HOUR
    from keydyn.decisions.recorded_samples import recorded_samples
    from keydyn.decisions.trials import suspicion_of
    from keydyn.evaluation.penalty import first_above

    if threshold is not None and lockouts_per_hour is not None:
        raise UsageError(
            "--threshold and --lockouts-per-hour set the same level in two ways: give only one of them"
        )
    verifier = _opened(models, key_file, user)
    rate = LOCKOUTS_PER_HOUR if lockouts_per_hour is None else lockouts_per_hour
    calibration = verifier.background.calibration
    level = calibration.lockout_level(rate) if threshold is None else threshold
    if threshold is None and rate < calibration.supported_lockouts:
        warn(
            f"the calibration rests on {calibration.hours:.2g} hours of typing, too little for a rate of "
            f"{rate:g} lock-outs per hour; the lowest rate that it supports is "
            f"{calibration.supported_lockouts:.2g} per hour. At this level impostors may go unnoticed"
        )
    templates = [verifier.person(user).template, *verifier.background.beside(user)]
    if reading.file == STANDARD_INPUT:
        from keydyn.commands.watch_stream import watch_stream

        if out is not None or reading.sort or reading.clean:
            raise UsageError("--out, --sort and --clean need all of a file; they cannot be used with -")
        least = min_keystrokes, min_known
        raise typer.Exit(watch_stream(reading, templates, verifier.sensors, user, level, least, as_json))
    recording, _ = reading.recording(anonymous=True)
    samples = recorded_samples(recording.keystrokes, verifier.sensors)
    offsets = samples.sequences.offsets
    terms = type(templates[0]).score_events_many(templates, samples)
    parts = np.split(suspicion_of(terms, offsets), offsets[1:-1])
    rows = []
    for (who, session), found, here in zip(
        samples.index, parts, evidence(samples, templates[0]), strict=True
    ):
        shortage = here.shortage(min_keystrokes, min_known)
        at = len(found) if shortage else first_above(found, level)
        answer = "unsure" if shortage else "accept" if at == len(found) else "reject"
        rows.append(
            {
                "user": _typist(recording, who),
                "session": str(session),
                "claimed": user,
                "keys": len(found),
                "suspicion": float(found.max()),
                "threshold": level,
                "rejected_at_key": at + 1 if at < len(found) else None,
                "over_time": _sparkline(found, level),
                "verdict": WORDS[answer],
                "answer": answer,
                "reasons": shortage,
            }
        )
    repeated = ("verdict",) if not any(row["reasons"] for row in rows) else ()
    _deliver(f"Is it still {user}?", rows, out, as_json, ("claimed", "answer", *repeated))
    _exit_by_verdict(rows)


def _typist(recording: Recording, user: object) -> str | None:
    """Who typed a sample, if the file says so."""
    return str(user) if recording.names_users else None


def _samples_in(recording: Recording) -> list[tuple[Any, Any]]:
    """User and session of each sample, in order."""
    from keydyn.keystrokes.schema import SAMPLE, sample_starts

    starts = recording.keystrokes.iloc[sample_starts(recording.keystrokes)][SAMPLE]
    return list(starts.itertuples(index=False, name=None))


def _opened(
    models: Path,
    key_file: Path | None,
    user: str | None = None,
    false_match_rate: float | None = None,
    min_keystrokes: int = LEAST_KEYSTROKES,
    min_known: int = LEAST_KNOWN,
) -> Verifier:
    """Everybody in a folder, or what a claim to be one user needs; one not enrolled is an error of usage."""
    from keydyn.decisions import Targets, Verifier
    from keydyn.decisions.folder import read_manifest

    key = key_of(key_file)
    with working(f"reading {models}"):
        manifest = read_manifest(models, key)
        with checking_options():
            at = Targets() if false_match_rate is None else Targets(false_match_rate)
            if user is not None:
                manifest.person(user)
        if not manifest.people:
            raise ValueError(f"nobody is enrolled in {models} (see keydyn fit)")
        verifier = Verifier.load(models, key, None if user is None else [user], at)
    verifier.least = min_keystrokes, min_known
    return verifier


def _updating(
    opened: Verifier, models: Path, key_file: Path | None, user: str, recording: Recording
) -> tuple[Verifier, list[Decision], list[bool]]:
    """One sample after another, each with the template that the one before has left; then the folder.

    Also returned is which samples updated the template.
    """
    from keydyn.decisions import Verifier
    from keydyn.decisions.folder import changing
    from keydyn.decisions.recorded_samples import recorded_samples
    from keydyn.detectors import PopulationDetector

    if opened.pattern.name != PopulationDetector.name:
        raise UsageError(f"--update is for the detector population, not for {opened.pattern.name}")
    key = key_of(key_file)
    with changing(models, key) as change:
        # Read again: somebody may have changed the folder before it was ours to change.
        verifier = Verifier.load(models, key, [user], opened.at)
        verifier.least = opened.least
        samples = recorded_samples(recording.keystrokes, verifier.sensors)
        decisions, updated = [], []
        for n in range(len(samples)):
            before = verifier.person(user)
            decisions.append(verifier.update(user, samples[[n]]))
            updated.append(verifier.person(user) is not before)
        if any(updated):
            change.commit(None, {user: verifier.person(user)}, verifier.secret, verifier.sensors)
    return verifier, decisions, updated


def _explain(decision: Decision, verifier: Verifier) -> None:
    """What the answer to a single claim rests on, in sentences."""
    from keydyn.evaluation.confidence import percentage

    low, high = (percentage(rate, 2) for rate in decision.interval)
    say(
        f"About {percentage(decision.false_match_rate, 2)} % of strangers would score as high "
        f"(95 % interval {low}–{high} %, from {verifier.background.calibration.n_people} people)."
    )
    for words, spoke in (("For", decision.spoke_for), ("Against", decision.spoke_against)):
        if spoke:
            say(f"{words} the claim: {', '.join(str(one) for one in spoke)}.")


def _exit_by_verdict(rows: list[dict[str, Any]]) -> None:
    """Rejected comes before unsure, and unsure before accepted."""
    answers = {row["answer"] for row in rows}
    for answer, code in (("reject", ExitCode.REJECTED), ("unsure", ExitCode.UNSURE)):
        if answer in answers:
            raise typer.Exit(code)


def _deliver(
    title: str,
    rows: list[dict[str, Any]],
    out: Path | None,
    as_json: bool,
    hidden: tuple[str, ...] = (),
    objects: list[dict[str, Any]] | None = None,
) -> None:
    """A table on the terminal, or JSON, of `objects` if they say more; and a CSV file if asked for."""
    flat = [{name: "; ".join(v) if isinstance(v, list) else v for name, v in row.items()} for row in rows]
    if out is not None:
        import pandas as pd

        with replacing(out) as temporary:
            headings = {name: heading(name) for name in flat[0]}
            pd.DataFrame(flat).rename(columns=headings).to_csv(temporary, index=False)
    if as_json:
        print_json(objects or rows)
        return
    if not any(row.get("reasons") for row in rows):
        hidden = (*hidden, "reasons")
    if rows[0]["user"] is None:
        hidden = (*hidden, "user")
    show_table(title, [{k: v for k, v in row.items() if k not in hidden} for row in flat])


def _sparkline(penalty: Any, threshold: float, width: int = 12) -> str:
    """Blocks, one per stretch of keys, as high as its largest penalty; half height is the threshold."""
    import numpy as np

    blocks = "▁▂▃▄▅▆▇█"
    stretches = np.array_split(penalty, min(width, len(penalty)))
    heights = np.array([stretch.max() for stretch in stretches])
    steps = np.minimum((heights / max(threshold, 1e-12) * 4).astype(int), 7)
    return "".join(blocks[step] for step in steps)
