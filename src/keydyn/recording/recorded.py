"""The files of a recording: samples, their quality, and participants' consent.

There are three files in one folder: the samples in the schema (typing.csv), one line per attempt
(typing.quality.csv), and the prompts, runs and consents of the recording (typing.recording.json). The line
about a sample is durable before the sample, and contains its number of keystrokes: so a sample that was only
partly written is recognised and cut off, and a line without its sample is removed.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from keydyn import __version__
from keydyn.atomic import sync_folder, write_bytes
from keydyn.datasets import load_recordings, save_recordings
from keydyn.decisions.folder.folder import locked
from keydyn.exit_codes import UsageError
from keydyn.keystrokes.schema import COLUMNS, SAMPLE, sample_lengths, sample_starts
from keydyn.recording.prompts import Task
from keydyn.regular_files import read_regular

TASK = ["sitting", "prompt", "repetition"]
FORMATS = (".csv", ".parquet")
LARGEST_ABOUT = 1 << 26
# The first columns of an attempt; the others are the counts of the recorder's quality.
ATTEMPT = (*SAMPLE, *TASK, "kept", "recorded_at", "attempts", "device")


class Consent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A participant's consent: the SHA-256 of the text, and the time."""

    consent_sha256: str
    at: str


class RecordingRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run of the command."""

    began: str
    keydyn: str
    recorder_sha256: str
    exact: bool


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The prompts, runs and consents of a recording."""

    prompts_file: str
    prompts_sha256: str
    runs: list[RecordingRun] = []
    participants: dict[str, Consent] = {}


class AppendedFile:
    """A file to which lines are appended in full or not at all; the first line names the columns.

    A line that was only partly written, because the process or the machine died, is cut off when the file is
    opened; so are zeros, which some file systems leave in place of data that were not written.
    """

    def __init__(self, path: Path, header: bytes) -> None:
        self.path, self._header = path, header
        new = not path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        if new:
            sync_folder(path.parent)
        contents = path.read_bytes()
        whole = contents.partition(b"\0")[0]
        self.size = whole.rfind(b"\n") + 1
        if not header.startswith(whole[: len(header)]):
            os.close(self._file)
            raise ValueError(f"{path}: its columns are not those that keydyn record writes")
        if self.size != len(contents):
            self.cut(self.size)

    def append(self, lines: bytes) -> None:
        """Append lines; after an `OSError` the file is unchanged."""
        before = self.size
        try:
            os.lseek(self._file, before, os.SEEK_SET)
            left = memoryview(lines if before else self._header + lines)
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except OSError:
            self.cut(before)
            raise
        self.size = os.lseek(self._file, 0, os.SEEK_CUR)

    def cut(self, size: int) -> None:
        """Keep only the first `size` bytes."""
        os.ftruncate(self._file, size)
        os.fsync(self._file)
        self.size = size

    def cut_lines(self, count: int) -> None:
        """Remove the last `count` lines."""
        if count:
            self.cut(len(self.path.read_bytes().rsplit(b"\n", count + 1)[0]) + 1)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class CsvSamples(AppendedFile):
    """Samples in a CSV file, to which further ones are appended."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _line([*COLUMNS, *TASK]))

    def frame(self) -> pd.DataFrame | None:
        """Return all samples; None if there are none."""
        return load_recordings(self.path) if self.path.read_bytes().count(b"\n") > 1 else None

    def add(self, sample: pd.DataFrame) -> None:
        """Add a sample, whole or not at all."""
        self.append(sample.to_csv(index=False, header=False, lineterminator="\n").encode())


class ParquetSamples:
    """Samples in a Parquet file, which is rewritten with every sample."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._frame = load_recordings(path) if path.exists() else None

    def frame(self) -> pd.DataFrame | None:
        """Return all samples; None if there are none."""
        return self._frame

    def add(self, sample: pd.DataFrame) -> None:
        """Add a sample, whole or not at all."""
        frames = [sample] if self._frame is None else [self._frame, sample]
        together = pd.concat(frames, ignore_index=True)
        save_recordings(together, self._path)
        self._frame = together

    def cut_lines(self, count: int) -> None:
        """Do nothing: a Parquet file is never partly written."""

    def close(self) -> None:
        """Do nothing: no file is open."""


class Recorded:
    """The three files of a recording, which only one process at a time may open."""

    def __init__(self, out: Path, counts: tuple[str, ...]) -> None:
        self.out, self.quality_path, self._about_path = out, _beside(out, "quality.csv"), about_path(out)
        self._columns = _columns_of(self.quality_path, (*ATTEMPT, *counts))
        self.samples = CsvSamples(out) if out.suffix == ".csv" else ParquetSamples(out)
        self._quality = AppendedFile(self.quality_path, _line(self._columns))
        self.attempts = self._agreed()

    def done(self) -> dict[str, dict[Task, int]]:
        """Return the tasks that each participant has typed, with the session of each."""
        found: dict[str, dict[Task, int]] = {}
        for user, session, *task in self._each()[[*SAMPLE, *TASK]].itertuples(index=False, name=None):
            found.setdefault(str(user), {})[Task(*map(int, task))] = int(session)
        return found

    def keep(self, sample: pd.DataFrame, attempt: Mapping[str, Any]) -> None:
        """Store a sample and the line about it, durably, or neither of them."""
        before = self._quality.size
        self.note(attempt)
        try:
            self.samples.add(sample)
        except BaseException:
            self._quality.cut(before)
            self.attempts.pop()
            raise

    def note(self, attempt: Mapping[str, Any]) -> None:
        """Store a line about an attempt."""
        row = {name: "" if attempt[name] is None else str(attempt[name]) for name in self._columns}
        self._quality.append(_line(row.values()))
        self.attempts.append(row)

    def write_about(self, about: About) -> None:
        """Store the prompts, runs and consents of the recording."""
        write_bytes(self._about_path, msgspec.json.format(msgspec.json.encode(about), indent=1) + b"\n")

    def close(self) -> None:
        """Close the files."""
        self.samples.close()
        self._quality.close()

    def _each(self) -> pd.DataFrame:
        """List the samples, each with its number of keystrokes."""
        frame = self.samples.frame()
        if frame is None:
            return pd.DataFrame(columns=[*SAMPLE, *TASK, "keystrokes"])
        absent = [name for name in TASK if name not in frame or frame[name].dtype.kind not in "iu"]
        if absent:
            raise ValueError(f"{self.out}: not written by keydyn record: there is no column {absent[0]}")
        starts = sample_starts(frame)
        each = frame.iloc[starts][[*SAMPLE, *TASK]].reset_index(drop=True)
        return each.assign(keystrokes=sample_lengths(starts, len(frame)))

    def _agreed(self) -> list[dict[str, str]]:
        """Remove partly written samples, and lines without their sample; return the lines about attempts."""
        text = self.quality_path.read_text(encoding="utf-8")
        attempts = [dict(row) for row in csv.DictReader(io.StringIO(text))]
        expected = {(row["user"], row["session"]): row for row in attempts if row["kept"] == "1"}
        each = self._each()
        if len(each):
            last = each.iloc[-1]
            line = expected.get((str(last["user"]), str(last["session"])))
            if line is not None and line["keystrokes"] != str(last["keystrokes"]):
                self.samples.cut_lines(int(last["keystrokes"]))
                each = each.iloc[:-1]
        there = set(zip(each["user"].astype(str), each["session"].astype(str), strict=True))
        agreed = [row for row in attempts if row["kept"] != "1" or (row["user"], row["session"]) in there]
        if len(agreed) < len(attempts):
            self._quality.close()
            lines = [_line(self._columns), *(_line(row.values()) for row in agreed)]
            write_bytes(self.quality_path, b"".join(lines))
            self._quality = AppendedFile(self.quality_path, lines[0])
        return agreed


@contextmanager
def opened(
    out: Path, prompts: Path, prompts_sha256: str, counts: tuple[str, ...]
) -> Iterator[tuple[Recorded, About]]:
    """Open the files of a new or unfinished recording; a `UsageError` if they belong to another one."""
    if out.suffix not in FORMATS:
        raise UsageError(f"--out must end in {' or '.join(FORMATS)}, not {out.name!r}")
    out.parent.mkdir(parents=True, exist_ok=True)
    with _for_its_owner(), locked(out.parent, f".{out.name}.lock"):
        about = _read_about(out)
        if about is None:
            if out.exists() and out.stat().st_size:
                raise UsageError(f"{out} exists and was not written by keydyn record: give another --out")
            about = About(prompts.name, prompts_sha256)
        if about.prompts_sha256 != prompts_sha256:
            raise UsageError(
                f"{out} was recorded with different prompts from those in {prompts}: give another --out, or "
                "restore the file of prompts"
            )
        recorded = Recorded(out, counts)
        try:
            yield recorded, about
        finally:
            recorded.close()


@contextmanager
def _for_its_owner() -> Iterator[None]:
    """Make files created in the block readable by their owner only."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def with_run(about: About, now: str, exact: bool) -> About:
    """Add a run of this version; `exact` may have been requested on the command line."""
    recorder = (files("keydyn.service") / "pages" / "recorder.js").read_bytes()
    run = RecordingRun(now, __version__, sha256(recorder).hexdigest(), exact)
    return msgspec.structs.replace(about, runs=[*about.runs, run])


def about_path(out: Path) -> Path:
    """Name the file beside a recording that holds its prompts, runs and consents."""
    return _beside(out, "recording.json")


def _read_about(out: Path) -> About | None:
    path = about_path(out)
    try:
        return msgspec.json.decode(read_regular(path, LARGEST_ABOUT), type=About)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError(f"{path}: not in the format that keydyn record writes") from None


def _beside(out: Path, ending: str) -> Path:
    return out.with_name(f"{out.stem}.{ending}")


def _columns_of(path: Path, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of an existing file, if an earlier version began it with fewer columns; else all."""
    begun = path.read_bytes().partition(b"\n")[0].decode().split(",") if path.exists() else []
    shorter = 0 < len(begun) < len(columns) and columns[: len(begun)] == (*begun,)
    return columns[: len(begun)] if shorter else columns


def _line(values: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode()
