"""Scores every dataset with every detector, part by part, so that an interrupted study resumes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from keydyn.detectors import Detector, make_detector
from keydyn.evaluation.protocols.running import enrolments, n_limited, n_templates, ranks_of, scores_of
from keydyn.lab.frame.dataset_rows import Row
from keydyn.lab.frame.recommended_settings import detector_for
from keydyn.lab.frame.resuming import Parts, ShowProgress, detector_settings
from keydyn.lab.frame.score_files import joined, rank_table, score_table
from keydyn.parallel import Progress

# How much longer a template takes that is fitted by iteration; only for the progress bar.
ITERATED = 20.0
LIMITED = b"keydyn.limited"


def score_rows(
    rows: Sequence[Row],
    detectors: Sequence[str | Detector],
    parts: Parts,
    n_jobs: int | None = None,
    show_progress: ShowProgress | None = None,
) -> pa.Table:
    """Every score of every row and detector; parts that were made from the same inputs are read."""
    return _each(_scored, rows, detectors, parts, n_jobs, show_progress)


def rank_rows(
    rows: Sequence[Row],
    detectors: Sequence[str | Detector],
    parts: Parts,
    n_jobs: int | None = None,
    show_progress: ShowProgress | None = None,
) -> pa.Table:
    """The same event by event: the rank of every template, for detectors that score events."""
    for name in detectors:
        if not make_detector(name).scores_events:
            raise ValueError(f"{make_detector(name).name} cannot score single events")
    return _each(_ranked, rows, detectors, parts, n_jobs, show_progress)


def limited_fits(table: pa.Table) -> dict[str, int]:
    """How many fits of each part stopped at the limit of iterations; parts without any are left out."""
    counts: dict[str, int] = json.loads((table.schema.metadata or {}).get(LIMITED, b"{}"))
    return counts


def together(tables: Mapping[str, pa.Table]) -> pa.Table:
    """One table of all parts by name, with their numbers of limited fits."""
    limited = {name: int((one.schema.metadata or {}).get(LIMITED, b"0")) for name, one in tables.items()}
    counts = json.dumps({name: n for name, n in limited.items() if n})
    return joined(list(tables.values())).replace_schema_metadata({LIMITED: counts})


def inputs_of(row: Row, detector: Detector) -> dict[str, Any]:
    """Everything that a part depends on."""
    return {
        "dataset": row.name,
        "data": row.checksums,
        "samples": row.fingerprint,
        "vectors": row.vectors,
        "protocol": row.protocol.describe(),
        "detector": detector_settings(detector),
    }


def part_name(row: Row, detector: Detector) -> str:
    """The stem of a part's file."""
    return f"{row.name}-{detector.name}"


class Schedule:
    """Turns the progress of each part into that of all.

    `costs` has for each part the number of templates and how long one takes, in any unit.
    """

    def __init__(self, costs: Sequence[tuple[int, float]], show_progress: ShowProgress | None) -> None:
        self.costs, self.show_progress = costs, show_progress
        self.total = max(sum(n * each for n, each in costs), 1.0)

    def part(self, number: int, what: str) -> Progress:
        """The function that one part calls with the number of templates done."""
        before = sum(n * each for n, each in self.costs[:number])
        each = self.costs[number][1]

        def show_done(done: int) -> None:
            if self.show_progress is not None:
                self.show_progress(what, (before + done * each) / self.total)

        show_done(0)
        return show_done


Make = Callable[[Row, Detector, int | None, Progress], pa.Table]


def _each(
    make: Make,
    rows: Sequence[Row],
    detectors: Sequence[str | Detector],
    parts: Parts,
    n_jobs: int | None,
    show_progress: ShowProgress | None,
) -> pa.Table:
    work = [(row, detector_for(row.name, detector)) for row in rows for detector in detectors]
    schedule = Schedule([_cost(row, detector, parts) for row, detector in work], show_progress)
    tables = {}
    for number, (row, detector) in enumerate(work):
        progress = schedule.part(number, f"{row.name} · {detector.title}")
        made = partial(make, row, detector, n_jobs, progress)
        name = part_name(row, detector)
        tables[name] = parts.get(name, inputs_of(row, detector), made)
    return together(tables)


def _scored(row: Row, detector: Detector, n_jobs: int | None, progress: Progress) -> pa.Table:
    enrolled = enrolments(row.protocol, detector, row.samples, n_jobs, progress)
    scores = scores_of(row.protocol, enrolled, row.samples, n_jobs)
    table = score_table(scores, row.name, detector.name, row.protocol.name)
    return table.replace_schema_metadata({LIMITED: str(n_limited(enrolled))})


def _ranked(row: Row, detector: Detector, n_jobs: int | None, progress: Progress) -> pa.Table:
    enrolled = enrolments(row.protocol, detector, row.samples, n_jobs, progress)
    ranks = ranks_of(enrolled, row.samples, n_jobs)
    table = rank_table(ranks, row.name, detector.name, row.protocol.name)
    return table.replace_schema_metadata({LIMITED: str(n_limited(enrolled))})


def _cost(row: Row, detector: Detector, parts: Parts) -> tuple[int, float]:
    if parts.has(part_name(row, detector), inputs_of(row, detector)):
        return 0, 0.0
    keys = len(row.samples.sequences.X) / len(set(row.samples.users.tolist()))
    each = keys * (ITERATED if detector.scores_events else 1.0)
    return n_templates(row.protocol, detector, row.samples), each
