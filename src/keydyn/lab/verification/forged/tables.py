"""Tables and a figure of forged typing: the success of attacks, and the cost for genuine samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from keydyn.evaluation.rates.confidence import Estimate
from keydyn.lab.drawing.panels import Estimates
from keydyn.lab.forgeries import ENROLLED, TEMPLATE
from keydyn.lab.frame.names import dataset_name, rate_of, rate_words, size_of, span
from keydyn.lab.frame.tables import DATASET, Column, Table, rate_column
from keydyn.lab.verification.forged.attacked import ENROLMENT, FALSE_ALARMS, FORGERIES, SHORT, WHOLE
from keydyn.lab.verification.tables import TARGET, means_over_people

# The series of the figure by knowledge; a template is made of the enrolled samples.
OWN = "enrolled samples or template"
SERIES = {"3 samples": "3 samples", "10 samples": "10 samples", ENROLLED: OWN, TEMPLATE: OWN}

JUDGED = (
    "People are judged by what was learnt elsewhere: those of Fable by Essay's people, those of Essay by "
    "Fable's, and 300 of Aalto's people, not those of development, by what comes with keydyn. "
    "Samples are sentences, or pieces of 50 "
    f"keys, joined to {WHOLE} keys or more. People enrol with {ENROLMENT} sentences."
)


def forgeries_table(forged: pd.DataFrame, seed: int) -> Table:
    """The success rate of each attack, by the attacker's knowledge and the number of keys sent."""
    labels, shares = ("dataset", "attack", "knowledge", "keys"), ("accepted", "noticed", "passed")
    note = (
        f"{JUDGED} The detector was not trained on the attack that it judges, nor on similar ones. Shares of "
        f"forgeries, mean over people: accepted by the score at a target of {TARGET}; noticed as a copy, as "
        "too regular or as forged, or unsure for bursts of keys; and accepted without being noticed. "
        "Attackers have this many samples that were not enrolled, or the enrolled ones, and forge other "
        "people's texts; in Fable everyone types the same four passages."
    )
    columns = [
        *(DATASET, Column("Attack", "attack"), Column("Attacker has", "knowledge")),
        replace(rate_column("Score accepted", "accepted", "tries"), of=WHOLE),
        replace(rate_column("Noticed", "noticed", "tries"), of=WHOLE),
        replace(rate_column("Gets through", "passed", "tries"), of=WHOLE),
        replace(rate_column(f"Gets through with {SHORT} keys", "passed", "tries"), of=SHORT),
    ]
    frame = pd.DataFrame(_rows(forged, labels, shares, seed))
    return Table(FORGERIES, "Forged typing", note, frame, columns, labels=3, across="keys")


def false_alarms_table(hands: pd.DataFrame, seed: int) -> Table:
    """How often typed samples are called forged, and what that costs their owners."""
    note = (
        f"{JUDGED} Shares of people's own samples that were not enrolled, mean over people: called forged, a "
        "copy or too regular; unsure because keys come in bursts and look forged; accepted by the score; "
        "and accepted by the score, but not in the end, for one of these. The detector was trained on all "
        "attacks."
    )
    columns = [
        *(DATASET, Column("Keys", "keys", lambda keys: f"{WHOLE} or more" if keys == WHOLE else str(keys))),
        *(Column("People", "people"), rate_column("False alarms", "alarms", "tries", 2)),
        rate_column("Unsure for bursts", "bursts", "tries", 2),
        rate_column("Genuine accepted by the score", "accepted", "tries"),
        rate_column("Lost by both", "lost", "tries", 2),
    ]
    frame = pd.DataFrame(_rows(hands, ("dataset", "keys"), ("alarms", "bursts", "accepted", "lost"), seed))
    return Table(FALSE_ALARMS, "Hands that are taken for machines", note, frame, columns, labels=2)


def _rows(
    frame: pd.DataFrame, labels: Sequence[str], shares: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """One row per combination of labels, with the numbers of people and of tries."""
    for values, of in frame.groupby(list(labels), sort=False):
        tries = int(of["tries"].sum())
        yield (
            dict(zip(labels, values, strict=True))
            | {"people": len(of), "tries": tries}
            | means_over_people(of, shares, tries, seed)
        )


def forgeries_panels(frame: pd.DataFrame) -> Estimates:
    """Data for `intervals_figure`: a panel per dataset, a row per attack, a series per knowledge."""
    panels: dict[str, dict[str, dict[str, Estimate]]] = {}
    for row in frame[frame["keys"] == WHOLE].to_dict("records"):
        if row["knowledge"] in SERIES:
            rate = Estimate(row["passed"], row["passed_low"], row["passed_high"]).times(100.0)
            series = panels.setdefault(row["dataset"], {}).setdefault(SERIES[row["knowledge"]], {})
            series[row["attack"]] = rate
    return panels


def forgeries_words(forged: pd.DataFrame, hands: pd.DataFrame) -> str:
    """A summary of the most successful forgery and of the false alarms, from the frames of both tables."""
    rows = [row for row in forged.to_dict("records") if row["keys"] == WHOLE]
    worst = max(rows, key=lambda row: row["passed"])
    alarms = {
        row["dataset"]: rate_of(row, "alarms", "tries")
        for row in hands.to_dict("records")
        if row["keys"] == WHOLE
    }
    passed = rate_words(rate_of(worst, "passed", "tries"))
    return (
        f"Of forged typing of {WHOLE} keys or more, “{worst['attack']}” by an attacker who has "
        f"{worst['knowledge']} gets through most often, in {passed} of "
        f"attempts ({dataset_name(worst['dataset'])}); {span(alarms, rate_words, size_of)} of people's own "
        "samples are taken for forgeries."
    )
