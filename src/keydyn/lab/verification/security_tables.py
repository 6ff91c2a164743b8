"""Tables of attacks, copies, ageing, poisoning and privacy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from keydyn.decisions.enrolled import BOUND
from keydyn.decisions.verifier import CONFIDENT
from keydyn.evaluation.rates.confidence import Estimate, Rate, mean_rate
from keydyn.lab.frame.tables import DATASET, NONE, Column, Table, is_missing, rate_column, table_of
from keydyn.lab.verification.ageing import UNBOUND
from keydyn.lab.verification.attack_measurements import STOPPED_BY
from keydyn.lab.verification.copy_measurements import COPY, FRESH, ROBOT
from keydyn.lab.verification.privacy import OTHERS, OWN
from keydyn.lab.verification.security_measurements import ROUNDS
from keydyn.lab.verification.tables import OPEN_SET, columns_of, percent

TEMPLATE = "template"
# Where the text is read from, and what is measured of it.
SOURCES = {
    TEMPLATE: "a stolen template",
    OWN: "timings, with the person's own model",
    OTHERS: "timings, with others' model",
}
OF_TEMPLATES = {"found": "Pairs of keys found", "chance": "By chance"}
OF_TIMINGS = {
    "top_1": "Key guessed",
    "top_5": "Among five guesses",
    "chain_1": "Guessed without timings",
    "chain_5": "Among five without timings",
}


def attacks_table(attacks: pd.DataFrame, seed: int) -> Table:
    """How often each attack gets through, and what stops it."""
    rows = []
    for (dataset, attack), of in attacks.groupby(["dataset", "attack"], sort=False):
        tries = int(of["tries"].sum())
        rates = {name: _mean(of[name], tries, seed) for name in ("accepted", "noticed", "passed")}
        labels = {"dataset": dataset, "attack": attack, "victims": len(of), "tries": tries}
        rows.append(labels | columns_of(rates))
    note = (
        f"{OPEN_SET} Shares of attempts, mean over victims: accepted by the score at the default operating "
        "point; noticed as a copy or as too regular; and accepted without being noticed. The attacker knows "
        "the text. For a thousand tries, it counts whether any of them gets through."
    )
    columns = [
        *(DATASET, Column("Attack", "attack")),
        rate_column("Score accepted", "accepted", "tries"),
        rate_column("Noticed", "noticed", "tries"),
        rate_column("Gets through", "passed", "tries"),
        Column("Stopped by", "attack", lambda attack: STOPPED_BY.get(attack, NONE)),
    ]
    return table_of("attacks", "What attackers get", note, pd.DataFrame(rows), columns, labels=2)


def copies_table(copies: pd.DataFrame, seed: int) -> Table:
    """False alarms of the detection of copies and of regular times, and what it notices."""
    rows = []
    for (dataset, kind, jitter), of in copies.groupby(["dataset", "kind", "jitter"], sort=False):
        tries = int(of["tries"].sum())
        rates = {name: _mean(of[name] / of["tries"], tries, seed) for name in ("copies", "regular")}
        labels = {"dataset": dataset, "kind": kind, "jitter": jitter, "tries": tries}
        rows.append(labels | columns_of(rates))
    note = (
        "Copies are of known samples: half of each person's, or the first 20. Robots type at a constant "
        "pace. The limits were set while looking at these people, so that others may see more false alarms."
    )
    columns = [
        *(DATASET, Column("Samples", ("kind", "jitter"), _samples), Column("Number", "tries")),
        rate_column("Called copies", "copies", "tries"),
        rate_column("Called too regular", "regular", "tries"),
    ]
    return table_of(
        "copies", "Copies and robots, and false alarms", note, pd.DataFrame(rows), columns, labels=2
    )


def _samples(kind: str, jitter: float) -> str:
    words = {FRESH: "fresh samples", COPY: "copies", ROBOT: "robots"}[kind]
    return words if kind == FRESH else f"{words}, jitter {jitter:g} ms"


def ageing_table(ageing: pd.DataFrame, seed: int) -> Table:
    """Acceptance sitting by sitting after enrolment in the first."""
    rows = []
    for (kind, sitting), of in ageing.groupby(["kind", "sitting"], sort=False):
        rates = {name: _mean(of[name], len(of), seed) for name in ("genuine", "impostor")}
        labels = {"kind": kind, "sitting": int(str(sitting)) + 1, "people": len(of)}
        rows.append(labels | columns_of(rates))
    note = (
        f"{OPEN_SET} Password: people enrol in the first sitting and are tested in later ones, days apart. "
        "Static templates stay as they are; retrained ones know all genuine samples of earlier sittings; "
        f"updated ones learn from samples that at most {percent(CONFIDENT)} of strangers would match, either "
        f"with no mean farther than {BOUND:g} scales from its enrolment, or without that bound."
    )
    columns = [
        *(Column("Template", "kind"), Column("Sitting", "sitting")),
        rate_column("Genuine accepted", "genuine", "people"),
        rate_column("Impostors accepted", "impostor", "people"),
    ]
    return table_of("ageing", "Templates that age", note, pd.DataFrame(rows), columns, labels=2)


def poisoning_table(poisoned: pd.DataFrame, seed: int) -> Table:
    """What an impostor who is sometimes accepted makes of an updated template."""
    names = ("impostor_before", "impostor_after", "owner_before", "owner_after")
    rows = []
    for bound, of in poisoned.groupby("bound", sort=False):
        rates = {name: _mean(of[name], len(of), seed) for name in names}
        rates["taken_over"] = _mean(of["impostor_after"] > of["owner_after"], len(of), seed)
        rows.append({"bound": None if bound == UNBOUND else bound, "victims": len(of)} | columns_of(rates))
    note = (
        f"Password: the most successful impostor of each victim tries {ROUNDS} times; victims in whose name "
        "nobody is ever confidently accepted are left out. Taken over: the impostor is accepted more often "
        "than the owner."
    )
    columns = [
        Column("Bound", "bound", lambda bound: "none" if is_missing(bound) else f"{bound:g} scales"),
        Column("Victims", "victims"),
        *(
            rate_column(name.replace("_", " ").capitalize(), name, "victims")
            for name in (*names, "taken_over")
        ),
    ]
    return table_of("poisoning", "Poisoned templates", note, pd.DataFrame(rows), columns)


def privacy_table(privacy: pd.DataFrame, seed: int) -> Table:
    """What timings and stolen templates say of the text."""
    rows = []
    for (dataset, model), of in privacy.groupby(["dataset", "model"], sort=False):
        names = OF_TEMPLATES if model == TEMPLATE else {**OF_TIMINGS, "bits": ""}
        figures = {name: _mean(of[name], len(of), seed) for name in names}
        rows.append({"dataset": dataset, "model": model, "users": len(of)} | columns_of(figures))
    frame = pd.DataFrame(rows)
    note = (
        "Keys that `predict_events` recovers from timings alone, and bits per key that timings add to a "
        "Markov chain of keys. A stolen template reveals which pairs of keys its owner typed: as many pairs "
        "are guessed as were typed, namely those that the population explains worst."
    )

    def rates(names: Mapping[str, str]) -> list[Column]:
        """Of what was measured."""
        return [rate_column(title, name, "users") for name, title in names.items() if name in frame]

    bits = [Column("Bits per key", ("bits", "bits_low", "bits_high"), _bits)] if "bits" in frame else []
    source = Column("From", "model", lambda model: SOURCES[model])
    columns = [DATASET, source, *rates(OF_TIMINGS), *bits, *rates(OF_TEMPLATES)]
    title = "What timings and templates give away of the text"
    return table_of("privacy", title, note, frame, columns, labels=2)


def _bits(value: float, low: float, high: float) -> str:
    return NONE if is_missing(value) else Estimate(value, low, high).text(2)


def _mean(values: pd.Series[Any], trials: int, seed: int) -> Rate:
    return mean_rate(values.to_numpy(dtype=np.float64), trials, seed=seed)
