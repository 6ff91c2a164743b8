"""Options that score, identify, verify and watch share, and the delivery of their answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.atomic import replacing
from keydyn.commands.shared_options import KeyFileOption, ModelsOption, key_of
from keydyn.exit_codes import ExitCode, checking_options
from keydyn.progress import working
from keydyn.terminal import JsonOption, heading, print_json, show_table

if TYPE_CHECKING:
    from keydyn.datasets.files.recordings import Recording
    from keydyn.decisions import Verifier

# The values of keydyn.decisions.decision, which would import the numerical stack.
LEAST_KEYSTROKES, LEAST_KNOWN, ALARMS = 6, 4, 0.01
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


@dataclass(frozen=True)
class Enough:
    """The options for the evidence that an answer needs."""

    min_keystrokes: Annotated[
        int,
        typer.Option("--min-keystrokes", min=1, help="Least number of keystrokes that is enough evidence."),
    ] = LEAST_KEYSTROKES
    min_known: Annotated[
        int,
        typer.Option(
            "--min-known",
            min=0,
            help="Least number of keystrokes of keys that the user has typed before. With 0, samples of "
            "another text are judged too.",
        ),
    ] = LEAST_KNOWN
    alarms: Annotated[
        float,
        typer.Option(
            "--alarms",
            min=0,
            max=0.99,
            help="The largest share of people's own samples to reject as forged by a machine; with 0, no "
            "sample is rejected as forged, not even simulated typing.",
        ),
    ] = ALARMS

    @property
    def least(self) -> tuple[int, int]:
        """The least numbers of keystrokes and of keystrokes of known keys that are enough."""
        return self.min_keystrokes, self.min_known


@dataclass(frozen=True)
class Folder:
    """The options that name the folder of enrolled people."""

    models: ModelsOption
    key_file: KeyFileOption = None

    @property
    def key(self) -> bytes | None:
        """The key that authenticates the folder, if one is named."""
        return key_of(self.key_file)

    def opened(
        self, user: str | None = None, enough: Enough | None = None, false_match_rate: float | None = None
    ) -> Verifier:
        """Load all people in the folder, or only what a claim to be `user` needs, who must be enrolled."""
        from keydyn.decisions import Targets, Verifier
        from keydyn.decisions.folder.folder import read_manifest

        with working(f"reading {self.models}"):
            manifest = read_manifest(self.models, self.key)
            with checking_options():
                rates = {} if false_match_rate is None else {"false_match": false_match_rate}
                targets = Targets(alarms=(enough or Enough()).alarms, **rates)
                if user is not None:
                    manifest.person(user)
            if not manifest.people:
                raise ValueError(f"no user is enrolled in {self.models} (see keydyn fit)")
            verifier = Verifier.load(self.models, self.key, None if user is None else [user], targets)
        verifier.least = (enough or Enough()).least
        return verifier


@dataclass(frozen=True)
class Delivery:
    """The options for the output of answers."""

    out: Annotated[Path | None, typer.Option("--out", help="Also write the table to this CSV file.")] = None
    as_json: JsonOption = False

    def deliver(
        self,
        title: str,
        rows: list[dict[str, Any]],
        hidden: tuple[str, ...] = (),
        objects: list[dict[str, Any]] | None = None,
    ) -> None:
        """Print a table, or JSON (of `objects` if given), and write a CSV file if one is named."""
        flat = [{name: "; ".join(v) if isinstance(v, list) else v for name, v in row.items()} for row in rows]
        if self.out is not None:
            import pandas as pd

            with replacing(self.out) as temporary:
                headings = {name: heading(name) for name in flat[0]}
                pd.DataFrame(flat).rename(columns=headings).to_csv(temporary, index=False)
        if self.as_json:
            print_json(objects or rows)
            return
        if not any(row.get("reasons") for row in rows):
            hidden = (*hidden, "reasons")
        if rows[0]["user"] is None:
            hidden = (*hidden, "user")
        show_table(title, [{k: v for k, v in row.items() if k not in hidden} for row in flat])


def typist(recording: Recording, user: object) -> str | None:
    """Return the user who typed a sample, if the file names users."""
    return str(user) if recording.names_users else None


def samples_in(recording: Recording) -> list[tuple[Any, Any]]:
    """List the user and the session of each sample, in order."""
    from keydyn.keystrokes.schema import SAMPLE, sample_starts

    starts = recording.keystrokes.iloc[sample_starts(recording.keystrokes)][SAMPLE]
    return list(starts.itertuples(index=False, name=None))


def exit_by_verdict(rows: list[dict[str, Any]]) -> None:
    """Exit with the code of the worst answer: rejected, then unsure; return if all are accepted."""
    answers = {row["answer"] for row in rows}
    for answer, code in (("reject", ExitCode.REJECTED), ("unsure", ExitCode.UNSURE)):
        if answer in answers:
            raise typer.Exit(code)
