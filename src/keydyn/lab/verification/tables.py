"""Tables of the verification study: decisions, attacks, copies, ageing, poisoning and fairness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from keydyn.decisions.decision import ACCEPT, REJECT, UNSURE, Targets
from keydyn.decisions.enrolled import BOUND
from keydyn.decisions.enrolling import CONFIDENT
from keydyn.evaluation.rates.confidence import Claims, Rate, mean_rate
from keydyn.evaluation.rates.error_curve import equal_error_rate
from keydyn.evaluation.rates.fairness import ERRORS, error_rates_by
from keydyn.evaluation.rates.likelihood_ratios import cllr, min_cllr
from keydyn.lab.frame.tables import (
    DATASET,
    NONE,
    Column,
    Table,
    fixed,
    is_missing,
    number_column,
    rate_column,
    rate_text,
    share_column,
)
from keydyn.lab.verification.attacks import COPY, FRESH, ROBOT, STOPPED_BY
from keydyn.lab.verification.measurements import ALL, ENROLLED, ONE, TARGETS, WHOLE
from keydyn.lab.verification.security import ROUNDS, UNBOUND

OPEN_SET = (
    "Open set: impostors are strangers, from whom nothing was learnt and who are neither enrolled nor in the "
    f"cohort; at most {ENROLLED} people are enrolled at a time. Intervals are over people, in both roles."
)
# Columns of the CSV file with the rates at which false and genuine claims are accepted.
FALSE, GENUINE = "fmr", "genuine_accepted"


def percent(rate: float) -> str:
    """A round rate in per cent: 1 %."""
    return f"{100 * rate:.3g} %"


TARGET = percent(Targets().false_match)


def whole(claims: pd.DataFrame) -> pd.DataFrame:
    """Claims with whole samples, after enrolment with all training samples."""
    return claims[(claims["length"] == WHOLE) & (claims["enrolled"] == ALL)]


ERROR_COLUMNS = (
    rate_column("Strangers accepted", FALSE, "false_claims", digits=2),
    rate_column("Genuine accepted", GENUINE, "genuine_claims"),
)
CLLR = number_column("Cllr", "cllr")


def decisions_table(claims: pd.DataFrame, seed: int) -> Table:
    """The main table: errors at the default operating point, and the quality of the likelihood ratios."""
    rows = []
    for dataset, of in whole(claims).groupby("dataset", sort=False):
        errors, target = _errors(of, seed), Targets().false_match
        genuine = of[of["genuine"]]
        shares = {f"genuine_{name}": float((genuine["answer"] == name).mean()) for name in (UNSURE, REJECT)}
        eer = equal_error_rate(genuine["llr"].to_numpy(), of.loc[~of["genuine"], "llr"].to_numpy())
        rows.append(
            {"dataset": dataset, "people": of["typist"].nunique(), "target": target}
            | errors
            | {"target_within": errors["fmr_low"] <= target <= errors["fmr_high"]}
            | shares
            | {"eer": eer}
            | _ratios(of)
        )
    note = (
        f"{OPEN_SET} The operating point is the default: accept where at most {TARGET} of strangers score as "
        f"high, reject where at most {percent(Targets().false_non_match)} of genuine samples score as low. "
        "EER and the minimum of Cllr are those of all claims together."
    )
    columns = [
        *(DATASET, Column("People", "people"), *ERROR_COLUMNS, Column("Target within", "target_within")),
        *(share_column("Genuine unsure", "genuine_unsure"), share_column("Genuine reject", "genuine_reject")),
        *(share_column("EER", "eer"), CLLR, number_column("min", "min_cllr")),
        Column("Cllr / min", ("cllr", "min_cllr"), lambda cost, least: fixed(cost / least, 2)),
    ]
    return Table("decisions", "Decisions about strangers", note, pd.DataFrame(rows), columns)


def targets_table(claims: pd.DataFrame, seed: int) -> Table:
    """The errors at other target rates."""
    rows = []
    for dataset, of in whole(claims).groupby("dataset", sort=False):
        for target in TARGETS:
            answers = np.where(of["false_match_rate"] <= target * (1 + 1e-9), ACCEPT, UNSURE)
            rows.append({"dataset": dataset, "target": target} | _errors(of.assign(answer=answers), seed))
    note = f"{OPEN_SET} A claim is accepted where the stated false-match rate is not above the target."
    columns = [DATASET, Column("Target", "target", percent), *ERROR_COLUMNS]
    title = "Stated and measured false-match rates"
    return Table("targets", title, note, pd.DataFrame(rows), columns, labels=2)


def keys_table(claims: pd.DataFrame, seed: int) -> Table:
    """The errors by the number of keys typed."""
    rows = []
    some = claims[claims["enrolled"] == ALL]
    for (dataset, length), of in some.groupby(["dataset", "length"], sort=False):
        keys = int(str(length)) if length != WHOLE else int(of["keys"].median())
        labels = {"dataset": dataset, "keys": keys, "whole": length == WHOLE}
        rows.append(labels | _errors(of, seed) | _ratios(of))
    typed = Column(
        "Keys", ("keys", "whole"), lambda keys, all_: f"{keys} (whole samples)" if all_ else f"{keys}"
    )
    return Table(
        "keys",
        "Decisions by the number of keys",
        f"{OPEN_SET} The target is {TARGET}.",
        pd.DataFrame(rows),
        [DATASET, typed, *ERROR_COLUMNS, CLLR],
        labels=2,
    )


def few_samples_table(claims: pd.DataFrame, seed: int) -> Table:
    """The errors after enrolment with a single sample, compared with all training samples."""
    some = claims[claims["length"] == WHOLE]
    rows = [
        {"dataset": dataset, "enrolled": enrolled} | _errors(of, seed) | _ratios(of)
        for (dataset, enrolled), of in some.groupby(["dataset", "enrolled"], sort=False)
    ]
    note = (
        f"{OPEN_SET} The target is {TARGET}. The calibration does not take into account how many samples a "
        "person enrolled with."
    )
    words = {ALL: "all training samples", ONE: "one sample"}
    columns = [DATASET, Column("Enrolled with", "enrolled", lambda with_: words[with_]), *ERROR_COLUMNS, CLLR]
    title = "Decisions after enrolment with one sample"
    return Table("few_samples", title, note, pd.DataFrame(rows), columns, labels=2)


def identification_table(identified: pd.DataFrame, seed: int) -> Table:
    """The results of identification when the answer may be that no enrolled person typed."""
    rows = []
    for dataset, of in identified.groupby("dataset", sort=False):
        own, strange = of[~of["stranger"]], of[of["stranger"]]
        figures = {
            "identified": _by_person(own, "right", seed),
            "first": _by_person(own, "first", seed),
            "strangers_named": _by_person(strange, "named", seed),
        }
        counts = {"samples": len(own), "strangers_samples": len(strange)}
        rows.append({"dataset": dataset} | columns_of(figures) | counts)
    note = (
        f"{OPEN_SET} The answer may be nobody. Named rightly: samples of enrolled people for which their "
        "name is the answer. First candidate is right: the same if a name had to be given. Strangers "
        "named: samples of strangers for which a name is given."
    )
    columns = [
        DATASET,
        rate_column("Named rightly", "identified", "samples"),
        rate_column("First candidate is right", "first", "samples"),
        rate_column("Strangers named", "strangers_named", "strangers_samples"),
    ]
    return Table("identify", "Identification among ten", note, pd.DataFrame(rows), columns)


def _errors(of: pd.DataFrame, seed: int) -> dict[str, Any]:
    """The false-match rate and the share of genuine samples accepted, with the number of claims."""
    rates = {name: _rate(of[of["genuine"] == (name == GENUINE)], seed) for name in (FALSE, GENUINE)}
    counts = {"false_claims": int((~of["genuine"]).sum()), "genuine_claims": int(of["genuine"].sum())}
    return counts | columns_of(rates)


def _rate(of: pd.DataFrame, seed: int) -> Rate:
    claims = Claims(of["claimed"].to_numpy(), of["typist"].to_numpy(), seed=seed)
    return claims.rate((of["answer"] == ACCEPT).to_numpy())


def _by_person(of: pd.DataFrame, what: str, seed: int) -> Rate:
    typist = of["typist"].to_numpy()
    return Claims(typist, typist, seed=seed).rate(of[what].to_numpy(dtype=bool))


def _ratios(of: pd.DataFrame) -> dict[str, float]:
    genuine, others = of.loc[of["genuine"], "llr"].to_numpy(), of.loc[~of["genuine"], "llr"].to_numpy()
    return {"cllr": cllr(genuine, others), "min_cllr": min_cllr(genuine, others)}


def columns_of(rates: Mapping[str, Rate]) -> dict[str, float | None]:
    """The columns of a CSV file for several rates."""
    return {column: value for name, rate in rates.items() for column, value in rate.columns(name).items()}


def attacks_table(attacks: pd.DataFrame, seed: int) -> Table:
    """The success rate of each attack, and the defence that stops it."""
    rows = []
    for (dataset, attack), of in attacks.groupby(["dataset", "attack"], sort=False):
        tries = int(of["tries"].sum())
        labels = {"dataset": dataset, "attack": attack, "victims": len(of), "tries": tries}
        rows.append(labels | means_over_people(of, ("accepted", "noticed", "passed"), tries, seed))
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
    return Table("attacks", "What attackers get", note, pd.DataFrame(rows), columns, labels=2)


def copies_table(copies: pd.DataFrame, seed: int) -> Table:
    """False alarms and detections of copies and of too regular times."""
    rows = []
    for (dataset, kind, jitter), of in copies.groupby(["dataset", "kind", "jitter"], sort=False):
        tries = int(of["tries"].sum())
        shares = of[["copies", "regular"]].div(of["tries"], axis=0)
        labels = {"dataset": dataset, "kind": kind, "jitter": jitter, "tries": tries}
        rows.append(labels | means_over_people(shares, ("copies", "regular"), tries, seed))
    note = (
        "Copies are of known samples: half of each person's, or the first 20. Robots type at a constant "
        "pace. The limits were set while looking at these people, so that others may see more false alarms."
    )
    columns = [
        *(DATASET, Column("Samples", ("kind", "jitter"), _samples), Column("Number", "tries")),
        rate_column("Called copies", "copies", "tries"),
        rate_column("Called too regular", "regular", "tries"),
    ]
    return Table("copies", "Copies and robots, and false alarms", note, pd.DataFrame(rows), columns, labels=2)


def _samples(kind: str, jitter: float) -> str:
    words = {FRESH: "fresh samples", COPY: "copies", ROBOT: "robots"}[kind]
    return words if kind == FRESH else f"{words}, jitter {jitter:g} ms"


def ageing_table(ageing: pd.DataFrame, seed: int) -> Table:
    """Acceptance by sitting after enrolment in the first one."""
    rows = []
    for (kind, sitting), of in ageing.groupby(["kind", "sitting"], sort=False):
        labels = {"kind": kind, "sitting": int(str(sitting)) + 1, "people": len(of)}
        rows.append(labels | means_over_people(of, ("genuine", "impostor"), len(of), seed))
    note = (
        f"{OPEN_SET} Password: people enrol in the first sitting and are tested in later ones, days apart. "
        "Static templates stay as they are; retrained ones use all genuine samples of earlier sittings; "
        f"updated ones learn from samples that at most {percent(CONFIDENT)} of strangers would match, either "
        f"with no mean farther than {BOUND:g} scales from its enrolment, or without that bound."
    )
    columns = [
        *(Column("Template", "kind"), Column("Sitting", "sitting")),
        rate_column("Genuine accepted", "genuine", "people"),
        rate_column("Impostors accepted", "impostor", "people"),
    ]
    return Table("ageing", "Templates that age", note, pd.DataFrame(rows), columns, labels=2)


def poisoning_table(poisoned: pd.DataFrame, seed: int) -> Table:
    """The effect of an impostor who is sometimes accepted on an updated template."""
    names = ("impostor_before", "impostor_after", "owner_before", "owner_after", "taken_over")
    poisoned = poisoned.assign(taken_over=poisoned["impostor_after"] > poisoned["owner_after"])
    rows = []
    for bound, of in poisoned.groupby("bound", sort=False):
        labels = {"bound": None if bound == UNBOUND else bound, "victims": len(of)}
        rows.append(labels | means_over_people(of, names, len(of), seed))
    note = (
        f"Password: the most successful impostor of each victim tries {ROUNDS} times; victims in whose name "
        "no one is ever confidently accepted are left out. Taken over: the impostor is accepted more often "
        "than the owner."
    )
    columns = [
        Column("Bound", "bound", lambda bound: "none" if is_missing(bound) else f"{bound:g} scales"),
        Column("Victims", "victims"),
        *(rate_column(name.replace("_", " ").capitalize(), name, "victims") for name in names),
    ]
    return Table("poisoning", "Poisoned templates", note, pd.DataFrame(rows), columns)


def means_over_people(of: pd.DataFrame, names: Iterable[str], trials: int, seed: int) -> dict[str, Any]:
    """The means of some columns over rows, with their intervals, as columns of a CSV file."""
    return columns_of({name: mean_rate(of[name].to_numpy(np.float64), trials, seed=seed) for name in names})


def fairness_rates(claims: pd.DataFrame, speed: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Errors by typing speed and for the worst tenth of users, by dataset; `speed` has median intervals."""
    speeds = speed.set_index(["dataset", "user"])["median_interval"]
    rates = []
    for dataset, of in whole(claims).groupby("dataset", sort=False):
        decisions = of.assign(user=of["claimed"], median_interval=of["claimed"].map(speeds[dataset]))
        rates.append(error_rates_by(decisions, ["median_interval"], seed).assign(dataset=dataset))
    return pd.concat(rates, ignore_index=True)


def fairness_table(rates: pd.DataFrame) -> Table:
    """The rates of `fairness_rates` as a table with one line per group."""
    note = (
        f"{OPEN_SET} Means over the users claimed, at the default operating point; unsure counts as refused. "
        "Thirds are of users by their median interval, so that the lowest third types fastest. The worst "
        "tenth is chosen on every other decision and reported on the rest."
    )
    title, rate = "Error rates by typing speed, and of the worst tenth", ("rate", "low", "high", "trials")
    columns = [
        *(DATASET, Column("By", "column", lambda name: name.replace("_", " ") or NONE)),
        *(Column("Group", "group"), Column("Users", "users")),
        *(Column(heading, rate, rate_text, of=error) for error, heading in ERRORS.items()),
    ]
    return Table("fairness", title, note, rates, columns, labels=3, across="error")
