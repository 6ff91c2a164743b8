"""Tables of the verification study: decisions about strangers and the people themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from keydyn.decisions.calibration.operating_point import ACCEPT, REJECT, UNSURE, Targets
from keydyn.evaluation.rates.claim_rates import Claims
from keydyn.evaluation.rates.confidence import Rate
from keydyn.evaluation.rates.error_curve import equal_error_rate
from keydyn.evaluation.rates.likelihood_ratios import cllr, min_cllr
from keydyn.lab.frame.names import dataset_name
from keydyn.lab.frame.tables import Table, fixed
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


def decisions_table(claims: pd.DataFrame, seed: int) -> Table:
    """The main table: errors at the default operating point, and how good the ratios are."""
    rows, shown = [], []
    for dataset, of in whole(claims).groupby("dataset", sort=False):
        row, cells = _errors(of, seed)
        target = Targets().false_match
        within = row["fmr_low"] <= target <= row["fmr_high"]
        ratios = _ratios(of)
        genuine = of[of["genuine"]]
        shares = {name: float((genuine["answer"] == name).mean()) for name in (UNSURE, REJECT)}
        eer = equal_error_rate(genuine["llr"].to_numpy(), of.loc[~of["genuine"], "llr"].to_numpy())
        rows.append(
            {"dataset": dataset, "people": of["typist"].nunique(), "target": target}
            | row
            | {"target_within": within}
            | {f"genuine_{name}": share for name, share in shares.items()}
            | {"eer": eer}
            | ratios
        )
        shown.append(
            {"Dataset": dataset_name(str(dataset)), "People": str(of["typist"].nunique())}
            | cells
            | {"Target within": "yes" if within else "no"}
            | {f"Genuine {name}": f"{100 * share:.1f} %" for name, share in shares.items()}
            | {"EER": f"{100 * eer:.1f} %", "Cllr": fixed(ratios["cllr"]), "min": fixed(ratios["min_cllr"])}
            | {"Cllr / min": fixed(ratios["cllr"] / ratios["min_cllr"], 2)}
        )
    note = (
        f"{OPEN_SET} The operating point is the default: accept where at most {TARGET} of strangers score as "
        f"high, reject where at most {percent(Targets().false_non_match)} of genuine samples score as low. "
        "EER and the minimum of Cllr are those of all claims together."
    )
    return Table("decisions", "Decisions about strangers", note, pd.DataFrame(rows), pd.DataFrame(shown))


def targets_table(claims: pd.DataFrame, seed: int) -> Table:
    """What other targets would have given."""
    rows, shown = [], []
    for dataset, of in whole(claims).groupby("dataset", sort=False):
        for target in TARGETS:
            row, cells = _errors(of.assign(answer=_at(of, target)), seed)
            rows.append({"dataset": dataset, "target": target} | row)
            shown.append({"Dataset": dataset_name(str(dataset)), "Target": percent(target)} | cells)
    note = f"{OPEN_SET} A claim is accepted where the stated false-match rate is not above the target."
    return Table(
        "targets",
        "Stated and measured false-match rates",
        note,
        pd.DataFrame(rows),
        pd.DataFrame(shown),
        labels=2,
    )


def keys_table(claims: pd.DataFrame, seed: int) -> Table:
    """How much has to be typed: errors after so many keys."""
    rows, shown = [], []
    some = claims[claims["enrolled"] == ALL]
    for (dataset, length), of in some.groupby(["dataset", "length"], sort=False):
        row, cells = _errors(of, seed)
        keys = int(str(length)) if length != WHOLE else int(of["keys"].median())
        rows.append({"dataset": dataset, "keys": keys, "whole": length == WHOLE} | row | _ratios(of))
        what = f"{keys}" if length != WHOLE else f"{keys} (whole samples)"
        shown.append(
            {"Dataset": dataset_name(str(dataset)), "Keys": what}
            | cells
            | {"Cllr": fixed(_ratios(of)["cllr"])}
        )
    return Table(
        "keys",
        "Decisions by the number of keys",
        f"{OPEN_SET} The target is {TARGET}.",
        pd.DataFrame(rows),
        pd.DataFrame(shown),
        labels=2,
    )


def few_samples_table(claims: pd.DataFrame, seed: int) -> Table:
    """What is lost if people enrol with a single sample."""
    rows, shown = [], []
    some = claims[claims["length"] == WHOLE]
    for (dataset, enrolled), of in some.groupby(["dataset", "enrolled"], sort=False):
        row, cells = _errors(of, seed)
        rows.append({"dataset": dataset, "enrolled": enrolled} | row | _ratios(of))
        words = {ALL: "all training samples", ONE: "one sample"}[str(enrolled)]
        shown.append(
            {"Dataset": dataset_name(str(dataset)), "Enrolled with": words}
            | cells
            | {"Cllr": fixed(_ratios(of)["cllr"])}
        )
    note = (
        f"{OPEN_SET} The target is {TARGET}. The calibration does not know how many samples somebody "
        "enrolled with."
    )
    return Table(
        "few_samples",
        "Decisions after enrolment with one sample",
        note,
        pd.DataFrame(rows),
        pd.DataFrame(shown),
        labels=2,
    )


def identification_table(identified: pd.DataFrame, seed: int) -> Table:
    """Who is named, when it may be nobody."""
    rows, shown = [], []
    for dataset, of in identified.groupby("dataset", sort=False):
        own, strange = of[~of["stranger"]], of[of["stranger"]]
        figures = {
            "identified": _by_person(own, "right", seed),
            "first": _by_person(own, "first", seed),
            "strangers_named": _by_person(strange, "named", seed),
        }
        rows.append({"dataset": dataset} | columns_of(figures))
        shown.append(
            {
                "Dataset": dataset_name(str(dataset)),
                "Named rightly": figures["identified"].text(),
                "First candidate is right": figures["first"].text(),
                "Strangers named": figures["strangers_named"].text(),
            }
        )
    note = (
        f"{OPEN_SET} The answer may be nobody. Named rightly: samples of enrolled people for which their "
        "name is the answer. First candidate is right: the same if somebody had to be named. Strangers "
        "named: samples of strangers for which somebody is named."
    )
    return Table("identify", "Identification among ten", note, pd.DataFrame(rows), pd.DataFrame(shown))


def _at(of: pd.DataFrame, target: float) -> Any:
    return np.where(of["false_match_rate"] <= target * (1 + 1e-9), ACCEPT, UNSURE)


def _errors(of: pd.DataFrame, seed: int) -> tuple[dict[str, Any], dict[str, str]]:
    """The false-match rate and the share of genuine samples accepted, as values and as text."""
    rates: Mapping[str, Rate] = {
        name: _rate(of[of["genuine"] == (name == GENUINE)], seed) for name in (FALSE, GENUINE)
    }
    values = columns_of(rates)
    counts = {"false_claims": int((~of["genuine"]).sum()), "genuine_claims": int(of["genuine"].sum())}
    cells = {"Strangers accepted": rates[FALSE].text(2), "Genuine accepted": rates[GENUINE].text()}
    return counts | values, cells


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
