"""The results of watching sessions as a table, as panels of a figure, and as sentences."""

from __future__ import annotations

from typing import Any

import pandas as pd

from keydyn.lab.drawing.panels import Estimates, estimates_of
from keydyn.lab.frame.names import dataset_name, listed
from keydyn.lab.frame.tables import DATASET, Column, Line, Table, estimate_column, estimate_of

# Column of the frame → heading, decimals, scale
HEADINGS = {
    "lockouts_per_hour": ("False lock-outs per hour", 2, 1.0),
    "genuine_locked": ("Genuine sessions locked, %", 1, 100.0),
    "start_median": ("From the start: median keys", 0, 1.0),
    "start_mean": ("From the start: mean keys", 0, 1.0),
    "start_unnoticed": ("From the start: never noticed, %", 1, 100.0),
    "change_median": ("After a change: median keys", 0, 1.0),
    "change_mean": ("After a change: mean keys", 0, 1.0),
    "change_unnoticed": ("After a change: never noticed, %", 1, 100.0),
}
WHO = {"start": "from the start", "change": "after a change"}
# Name of the figure → column of the frame, label of the axis, scale
DRAWN = {
    "watching_delay": ("mean", "mean keys until an impostor is noticed", 1.0),
    "watching_unnoticed": ("unnoticed", "impostors never noticed, %", 100.0),
}
OPEN_SET = (
    "Open set: neither the population nor the cohort nor the calibration was learnt from anyone in these "
    "sessions."
)


def watching_table(frame: pd.DataFrame) -> Table:
    """All results of each way; the fewest mean keys after a change are in bold."""
    soonest = frame.groupby(["dataset", "target_per_hour"])["change_mean"].min()

    def is_soonest(row: Line) -> bool:
        return bool(row["change_mean"] == soonest[row["dataset"], row["target_per_hour"]])

    columns = [
        *(DATASET, Column("Aimed at", "target_per_hour", "{:g}".format), Column("Way to watch", "way")),
        *(
            estimate_column(
                heading, figure, digits, scale, **({"bold": is_soonest} if figure == "change_mean" else {})
            )
            for figure, (heading, digits, scale) in HEADINGS.items()
        ),
    ]
    lengths = frame.drop_duplicates("dataset").set_index("dataset")["keys_after_change"]
    after = "; ".join(f"{dataset_name(name)}: {keys}" for name, keys in lengths.items())
    return Table(
        "watching",
        "Ways to watch a session, at equal false lock-outs",
        f"{OPEN_SET} Aimed at: false lock-outs per hour of typing. The limit and the settings of each way "
        "are chosen on people of other folds; all figures are of people on whom nothing was chosen. "
        "Impostors type from the start, or take over in the middle of a session that was not locked before. "
        "Keys are counted until the impostor is noticed, or to the end of the session for those who are "
        f"never noticed. Keys left after a change: {after}. 95 % intervals over people. Bold: fewest mean "
        "keys after a change.",
        frame,
        columns,
        labels=3,
    )


def watching_panels(frame: pd.DataFrame, name: str) -> Estimates:
    """Data for `intervals_figure`: a panel per dataset and rate, a row per way; `name` is one of `DRAWN`."""
    what, _, scale = DRAWN[name]
    panels = frame.assign(dataset=[_panel(row) for row in _rows(frame)])
    series = {title: f"{who}_{what}" for who, title in WHO.items()}
    return estimates_of(panels, series, lambda row: str(row["way"]), scale)


def watching_words(frame: pd.DataFrame) -> list[str]:
    """Paragraphs that say which way notices a change of person soonest, and what to keep in mind."""
    sentences = [_soonest(of) for _, of in frame.groupby(["dataset", "target_per_hour"], sort=False)]
    above = int((frame["lockouts_per_hour"] > frame["target_per_hour"]).sum())
    share = frame["lockouts_per_hour"] / frame["target_per_hour"]
    typed = frame.drop_duplicates("dataset").set_index("dataset")["genuine_hours"]
    hours = listed([f"{each:.1f} ({dataset_name(name)})" for name, each in typed.items()])
    sentences.append(
        "These rates are targets, which are not met exactly: measured false lock-outs are "
        f"{share.min():.1f} to {share.max():.1f} times the target, and above it in {above} of {len(share)} "
        f"cases. The limits rest on few lock-outs, in {hours} hours of genuine typing. The range of settings "
        "of each way was found by trial on these recordings; only the choice within the range is made on "
        "other people."
    )
    return sentences


def _soonest(of: pd.DataFrame) -> str:
    ordered = of.sort_values("change_mean", kind="stable")
    first, *others = _rows(ordered)
    mean, median = estimate_of(first, "change_mean"), estimate_of(first, "change_median")
    unnoticed = estimate_of(first, "change_unnoticed")
    found = ", ".join(f"{row['way']} {estimate_of(row, 'change_mean').text()}" for row in others)
    rest = f" The other ways need on average: {found}." if others else ""
    close = [row["way"] for row in others if row["change_mean_low"] <= first["change_mean_high"]]
    verdict = f" The interval of its mean overlaps that of {listed(close)}." if close else ""
    return (
        f"{_panel(first)}: {first['way']} notices a change of person soonest, after {mean.text()} keys on "
        f"average and a median of {median.text()}; in {unnoticed.times(100.0).text(1)} % of sessions, "
        f"{first['keys_after_change']} keys are not enough.{rest}{verdict}"
    )


def _panel(row: dict[str, Any]) -> str:
    rate = row["target_per_hour"]
    return f"{dataset_name(row['dataset'])}, {rate:g} lock-out{'' if rate == 1 else 's'} per hour"


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
