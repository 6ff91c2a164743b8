"""Writes the report: a page and a JSON file in the order of ISO/IEC 19795-1, then attacks, then claims.

The same input gives the same bytes: nothing depends on the time or the machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from keydyn.lab.frame.json_and_parquet import write_json
from keydyn.lab.frame.names import capital, dataset_name, detector_name, listed
from keydyn.lab.frame.outputs import STANDARD, Outputs
from keydyn.lab.frame.report import Section, write_report
from keydyn.lab.frame.score_datasets import Scored
from keydyn.lab.frame.tables import Column, Table
from keydyn.lab.standard_report.attack_rates import attacks_table
from keydyn.lab.standard_report.recorded_facts import (
    MOST_SHOWN,
    left_out_rows,
    left_out_tables,
    noticed_table,
    recorded_table,
)
from keydyn.lab.standard_report.standard_limits import Point, limits_table, point_of_scores, points_table
from keydyn.lab.standard_report.stated_facts import MISSING, QUESTIONS, missing_facts

PAGE, JSON = STANDARD
# Tables of the usual reports that are repeated here.
SHOWN_TOO = ("error_rates", "rates", "ranks", "systems")
STANDARDS = ("ISO/IEC 19795-1", "ISO/IEC 30107-3")
# The entries of run.json that depend only on the input, and not on time or machine.
LASTING = (
    *("version", "file", "data", "reading", "seed", "sensors", "protocols", "detectors"),
    *("systems", "cost", "ratios", "distances"),
)
POLICY = (
    "a claim is accepted where at most the stated share of strangers would score as high, and rejected where "
    "at most one genuine sample in a hundred would score as low. In between the answer is unsure, which "
    "counts as a non-match here. One threshold for everybody; strangers had no part in how it was set."
)
ATTACKED = (
    "Impostor attack presentations: an attacker's machine sends a victim's keys with times that it makes up, "
    "and everything that decides is under attack. Victims enrolled as in the protocol. The standard asks for "
    "the rate of each instrument, since a mean over instruments hides the worst. The check for forged typing "
    "that comes with keydyn was learnt from forgeries of these kinds, and from people who copied fables or "
    "wrote essays: attacks of a kind that it has never met, and on other people, may succeed more often."
)
ATTACKED_SCORES = "Attacks as the files of scores name them, at the same threshold as other claims."
UNKNOWN_FAILURES = (
    "Failures to acquire and to enrol are not known from scores. FAR and FRR count none, and are too low if "
    "there were any."
)
NOT_TESTED = (
    "Transactions of several attempts, and what happens after a refusal: one sample is one attempt.",
    "Impostors who practise: those of the error rates type as they always do.",
    "Attackers who put events into the system behind its recorder.",
)


def write_standard(
    outputs: Outputs,
    points: Sequence[Point],
    attacks: Sequence[Mapping[str, Any]],
    found: Sequence[Section],
    facts: Mapping[str, Any],
) -> list[Table]:
    """Write standard.html and standard.json; returns the tables for the terminal.

    Limits are judged at the `points` and by the worst of the `attacks`, entries as from `accepted_by_person`.
    `found` are the sections of the usual report, whose tables of error rates are repeated here.
    """
    stated: dict[str, dict[str, str]] = facts["standard"]["stated"]
    fta = facts.get("failures", {}).get("fta") or 0.0
    points = [point.with_failures(fta) for point in points]
    usual = {table.name: table for section in found for table in section.tables}
    sections = [
        Section("What was tested", _tested(facts), [_facts(stated, "test"), _facts(stated, "system")]),
        Section("Who was tested", _people(facts), [_facts(stated, "people")]),
        _recorded(stated, facts),
        _left_out(facts),
        Section("Protocol", _protocols(facts)),
        Section("Decision policy", _policies(points)),
        _error_rates(outputs, points, usual, facts),
        *(section for section in found if section.title == "Groups of people"),
        Section("What was not tested", _not_tested(attacks, facts), [_facts(stated, "limits")]),
        _attacks(attacks, facts),
    ]
    claims = limits_table(points, {one["attack"]: one["shares"] for one in attacks})
    shown = [claims] if len(claims.frame) else []
    sections.append(Section("Claims", _claims(claims), shown))
    for table in (table for section in sections for table in section.tables):
        outputs.table(table)
    of = facts.get("file") or listed([detector_name(name) for name in facts.get("systems", [])])
    title = stated.get("test", {}).get("title") or f"Test report: {of}"
    lasting = {name: facts[name] for name in LASTING if name in facts}
    write_report(outputs.folder / PAGE, title, _lead(claims, stated), sections, lasting)
    write_json(outputs.folder / JSON, _document(title, stated, sections, facts) | {"made": lasting})
    return shown


def points_of(scored: Scored, facts: Mapping[str, Any]) -> list[Point]:
    """The operating points of `verify`; without decisions, one threshold for each detector."""
    decided = [
        Point(f"verify, stated FMR {100 * people['stated']:g} %", POLICY, people)
        for people in facts.get("decisions", {}).get("people", [])
    ]
    return decided or [
        point_of_scores(f"{detector_name(detector)}, {dataset_name(dataset)}", scores)
        for (dataset, detector), scores in scored.items()
    ]


def _policies(points: Sequence[Point]) -> list[str]:
    """Each distinct policy, with the operating points that use it."""
    names: dict[str, list[str]] = {}
    for point in points:
        names.setdefault(point.policy, []).append(point.name)
    return [f"{capital(listed(of))}: {policy}" for policy, of in names.items()]


def _facts(stated: Mapping[str, Mapping[str, str]], section: str) -> Table:
    """The answers of the people who ran the test, in the order of the template."""
    answers = stated.get(section, {})
    rows = [
        {
            "fact": name,
            "asked": question,
            "answer": answers.get(name, MISSING),
            "missing": name not in answers,
        }
        for name, question in QUESTIONS[section].items()
    ]
    columns = [
        Column("Fact", "fact", lambda name: capital(name.replace("_", " "))),
        Column("Asked", "asked", capital),
        Column("As stated", "answer", bold=lambda line: bool(line["missing"])),
    ]
    title = f"As stated by those who ran the test: {section}"
    return Table(f"facts_{section}", title, "", pd.DataFrame(rows), columns)


def _tested(facts: Mapping[str, Any]) -> list[str]:
    detectors = dict.fromkeys(
        detector_name(name) for of in facts.get("detectors", {}).values() for name in of
    )
    words = (
        f"Under test: {listed(list(detectors))}, of keydyn {facts.get('version', '')}." if detectors else ""
    )
    return [
        f"Ordered as {STANDARDS[0]} asks of a test report, with attacks in the terms of {STANDARDS[1]}. Both "
        "leave to the tester what cannot be computed: it is shown as stated, or as missing.",
        words,
    ]


def _people(facts: Mapping[str, Any]) -> list[str]:
    recorded = facts.get("recorded")
    if not recorded:
        return ["The input is scores, which do not tell how many people were recorded."]
    pairs = facts.get("twice", {}).get("pairs", [])
    twice = (
        f"{len(pairs)} pairs of users are likely the same person"
        if pairs
        else "No two users look like the same person"
    )
    return [f"{recorded['users']:,} people were recorded. {twice}."]


def _recorded(stated: Mapping[str, Mapping[str, str]], facts: Mapping[str, Any]) -> Section:
    tables = [_facts(stated, "recording")]
    if facts.get("recorded"):
        tables = [recorded_table(facts["recorded"]), noticed_table(facts["recorded"]), *tables]
    notes = [capital(text) + "." for text in facts.get("notes", {}).get("texts", [])]
    return Section("What was recorded, and over what time", notes, tables)


def _left_out(facts: Mapping[str, Any]) -> Section:
    failures = facts.get("failures", {})
    rows = left_out_rows(facts.get("recorded") or {}, failures)
    texts = [capital(failures["text"]) + "."] if failures.get("text") else [UNKNOWN_FAILURES]
    if not rows and not failures:
        return Section("What was left out, and why", texts)
    if not rows:
        return Section("What was left out, and why", [*texts, "Nothing else was left out."])
    by_reason, by_user = left_out_tables(rows)
    shown = [by_reason, by_user] if len(rows) <= MOST_SHOWN else [by_reason]
    return Section("What was left out, and why", texts, shown)


def _protocols(facts: Mapping[str, Any]) -> list[str]:
    return [
        f"{dataset_name(name)}: {one['title']}. {capital(one['split'])}. {capital(one['impostors'])}. "
        f"Normalisation of scores: {one['normalisation']}."
        for name, one in facts.get("protocols", {}).items()
    ] or ["The input is scores, which do not tell the protocol that they come from."]


def _error_rates(
    outputs: Outputs, points: Sequence[Point], usual: Mapping[str, Table], facts: Mapping[str, Any]
) -> Section:
    failures = facts.get("failures", {})
    words = (
        ("fta_text", "Failure to acquire: {} of samples."),
        ("fte_text", "Failure to enrol: {} of people."),
    )
    texts = [" ".join(text.format(failures[name]) for name, text in words if name in failures)]
    tables = [points_table(points, facts.get("seed", 0))] if points else []
    tables += [usual[name] for name in SHOWN_TOO if name in usual]
    det = outputs.kept_figure(
        "det",
        "DET curves of all trials pooled, one threshold for everybody.",
        "False non-match rate against false match rate on normal-deviate axes.",
    )
    return Section("Error rates", texts, tables, det)


def _not_tested(attacks: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> list[str]:
    texts = list(NOT_TESTED)
    recorded = facts.get("recorded") or {}
    days = recorded.get("dates", {}).get("days", {})
    if not days:
        texts.append("Time: the recordings do not say how long after enrolment the later samples were typed.")
    elif days["most"] < 1:
        texts.append("Time: every person was recorded within a day.")
    if not facts.get("groups"):
        texts.append("Groups of people: whether errors differ by age, sex, language or keyboard (`--by`).")
    if not attacks:
        texts.append("Attacks of any kind.")
    return texts


def _attacks(attacks: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> Section:
    if not attacks:
        why = facts.get("decisions", {}).get("left_out", "attacks are on the decisions of keydyn verify")
        return Section("Attacks", [f"No attacks were tried: {why}."])
    texts = [ATTACKED_SCORES if "systems" in facts else ATTACKED]
    return Section("Attacks", texts, [attacks_table(attacks, facts.get("seed", 0))])


def _claims(claims: Table) -> list[str]:
    if len(claims.frame) == 0:
        return ["The scores do not say whose they are, and what people show cannot be told without people."]
    return [
        "What NIST and FIDO ask of a biometric factor, and whether this test shows it. The limits on FMR and "
        "FNMR, or FAR and FRR, hold at one and the same operating point. Their own procedures ask for more "
        "than rates, such as a laboratory and a certain number of visits, which no computation can show."
    ]


def _lead(claims: Table, stated: Mapping[str, Mapping[str, str]]) -> list[str]:
    outcomes = claims.frame["outcome"].astype(str)
    asked, missing = sum(map(len, QUESTIONS.values())), len(missing_facts(stated))
    met, wrong = int((outcomes == "met").sum()), int((outcomes == "not met").sum())
    rest = len(outcomes) - met - wrong
    lines = [
        f"Of {len(outcomes)} claims, {met} are met, {wrong} are not met, and {rest} cannot be shown with "
        "this many people."
    ]
    if missing:
        lines.append(f"{missing} of {asked} facts that only a person can state are missing, and marked so.")
    return lines


def _document(
    title: str, stated: Mapping[str, Mapping[str, str]], sections: Sequence[Section], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """The report as values: sections in order, with their texts and the exact values of their tables."""
    return {
        "title": title,
        "standards": list(STANDARDS),
        "stated": {
            section: {name: stated.get(section, {}).get(name) for name in questions}
            for section, questions in QUESTIONS.items()
        },
        "missing": missing_facts(stated),
        "failures": {
            name: facts["failures"][name] for name in ("fta", "fte") if name in facts.get("failures", {})
        },
        "sections": [
            {
                "title": section.title,
                "text": [text for text in section.paragraphs if text],
                "tables": {
                    table.name: json.loads(table.frame.to_json(orient="records")) for table in section.tables
                },
            }
            for section in sections
        ],
    }
