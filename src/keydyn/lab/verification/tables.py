"""Tables of the verification study: decisions about strangers and the people themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from keydyn.decisions.calibration.operating_point import ACCEPT, REJECT, UNSURE, Targets
from keydyn.evaluation.rates.confidence import Claims, Rate
from keydyn.evaluation.rates.error_curve import equal_error_rate
from keydyn.evaluation.rates.likelihood_ratios import cllr, min_cllr
from keydyn.lab.frame.tables import (
    DATASET,
    Column,
    Table,
    fixed,
    number_column,
    rate_column,
    share_column,
    table_of,
)
from keydyn.lab.verification.measurements import ALL, ENROLLED, ONE, TARGETS, WHOLE

OPEN_SET = (
    "Open set: impostors are strangers, from whom nothing was learnt and who are neither enrolled nor in the "
    f"cohort; at most {ENROLLED} people are enrolled at a time. Intervals are over people, in both roles."
)
# False claims and genuine ones: their figures, as columns of the CSV file.
FALSE, GENUINE = "fmr", "genuine_accepted"


def percent(rate: float) -> str:
    """A round rate: 1 %."""
    return f"{100 * rate:.3g} %"


TARGET = percent(Targets().false_match)


def whole(claims: pd.DataFrame) -> pd.DataFrame:
    """Claims with whole samples, after enrolment with all that there are."""
    return claims[(claims["length"] == WHOLE) & (claims["enrolled"] == ALL)]


ERRORS = (
    rate_column("Strangers accepted", FALSE, "false_claims", digits=2),
    rate_column("Genuine accepted", GENUINE, "genuine_claims"),
)
CLLR = number_column("Cllr", "cllr")


def decisions_table(claims: pd.DataFrame, seed: int) -> Table:
    """The main table: errors at the default operating point, and how good the ratios are."""
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
        *(DATASET, Column("People", "people"), *ERRORS, Column("Target within", "target_within")),
        *(share_column("Genuine unsure", "genuine_unsure"), share_column("Genuine reject", "genuine_reject")),
        *(share_column("EER", "eer"), CLLR, number_column("min", "min_cllr")),
        Column("Cllr / min", ("cllr", "min_cllr"), lambda cost, least: fixed(cost / least, 2)),
    ]
    return table_of("decisions", "Decisions about strangers", note, pd.DataFrame(rows), columns)


def targets_table(claims: pd.DataFrame, seed: int) -> Table:
    """What other targets would have given."""
    rows = [
        {"dataset": dataset, "target": target} | _errors(of.assign(answer=_at(of, target)), seed)
        for dataset, of in whole(claims).groupby("dataset", sort=False)
        for target in TARGETS
    ]
    note = f"{OPEN_SET} A claim is accepted where the stated false-match rate is not above the target."
    columns = [DATASET, Column("Target", "target", percent), *ERRORS]
    title = "Stated and measured false-match rates"
    return table_of("targets", title, note, pd.DataFrame(rows), columns, labels=2)


def keys_table(claims: pd.DataFrame, seed: int) -> Table:
    """Errors by the number of keys typed."""
    rows = []
    some = claims[claims["enrolled"] == ALL]
    for (dataset, length), of in some.groupby(["dataset", "length"], sort=False):
        keys = int(str(length)) if length != WHOLE else int(of["keys"].median())
        labels = {"dataset": dataset, "keys": keys, "whole": length == WHOLE}
        rows.append(labels | _errors(of, seed) | _ratios(of))
    typed = Column(
        "Keys", ("keys", "whole"), lambda keys, all_: f"{keys} (whole samples)" if all_ else f"{keys}"
    )
    return table_of(
        "keys",
        "Decisions by the number of keys",
        f"{OPEN_SET} The target is {TARGET}.",
        pd.DataFrame(rows),
        [DATASET, typed, *ERRORS, CLLR],
        labels=2,
    )


def few_samples_table(claims: pd.DataFrame, seed: int) -> Table:
    """What is lost if people enrol with a single sample."""
    some = claims[claims["length"] == WHOLE]
    rows = [
        {"dataset": dataset, "enrolled": enrolled} | _errors(of, seed) | _ratios(of)
        for (dataset, enrolled), of in some.groupby(["dataset", "enrolled"], sort=False)
    ]
    note = (
        f"{OPEN_SET} The target is {TARGET}. The calibration does not know how many samples a person "
        "enrolled with."
    )
    words = {ALL: "all training samples", ONE: "one sample"}
    columns = [DATASET, Column("Enrolled with", "enrolled", lambda with_: words[with_]), *ERRORS, CLLR]
    title = "Decisions after enrolment with one sample"
    return table_of("few_samples", title, note, pd.DataFrame(rows), columns, labels=2)


def identification_table(identified: pd.DataFrame, seed: int) -> Table:
    """Who is named, when the answer may be nobody."""
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
    return table_of("identify", "Identification among ten", note, pd.DataFrame(rows), columns)


def _at(of: pd.DataFrame, target: float) -> Any:
    return np.where(of["false_match_rate"] <= target * (1 + 1e-9), ACCEPT, UNSURE)


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
    """Of several rates, the columns of a CSV file."""
    return {column: value for name, rate in rates.items() for column, value in rate.columns(name).items()}
