"""Scores every dataset with every detector, part by part, and converts scores and ranks to Parquet tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from keydyn.arrays import Integers
from keydyn.detectors import Detector, make_detector
from keydyn.detectors.markov import RecommendedPOHMM
from keydyn.evaluation.continuous.event_ranks import EventRanks
from keydyn.evaluation.protocols.running import (
    FittedSplit,
    enrolments,
    n_limited,
    n_templates,
    ranks_of,
    scores_and_ranks,
    scores_of,
)
from keydyn.evaluation.rates.verification import recognition
from keydyn.evaluation.scores import Queries, Scores
from keydyn.lab.frame.resuming import Parts, detector_settings
from keydyn.lab.frame.study_data import Row
from keydyn.model.data.vocabulary import Types
from keydyn.parallel import Progress

SCORE_COLUMNS = (
    *("dataset", "detector", "protocol", "normalisation"),
    *("fold", "user", "session", "reference", "score", "trial"),
)
# (dataset, detector) → its scores
Scored = dict[tuple[str, str], Scores]


def user_figures(scores: Scores, *more: str) -> pd.DataFrame:
    """A frame with the columns user (as text), acc, eer and `more`: the figures kept for each user."""
    users = recognition(scores)[["acc", "eer", *more]]
    return users.rename_axis("user").reset_index().astype({"user": str})


def score_table(scores: Scores, dataset: str, detector: str, protocol: str) -> pa.Table:
    """Scores as a table of `SCORE_COLUMNS`. Users and sessions become text."""
    q, u = np.nonzero(~np.isnan(scores.raw))
    labels = {"dataset": dataset, "detector": detector, "protocol": protocol}
    labels["normalisation"] = scores.normalisation
    return pa.table(
        _labelled(scores, labels, q, u)
        | {"score": pa.array(scores.raw[q, u]), "trial": pa.array(scores.trials[q, u])}
    )


def scored_of(table: pa.Table) -> Scored:
    """The scores of each dataset and detector in a table made by `score_table`, in the table's order."""
    return {
        key: Scores.from_frame(frame, str(frame["normalisation"].iloc[0])) for key, frame in frames_of(table)
    }


def frames_of(table: pa.Table) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    """Iterate over the rows of each dataset and detector, one frame at a time to save memory."""
    keys = table.select(["dataset", "detector"]).to_pandas()
    part = keys.groupby(["dataset", "detector"], sort=False, observed=True).ngroup().to_numpy()
    for number in pd.unique(part):
        frame = table.filter(pa.array(part == number)).to_pandas()
        yield (str(frame["dataset"].iloc[0]), str(frame["detector"].iloc[0])), frame


def protocol_names(table: pa.Table) -> dict[str, str]:
    """The protocol's name for each dataset in a table."""
    names = table.select(["dataset", "protocol"]).group_by(["dataset", "protocol"]).aggregate([]).to_pandas()
    return dict(zip(names["dataset"].astype(str), names["protocol"].astype(str), strict=True))


def _labelled(of: Queries, labels: Mapping[str, str], query: Integers, template: Integers) -> dict[str, Any]:
    """The columns that identify each row: labels, the typist of the query, and the owner of the template."""
    nothing = pa.array(np.zeros(len(query), dtype=np.int32))
    return {
        **{name: pa.DictionaryArray.from_arrays(nothing, pa.array([text])) for name, text in labels.items()},
        "fold": pa.array(of.folds[query].astype(np.int32)),
        "user": words(of.owners, query),
        "session": words(of.sessions, query),
        "reference": words(of.users, template),
    }


def words(values: Types, which: Integers) -> Any:
    """A column of the selected values as text."""
    codes, words = pd.factorize(np.asarray(values).astype(str))
    return pa.DictionaryArray.from_arrays(pa.array(codes[which].astype(np.int32)), pa.array(words.tolist()))


RANK_COLUMNS = ("dataset", "detector", "protocol", "fold", "user", "session", "reference", "trial", "ranks")
# (dataset, detector) → its ranks
Ranked = dict[tuple[str, str], EventRanks]


def rank_table(ranks: EventRanks, dataset: str, detector: str, protocol: str) -> pa.Table:
    """Ranks as a table of `RANK_COLUMNS`; each row holds a list of ranks, one per event."""
    s, u = np.nonzero(ranks.enrolled)
    lengths = ranks.lengths[s]
    event = np.arange(lengths.sum()) + np.repeat(ranks.offsets[s] - (np.cumsum(lengths) - lengths), lengths)
    values = ranks.ranks[event, np.repeat(u, lengths)]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))
    labels = {"dataset": dataset, "detector": detector, "protocol": protocol}
    return pa.table(_labelled(ranks, labels, s, u) | {"trial": pa.array(ranks.trials[s, u]), "ranks": lists})


def ranked_of(table: pa.Table) -> Ranked:
    """The ranks of each dataset and detector in a table made by `rank_table`, in the table's order."""
    return {key: EventRanks.from_frame(frame) for key, frame in frames_of(table)}


# Degrees of freedom, and the features that are spread at the start, as selected on the other datasets. All
# datasets together select (4, "all"), the library's default; all without keypad select 2 degrees of freedom.
CHOSEN: dict[str, tuple[float, str]] = {
    "password": (4.0, "all"),
    "keypad": (2.0, "all"),
    "mobile": (4.0, "all"),
    "mobile+": (4.0, "all"),
    "fable": (4.0, "all"),
    "essay": (4.0, "all"),
}


def detector_for(dataset: str, detector: str | Detector) -> Detector:
    """A detector as reported on a dataset; the recommended one gets the settings selected on the others."""
    if detector == RecommendedPOHMM.name and dataset in CHOSEN:
        return RecommendedPOHMM(*CHOSEN[dataset])
    return make_detector(detector)


# Relative cost of a template that is fitted iteratively; used for the progress bar only.
ITERATED = 20.0
LIMITED = b"keydyn.limited"


def score_rows(rows: Sequence[Row], detectors: Sequence[str | Detector], parts: Parts) -> pa.Table:
    """Score every row with every detector; parts that were made from the same inputs are reused."""
    return _each(_scored, rows, detectors, parts)


def rank_rows(rows: Sequence[Row], detectors: Sequence[str | Detector], parts: Parts) -> pa.Table:
    """Rank every template after each event, with detectors that score events."""
    for name in detectors:
        if not make_detector(name).scores_events:
            raise ValueError(f"{make_detector(name).name} cannot score single events")
    return _each(_ranked, rows, detectors, parts)


def limited_fits(table: pa.Table) -> dict[str, int]:
    """The number of fits that stopped at the limit of iterations, by part; parts without any are left out."""
    counts: dict[str, int] = json.loads((table.schema.metadata or {}).get(LIMITED, b"{}"))
    return counts


def with_limited(table: pa.Table, enrolled: list[FittedSplit]) -> pa.Table:
    """The table of a part, with its number of fits that stopped at the limit of iterations as metadata."""
    return table.replace_schema_metadata({LIMITED: str(n_limited(enrolled))})


def scored_and_ranked(row: Row, detector: Detector, enrolled: list[FittedSplit]) -> tuple[pa.Table, pa.Table]:
    """All scores of a detector under the row's protocol, and the rank of every template at every event."""
    scores, ranks = scores_and_ranks(row.protocol, enrolled, row.samples)
    labels = (row.name, detector.name, row.protocol.name)
    tables = score_table(scores, *labels), rank_table(ranks, *labels)
    return with_limited(tables[0], enrolled), with_limited(tables[1], enrolled)


def together(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Join all parts, given by name, into one table that keeps their numbers of limited fits."""
    limited = {name: int((one.schema.metadata or {}).get(LIMITED, b"0")) for name, one in tables.items()}
    counts = json.dumps({name: n for name, n in limited.items() if n})
    joined = pa.concat_tables(list(tables.values())).unify_dictionaries()
    return joined.replace_schema_metadata({LIMITED: counts})


def inputs_of(row: Row, detector: Detector) -> dict[str, Any]:
    """Everything that the part of a row and a detector depends on."""
    return {
        "dataset": row.name,
        "data": row.checksums,
        "samples": row.fingerprint,
        "vectors": row.vectors,
        "protocol": row.protocol.describe(),
        "detector": detector_settings(detector),
    }


Make = Callable[[Row, Detector, int | None, Progress], pa.Table]


def make_each(work: Mapping[str, tuple[Row, Detector, str]], make: Make, parts: Parts) -> dict[str, pa.Table]:
    """Return a part for each row and detector by name; missing ones are made one after the other.

    `make` receives the number of threads, and calls back with the number of templates that it has fitted. The
    third entry of each value of `work` is the name shown as progress.
    """
    tables = {name: parts.read(name, inputs_of(row, one)) for name, (row, one, _) in work.items()}
    costs = {name: _cost(*work[name][:2]) for name, table in tables.items() if table is None}
    total, before = sum(n * each for n, each in costs.values()) or 1.0, 0.0
    for name, (n, each) in costs.items():
        row, detector, what = work[name]

        def show_done(done: int, what: str = what, before: float = before, each: float = each) -> None:
            parts.show_progress(what, (before + done * each) / total)

        show_done(0)
        table = make(row, detector, parts.n_jobs, show_done)
        tables[name] = parts.keep(name, inputs_of(row, detector), table)
        before += n * each
    return tables


def _each(make: Make, rows: Sequence[Row], detectors: Sequence[str | Detector], parts: Parts) -> pa.Table:
    pairs = [(row, detector_for(row.name, detector)) for row in rows for detector in detectors]
    work = {f"{row.name}-{one.name}": (row, one, f"{row.name} · {one.title}") for row, one in pairs}
    return together(make_each(work, make, parts))


def _scored(row: Row, detector: Detector, n_jobs: int | None, progress: Progress) -> pa.Table:
    enrolled = enrolments(row.protocol, detector, row.samples, n_jobs, progress)
    scores = scores_of(row.protocol, enrolled, row.samples, n_jobs)
    return with_limited(score_table(scores, row.name, detector.name, row.protocol.name), enrolled)


def _ranked(row: Row, detector: Detector, n_jobs: int | None, progress: Progress) -> pa.Table:
    enrolled = enrolments(row.protocol, detector, row.samples, n_jobs, progress)
    ranks = ranks_of(enrolled, row.samples, n_jobs)
    return with_limited(rank_table(ranks, row.name, detector.name, row.protocol.name), enrolled)


def _cost(row: Row, detector: Detector) -> tuple[int, float]:
    """The number of templates, and the relative time that one takes."""
    keys = len(row.samples.sequences.X) / len(set(row.samples.users.tolist()))
    each = keys * (ITERATED if detector.scores_events else 1.0)
    return n_templates(row.protocol, detector, row.samples), each
