"""How fast files in the layouts of published collections are read: a million random keystrokes each."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import measured

from keydyn.datasets.files.file_form import FileForm
from keydyn.datasets.files.log_files import read_log
from keydyn.datasets.files.recordings import read_recording
from keydyn.keystrokes import pair_events

N_KEYSTROKES, PER_SAMPLE, PER_USER = 1_000_000, 50, 1_000
LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
SINCE_YEAR_1, SINCE_1970 = 63_578_429_792_961, 1_500_000_000_000


def reading(layout: str) -> dict[str, Any]:
    """Time per keystroke of reading a file in this layout; for logs, of pairing it as well."""
    write, read = LAYOUTS[layout]
    with tempfile.TemporaryDirectory() as folder:
        path = write(_typed(), Path(folder))
        return measured(lambda: read(path), N_KEYSTROKES, repeats=3)


def _typed() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    number = np.arange(N_KEYSTROKES)
    press = np.cumsum(rng.integers(80, 300, N_KEYSTROKES))
    return pd.DataFrame(
        {
            "user": number // PER_USER,
            "session": number // PER_SAMPLE % (PER_USER // PER_SAMPLE),
            "keyname": LETTERS[rng.integers(0, 26, N_KEYSTROKES)],
            "timepress": press,
            "timerelease": press + rng.integers(50, 140, N_KEYSTROKES),
        }
    )


def _latencies(typed: pd.DataFrame, folder: Path) -> Path:
    """Samples of ten keys that all have the same names."""
    press, release = (typed[name].to_numpy().reshape(-1, 10) / 1000 for name in ("timepress", "timerelease"))
    columns: dict[str, Any] = {"subject": typed["user"].to_numpy()[::10]}
    for n, key in enumerate(LETTERS[:10]):
        columns[f"H.{key}"] = (release[:, n] - press[:, n]).round(4)
        if n < 9:
            pair = f"{key}.{LETTERS[n + 1]}"
            columns[f"DD.{pair}"] = (press[:, n + 1] - press[:, n]).round(4)
            columns[f"UD.{pair}"] = (press[:, n + 1] - release[:, n]).round(4)
    return _csv(pd.DataFrame(columns), folder / "latencies.csv")


def _pairs(typed: pd.DataFrame, folder: Path) -> Path:
    after = typed.groupby(["user", "session"], sort=False).shift(-1)
    press, release = typed["timepress"], typed["timerelease"]
    pairs = {
        "participant": typed["user"],
        "session": typed["session"],
        "key1": typed["keyname"],
        "key2": after["keyname"],
        "DU.key1.key1": (release - press) / 1000,
        "DD.key1.key2": (after["timepress"] - press) / 1000,
        "DU.key1.key2": (after["timerelease"] - press) / 1000,
        "UD.key1.key2": (after["timepress"] - release) / 1000,
        "UU.key1.key2 ": (after["timerelease"] - release) / 1000,
    }
    return _csv(pd.DataFrame(pairs).dropna(), folder / "free-text.csv")


def _log(typed: pd.DataFrame, folder: Path) -> Path:
    events = {"key": [*typed["keyname"].str.upper()] * 2, "type": np.repeat(["KeyDown", "KeyUp"], len(typed))}
    time = SINCE_YEAR_1 + np.concatenate([typed["timepress"], typed["timerelease"]])
    frame = pd.DataFrame(events).assign(time=time).sort_values("time", kind="stable")
    return _csv(frame, folder / "001001.txt", sep=" ", header=False)


def _two_tables(typed: pd.DataFrame, folder: Path) -> Path:
    section = np.arange(len(typed)) // PER_SAMPLE
    sections = {"TEST_SECTION_ID": section[::PER_SAMPLE], "PARTICIPANT_ID": typed["user"][::PER_SAMPLE]}
    _csv(pd.DataFrame(sections), folder / "test_sections.csv")
    keystrokes = {
        "KEYSTROKE_ID": np.arange(len(typed)),
        "TEST_SECTION_ID": section,
        "PRESS_TIME": SINCE_1970 + typed["timepress"],
        "RELEASE_TIME": SINCE_1970 + typed["timerelease"],
        "KEYCODE": [ord(key) - 32 for key in typed["keyname"]],
    }
    return _csv(pd.DataFrame(keystrokes), folder / "keystrokes.csv")


def _csv(frame: pd.DataFrame, path: Path, **form: Any) -> Path:
    frame.to_csv(path, index=False, **form)
    return path


def _read(path: Path) -> Any:
    return read_recording(path, FileForm())


def _paired(path: Path) -> Any:
    log = read_log(path, FileForm())
    return pair_events(log.events, log.unit)


LAYOUTS: dict[str, tuple[Callable[[pd.DataFrame, Path], Path], Callable[[Path], Any]]] = {
    "keystrokes": (lambda typed, folder: _csv(typed, folder / "typed.csv"), _read),
    "latencies": (_latencies, _read),
    "pairs": (_pairs, _read),
    "log": (_log, _paired),
    "tables": (_two_tables, _read),
}
