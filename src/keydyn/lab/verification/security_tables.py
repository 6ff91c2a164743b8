"""Tables of attacks, copies, ageing, poisoning and privacy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from keydyn.decisions.updating import BOUND
from keydyn.decisions.verifier import CONFIDENT
from keydyn.evaluation.rates.confidence import mean_rate
from keydyn.lab.frame.names import dataset_name
from keydyn.lab.frame.tables import NONE, Table
from keydyn.lab.verification.ageing import UNBOUND
from keydyn.lab.verification.attack_measurements import STOPPED_BY
from keydyn.lab.verification.copy_measurements import COPY, FRESH, ROBOT
from keydyn.lab.verification.privacy import OTHERS, OWN
from keydyn.lab.verification.security_measurements import ROUNDS
from keydyn.lab.verification.tables import OPEN_SET, columns_of, percent

TEMPLATE = "template"


def attacks_table(attacks: pd.DataFrame, seed: int) -> Table:
    """How often each attack gets through, and what stops it."""
    rows, shown = [], []
    for (dataset, attack), of in attacks.groupby(["dataset", "attack"], sort=False):
        rates = {
            name: mean_rate(of[name].to_numpy(dtype=np.float64), int(of["tries"].sum()), seed=seed)
            for name in ("accepted", "noticed", "passed")
        }
        rows.append(
            {"dataset": dataset, "attack": attack, "victims": len(of), "tries": int(of["tries"].sum())}
            | columns_of(rates)
        )
        shown.append(
            {
                "Dataset": dataset_name(str(dataset)),
                "Attack": str(attack),
                "Score accepted": rates["accepted"].text(),
                "Noticed": rates["noticed"].text(),
                "Gets through": rates["passed"].text(),
                "Stopped by": STOPPED_BY.get(str(attack), NONE),
            }
        )
    note = (
        f"{OPEN_SET} Shares of attempts, mean over victims: accepted by the score at the default operating "
        "point; noticed as a copy or as too regular; and accepted without being noticed. The attacker knows "
        "the text. For a thousand tries, it counts whether any of them gets through."
    )
    return Table("attacks", "What attackers get", note, pd.DataFrame(rows), pd.DataFrame(shown), labels=2)


def copies_table(copies: pd.DataFrame, seed: int) -> Table:
    """False alarms of the detection of copies and of regular times, and what it notices."""
    rows, shown = [], []
    for (dataset, kind, jitter), of in copies.groupby(["dataset", "kind", "jitter"], sort=False):
        tries = of["tries"].to_numpy(dtype=np.float64)
        row: dict[str, Any] = {"dataset": dataset, "kind": kind, "jitter": jitter, "tries": int(tries.sum())}
        cells = []
        for name in ("copies", "regular"):
            rate = mean_rate(of[name].to_numpy(dtype=np.float64) / tries, int(tries.sum()), seed=seed)
            row |= rate.columns(name)
            cells.append(rate.text())
        rows.append(row)
        words = {FRESH: "fresh samples", COPY: "copies", ROBOT: "robots"}[str(kind)]
        shown.append(
            {
                "Dataset": dataset_name(str(dataset)),
                "Samples": words if kind == FRESH else f"{words}, jitter {jitter:g} ms",
                "Number": str(int(tries.sum())),
                "Called copies": cells[0],
                "Called too regular": cells[1],
            }
        )
    note = (
        "Copies are of known samples: half of each person's, or the first 20. Robots type at a constant "
        "pace. The limits were set while looking at these people, so that others may see more false alarms."
    )
    return Table(
        "copies",
        "Copies and robots, and false alarms",
        note,
        pd.DataFrame(rows),
        pd.DataFrame(shown),
        labels=2,
    )


def ageing_table(ageing: pd.DataFrame, seed: int) -> Table:
    """Acceptance sitting by sitting after enrolment in the first."""
    rows, shown = [], []
    for (kind, sitting), of in ageing.groupby(["kind", "sitting"], sort=False):
        rates = {
            name: mean_rate(of[name].to_numpy(dtype=np.float64), len(of), seed=seed)
            for name in ("genuine", "impostor")
        }
        number = int(str(sitting)) + 1
        rows.append({"kind": kind, "sitting": number} | columns_of(rates))
        shown.append(
            {
                "Template": str(kind),
                "Sitting": str(number),
                "Genuine accepted": rates["genuine"].text(),
                "Impostors accepted": rates["impostor"].text(),
            }
        )
    note = (
        f"{OPEN_SET} Password: people enrol in the first sitting and are tested in later ones, days apart. "
        "Static templates stay as they are; retrained ones know all genuine samples of earlier sittings; "
        f"updated ones learn from samples that at most {percent(CONFIDENT)} of strangers would match, either "
        f"with no mean farther than {BOUND:g} scales from its enrolment, or without that bound."
    )
    return Table("ageing", "Templates that age", note, pd.DataFrame(rows), pd.DataFrame(shown), labels=2)


def poisoning_table(poisoned: pd.DataFrame, seed: int) -> Table:
    """What an impostor who is sometimes accepted makes of an updated template."""
    rows, shown = [], []
    for bound, of in poisoned.groupby("bound", sort=False):
        names = ("impostor_before", "impostor_after", "owner_before", "owner_after")
        rates = {name: mean_rate(of[name].to_numpy(dtype=np.float64), len(of), seed=seed) for name in names}
        taken = (of["impostor_after"] > of["owner_after"]).to_numpy().astype(np.float64)
        rates["taken_over"] = mean_rate(taken, len(of), seed=seed)
        rows.append({"bound": None if bound == UNBOUND else bound, "victims": len(of)} | columns_of(rates))
        shown.append(
            {"Bound": "none" if bound == UNBOUND else f"{bound:g} scales", "Victims": str(len(of))}
            | {name.replace("_", " ").capitalize(): rate.text() for name, rate in rates.items()}
        )
    note = (
        f"Password: the most successful impostor of each victim tries {ROUNDS} times; victims in whose name "
        "nobody is ever confidently accepted are left out. Taken over: the impostor is accepted more often "
        "than the owner."
    )
    return Table("poisoning", "Poisoned templates", note, pd.DataFrame(rows), pd.DataFrame(shown))


def privacy_table(privacy: pd.DataFrame, seed: int) -> Table:
    """What timings and stolen templates say of the text."""
    rows, shown = [], []
    for (dataset, model), of in privacy.groupby(["dataset", "model"], sort=False):
        if model == TEMPLATE:
            names = {"found": "Pairs of keys found", "chance": "By chance"}
            words = "a stolen template"
        else:
            names = {
                "top_1": "Key guessed",
                "top_5": "Among five guesses",
                "chain_1": "Guessed without timings",
                "chain_5": "Among five without timings",
            }
            words = {OWN: "timings, with the person's own model", OTHERS: "timings, with others' model"}[
                str(model)
            ]
        row: dict[str, Any] = {"dataset": dataset, "model": model, "users": len(of)}
        cells = {"Dataset": dataset_name(str(dataset)), "From": words}
        for name, title in names.items():
            rate = mean_rate(of[name].to_numpy(dtype=np.float64), len(of), seed=seed)
            row |= rate.columns(name)
            cells[title] = rate.text()
        if model != TEMPLATE:
            bits = mean_rate(of["bits"].to_numpy(dtype=np.float64), len(of), seed=seed)
            row |= bits.columns("bits")
            cells["Bits per key"] = f"{bits.value:.2f} ({bits.low:.2f}–{bits.high:.2f})"
        rows.append(row)
        shown.append(cells)
    note = (
        "Keys that `predict_events` recovers from timings alone, and bits per key that timings add to a "
        "Markov chain of keys. A stolen template reveals which pairs of keys its owner typed: as many pairs "
        "are guessed as were typed, namely those that the population explains worst."
    )
    return Table(
        "privacy",
        "What timings and templates give away of the text",
        note,
        pd.DataFrame(rows),
        pd.DataFrame(shown).fillna(NONE),
        labels=2,
    )
