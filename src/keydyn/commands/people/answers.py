"""What score, identify, verify and watch share: their options, the folder that is opened, and the answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.atomic import replacing
from keydyn.commands.shared_options import key_of
from keydyn.exit_codes import ExitCode, checking_options
from keydyn.progress import working
from keydyn.terminal import heading, print_json, show_table

if TYPE_CHECKING:
    from keydyn.datasets.files.recordings import Recording
    from keydyn.decisions import Verifier

OutOption = Annotated[Path | None, typer.Option("--out", help="Also write the table to this CSV file.")]
# As in keydyn.decisions.evidence, which needs the numerical stack.
LEAST_KEYSTROKES, LEAST_KNOWN = 6, 4
MinKeystrokesOption = Annotated[
    int, typer.Option("--min-keystrokes", min=1, help="With fewer keystrokes, there is not enough evidence.")
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
WORDS = {"accept": "accepted", "reject": "rejected", "unsure": "unsure"}


def typist(recording: Recording, user: object) -> str | None:
    """Who typed a sample, if the file says so."""
    return str(user) if recording.names_users else None


def samples_in(recording: Recording) -> list[tuple[Any, Any]]:
    """User and session of each sample, in order."""
    from keydyn.keystrokes.schema import SAMPLE, sample_starts

    starts = recording.keystrokes.iloc[sample_starts(recording.keystrokes)][SAMPLE]
    return list(starts.itertuples(index=False, name=None))


def opened(
    models: Path,
    key_file: Path | None,
    user: str | None = None,
    false_match_rate: float | None = None,
    min_keystrokes: int = LEAST_KEYSTROKES,
    min_known: int = LEAST_KNOWN,
) -> Verifier:
    """Everybody in a folder, or what a claim to be one user needs; one not enrolled is an error of usage."""
    from keydyn.decisions import Targets, Verifier
    from keydyn.decisions.folder.folder import read_manifest

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


def exit_by_verdict(rows: list[dict[str, Any]]) -> None:
    """Rejected comes before unsure, and unsure before accepted."""
    answers = {row["answer"] for row in rows}
    for answer, code in (("reject", ExitCode.REJECTED), ("unsure", ExitCode.UNSURE)):
        if answer in answers:
            raise typer.Exit(code)


def deliver(
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
