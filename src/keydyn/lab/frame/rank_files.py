"""Ranks of templates at every event as tables with one row per query and template, for Parquet."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from keydyn.evaluation.continuous.event_ranks import EventRanks
from keydyn.lab.frame.score_files import constant, frames_of, words

COLUMNS = ("dataset", "detector", "protocol", "fold", "user", "session", "reference", "trial", "ranks")
# (dataset, detector) → its ranks
Ranked = dict[tuple[str, str], EventRanks]


def rank_table(ranks: EventRanks, dataset: str, detector: str, protocol: str) -> pa.Table:
    """A table of `COLUMNS`; the ranks are a list, one per event."""
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
