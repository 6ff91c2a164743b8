"""The tables of the transfer study."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from keydyn.evaluation.rates.confidence import Estimate, Rate, percentage
from keydyn.lab.frame.names import dataset_name
from keydyn.lab.frame.tables import (
    NONE,
    Column,
    Line,
    Table,
    estimate_column,
    fixed,
    is_missing,
    with_interval,
)
from keydyn.lab.transfer.claims import LEFT_OUT, STATED, TRUE

FROM, TO = (
    Column("Learnt from", "dataset_from", dataset_name),
    Column("Tested on", "dataset_to", dataset_name),
)
STRANGERS = (*with_interval("strangers"), "samples")
OPEN_SET = "Open set: population, cohort and calibration come from people other than those who are tested."


def transfer_table(frame: pd.DataFrame, name: str, title: str, note: str) -> Table:
    """One line per place learnt from, place tested on and amount enrolled, with stated rates side by side."""
    return Table(
        name,
        title,
        note,
        frame,
        [
            FROM,
            TO,
            Column("Enrolled", ("enrolled", "repeats"), _enrolled),
            *(
                Column(f"Strangers at {100 * stated:g} %", STRANGERS, _share, _holds, of=stated)
                for stated in STATED
            ),
            Column(f"Genuine at stated {100 * TRUE:g} %", "genuine_stated", _one, of=TRUE),
            Column(f"Genuine at true {100 * TRUE:g} %", "genuine_true", _one),
            Column("EER", "eer", _one),
            Column("EER per user", "eer_per_user", _one),
            Column("Cllr (least)", ("cllr", "cllr_min"), lambda one, least: f"{one:.3f} ({least:.3f})"),
        ],
        labels=3,
        across="stated",
    )


def headline_table(frame: pd.DataFrame) -> Table:
    """One line per place learnt from and place tested on, with amounts enrolled side by side."""
    amounts = sorted(frame["enrolled"].unique())
    return Table(
        "headline",
        f"Where {100 * TRUE:g} % is stated",
        f"{OPEN_SET} Strangers accepted at a stated false-match rate of {100 * TRUE:g} %, with the 95 % "
        "interval over people, bold where that includes the stated rate, and genuine samples accepted at the "
        "same rate, by the number of samples enrolled. Likely repeats of a person are left out where they "
        "are known.",
        frame,
        [
            FROM,
            TO,
            *(Column(f"Strangers, {n} enrolled", STRANGERS, _share, _holds, of=n) for n in amounts),
            *(Column(f"Genuine, {n} enrolled", "genuine_stated", _one, of=n) for n in amounts),
        ],
        labels=2,
        across="enrolled",
    )


def _holds(row: Line) -> bool:
    """Whether the interval includes the stated rate."""
    return bool(row["strangers_low"] <= row["stated"] <= row["strangers_high"])


def _enrolled(samples: int, repeats: str) -> str:
    return f"{samples}, without repeats" if repeats == LEFT_OUT else str(samples)


def _share(value: float, low: float, high: float, samples: int) -> str:
    return Rate(value, low, high, samples).text(2 if high < 0.01 else 1)


def _one(value: float) -> str:
    return f"{percentage(value, 1)} %"


def disturbed_table(frame: pd.DataFrame) -> Table:
    """One line per disturbance, share of keys and side."""
    return Table(
        "disturbed",
        "Genuine people accepted where keys were recorded wrongly",
        "People of Aalto, five sentences enrolled, with what comes with keydyn: genuine samples accepted at "
        "a stated false-match rate of 1 %, and by how many points that differs from the first line. 95 % "
        "intervals over people. A clock affects all keys.",
        frame,
        [
            Column("Disturbance", "disturbance"),
            Column("Keys, %", "share", lambda share: f"{100 * share:g}"),
            Column("Side", "side"),
            Column("Genuine accepted", "genuine", _one),
            Column("Difference, points", with_interval("difference"), _points),
        ],
        labels=3,
    )


def _points(*shares: float) -> str:
    value, low, high = (f"{100 * share:+.1f}".replace("-", "−") for share in shares)
    return f"{value} ({low} to {high})"


def watching_table(frame: pd.DataFrame) -> Table:
    """One line per place learnt from, place watched and stated rate of lock-outs."""
    columns = [
        FROM,
        replace(TO, title="Watched"),
        Column("Stated per hour", "per_hour", "{:g}".format),
        Column("False lock-outs per hour", (*with_interval("lockouts"), "genuine_hours"), _per_hour),
        *(
            column
            for kind, title in (("start", "From the start"), ("takeover", "After a takeover"))
            for column in (
                Column(
                    f"{title}: median keys (quartiles)",
                    (f"{kind}_median", f"{kind}_quarter", f"{kind}_three_quarters"),
                    _quartiles,
                ),
                estimate_column(f"{title}: never noticed, %", f"{kind}_unnoticed", 1, 100.0),
            )
        ),
    ]
    typed = frame.drop_duplicates(["dataset_from", "dataset_to"]).to_dict("records")
    hours = "; ".join(
        f"{dataset_name(row['dataset_from'])} to {dataset_name(row['dataset_to'])}: "
        f"{row['genuine_hours']:.1f}"
        for row in typed
    )
    return Table(
        "watching",
        "Watching sessions of another place",
        f"{OPEN_SET} Five samples enrolled, the next ten joined to one session without the pauses between "
        "them. Keys are counted until an impostor is noticed, from the first key or after a takeover in the "
        "middle, of sessions not locked before; those still unnoticed at the end of the session count as "
        f"never noticed. 95 % intervals over people. Hours of genuine typing: {hours}.",
        frame,
        columns,
        labels=3,
    )


def _per_hour(value: float, low: float, high: float, hours: float) -> str:
    """A rate with its interval; the upper limit by the rule of three if there were no lock-outs."""
    return Estimate(value, low, high).text(2) if value > 0.0 else f"< {3.0 / hours:.2f}"


def _quartiles(median: float, first: float, third: float) -> str:
    if is_missing(median):
        return NONE
    return f"{_keys(median)} ({_keys(first)}–{_keys(third)})"


def _keys(number: float) -> str:
    return fixed(number, 0) if number < float("inf") else "∞"
