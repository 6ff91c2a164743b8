"""The decisions that `keydyn fit` and `keydyn verify` would have made, at the stated rate, on strangers.

Users are divided into groups. Each group in turn is left out: its people are not enrolled, and no population,
calibration or adjustment is learnt from them. Their later samples are sent in the names of enrolled people.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.decision import ROUNDING
from keydyn.decisions.verifier import Verifier
from keydyn.evaluation.protocols.protocol import Chronological, OpenSet, Protocol
from keydyn.evaluation.rates.confidence import Claims, percentage
from keydyn.keystrokes.one_sample import without_impossible
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.report import Section
from keydyn.lab.frame.tables import Table, plain_table
from keydyn.lab.standard_report.attack_rates import accepted_by_person, forged_claims

GROUPS = 4
# The largest number of people in whose names each sample of a stranger is sent.
MOST_CLAIMED = 20
ANSWERS = ("accept", "unsure", "reject")
# The false-match rates of the default operating point of `verify` and of its strictest level.
STATED = (0.01, 0.001)
Same = Collection[frozenset[str]]


def decided(
    samples: Samples,
    protocol: Protocol,
    chosen: Callable[[Samples], tuple[Background, str]],
    same: Same,
    attacks_seed: int | None = None,
) -> dict[str, Any]:
    """The numbers of answers by kind of claim, genuine or a stranger's, for run.json.

    `chosen` returns the background that `keydyn fit` uses for the samples of people who are not left out, and
    where it comes from. If it cannot, `fit` could not decide either, and `left_out` says why. Users in a pair
    of `same` are likely the same person, and do not claim to be each other. With `attacks_seed`, the seed of
    forgeries, these are sent in the names of people with genuine claims.
    """
    typed = replace(samples, feature_table=None)
    split = _enrolling_once(protocol).splits(typed)[0]
    codes, users = typed.people
    groups = np.arange(len(users)) % min(GROUPS, len(users))
    rows: list[tuple[int, int, str, float, bool]] = []
    origins: list[str] = []
    attacks: list[pd.DataFrame] = []
    for group in range(int(groups.max()) + 1):
        training = split.train & (groups[codes] != group)
        enrolled = np.unique(codes[training]).tolist()
        try:
            background, origin = chosen(without_impossible(typed[training]))
        except ValueError as error:
            return {"left_out": str(error), "claims": []}
        origins.append(origin)
        verifier = Verifier.of(background)
        verifier.enrol_many({str(users[u]): typed[training & (codes == u)] for u in enrolled}, n_jobs=-1)
        genuine = (group + 1) % (int(groups.max()) + 1)
        for place, claimed in enumerate(enrolled):
            own = split.genuine & (codes == claimed) & (groups[claimed] == genuine)
            near = [u for u in np.flatnonzero(groups == group).tolist() if _tries(u, place, len(enrolled))]
            strange = [u for u in near if frozenset((str(users[u]), str(users[claimed]))) not in same]
            asked = np.flatnonzero(own | (split.impostor & np.isin(codes, strange)))
            if len(asked):
                answers = verifier.verify_many(str(users[claimed]), typed[asked])
                rows += [
                    (
                        claimed,
                        int(codes[n]),
                        one.answer,
                        one.false_match_rate,
                        one.typed.reason in one.reasons,
                    )
                    for n, one in zip(asked, answers, strict=True)
                ]
        if attacks_seed is not None:
            victims = {
                str(users[u]): (typed[training & (codes == u)], typed[split.genuine & (codes == u)])
                for u in enrolled
                if groups[u] == genuine and (split.genuine & (codes == u)).any()
            }
            attacks.append(forged_claims(verifier, victims, attacks_seed))
    claims = pd.DataFrame(rows, columns=["claimed", "typist", "answer", "false_match_rate", "forged"])
    found: dict[str, Any] = {"population": " or ".join(dict.fromkeys(origins)), "claims": _shares(claims)}
    found["forged"] = int(claims.loc[claims["claimed"] == claims["typist"], "forged"].sum())
    found["people"] = [_errors_of_people(claims, stated) for stated in STATED]
    return found | ({"attacks": accepted_by_person(pd.concat(attacks))} if attacks else {})


def _enrolling_once(protocol: Protocol) -> Protocol:
    """The protocol if it enrols every person once; otherwise one that enrols the first half of samples."""
    inner = protocol.inner if isinstance(protocol, OpenSet) else protocol
    return inner if inner.name in ("chronological", "enrolment", "across") else Chronological()


def _tries(stranger: int, place: int, n_enrolled: int) -> bool:
    """Whether a stranger claims to be the person at this place; each stranger tries different people."""
    return (place - stranger) % n_enrolled < MOST_CLAIMED


def _shares(claims: pd.DataFrame) -> list[dict[str, Any]]:
    own = claims["claimed"] == claims["typist"]
    rows = []
    for name, some in (("genuine", claims[own]), ("strangers", claims[~own])):
        if len(some) == 0:
            continue
        people = Claims(some["claimed"].to_numpy(), some["typist"].to_numpy())
        row: dict[str, Any] = {"claims": name, "number": len(some)}
        for answer in ANSWERS:
            row |= people.rate((some["answer"] == answer).to_numpy()).columns(answer)
        rows.append(row)
    return rows


def _errors_of_people(claims: pd.DataFrame, stated: float) -> dict[str, Any]:
    """The share of each typist's claims decided wrongly, at this stated false-match rate.

    A decision is wrong if a genuine claim is not accepted, or another's claim is.
    """
    own = claims["claimed"] == claims["typist"]
    accepted = (claims["answer"] == ANSWERS[0]) & (claims["false_match_rate"] <= stated * ROUNDING)
    shares = {
        name: wrong[which].astype(float).groupby(claims.loc[which, "typist"], sort=True).mean().tolist()
        for name, which, wrong in (("fmr", ~own, accepted), ("fnmr", own, ~accepted))
    }
    return {"stated": stated, **shares}


def decisions_table(facts: Mapping[str, Any]) -> Table | None:
    """The answers by kind of claim; None if there are no decisions."""
    rows = facts.get("decisions", {}).get("claims", [])
    if not rows:
        return None
    shown = [
        {"claims": row["claims"], "number": row["number"]} | {name: _share(row, name) for name in ANSWERS}
        for row in rows
    ]
    forged = facts["decisions"].get("forged", 0)
    noticed = f" Rejected because no hand seems to have typed them: {forged} genuine ones." if forged else ""
    return plain_table(
        "decisions",
        "Decisions at a stated false-match rate of 1 %",
        "As keydyn fit and keydyn verify decide; population and calibration: "
        f"{facts['decisions']['population']}. Strangers are not enrolled, and nothing is learnt from them. "
        f"In brackets 95 % intervals over people.{noticed}",
        pd.DataFrame(shown),
    )


def _share(row: Mapping[str, Any], name: str) -> str:
    low, high = (percentage(row[f"{name}_{end}"], 1) for end in ("low", "high"))
    return f"{percentage(row[name], 1)} % ({low}–{high})"


def decisions_section(table: Table) -> Section:
    """The section of the report about decisions."""
    text = (
        "A claim is accepted where at most one stranger in a hundred would score as high, and rejected where "
        "at most one genuine sample in a hundred would score as low. In between the answer is unsure."
    )
    return Section("Decisions", (text,), [table])
