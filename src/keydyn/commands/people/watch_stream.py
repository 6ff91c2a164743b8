"""keydyn watch -: answer a session line by line while it is being typed."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import typer

from keydyn.arrays import Integers
from keydyn.datasets.files.recordings import Recording, read_recording
from keydyn.decisions import Verifier
from keydyn.decisions.decision import NOT_JUDGED, Evidence, evidence_by_key
from keydyn.exit_codes import ExitCode
from keydyn.keystrokes.one_sample import without_impossible
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import SAMPLE, sample_starts

if TYPE_CHECKING:
    from keydyn.commands.recording_options import ReadingOptions

CODES = {"accept": ExitCode.DONE, "reject": ExitCode.REJECTED, "unsure": ExitCode.UNSURE}
CHUNK = 1 << 16


def watch_stream(reading: ReadingOptions, session: WatchedSession, as_json: bool) -> ExitCode:
    """Answer each line of standard input; return the exit code, which is that for a file."""
    final: dict[tuple[Any, Any], str] = {}
    for recording in _recordings(reading):
        frame = recording.keystrokes
        bounds = [*sample_starts(frame).tolist(), len(frame)]
        for begin, end in pairwise(bounds):
            for row in session.take(frame.iloc[begin:end].reset_index(drop=True)):
                final[row["user"], row["session"]] = row["answer"]
                if not recording.names_users:
                    row["user"] = None
                typer.echo(json.dumps(row, ensure_ascii=False) if as_json else _line(row))
        sys.stdout.flush()
    if not final:
        raise ValueError("standard input ended before the first keystroke")
    return next(CODES[answer] for answer in ("reject", "unsure", "accept") if answer in final.values())


class WatchedSession:
    """Watches sessions in a user's name, one after another, with an answer for each keystroke.

    `least` are the least numbers of keystrokes, and of those of known keys, for an answer besides "unsure".
    """

    def __init__(self, verifier: Verifier, user: str, level: float, least: tuple[int, int]) -> None:
        self.user, self.level, self.least = user, level, least
        self.template, self.sensors = verifier.person(user).template, verifier.sensors
        # A session is locked above the level, which must be positive.
        self.watch = verifier.watch(user, level or sys.float_info.min)
        self.last: pd.DataFrame | None = None
        self.counts: Integers = np.zeros(4, dtype=np.int64)
        self.keys, self.typed = 0, NOT_JUDGED.answer

    def take(self, keystrokes: pd.DataFrame) -> list[dict[str, Any]]:
        """Answer the next keystrokes, all of one session."""
        last = self.last
        if last is None or any(last[name].iloc[0] != keystrokes[name].iloc[0] for name in SAMPLE):
            self.watch.restart()
            self.counts, self.keys, self.typed = np.zeros(4, dtype=np.int64), 0, NOT_JUDGED.answer
            last = keystrokes.head(0)
        both = pd.concat([last, keystrokes], ignore_index=True) if len(last) else keystrokes
        samples = without_impossible(Samples.without_vectors(both, self.sensors, first="missing"))
        counts = evidence_by_key(samples, self.template)[len(last) :].cumsum(axis=0) + self.counts
        found = self.watch.update(keystrokes)
        suspected, looks = found.suspicion.tolist(), {look.event: look.typed.answer for look in found.looks}
        typed = keystrokes[[*SAMPLE, "keyname"]].astype(str).itertuples(index=False, name=None)
        answers = []
        every = enumerate(zip(typed, suspected, counts.tolist(), strict=True))
        for n, ((who, session, keyname), suspicion, count) in every:
            self.keys += 1
            self.typed = looks.get(n, self.typed)
            answers.append(
                {"user": who, "session": session, "claimed": self.user, "key": self.keys, "keyname": keyname}
                | self._answer(suspicion, Evidence(*count))
            )
        self.last, self.counts = keystrokes.tail(1), counts[-1]
        return answers

    def _answer(self, suspicion: float, counts: Evidence) -> dict[str, Any]:
        locked_at = self.watch.locked_at
        if locked_at is not None and locked_at > self.keys:
            # A later one of these keystrokes locks the session, not this one.
            locked_at = None
        reasons = counts.shortage(*self.least)
        answer = "unsure" if reasons else "accept" if locked_at is None else "reject"
        if answer == "reject" and self.watch.reason is not None:
            reasons = [self.watch.reason]
        return {
            "suspicion": suspicion,
            "threshold": self.level,
            "rejected_at_key": locked_at,
            "typed": self.typed,
            "answer": answer,
            "reasons": reasons,
        }


def _line(row: dict[str, Any]) -> str:
    verdict = {"accept": "accepted", "unsure": "unsure"}.get(
        row["answer"], f"rejected at key {row['rejected_at_key']}"
    )
    suspected = f"suspicion {row['suspicion']:>5.1f} of {row['threshold']:.1f}"
    return f"key {row['key']:>4}  {row['keyname']:<12} {suspected}  {verdict}"


def _recordings(reading: ReadingOptions) -> Iterator[Recording]:
    """Read lines as they arrive; an error names the line in the whole stream."""
    # A few lines are not enough to guess the unit of their times.
    form = replace(reading.form(), unit=reading.unit or "ms")
    source: Any = sys.stdin.buffer
    header, line, waiting, ended = b"", 1, b"", False
    while not ended:
        arrived: bytes = source.read1(CHUNK)
        ended = not arrived
        waiting += arrived
        end = len(waiting) if ended else _end_of_rows(waiting)
        rows, waiting = waiting[:end], waiting[end:]
        if line == 1 and form.header is None and not rows.lstrip().startswith(b"{"):
            header, newline, rows = rows.partition(b"\n")
            header, line = header + newline, line + len(newline)
        if rows.strip():
            with reading.explaining(line - header.count(b"\n"), impossible=("sort", "clean")):
                yield read_recording(io.BytesIO(header + rows), form, anonymous=True)
        line += rows.count(b"\n")


def _end_of_rows(text: bytes) -> int:
    """Find the end of the last whole row: a line break that is not between quotation marks."""
    end = text.rfind(b"\n") + 1
    while text.count(b'"', 0, end) % 2:
        end = text.rfind(b"\n", 0, end - 1) + 1
    return end
