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
from keydyn.terminal import JsonOption, heading, print_json, show_table, warn

if TYPE_CHECKING:
    from keydyn.datasets.recordings import Recording
    from keydyn.enrolment import Enrolled

OutOption = Annotated[Path | None, typer.Option("--out", help="Write the table to this CSV file too.")]
# As in keydyn.enrolment.evidence, which needs the numerical stack.
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
MOST_WARNINGS = 5
# Columns of CSV files whose headings in tables have changed since.
IN_CSV = {"log_likelihood_per_key": "log-likelihood a key"}


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
    from keydyn.enrolment import evidence, load_enrolled

    with working(f"reading {models}"):
        enrolled = load_enrolled(models, key_of(key_file))
    recording, _ = reading.recording(anonymous=True)
    samples = enrolled.samples(recording.keystrokes)
    with working("scoring"):
        scores = enrolled.scores(samples)
    if all(said.other_text for said in evidence(samples, enrolled.templates[enrolled.users[0]])):
        warn("these samples are of another text than those enrolled; their scores say little")
    rows = [
        {
            "user": _typist(recording, user),
            "session": str(session),
            "model": str(name),
            "log_likelihood": float(value),
            "keys": int(n),
        }
        for (user, session), n, line in zip(samples.index, samples.sequences.lengths, scores, strict=True)
        for name, value in zip(enrolled.users, line, strict=True)
    ]
    _deliver(f"{len(samples)} samples under {len(enrolled.users)} models", rows, out, as_json)


@every_command
@reads_recording
def identify(
    reading: Reading,
    models: ModelsOption,
    top: Annotated[int, typer.Option(min=1, help="How many candidates to show for each sample.")] = 3,
    min_keystrokes: MinKeystrokesOption = LEAST_KEYSTROKES,
    min_known: MinKnownOption = LEAST_KNOWN,
    key_file: KeyFileOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Identify: which of the enrolled users typed each sample?

    The file need not say who typed. Without a column `session` it is a single sample.

    Exit code: 3 if a sample has too little evidence, otherwise 0.

    Example: `keydyn identify unknown.csv --models models/ --top 5`
    """
    import numpy as np

    from keydyn.enrolment import evidence, load_enrolled
    from keydyn.evaluation.penalty import TIE

    with working(f"reading {models}"):
        enrolled = load_enrolled(models, key_of(key_file))
    recording, _ = reading.recording(anonymous=True)
    samples = enrolled.samples(recording.keystrokes)
    with working("scoring"):
        raw = enrolled.scores(samples)
    posterior = np.exp(raw - np.logaddexp.reduce(raw, axis=1, keepdims=True))
    if len(enrolled.users) > 1 and np.ptp(raw, axis=1).max() < TIE:
        warn("all models score alike; is --unit the unit of this file?")
    rows: list[dict[str, Any]] = []
    unsure: list[str] = []
    for n, (user, session) in enumerate(samples.index):
        order = np.argsort(-raw[n], kind="stable").tolist()
        best = enrolled.templates[enrolled.users[order[0]]]
        shortage = evidence(samples[[n]], best)[0].shortage(min_keystrokes, min_known)
        who = _typist(recording, user)
        if shortage:
            sample = f"session {session}" if who is None else f"user {user}, session {session}"
            unsure.append(f"{sample}: not enough evidence: {'; '.join(shortage)}")
        for place, u in enumerate(order[:top]):
            rows.append(
                {
                    "user": who,
                    "session": str(session),
                    "rank": place + 1,
                    "candidate": str(enrolled.users[u]),
                    "log_likelihood_per_key": float(raw[n, u] / samples.sequences.lengths[n]),
                    "probability": float(posterior[n, u]),
                    "enough_evidence": not shortage,
                }
            )
    for text in unsure[:MOST_WARNINGS]:
        warn(text)
    if len(unsure) > MOST_WARNINGS:
        warn(f"and {len(unsure) - MOST_WARNINGS} more; `enough_evidence` in the JSON says which")
    _deliver("Who typed it?", rows, out, as_json, hidden=("enough_evidence",))
    if unsure:
        raise typer.Exit(ExitCode.UNSURE)


@every_command
@reads_recording
def verify(
    reading: Reading,
    models: ModelsOption,
    user: Annotated[str, typer.Option("--user", help="Who it is claimed to be.")],
    threshold: Annotated[float | None, typer.Option(min=0, max=1, help="Instead of the user's own.")] = None,
    min_keystrokes: MinKeystrokesOption = LEAST_KEYSTROKES,
    min_known: MinKnownOption = LEAST_KNOWN,
    key_file: KeyFileOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Verify: is each sample typed by the user it is claimed to be?

    The file need not say who typed. Without a column `session` it is a single sample. The score is scaled to
    0 … 1 beside the other users: 1 is the best of all models, 0 the worst. A sample with too few keystrokes,
    or of another text, is neither accepted nor rejected: the verdict is `unsure`.

    Exit code: 1 if a sample is rejected, otherwise 3 if one is `unsure`, otherwise 0.

    Example: `keydyn verify login.csv --models models/ --user anna`
    """
    from keydyn.enrolment import evidence

    enrolled = _opened_for(user, models, key_file)
    recording, _ = reading.recording(anonymous=True)
    level = _level(threshold, enrolled.manifest.person(user).threshold, user)
    samples = enrolled.samples(recording.keystrokes)
    rows = [
        {
            "user": _typist(recording, who),
            "session": str(session),
            "claimed": user,
            "score": float(value),
            "threshold": level,
            **_answer(value >= level, said.shortage(min_keystrokes, min_known)),
        }
        for (who, session), value, said in zip(
            samples.index,
            enrolled.claim_scores(user, samples),
            evidence(samples, enrolled.templates[user]),
            strict=True,
        )
    ]
    _deliver(f"Is it {user}?", rows, out, as_json, hidden=("claimed", "answer"))
    _exit_by_verdict(rows)


@every_command
@reads_recording
def watch(
    reading: Reading,
    models: ModelsOption,
    user: Annotated[str, typer.Option("--user", help="Whose session it is said to be.")],
    threshold: Annotated[float | None, typer.Option(min=0, help="Instead of the user's own.")] = None,
    min_keystrokes: MinKeystrokesOption = LEAST_KEYSTROKES,
    min_known: MinKnownOption = LEAST_KNOWN,
    key_file: KeyFileOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Watch: is it still them, keystroke by keystroke?

    At each key the models are ranked; the claimed user's ranks over the last 25 keys are the penalty. The
    session is rejected when it exceeds the largest that the user's own samples had. A session with too few
    keystrokes, or of another text, is neither accepted nor rejected: the verdict is `unsure`.

    With `-` for a file, lines of CSV are answered as they come, one line for each; the first line is the
    header. With --json each answer is an object on a line of its own.

    Exit code: 1 if a session is rejected, otherwise 3 if one is `unsure`, otherwise 0.

    Examples:
    `keydyn watch session.csv --models models/ --user anna`

    `tail -f -n +1 session.csv | keydyn watch - --models models/ --user anna`
    """
    import numpy as np

    from keydyn.enrolment import evidence
    from keydyn.evaluation.penalty import first_above

    enrolled = _opened_for(user, models, key_file)
    level = _level(threshold, enrolled.manifest.person(user).penalty, user)
    if reading.file == STANDARD_INPUT:
        from keydyn.commands.watch_stream import watch_stream

        if out is not None or reading.sort or reading.clean:
            raise UsageError("--out, --sort and --clean need all of a file; they cannot be used with -")
        raise typer.Exit(watch_stream(reading, enrolled, user, level, min_keystrokes, min_known, as_json))
    recording, _ = reading.recording(anonymous=True)
    samples = enrolled.samples(recording.keystrokes)
    parts = np.split(enrolled.claim_penalties(user, samples), samples.sequences.offsets[1:-1])
    said = evidence(samples, enrolled.templates[user])
    rows = []
    for (who, session), penalty, here in zip(samples.index, parts, said, strict=True):
        shortage = here.shortage(min_keystrokes, min_known)
        at = len(penalty) if shortage else first_above(penalty, level)
        rows.append(
            {
                "user": _typist(recording, who),
                "session": str(session),
                "claimed": user,
                "keys": len(penalty),
                "penalty": float(penalty.max()),
                "threshold": level,
                "rejected_at_key": at + 1 if at < len(penalty) else None,
                "over_time": _sparkline(penalty, level),
                **_answer(at == len(penalty), shortage),
            }
        )
    repeated = ("verdict",) if not any(row["reasons"] for row in rows) else ()
    _deliver(f"Is it still {user}?", rows, out, as_json, hidden=("claimed", "answer", *repeated))
    _exit_by_verdict(rows)


def _typist(recording: Recording, user: object) -> str | None:
    """Who typed a sample, if the file says so."""
    return str(user) if recording.names_users else None


def _opened_for(user: str, models: Path, key_file: Path | None) -> Enrolled:
    """The people that a claim to be this user needs; a user who is not enrolled is an error of usage."""
    from keydyn.enrolment import load_enrolled, read_manifest
    from keydyn.enrolment.folder import claim_of

    key = key_of(key_file)
    manifest = read_manifest(models, key)
    with checking_options():
        manifest.person(user)
    return load_enrolled(models, key, claim_of(user))


def _level(given: float | None, own: float | None, user: str) -> float:
    """The threshold: the one given, or the user's own."""
    level = own if given is None else given
    if level is None:
        raise ValueError(
            f"{user} has no threshold, since a claim is judged beside other users: enrol two users or more "
            f"with two samples or more each, {user} among them"
        )
    return level


def _answer(accepted: bool, shortage: list[str]) -> dict[str, Any]:
    """The columns that say what is decided: in words for people, as `answer` for programs, and why."""
    answer = "unsure" if shortage else "accept" if accepted else "reject"
    words = {"accept": "accepted", "reject": "rejected", "unsure": "unsure"}
    return {"verdict": words[answer], "answer": answer, "reasons": shortage}


def _exit_by_verdict(rows: list[dict[str, Any]]) -> None:
    """Rejected comes before unsure, and unsure before accepted."""
    answers = {row["answer"] for row in rows}
    for answer, code in (("reject", ExitCode.REJECTED), ("unsure", ExitCode.UNSURE)):
        if answer in answers:
            raise typer.Exit(code)


def _deliver(
    title: str, rows: list[dict[str, Any]], out: Path | None, as_json: bool, hidden: tuple[str, ...] = ()
) -> None:
    """A table on the terminal, or JSON; and a CSV file if asked for."""
    flat = [{name: "; ".join(v) if isinstance(v, list) else v for name, v in row.items()} for row in rows]
    if out is not None:
        import pandas as pd

        with replacing(out) as temporary:
            headings = {name: IN_CSV.get(name, heading(name)) for name in flat[0]}
            pd.DataFrame(flat).rename(columns=headings).to_csv(temporary, index=False)
    if as_json:
        print_json(rows)
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
