"""keydyn watch -: a session that is still being typed, answered line by line."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
import typer

from keydyn.arrays import Floats, Integers
from keydyn.datasets.files.recordings import Recording, read_recording
from keydyn.decisions.calibration.cohort import HIGHEST, LOWEST
from keydyn.decisions.calibration.sequential import increments, suspicion
from keydyn.decisions.evidence import Evidence, evidence_by_key
from keydyn.detectors import Detector, Markov, PopulationDetector
from keydyn.exit_codes import ExitCode
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import SAMPLE, sample_starts
from keydyn.model.watch.online_batch import OnlineBatch

if TYPE_CHECKING:
    from keydyn.commands.recording_options import Reading

CODES = {"accept": ExitCode.DONE, "reject": ExitCode.REJECTED, "unsure": ExitCode.UNSURE}
CHUNK = 1 << 16


def watch_stream(
    reading: Reading,
    templates: Sequence[Detector],
    sensors: tuple[str, ...],
    user: str,
    level: float,
    least: tuple[int, int],
    as_json: bool,
) -> ExitCode:
    """Answer each line of standard input; the exit code at its end is as for a file.

    `templates` are the claimed user's and then the cohort's. A time of 0 ms, which no model of times can
    take, is taken as not seen.
    """
    session = WatchedSession(templates, sensors, user, level, least)
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


class Filters(Protocol):
    """What follows a session under several templates."""

    def update(self, values: Floats, key: Any) -> Floats | None:
        """(U,) the newest scores of an event; None if there are none yet."""

    def restart(self) -> None:
        """The next event is the first of another session."""


class MarkovFilters:
    """One model per template; an event's scores are known at once."""

    def __init__(self, templates: Sequence[Markov]) -> None:
        self.filters = OnlineBatch([template.model_ for template in templates], 1)

    def update(self, values: Floats, key: Any) -> Floats:
        scores: Floats = self.filters.update(values[None, :], [key])[0]
        return scores

    def restart(self) -> None:
        self.filters.restart()


class PopulationFilters:
    """Templates of one population; an event's scores are known when the next key is."""

    def __init__(self, templates: Sequence[PopulationDetector]) -> None:
        people = templates[0].people
        self.stream = people.online([template.template_ for template in templates])
        # Values come in alphabetical order of their names.
        names = people.parameters.features
        self.places = [sorted(names).index(name) for name in names]

    def update(self, values: Floats, key: Any) -> Floats | None:
        return self.stream.update(values[self.places], key)

    def restart(self) -> None:
        self.stream.restart()


def _filters(templates: Sequence[Detector]) -> Filters:
    """For templates that can be stored, all of one kind."""
    of_population = [one for one in templates if isinstance(one, PopulationDetector)]
    if of_population:
        return PopulationFilters(of_population)
    return MarkovFilters([one for one in templates if isinstance(one, Markov)])


class WatchedSession:
    """One session after another in the name of a user, keystroke by keystroke."""

    def __init__(
        self,
        templates: Sequence[Detector],
        sensors: tuple[str, ...],
        user: str,
        level: float,
        least: tuple[int, int],
    ) -> None:
        self.templates, self.sensors = templates, sensors
        self.user, self.level, self.least = user, level, least
        self.filters = _filters(self.templates)
        # Of `increments` and `suspicion`: one session.
        self.weights, self.suspicion = np.zeros((1, len(templates) - 1)), np.zeros(1)
        self.last: pd.DataFrame | None = None
        self.counts: Integers = np.zeros(4, dtype=np.int64)
        self.rejected_at: int | None = None
        self.keys = 0

    def take(self, keystrokes: pd.DataFrame) -> list[dict[str, Any]]:
        """The answers to the next keystrokes, all of one session."""
        last = self.last
        if last is None or any(last[name].iloc[0] != keystrokes[name].iloc[0] for name in SAMPLE):
            self._restart()
            last = keystrokes.head(0)
        both = pd.concat([last, keystrokes], ignore_index=True) if len(last) else keystrokes
        index = pd.MultiIndex.from_frame(both.iloc[:1][SAMPLE])
        samples = Samples.of(both, self.sensors, pd.DataFrame(index=index), first="missing")
        times = np.array(samples.emission) == "lognormal"
        X = np.where(times & (samples.sequences.X <= 0), np.nan, samples.sequences.X)
        counts = evidence_by_key(samples, self.templates[0])
        answers = []
        for n in range(len(last), len(both)):
            scores = self.filters.update(X[n], both["keyname"].iloc[n])
            if scores is not None:
                one = np.array([0, 1])
                terms = np.clip(scores, LOWEST, HIGHEST)[None, :]
                step = increments(terms, one, state=self.weights)
                suspicion(step, one, state=self.suspicion)
            self.counts = self.counts + counts[n]
            answers.append(self._answer(both.iloc[n], float(self.suspicion[0])))
        self.last = both.tail(1)
        return answers

    def _restart(self) -> None:
        self.filters.restart()
        self.weights, self.suspicion = np.zeros_like(self.weights), np.zeros(1)
        self.counts = np.zeros(4, dtype=np.int64)
        self.keys, self.rejected_at = 0, None

    def _answer(self, keystroke: pd.Series[Any], suspected: float) -> dict[str, Any]:
        self.keys += 1
        if suspected > self.level and self.rejected_at is None:
            self.rejected_at = self.keys
        reasons = Evidence(*self.counts.tolist()).shortage(*self.least)
        answer = "unsure" if reasons else "accept" if self.rejected_at is None else "reject"
        return {
            "user": str(keystroke["user"]),
            "session": str(keystroke["session"]),
            "claimed": self.user,
            "key": self.keys,
            "keyname": str(keystroke["keyname"]),
            "suspicion": suspected,
            "threshold": self.level,
            "rejected_at_key": self.rejected_at,
            "answer": answer,
            "reasons": reasons,
        }


def _line(row: dict[str, Any]) -> str:
    verdict = {"accept": "accepted", "unsure": "unsure"}.get(
        row["answer"], f"rejected at key {row['rejected_at_key']}"
    )
    suspected = f"suspicion {row['suspicion']:>5.1f} of {row['threshold']:.1f}"
    return f"key {row['key']:>4}  {row['keyname']:<12} {suspected}  {verdict}"


def _recordings(reading: Reading) -> Iterator[Recording]:
    """What has come, each time that something has; a `ValueError` names the line of the whole stream."""
    form = reading.form()
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
    """Where the last whole row ends: after a line break that is not between quotation marks."""
    end = text.rfind(b"\n") + 1
    while text.count(b'"', 0, end) % 2:
        end = text.rfind(b"\n", 0, end - 1) + 1
    return end
