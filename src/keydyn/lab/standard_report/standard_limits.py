"""The limits that standards set on error rates, and whether a test shows that they are met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Truths
from keydyn.evaluation.rates.confidence import Rate, mean_rate, percentage
from keydyn.evaluation.rates.error_curve import ErrorCurve
from keydyn.evaluation.rates.requirements import limit_shown
from keydyn.evaluation.scored_claims import ScoredClaims
from keydyn.evaluation.scores import Scores
from keydyn.lab.frame.tables import Column, Table, rate_column

FMR, FNMR, FAR, FRR, IAPAR = "fmr", "fnmr", "far", "frr", "iapar"
ONE_IN_TEN_THOUSAND = 1 / 10_000
NIST, PROOFING = "NIST SP 800-63B-4", "NIST SP 800-63A-4, remote proofing"
FIDO = "FIDO Biometrics Requirements"
UNBROKEN = "\u00a0"


@dataclass(frozen=True)
class Limit:
    """A limit on a rate, with the document that sets it; with `below`, the rate must be strictly less."""

    rate: str
    most: float
    source: str
    below: bool = False

    @property
    def text(self) -> str:
        """The limit as text: "FMR ≤ 0.01 %"."""
        return f"{self.rate.upper()} {'<' if self.below else '≤'} {100 * self.most:g} %"


LIMITS = (
    Limit(FMR, ONE_IN_TEN_THOUSAND, NIST),
    Limit(FNMR, 0.05, NIST, below=True),
    Limit(FAR, ONE_IN_TEN_THOUSAND, FIDO),
    Limit(FRR, 0.03, FIDO),
    Limit(IAPAR, 0.15, NIST, below=True),
    Limit(IAPAR, 0.07, PROOFING, below=True),
)


@dataclass(frozen=True, eq=False)
class Point:
    """An operating point: its name and policy, and the share of errors of each person by rate."""

    name: str
    policy: str
    shares: Mapping[str, Any]

    def with_failures(self, to_acquire: float) -> Point:
        """Add false acceptance and rejection of single attempts to FMR and FNMR.

        A failure to acquire counts as a rejection (ISO/IEC 19795-1).
        """
        taken = 1.0 - to_acquire
        further: dict[str, list[float]] = {}
        if FMR in self.shares:
            further[FAR] = [taken * share for share in self.shares[FMR]]
        if FNMR in self.shares:
            further[FRR] = [to_acquire + taken * share for share in self.shares[FNMR]]
        return Point(self.name, self.policy, {**self.shares, **further})


def point_of_scores(name: str, scores: Scores, most: float = ONE_IN_TEN_THOUSAND) -> Point:
    """The most lenient common threshold at which the share of matching impostors is at most `most`."""
    query, template = np.nonzero(scores.trials)
    owner, user = scores.owners[query], scores.users[template]
    return _point(name, scores.normalised[query, template], owner == user, owner, most)[0]


def point_of_claims(name: str, claims: ScoredClaims) -> tuple[Point, list[dict[str, Any]]]:
    """The point of `point_of_scores` for claims of any system with known people, and the attacks there."""
    plain = claims.plain
    point, threshold = _point(name, plain.score, plain.genuine, plain.typist, ONE_IN_TEN_THOUSAND)
    attacks = []
    for place, attack in enumerate(claims.attacks):
        tried = claims.where(np.asarray(claims.attack) == place)
        shares = _by_person(tried.score >= threshold, tried.claimed)
        words = {"attack": f"{attack} ({name})", "family": name, "knowledge": "not known from the scores"}
        attacks.append(words | {"attempts": len(tried), "shares": shares})
    return point, attacks


def _point(name: str, score: Floats, genuine: Truths, typist: Any, most: float) -> tuple[Point, float]:
    curve = ErrorCurve.of(score[genuine], score[~genuine])
    threshold = float(curve.thresholds[np.searchsorted(curve.fmr, most, side="right") - 1])
    accepted = score >= threshold
    shares = {
        FMR: _by_person(accepted[~genuine], typist[~genuine]),
        FNMR: _by_person(~accepted[genuine], typist[genuine]),
    }
    policy = (
        f"one threshold for everybody, chosen on these scores so that at most {100 * most:g} % of impostors' "
        "claims match. A threshold chosen on other people would do worse."
    )
    return Point(name, policy, shares), threshold


def _by_person(wrong: Truths, person: Any) -> list[float]:
    """The share of each person's claims with errors."""
    shares: list[float] = pd.Series(wrong, dtype=float).groupby(person, sort=False).mean().tolist()
    return shares


def rate_over_people(shares: Sequence[float], seed: int = 0) -> Rate:
    """The mean share with its interval over people; without errors, a bound of 3 / people."""
    return mean_rate(np.asarray(shares, dtype=np.float64), len(shares), seed=seed)


def points_table(points: Sequence[Point], seed: int = 0) -> Table:
    """FMR, FNMR, FAR and FRR at each operating point."""
    rows = []
    for point in points:
        for rate in (FMR, FNMR, FAR, FRR):
            if point.shares.get(rate):
                found = rate_over_people(point.shares[rate], seed)
                rows.append(
                    {"point": point.name, "rate": rate, "people": len(point.shares[rate])}
                    | found.columns("share")
                )
    names = ["point", "rate", "people", "share", "share_low", "share_high"]
    columns = [
        Column("Operating point", "point"),
        Column("Rate", "rate", str.upper),
        Column("People", "people", lambda n: f"{n:,}"),
        rate_column("Observed", "share", "people", 2),
    ]
    note = (
        "Mean of people's own rates, with 95 % intervals over people (bootstrap). FMR counts impostors by "
        "the person who typed, FNMR by the owner. FAR and FRR count a failure to acquire as a rejection; one "
        "attempt is one transaction. No error among n people is < 3/n."
    )
    return Table(
        "operating_points",
        "Error rates at the operating points",
        note,
        pd.DataFrame(rows, columns=names),
        columns,
        2,
    )


def limits_table(points: Sequence[Point], attacks: Mapping[str, Sequence[float]]) -> Table:
    """The outcome for every limit at every operating point: met, not met, or how many people are needed.

    `attacks` maps kinds of attack to the share of accepted attempts on each person.
    """
    rows = [
        _judged(point.name, limit, point.shares[limit.rate])
        for point in points
        for limit in LIMITS
        if point.shares.get(limit.rate)
    ]
    worst = max(attacks, key=lambda name: float(np.mean(attacks[name])), default=None)
    if worst is not None:
        of_attacks = [limit for limit in LIMITS if limit.rate == IAPAR]
        rows += [_judged(f"worst attack: {worst}", limit, attacks[worst]) for limit in of_attacks]
    names = ["point", "limit", "source", "people", "observed", "bound", "needed", "outcome"]
    columns = [
        Column("Operating point", "point"),
        Column("Limit", "limit", lambda text: text.replace(" ", UNBROKEN)),
        Column("Set by", "source"),
        Column("People", "people", lambda n: f"{n:,}"),
        Column("Observed", "observed", lambda rate: f"{percentage(rate, 2)} %"),
        Column("Below, with 95 % confidence", "bound", lambda rate: f"{percentage(rate, 2, upwards=True)} %"),
        Column("Claim", "outcome", bold=lambda line: line["outcome"] == "met"),
    ]
    note = (
        "A claim is met if the exact binomial bound over people, one attempt of each, is within the limit; "
        "not met if the observed rate is above it. Otherwise this many people cannot show it; the number "
        "that could is given for the rate that was observed."
    )
    frame = pd.DataFrame(rows, columns=names).astype({"needed": "Int64"})
    return Table("limits", "Claims", note, frame, columns, labels=2)


def _judged(point: str, limit: Limit, shares: Sequence[float]) -> dict[str, Any]:
    found = limit_shown(shares, limit.most)
    return {
        "point": point,
        "limit": limit.text,
        "source": limit.source,
        "people": found.people,
        "observed": found.rate,
        "bound": found.bound,
        "needed": found.needed,
        "outcome": found.text(),
    }
