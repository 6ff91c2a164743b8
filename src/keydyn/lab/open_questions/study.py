"""The command `keydyn study open-questions`, on questions that the paper and its readers have left open."""

from __future__ import annotations

from functools import partial
from typing import Any

from keydyn.lab.frame.chosen import DataOption, DatasetOption, SeedOption, chosen_rows
from keydyn.lab.frame.study import Plan, study


@study(
    "open-questions",
    tables=(
        *("joint_likelihood", "same_text"),
        *("keys_from_timings", "rounded_timings", "timings_by_keys", "templates"),
        *("criterion", "criterion_settings", "hybrid", "hybrid_settings", "states", "state_meaning"),
    ),
    figures=(
        *("joint_likelihood", "keys_from_timings", "rounded_timings"),
        *("criterion", "hybrid", "state_numbers", "state_meaning"),
    ),
    frames=("joint_likelihood", "same_text", "keys_from_timings", "templates", "trained", "states"),
)
def open_questions(dataset: DatasetOption = None, data: DataOption = None, seed: SeedOption = 0) -> Plan[Any]:
    """Answer the paper's open questions: text as evidence, keys from timings, training, numbers of states.

    Examples:
    `keydyn study open-questions --data recordings/`

    `keydyn study open-questions --dataset fable`
    """
    from keydyn.lab.open_questions.report import QUESTIONS, run_questions

    rows, warnings = chosen_rows(dataset, data)
    facts = {
        "seed": seed,
        "data": {row.name: row.checksums for row in rows},
        "protocols": {row.name: row.protocol.describe() for row in rows},
        "questions": {question.title: dict(question.settings or {}) for question in QUESTIONS},
    }
    return Plan(partial(run_questions, rows, seed), lambda _: facts, warnings)
