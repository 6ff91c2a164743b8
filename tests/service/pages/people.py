"""People who type in pages, each with a rhythm of their own: simulated and recorded ones."""

from __future__ import annotations

import pandas as pd

from keydyn.datasets import make_typists
from tests.conftest import data_folder
from tests.service.pages.keyboard import KEYS, Row

COLUMNS = ["keyname", "timepress", "timerelease"]


def typed(person: int, text: str, time: int = 0) -> list[Row]:
    """A text as typed by a simulated person the first, second, … time."""
    people = make_typists(1, time + 1, phrase=text, practice=0.0, first_user=person, random_state=11)
    return rows_of(people[people["session"] == time])


def rows_of(frame: pd.DataFrame) -> list[Row]:
    """Keystrokes in the form of the keyboard, from time 0."""
    rows = frame[COLUMNS].to_dict("records")
    begin = rows[0]["timepress"]
    return [{**row, **{name: row[name] - begin for name in COLUMNS[1:]}} for row in rows]


def recorded(*users: int) -> dict[int, list[list[Row]]] | None:
    """Stretches of 110 keystrokes of these people, who wrote essays; None without the recordings."""
    folder = data_folder()
    if folder is None or not (folder / "essay.csv").exists():
        return None
    frame = pd.read_csv(folder / "essay.csv", keep_default_na=False)
    frame = frame[frame["user"].isin(users)]
    found: dict[int, list[list[Row]]] = {}
    usable = set(KEYS) - {"enter", "tab", "ctrl", "alt"}
    for (user, _), sample in frame.groupby(["user", "session"]):
        for begin in range(0, len(sample) - 110, 110):
            stretch = sample.iloc[begin : begin + 110]
            characters = (stretch["keyname"].str.len() == 1) | (stretch["keyname"] == "space")
            if set(stretch["keyname"]) <= usable and characters.sum() >= 100:
                found.setdefault(int(user), []).append(rows_of(stretch))
    return found
