"""Recognition for a user's own recordings: any detectors under any protocol, closed and open set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from keydyn.arrays import Integers
from keydyn.datasets.files.recordings import Recording
from keydyn.datasets.published.catalogue import entry_of
from keydyn.evaluation.protocols.failures import Failures, find_failures
from keydyn.evaluation.protocols.protocol import (
    Across,
    Chronological,
    Enrolment,
    KillourhyMaxion,
    LeaveOneOut,
    MonacoTappert,
    OpenSet,
    Protocol,
    user_counts,
)
from keydyn.keystrokes.quality import twice_in_words
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import SAMPLE, sample_of_row, sample_starts
from keydyn.lab.continuous.report import continuous_section
from keydyn.lab.frame.names import OPEN, capital, lead_of
from keydyn.lab.frame.outputs import RANKS, Outputs, read_ranks, read_scores
from keydyn.lab.frame.published import DATASETS
from keydyn.lab.frame.report import Section
from keydyn.lab.frame.score_datasets import Scored, protocol_names, ranked_of, scored_of
from keydyn.lab.frame.study_data import Row
from keydyn.lab.frame.tables import Table, plain_table
from keydyn.lab.own_recordings.decisions import decisions_section, decisions_table
from keydyn.lab.recognition.report import recognition_sections
from keydyn.lab.shipped import DATASETS as SHIPPED
from keydyn.lab.standard_report.group_rates import groups_section
from keydyn.lab.standard_report.page import points_of, write_standard
from keydyn.lab.system_scores.report import write as write_systems

PROTOCOLS = ("leave-one-out", "chronological", "enrolment", "open-set", "published", "killourhy-maxion")
# The column of sessions before long recordings were divided.
RECORDED = "recorded_session"


def protocol_of(name: str, enrol: int = 5, share: float = 0.5, groups: int = 10) -> Protocol:
    """A protocol by its name; the numbers apply to the protocols that have them."""
    made: dict[str, Protocol] = {
        "leave-one-out": LeaveOneOut(),
        "chronological": Chronological(share),
        "enrolment": Enrolment(enrol),
        "open-set": OpenSet(LeaveOneOut(), groups),
        "published": MonacoTappert(),
        "killourhy-maxion": KillourhyMaxion(),
    }
    if name not in made:
        raise ValueError(f"there is no protocol {name!r}; there are {', '.join(PROTOCOLS)}")
    return made[name]


def across(recording: Recording, enrol_on: str, test_on: str) -> tuple[Recording, Across]:
    """The samples that enrol or test under the conditions COLUMN=VALUE, and a protocol that separates them.

    One of the conditions may be empty, and is then the complement of the other. Users who lack samples of
    either kind are left out. A `ValueError` says what is wrong with a condition.
    """
    keystrokes = recording.keystrokes
    starts = sample_starts(keystrokes)
    first = keystrokes.iloc[starts].reset_index(drop=True)
    train, test = (_meets(first, condition) for condition in (enrol_on, test_on))
    train, test = (~test if not enrol_on else train), (~train if not test_on else test)
    if (train & test).any():
        raise ValueError(f"samples of {enrol_on} and of {test_on} are the same; a sample enrols or tests")
    both = first["user"].isin(first["user"][train]) & first["user"].isin(first["user"][test])
    used = (both & (train | test)).to_numpy()
    if not used.any():
        raise ValueError(
            f"no user has samples both of {enrol_on or 'the rest'} and of {test_on or 'the rest'}"
        )
    kept = keystrokes[used[sample_of_row(starts, len(keystrokes))]].reset_index(drop=True)
    names = frozenset(first.loc[used & train.to_numpy(), SAMPLE].itertuples(index=False, name=None))
    words = (
        f"samples of {enrol_on or f'all but {test_on}'} train, those of {test_on or 'the rest'} are queries"
    )
    return replace(recording, keystrokes=kept), Across(enrolled=names, words=words)


def _meets(first: pd.DataFrame, condition: str) -> pd.Series[bool]:
    """Whether each sample meets a condition: COLUMN=VALUE, or several values separated by commas."""
    column, equals, values = condition.partition("=")
    column = RECORDED if column == "session" and RECORDED in first else column
    if condition and not (equals and column in first):
        there = ", ".join(map(str, first.columns))
        raise ValueError(f"{condition!r} must be COLUMN=VALUE; the columns are {there}")
    chosen = {value.strip() for value in values.split(",")}
    meets: pd.Series[bool] = first[column].astype(str).isin(chosen) if condition else first["user"].isna()
    if condition and not meets.any():
        some = ", ".join(first[column].astype(str).unique()[:10])
        raise ValueError(f"no sample has {condition}; {column} is {some}")
    return meets


def own_rows(
    recording: Recording,
    protocol: Protocol,
    sensors: Sequence[str] = (),
    groups: int = 10,
    vectors: bool = True,
) -> tuple[list[Row], Failures]:
    """The recordings under the protocol and also as an open set, and the users and samples left out.

    Users with too few samples and unusable samples are left out, and named in `Failures`. `vectors` says
    whether a detector of feature vectors is used, which needs every value of a sample.
    """
    samples = Samples.of(recording.keystrokes, sensors)
    failures = find_failures(samples, protocol.least, vectors=vectors)
    kept = samples[failures.kept]
    users = len(user_counts(kept)[0])
    if users < 2:
        raise ValueError(
            f"{protocol.title} needs 2 users or more with {protocol.least} usable samples or more; "
            f"there {'is' if users == 1 else 'are'} {users} ({failures.text()})"
        )
    path = Path(recording.name)
    sums = {path.name: recording.sha256}
    # A file may have the name of one of the paper's datasets without being that dataset.
    name = path.name if path.stem in DATASETS else path.stem
    rows = [Row(name, kept, protocol, sums, "ours")]
    if not isinstance(protocol, OpenSet) and users > 2:
        rows.append(Row(name + OPEN, kept, OpenSet(protocol, groups), sums, "ours"))
    return rows, failures


def learnt_from(recording: Recording) -> bool:
    """Whether the shipped population was learnt from these very recordings."""
    return any(recording.sha256 == entry_of(name).keystrokes.sha256 for name in SHIPPED)


def write(
    outputs: Outputs, measured: tuple[pa.Table, pa.Table | None], facts: Mapping[str, Any]
) -> list[Table]:
    """Write tables, figures and the report; returns the tables for the terminal."""
    scores, ranks = measured
    if "systems" in facts:
        return write_systems(outputs, scores, facts)
    verdict, sections, for_terminal = recognition_sections(outputs, without_twice(scores, facts), facts)
    decisions = decisions_table(facts)
    if decisions is not None:
        sections.insert(0, decisions_section(decisions))
        for_terminal = [decisions, *for_terminal]
    elif "left_out" in facts.get("decisions", {}):
        sections.insert(0, Section("Decisions", (f"There are none: {facts['decisions']['left_out']}.",), []))
    # The file holds every score, including those that do not count.
    outputs.scores(scores)
    if ranks is not None:
        outputs.ranks(ranks)
        section, tables = continuous_section(outputs, ranked_of(without_twice(ranks, facts)), facts)
        sections.append(section)
        for_terminal = [*for_terminal, tables[0]]
    sections.append(_failures(facts))
    counted = _counted(scores, facts) if "groups" in facts or "standard" in facts else {}
    if facts.get("groups"):
        sections.append(groups_section(counted, facts["groups"], facts.get("seed", 0)))
    if "standard" in facts:
        attacks = facts.get("decisions", {}).get("attacks", [])
        points = points_of(counted, facts)
        for_terminal = [*for_terminal, *write_standard(outputs, points, attacks, sections, facts)]
    outputs.report(
        f"Typing recognised: {facts.get('file', '')}",
        [verdict, *_warnings(facts), *twice_paragraphs(facts), *lead_of(facts)],
        sections,
        facts,
    )
    return for_terminal


def _counted(scores: pa.Table, facts: Mapping[str, Any]) -> Scored:
    """The scores for judging claims and groups: those of open sets, if there are any."""
    scored = scored_of(without_twice(scores, facts))
    opened = {name for name, protocol in protocol_names(scores).items() if protocol == OpenSet.name}
    return {key: one for key, one in scored.items() if not opened or key[0] in opened}


def read(folder: Path) -> tuple[pa.Table, pa.Table | None]:
    """Read the scores and, if there are any, the ranks that a run kept in its folder."""
    return read_scores(folder), read_ranks(folder) if (folder / RANKS).exists() else None


def failures_facts(failures: Failures) -> dict[str, Any]:
    """The users and samples left out, for run.json."""
    return {
        "text": failures.text(),
        "fta": failures.fta.value,
        "fte": failures.fte.value,
        "fta_text": failures.fta.text(),
        "fte_text": failures.fte.text(),
        "to acquire": failures.to_acquire.astype(str).to_dict("records"),
        "to enrol": failures.to_enrol.astype(str).to_dict("records"),
    }


def _failures(facts: Mapping[str, Any]) -> Section:
    failures = facts.get("failures", {})
    tables = []
    for name, title, columns in (
        ("failures_to_acquire", "Samples that cannot be used", ["user", "session", "reason"]),
        ("failures_to_enrol", "Users with too few samples", ["user", "samples", "reason"]),
    ):
        kind = name.removeprefix("failures_").replace("_", " ")
        frame = pd.DataFrame(failures.get(kind, []), columns=columns)
        if len(frame):
            tables.append(plain_table(name, title, "", frame, labels=2))
    text = failures.get("text", "")
    paragraphs = [f"{capital(text)}. All other figures are of the rest."] if text else []
    return Section("Who could not take part", paragraphs, tables)


def _warnings(facts: Mapping[str, Any]) -> list[str]:
    """Warnings about the recordings, for the top of the report."""
    return [f"{capital(text)}." for text in facts.get("notes", {}).get("texts", [])]


def twice_facts(pairs: pd.DataFrame, counted: bool) -> dict[str, Any]:
    """The pairs of likely identical users for run.json, and whether they count as impostors."""
    known = pairs.assign(user=pairs["user"].astype(str), other=pairs["other"].astype(str))
    known = known.astype(object).where(known.notna(), None)
    return {"pairs": known.to_dict("records"), "counted as impostors": counted}


def without_twice(table: pa.Table, facts: Mapping[str, Any]) -> pa.Table:
    """Scores or ranks, without comparisons between users who are likely the same person unless they count."""
    twice = facts.get("twice", {})
    pairs = [] if twice.get("counted as impostors") else twice.get("pairs", [])
    if not pairs:
        return table
    names = pd.unique(np.array([(pair["user"], pair["other"]) for pair in pairs], dtype=object).ravel())
    same = np.zeros((len(names) + 1, len(names) + 1), dtype=bool)
    place = {name: n for n, name in enumerate(names)}
    for pair in pairs:
        one, other = place[pair["user"]], place[pair["other"]]
        same[one, other] = same[other, one] = True
    typist, claimed = (_places(table[name].to_pandas(), place) for name in ("user", "reference"))
    return table.filter(pa.array(~same[typist, claimed]))


def _places(column: pd.Series[Any], place: Mapping[str, int]) -> Integers:
    """The place of each row's user; users who are in no pair get the last place."""
    codes, names = pd.factorize(column)
    return np.array([place.get(str(name), -1) for name in names], dtype=np.int64)[codes]


def twice_paragraphs(facts: Mapping[str, Any]) -> list[str]:
    """Paragraphs of the report about users who are likely the same person."""
    twice = facts.get("twice", {})
    if not twice.get("pairs"):
        return []
    words = twice_in_words(pd.DataFrame(twice["pairs"]).astype({"minutes": float}))
    counted = "count" if twice["counted as impostors"] else "do not count"
    return [f"{'; '.join(words)}. They {counted} as impostors of each other in the tables and figures."]
