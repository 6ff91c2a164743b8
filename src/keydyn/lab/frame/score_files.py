"""Scores and ranks of all datasets and detectors as one Parquet table, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from keydyn.arrays import Integers
from keydyn.evaluation.continuous.event_ranks import EventRanks
from keydyn.evaluation.scores import Scores
from keydyn.model.data.vocabulary import Types

SCORE_COLUMNS = (
    *("dataset", "detector", "protocol", "normalisation"),
    *("fold", "user", "session", "reference", "score", "trial"),
)
# (dataset, detector) → its scores
Scored = dict[tuple[str, str], Scores]


def score_table(scores: Scores, dataset: str, detector: str, protocol: str) -> pa.Table:
    """A table of `SCORE_COLUMNS`. Users and sessions become text, whatever they were."""
    q, u = np.nonzero(~np.isnan(scores.raw))
    return pa.table(
        {
            "dataset": constant(dataset, len(q)),
            "detector": constant(detector, len(q)),
            "protocol": constant(protocol, len(q)),
            "normalisation": constant(scores.normalisation, len(q)),
            "fold": pa.array(scores.folds[q].astype(np.int32)),
            "user": words(scores.owners, q),
            "session": words(scores.sessions, q),
            "reference": words(scores.users, u),
            "score": pa.array(scores.raw[q, u]),
            "trial": pa.array(scores.trials[q, u]),
        }
    )


def scored_of(table: pa.Table) -> Scored:
    """The scores of each dataset and detector that `score_table` wrote, in the table's order."""
    return {
        key: Scores.from_frame(frame, str(frame["normalisation"].iloc[0])) for key, frame in frames_of(table)
    }


def frames_of(table: pa.Table) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    """The rows of each dataset and detector in the table's order, one frame at a time: all may be large."""
    keys = table.select(["dataset", "detector"]).to_pandas()
    part = keys.groupby(["dataset", "detector"], sort=False, observed=True).ngroup().to_numpy()
    for number in pd.unique(part):
        frame = table.filter(pa.array(part == number)).to_pandas()
        yield (str(frame["dataset"].iloc[0]), str(frame["detector"].iloc[0])), frame


def protocol_names(table: pa.Table) -> dict[str, str]:
    """The protocol of each dataset."""
    names = table.select(["dataset", "protocol"]).group_by(["dataset", "protocol"]).aggregate([]).to_pandas()
    return dict(zip(names["dataset"].astype(str), names["protocol"].astype(str), strict=True))


def joined(tables: list[pa.Table]) -> pa.Table:
    """One table of all parts."""
    return pa.concat_tables(tables).unify_dictionaries()


def constant(text: str, n: int) -> Any:
    """A column of one text."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, dtype=np.int32)), pa.array([text]))


def words(values: Types, which: Integers) -> Any:
    """A column of some of the values, as text."""
    codes, words = pd.factorize(np.asarray(values).astype(str))
    return pa.DictionaryArray.from_arrays(pa.array(codes[which].astype(np.int32)), pa.array(words.tolist()))


RANK_COLUMNS = ("dataset", "detector", "protocol", "fold", "user", "session", "reference", "trial", "ranks")
# (dataset, detector) → its ranks
Ranked = dict[tuple[str, str], EventRanks]


def rank_table(ranks: EventRanks, dataset: str, detector: str, protocol: str) -> pa.Table:
    """A table of `RANK_COLUMNS`; the ranks are a list, one per event."""
    s, u = np.nonzero(ranks.enrolled)
    lengths = ranks.lengths[s]
    event = np.arange(lengths.sum()) + np.repeat(ranks.offsets[s] - (np.cumsum(lengths) - lengths), lengths)
    values = ranks.ranks[event, np.repeat(u, lengths)]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.table(
        {
            "dataset": constant(dataset, len(s)),
            "detector": constant(detector, len(s)),
            "protocol": constant(protocol, len(s)),
            "fold": pa.array(ranks.folds[s].astype(np.int32)),
            "user": words(ranks.owners, s),
            "session": words(ranks.sessions, s),
            "reference": words(ranks.users, u),
            "trial": pa.array(ranks.trials[s, u]),
            "ranks": pa.ListArray.from_arrays(pa.array(offsets), pa.array(values)),
        }
    )


def ranked_of(table: pa.Table) -> Ranked:
    """The ranks of each dataset and detector that `rank_table` wrote, in the table's order."""
    return {key: EventRanks.from_frame(frame) for key, frame in frames_of(table)}
