"""How much of a text do its timings reveal? The unknown event types of Section 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from keydyn.detectors.markov import RecommendedPOHMM
from keydyn.lab.drawing.curves import user_curves_figure
from keydyn.lab.drawing.panels import curves_of, estimates_of, intervals_figure
from keydyn.lab.frame.chosen import SIMULATED
from keydyn.lab.frame.names import dataset_name, listed, percent
from keydyn.lab.frame.resuming import Piece
from keydyn.lab.frame.score_datasets import inputs_of
from keydyn.lab.frame.study import Values
from keydyn.lab.frame.study_data import Row
from keydyn.lab.frame.tables import DATASET, Column, Table, estimate_column, share_column
from keydyn.lab.open_questions.guessed_text import CHAIN, LETTERS, ORDERS, READING
from keydyn.lab.open_questions.question import Frames, Question, QuestionFigure, QuestionTable, mean_columns
from keydyn.lab.open_questions.text_recovery import (
    GRAINS,
    KEYS,
    LENGTHS,
    LESSONS,
    LONGEST,
    OTHERS,
    OWN,
    OWN_LESSONS,
    PEOPLE,
    leakage,
    people_of,
    readings,
    recovery,
)

NAME, BY_GRAIN, BY_LENGTH, TEMPLATES = "keys_from_timings", "rounded_timings", "timings_by_keys", "templates"
ATTACKED, TEXTS = ("essay", "fable", "password", SIMULATED), ("essay", "fable")
# The number of people whose text is guessed in one call.
TOGETHER = 5
RECOVERED = ("top_1", "top_5", "word_1", "word_5")


def pieces(rows: Sequence[Row], seed: int) -> Mapping[str, Sequence[Piece]]:
    """Pieces that guess text from timings of some people of each dataset, and from templates of texts."""
    read = readings(rows, seed)
    here = [row for row in rows if row.name in ATTACKED]
    return {
        NAME: [_piece(row, seed, read.get(row.name)) for row in here],
        TEMPLATES: [
            Piece(
                (f"{row.name}-{TEMPLATES}",),
                inputs_of(row, RecommendedPOHMM()),
                [partial(leakage, row)],
                f"{row.name} · stolen templates",
                float(row.samples.sequences.n_events),
            )
            for row in here
            if row.name in TEXTS
        ],
    }


def _piece(row: Row, seed: int, reading: Any) -> Piece:
    n = len(people_of(row.samples, seed)[0])
    parts = np.array_split(np.arange(n), -(-n // TOGETHER))
    inputs = inputs_of(row, RecommendedPOHMM()) | {
        "seed": seed,
        "numbers": [PEOPLE, KEYS, OWN_LESSONS, LESSONS, LONGEST, LENGTHS, GRAINS],
        "texts": ORDERS,
        "reading": None if reading is None else [len(reading), int(reading.sequences.n_events)],
    }
    calls = [partial(recovery, row, seed, part.tolist(), reading) for part in parts]
    cost = 4.0 * row.samples.sequences.n_events
    return Piece((f"{row.name}-{NAME}",), inputs, calls, f"{row.name} · keys from timings", cost)


def _means(found: pd.DataFrame, figures: Sequence[str], seed: int) -> dict[str, Any]:
    """Means over people with their intervals; empty if no one has the figure, such as for words."""
    line: dict[str, Any] = {"people": found["user"].nunique()}
    for figure in figures:
        line |= mean_columns(found[figure].dropna(), figure, seed)
    return line


def _lines(
    measured: Frames, what: str, keys: Sequence[str], figures: Sequence[str], seed: int
) -> pd.DataFrame:
    found = measured[NAME]
    rows = [
        dict(zip(keys, values, strict=True)) | _means(several, figures, seed)
        for values, several in found[found["what"] == what].groupby(list(keys), sort=False)
    ]
    frame = pd.DataFrame(rows)
    # Missing values in other rows have turned these whole numbers into floats.
    return frame.astype({name: np.int64 for name in ("grain", "length") if name in frame})


SOURCE, BITS = Column("Attacker knows", "source"), estimate_column("Bits per key", "bits", 2)
GUESSED = (
    estimate_column("Keys, %", "top_1", 1, 100.0),
    estimate_column("Among five, %", "top_5", 1, 100.0),
    BITS,
)


def recovered_table(measured: Frames, seed: int) -> Table:
    """The shares recovered, with and without timings, by the attacker's knowledge."""
    figures = [*RECOVERED, *(f"alone_{name}" for name in RECOVERED), "bits", "known_keys"]
    frame = _lines(measured, "text", ("dataset", "source", "text"), figures, seed)
    frame["chance"] = 1.0 / frame["known_keys"]
    columns = [
        *(DATASET, SOURCE, Column("and of the text", "text")),
        estimate_column("Keys, %", "top_1", 1, 100.0),
        share_column("without timings", "alone_top_1"),
        share_column("by chance", "chance"),
        estimate_column("Among five, %", "top_5", 1, 100.0),
        share_column("without timings (five)", "alone_top_5"),
        estimate_column("Words, %", "word_1", 1, 100.0),
        share_column("without timings (words)", "alone_word_1"),
        estimate_column("Words among five, %", "word_5", 1, 100.0),
        share_column("without timings (words, five)", "alone_word_5"),
        BITS,
    ]
    note = (
        "Means over people, with 95 % intervals. Keys: those that are the most probable at their place given "
        "all timings; among five: among the five most probable. Words: of two letters or more, all of whose "
        "keys are the most probable; among five: of the five most probable strings of as many keys. By "
        "chance: one of the keys that the attacker knows. Bits per key: what timings reveal about a key "
        "beyond the event chain; less than 0 where the model of times misleads, as that of another person "
        "does."
    )
    return Table(NAME, "What timings give away of the text", note, frame, columns, labels=3)


def grain_table(measured: Frames, seed: int) -> Table:
    """The amount that rounded times reveal."""
    frame = _lines(measured, "grain", ("dataset", "source", "grain"), ("top_1", "top_5", "bits"), seed)
    columns = [
        *(DATASET, SOURCE, Column("Rounded to", "grain", "{} ms".format)),
        *GUESSED,
    ]
    note = (
        "With the event chain. Every interval and hold time is rounded, also in the samples that the "
        "attacker learns from; one that is rounded to 0 counts as half a step. Fable and essay were recorded "
        "in whole milliseconds, many people's on a grid of 16 ms. Bits below 0 at 100 ms are due to a "
        "density that treats times as continuous: they show what this attacker loses, not that nothing is "
        "left."
    )
    return Table(BY_GRAIN, "Rounded times", note, frame, columns, labels=3)


def length_table(measured: Frames, seed: int) -> Table:
    """The amount that times reveal, by the number of consecutive keys observed."""
    frame = _lines(measured, "length", ("dataset", "source", "length"), ("top_1", "top_5", "bits"), seed)
    columns = [
        *(DATASET, SOURCE, Column("Keys observed", "length")),
        *GUESSED,
        Column("Bits in all", ("bits", "length"), lambda bits, length: f"{bits * length:.1f}"),
    ]
    note = "With the event chain. The text is cut into runs of this length, and each is guessed separately."
    return Table(BY_LENGTH, "By the number of keys observed", note, frame, columns, labels=3)


def template_table(measured: Frames, seed: int) -> Table | None:
    """The pairs that a stolen template reveals about its owner's typing; None without texts."""
    if TEMPLATES not in measured:
        return None
    rows = [
        {"dataset": dataset} | _means(found, ("found", "chance", "auc"), seed)
        for dataset, found in measured[TEMPLATES].groupby("dataset", sort=False)
    ]
    columns = [
        *(DATASET, Column("People", "people")),
        estimate_column("Pairs found, %", "found", 1, 100.0),
        share_column("By chance", "chance"),
        estimate_column("AUC", "auc", 3),
    ]
    note = (
        "As many pairs are guessed as were typed for enrolment: those that the population explains worst. "
        "The population has learnt from every second person, the templates are of the others. AUC: the "
        "probability that a typed pair is explained worse than one that was not typed."
    )
    return Table(TEMPLATES, "Pairs of keys that a stolen template reveals", note, pd.DataFrame(rows), columns)


def draw_recovered(values: Values) -> Figure:
    """Plot the keys recovered with and without timings, for each attacker."""
    series = {"with timings": "top_1", "without": "alone_top_1"}
    panels = estimates_of(values[NAME], series, lambda row: f"{row['source']}, {row['text']}", 100.0)
    return intervals_figure(panels, "keys recovered, %")


def draw_grain(values: Values) -> Figure:
    """Plot the keys recovered against the rounding of times."""
    titles = {"keys recovered": "top_1", "among five guesses": "top_5"}
    return user_curves_figure(curves_of(values[BY_GRAIN], "grain", titles, "source"), "times rounded to, ms")


def answer(values: Values) -> tuple[str, str]:
    """The share of keys that attackers recover, the share of words, and the effect of rounding."""
    own, others, alone, words, steps = [], [], [], [], []
    for dataset, rows in values[NAME].groupby("dataset", sort=False):
        # For a fixed text, the event chain is the text itself.
        known = CHAIN if dataset in TEXTS else LETTERS
        by_source: dict[Any, Any] = rows[rows["text"] == known].set_index("source").to_dict("index")
        name, person = dataset_name(dataset), by_source[OWN]
        own.append(f"{percent(person['top_1'])} ({name})")
        others.append(percent(by_source[OTHERS]["top_1"]))
        alone.append(percent(person["alone_top_1"]))
        if person["word_1"] == person["word_1"]:
            words.append(f"{percent(person['word_1'])} ({name})")
    for dataset, rows in values[BY_GRAIN].groupby("dataset", sort=False):
        bits = rows[rows["source"] == OWN].set_index("grain")["bits"]
        fine, grid, coarse = (f"{bits[grain]:.2f}" for grain in (GRAINS[0], GRAINS[2], GRAINS[3]))
        steps.append(f"{fine}, {grid} and {coarse} ({dataset_name(dataset)})")
    of_words = f"{listed(words)} of words, and " if words else ""
    return (
        f"With the typist's own model, timings give away {listed(own)} of keys; with a model of other people "
        f"{listed(others)}, and without timings {listed(alone)} would be guessed.",
        f"They give away {of_words}in steps of {GRAINS[0]:g}, {GRAINS[2]:g} and {GRAINS[3]:g} ms, "
        f"{listed(steps)} bits per key, where less than 0 misleads the attacker.",
    )


QUESTION = Question(
    "Keys from timings",
    "How much of a text do its timings give away?",
    pieces,
    (NAME,),
    {
        NAME: QuestionTable(
            recovered_table,
            "Compare each figure with the same one without timings: the difference is what timings give "
            "away.",
        ),
        BY_GRAIN: QuestionTable(grain_table, "Read down: coarser times give away less of the text."),
        BY_LENGTH: QuestionTable(
            length_table,
            "Read down: the keys recovered, by the number of consecutive keys that are observed.",
        ),
        TEMPLATES: QuestionTable(
            template_table, "Compare pairs found with chance: the difference is what a template gives away."
        ),
    },
    answer,
    {
        NAME: QuestionFigure(
            draw_recovered,
            "Keys recovered with and without timings, by the times and the knowledge of the text that the "
            "attacker has, with 95 % intervals over people.",
            "A panel for each dataset, with two dots and intervals for each attacker.",
        ),
        BY_GRAIN: QuestionFigure(
            draw_grain,
            "Shares of keys recovered if times are rounded, with the event chain and 95 % bands over people.",
            "A column of two panels for each dataset, with lines that fall at 100 ms.",
        ),
    },
    (
        f"Text is guessed of up to {PEOPLE} people of each dataset, drawn by the seed: up to {LONGEST} keys "
        "of each person's last samples. The attacker's model of times is a POHMM with the recommended "
        f"settings of the person's earlier samples ({OWN_LESSONS} at most), of as many samples of another "
        f"person, or of some samples of each of up to {PEOPLE} other people, whose text is not guessed.",
        f"Of the text, the attacker knows how often each key occurs ({LETTERS}), which key follows which "
        f"({CHAIN}), both from the samples that the times were learnt from, or n-grams of order "
        f"{ORDERS[READING]} of essays by people whose text is not guessed ({READING}). Fable was copied: the "
        "event chain of any person's fable contains part of the text. All samples of password have one "
        f"text, so the event chain is the text itself, and the line to look at is {LETTERS}.",
    ),
    {"people": PEOPLE, "texts": ORDERS, "lengths": LENGTHS, "grains in ms": GRAINS},
)
