"""Tables that compare systems: people and claims, rates, costs, conventions, tests and attacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from keydyn.evaluation.rates.confidence import (
    Claims,
    Estimate,
    Rate,
    compare_with_best,
    trials_needed,
    unsupported,
)
from keydyn.evaluation.rates.system_figures import (
    CONVENTION_TITLES,
    COST_TITLES,
    RATE_TITLES,
    SystemFigures,
)
from keydyn.evaluation.rates.verification import FMR_TARGETS, TITLES
from keydyn.lab.frame.names import capital, detector_name
from keydyn.lab.frame.tables import Column, Table, number_column, p_column, plain_table

Systems = Mapping[str, SystemFigures]

FEW = "†"
FEW_NOTE = (
    f"{FEW} Fewer than 30 errors: the rate may be off by more than 30 % (rule of thirty). No error in n "
    "trials is shown as < 3/n (rule of three)."
)


def systems_table(systems: Systems) -> Table:
    """The numbers of people, claims and samples of each system."""
    rows = []
    for name, figures in systems.items():
        claims, (genuine, impostor) = figures.claims, figures.claims.scores
        samples = claims.trials if claims.people else (None, None)
        rows.append(
            {
                "system": name,
                "people": len(claims.people) or None,
                "genuine_claims": len(genuine),
                "impostor_claims": len(impostor),
                "genuine_samples": samples[0],
                "impostor_samples": samples[1],
                "attacks": len(claims) - len(claims.plain),
            }
        )
    frame = pd.DataFrame(rows).astype({name: "Int64" for name in rows[0] if name != "system"})
    note = "A sample that was compared with several people is several claims, but one trial."
    return plain_table("systems", "What was compared", note, frame)


def rates_table(systems: Systems) -> Table:
    """Error rates of each system."""
    note = f"One threshold for everybody, except for rank 1; 95 % intervals over people. {FEW_NOTE}"
    return _beside(
        "rates", "Error rates", note, RATE_TITLES, {name: one.rates for name, one in systems.items()}
    )


def conventions_table(systems: Systems) -> Table:
    """Figures by the definitions of other authors."""
    note = (
        "For comparison with published figures. The Keystroke Verification Challenge takes the point of the "
        "curve that is nearest, TypeNet a threshold for each user."
    )
    found = {name: one.conventions for name, one in systems.items()}
    return _beside("conventions", "By the definitions of others", note, CONVENTION_TITLES, found)


def costs_table(systems: Systems) -> Table:
    """DCF and Cllr of each system."""
    cost = next(iter(systems.values())).cost
    note = (
        f"For a prior of {cost.prior:g} that a claim is genuine; rejecting a genuine one costs "
        f"{cost.miss:g}, accepting an impostor {cost.false_match:g}. 1 is the cost of using no system at "
        "all. Minima are those of the best threshold and of the best monotone map, known only afterwards."
    )
    found = {name: one.costs for name, one in systems.items()}
    return _beside("costs", "Costs", note, COST_TITLES, found)


def _beside(
    name: str, title: str, note: str, titles: Mapping[str, str], found: Mapping[str, Mapping[str, Estimate]]
) -> Table:
    """A table with a line per figure and a column per system."""
    rows = [
        {"figure": figure, "title": titles[figure], "system": system, **_values(estimate)}
        for figure in titles
        for system, figures in found.items()
        if (estimate := figures.get(figure)) is not None
    ]
    columns = [Column("Figure", "title", capital)]
    columns += [Column(detector_name(system), "text", of=system) for system in found]
    return Table(name, title, note, pd.DataFrame(rows), columns, across="system")


def _values(estimate: Estimate) -> dict[str, Any]:
    if not isinstance(estimate, Rate):
        return estimate.columns("value") | {"trials": None, "needed": None, "text": estimate.text(3)}
    text = estimate.text(2)
    few = estimate.value is not None and not estimate.precise and estimate.below is None
    return estimate.columns("value") | {
        "trials": estimate.trials,
        "needed": estimate.needed or None,
        "text": text + FEW if few else text,
    }


def compared_table(systems: Systems) -> Table | None:
    """Systems tested against the best, over the people common to all; None if there are too few."""
    users = [figures.users["eer"] for figures in systems.values() if figures.claims.people]
    if len(users) < 2 or len(users) < len(systems):
        return None
    figures = pd.concat(users, axis=1, join="inner", keys=list(systems))
    if len(figures) < 2:
        return None
    tested = compare_with_best(figures, higher_is_better=False).reset_index(names="system")
    frame = tested.assign(users=len(figures))[["system", "users", "mean", "p", "level", "best", "bold"]]
    note = (
        f"Mean over the {len(figures)} people whom all systems have, each at a threshold of their own. The "
        "signed-rank test compares each system with the one of the lowest mean; those that are not "
        "significantly worse, at a level corrected for the number of systems, are bold."
    )
    columns = [
        Column("System", "system", detector_name),
        Column(
            "Equal error rate", "mean", lambda mean: f"{100 * mean:.2f} %", bold=lambda line: line["bold"]
        ),
        p_column("p", "p"),
        number_column("Level", "level"),
    ]
    return Table("compared", "Are the differences significant?", note, frame, columns)


def attacks_table(systems: Systems) -> Table | None:
    """The share of attacks accepted at thresholds of stated false match rates; None without attacks."""
    rows = []
    for name, figures in systems.items():
        claims = figures.claims
        _, strangers = claims.trials
        for place, kind in enumerate(claims.attacks):
            tried = claims.where(np.asarray(claims.attack) == place)
            over = Claims(tried.claimed, tried.typist)
            for target_name, target in FMR_TARGETS.items():
                at = np.searchsorted(figures.curve.fmr, target, side="right") - 1
                rate = over.rate(tried.score >= figures.curve.thresholds[at])
                if strangers < trials_needed(target):
                    rate = unsupported(strangers, trials_needed(target))
                rows.append(
                    {"system": name, "attack": kind, "at": target_name, "fmr": target, **_values(rate)}
                )
    if not rows:
        return None
    labels = [Column("System", "system", detector_name), Column("Attack", "attack")]
    shown = [Column(TITLES[name].replace("FNMR at ", "at "), "text", of=name) for name in FMR_TARGETS]
    note = f"Share of attacks that are accepted (IAPMR), with 95 % intervals over people. {FEW_NOTE}"
    frame = pd.DataFrame(rows)
    return Table("attacks", "Attacks", note, frame, [*labels, *shown], labels=2, across="at")
