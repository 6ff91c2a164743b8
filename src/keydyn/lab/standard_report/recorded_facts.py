"""Facts taken from the recordings: people, amounts, dates, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from keydyn.datasets.files.recordings import Recording
from keydyn.keystrokes.cleaning import meaning_of
from keydyn.keystrokes.quality import INTERVAL_KINDS, KEYSTROKE_KINDS, SAMPLE_KINDS, quality_of
from keydyn.keystrokes.schema import COLUMNS
from keydyn.lab.frame.tables import Column, Table, plain_table

# Larger times must count from 1970, because then they are later than 1973.
SINCE_1970 = 1e11
DAY = 86_400_000.0
# Longer lists of people are shown in the file only.
MOST_SHOWN = 100
LEFT_OUT = ["user", "what", "reason", "number"]


def recorded_facts(recording: Recording) -> dict[str, Any]:
    """Facts about the recordings for run.json."""
    keystrokes = recording.keystrokes
    quality = quality_of(keystrokes)
    samples = quality.samples
    per_user = samples.groupby("user", sort=False)
    first_press = keystrokes.groupby("user", sort=False)["timepress"]
    dated = bool((keystrokes["timepress"] > SINCE_1970).all())
    dates: dict[str, Any] = {}
    if dated:
        times = first_press.agg(["min", "max"])
        apart = ((times["max"] - times["min"]) / DAY).to_numpy()
        dates = {"first": _day(times["min"].min()), "last": _day(times["max"].max()), "days": _three(apart)}
    impossible = per_user[["impossible_holds", "impossible_intervals"]].sum()
    left_out = [
        {"user": str(user), "what": "times", "reason": _kind(str(kind), quality.long_hold), "number": int(n)}
        for kind in impossible
        for user, n in impossible[kind].items()
        if n
    ]
    cleaning = recording.cleaning
    if cleaning is not None:
        left_out += [
            {
                "user": str(user),
                "what": "keystrokes",
                "reason": meaning_of(rule, getattr(cleaning.rules, rule)),
                "number": int(n),
            }
            for rule, user, n in zip(*(cleaning.lost[name].tolist() for name in cleaning.lost), strict=True)
        ]
    return {
        "users": int(samples["user"].nunique()),
        "samples": len(samples),
        "keystrokes": len(keystrokes),
        "samples per user": _three(per_user.size()),
        "keystrokes per sample": _three(samples["keystrokes"]),
        "different keys": int(keystrokes["keyname"].nunique()),
        "typing time, hours": round(float(samples["span"].sum()) / 3_600_000, 2),
        "unit of times": recording.unit,
        "further columns": [str(name) for name in keystrokes.columns if name not in COLUMNS],
        "dates": dates,
        "counts": quality.counts,
        "left_out": left_out,
    }


def _day(milliseconds: float) -> str:
    return datetime.fromtimestamp(milliseconds / 1000.0, UTC).date().isoformat()


def _three(values: Any) -> dict[str, float]:
    each = np.asarray(values, dtype=np.float64)
    return {"least": float(each.min()), "median": float(np.median(each)), "most": float(each.max())}


def _kind(kind: str, long_hold: float) -> str:
    """The name of a finding of the quality report."""
    meanings = {**KEYSTROKE_KINDS, **INTERVAL_KINDS, **SAMPLE_KINDS}
    return meanings[kind].format(pause=1000.0, long_hold=long_hold)


def recorded_table(recorded: Mapping[str, Any]) -> Table:
    """A table of amounts and dates of the recordings."""
    rows = [
        ("People", f"{recorded['users']:,}"),
        ("Samples", f"{recorded['samples']:,}"),
        ("Keystrokes", f"{recorded['keystrokes']:,}"),
        ("Samples of a person", _span(recorded["samples per user"])),
        ("Keystrokes of a sample", _span(recorded["keystrokes per sample"])),
        ("Different keys", f"{recorded['different keys']:,}"),
        (
            "Time spent typing, first to last press of each sample",
            f"{recorded['typing time, hours']:g} hours",
        ),
        ("Unit of the times in the file", recorded["unit of times"]),
        ("Further columns", ", ".join(recorded["further columns"]) or "none"),
    ]
    dates = recorded["dates"]
    when = f"{dates['first']} to {dates['last']}" if dates else "the times in the file do not say"
    apart = _span(dates["days"], 1) if dates else "the times in the file do not say"
    rows += [("Recorded (UTC)", when), ("Days from a person's first key to the last", apart)]
    return plain_table("recorded", "What was recorded", "", pd.DataFrame(rows, columns=["What", "Recorded"]))


def noticed_table(recorded: Mapping[str, Any]) -> Table:
    """The findings of the quality report, with their shares."""
    counts = recorded["counts"]
    rows = [
        {"finding": _kind(kind, 1000.0), "number": counts[kind], "share": counts[kind] / max(counts[of], 1)}
        for kinds, of in (
            (KEYSTROKE_KINDS, "keystrokes"),
            (INTERVAL_KINDS, "intervals"),
            (SAMPLE_KINDS, "samples"),
        )
        for kind in kinds
        if kind in counts
    ]
    columns = [
        Column("Finding", "finding"),
        Column("Number", "number", lambda n: f"{n:,}"),
        Column("Share", "share", lambda share: f"{100 * share:.2f} %"),
    ]
    note = "Shares are of keystrokes, of intervals between them, or of samples."
    return Table("noticed", "What the recordings are like", note, pd.DataFrame(rows), columns)


def left_out_rows(recorded: Mapping[str, Any], failures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Everything that was left out, by user and reason: times, keystrokes, samples and people."""
    rows = list(recorded.get("left_out", []))
    samples = pd.DataFrame(failures.get("to acquire", []), columns=["user", "session", "reason"])
    for (user, reason), some in samples.groupby(["user", "reason"], sort=False):
        rows.append({"user": str(user), "what": "samples", "reason": str(reason), "number": len(some)})
    return rows + [
        {"user": str(one["user"]), "what": "people", "reason": str(one["reason"]), "number": 1}
        for one in failures.get("to enrol", [])
    ]


def left_out_tables(rows: Sequence[Mapping[str, Any]]) -> tuple[Table, Table]:
    """What was left out, by reason and by user and reason."""
    frame = pd.DataFrame(list(rows), columns=LEFT_OUT)
    by_reason = (
        frame.groupby(["what", "reason"], sort=False)
        .agg(people=("user", "nunique"), number=("number", "sum"))
        .reset_index()
    )
    return (
        plain_table("left_out", "What was left out, by reason", "", by_reason, labels=2),
        plain_table("left_out_by_user", "What was left out, by user and reason", "", frame, labels=2),
    )


def _span(three: Mapping[str, float], digits: int = 0) -> str:
    least, median, most = (f"{three[name]:,.{digits}f}" for name in ("least", "median", "most"))
    return least if least == most else f"{least} to {most}, median {median}"
