"""Compares possible readings of Section 5.1 with the published rates of rejection.

`python -m keydyn.lab.goodness_of_fit.readings --data FOLDER` measures them on some of the people, drawn by
seed, resumes an interrupted run, and writes the table into the folder `out/readings`. No reading is adopted
because it comes close; `keydyn study goodness-of-fit` keeps the one that follows from the equations.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from keydyn.arrays import Floats
from keydyn.keystrokes.schema import check_keystrokes
from keydyn.keystrokes.timing import timing_features
from keydyn.lab.frame.chosen import chosen_texts
from keydyn.lab.frame.resuming import Parts, Piece, frame_of, run_pieces, text_piece
from keydyn.lab.frame.study_data import MODELS, LongText, pattern, stream
from keydyn.lab.frame.table_text import markdown
from keydyn.lab.frame.tables import Table, plain_table, write_table
from keydyn.lab.goodness_of_fit.measurements import LEVEL, PUBLISHED
from keydyn.model import Sequences
from keydyn.model.check import areas, goodness, surrogates
from keydyn.model.engine import walks
from keydyn.model.engine.sums import weighted_sums
from keydyn.model.theta.lattice import walked
from keydyn.model.theta.parameters import Parameters
from keydyn.parallel import using
from keydyn.progress import share_bar

SESSION, SAMPLE, SHORT = "session", "sample", "short surrogates"
AS_FITTED, NEVER = "as fitted", "never"
BY_TYPE = "by type"
PEOPLE, SURROGATES = 20, 39


@dataclass(frozen=True)
class Reading:
    """One way to read the text of the paper; the first of `READINGS` is that of the study.

    Attributes
    ----------
    features : the features that the model is fitted to
    length : the data of the test: the user's whole session; one sample; or the session, with surrogates as
        long as one sample
    refit : whether models are fitted to the surrogates
    smoothing : "as fitted"; "never"; or None, which smooths the model but not those of the surrogates
    ties : whether tied values are kept; otherwise each is moved randomly towards its neighbours
    """

    features: tuple[str, ...] = ("tau",)
    length: str = SESSION
    refit: bool = True
    smoothing: str | None = AS_FITTED
    ties: bool = True


READINGS: dict[str, Reading] = {
    "as in the study": Reading(),
    "surrogates not fitted again": Reading(refit=False),
    "smoothed, but not in the refit": Reading(smoothing=None),
    "never smoothed": Reading(smoothing=NEVER),
    "ties broken": Reading(ties=False),
    "one sample": Reading(length=SAMPLE),
    "session, surrogates of one sample": Reading(length=SHORT),
    "interval and hold": Reading(features=("tau", "duration")),
}


def sequences_by_user(keystrokes: pd.DataFrame) -> dict[Any, pd.DataFrame]:
    """Both times of every keystroke with an interval, by user."""
    keystrokes = check_keystrokes(keystrokes)
    times = timing_features(keystrokes, first="missing")[["tau", "duration"]]
    table = keystrokes[["user", "session", "keyname"]].join(times)
    return dict(iter(table[table["tau"].notna()].groupby("user", sort=False)))


def read_as(table: pd.DataFrame, reading: Reading, random: np.random.Generator) -> Sequences:
    """The sequences that a model is fitted to under a reading."""
    if reading.length == SAMPLE:
        table = table[table["session"] == table["session"].iloc[0]]
    if not reading.ties:
        spread = {name: without_ties(table[name].to_numpy(), random) for name in reading.features}
        table = table.assign(**spread)
    features = list(reading.features)
    sequences = Sequences.from_frame(table, features, event="keyname", sequence="session")
    return Sequences.of_checked(
        sequences.X, sequences.codes, sequences.event_types, sequences.offsets, None, sequences.names
    )


def without_ties(values: Floats, random: np.random.Generator) -> Floats:
    """Move tied values uniformly within half the distance to their neighbours; others stay."""
    distinct, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(distinct) < 2:
        return values
    gaps = np.diff(distinct) / 2.0
    below, above = np.concatenate([gaps[:1], gaps]), np.concatenate([gaps, gaps[-1:]])
    # All values stay above zero.
    below = np.minimum(below, distinct / 2.0)
    moved = random.uniform(distinct[place] - below[place], distinct[place] + above[place])
    spread: Floats = np.where(counts[place] > 1, moved, values)
    return spread


def fits_of(
    model: str, reading: Reading, sequences: Sequences, n_surrogates: int, random: np.random.Generator
) -> goodness.Refits:
    """The model of the data and those of its surrogates under a reading."""
    first, again = patterns(model, reading)
    data = sequences.without_events() if model == "hmm" else sequences
    fitted = surrogates.refit(first, [data], None)[0]
    like = data[:1] if reading.length == SHORT else data
    drawn = surrogates.draw_many(fitted._parameters, like, random.spawn(n_surrogates))
    items = [one.sequences for one in drawn]
    models = surrogates.refit(again, items, None) if reading.refit else [fitted] * n_surrogates
    return goodness.Refits((fitted, data), list(zip(models, items, strict=True)), [], 0)


def patterns(model: str, reading: Reading) -> tuple[Any, Any]:
    """The models to fit to the data and to surrogates."""
    published, bare = pattern(model, "published"), pattern(model, "published", smoothing=None)
    return {
        AS_FITTED: (published, published),
        NEVER: (bare, bare),
        None: (published, bare),
    }[reading.smoothing]


def area_by_type(parameters: Parameters, sequences: Sequences, feature: int) -> float:
    """The mean over events of the area between data and model among events of the same type."""
    index = surrogates.index_of(parameters, sequences)
    occupancy = np.empty((len(index.codes), parameters.n_states))
    walks.propagate(walked(parameters, index), occupancy)
    emission = parameters.emission_tables[feature]
    n_rows = len(next(iter(emission.params.values())))
    shares = weighted_sums(index.codes, n_rows, occupancy)
    x, total = sequences.X[:, feature], 0.0
    for code in np.unique(index.codes):
        own = index.codes == code
        used = np.zeros(shares.shape, dtype=bool)
        used[code] = shares[code] > 0.0
        weights = shares[used] / shares[code].sum()
        mixture = areas.Mixture(emission.distribution, emission.at(used), weights, over_log=False)
        total += own.sum() * areas.area(mixture.points(x[own]), mixture)
    return float(total / len(x))


def p_values(found: goodness.Refits, marginals: Sequence[str]) -> dict[str, float]:
    """Two-sided p-values by statistic: the area of each marginal, of all features together, and by type."""
    statistics: dict[str, goodness.GoodnessOfFit] = {}
    for marginal in marginals:
        test = goodness.judged_by_areas(found, 0, "linear", marginal)
        statistics[marginal] = test
        if len(test.areas) > 1:
            together = test.areas.sum(keepdims=True), test.surrogate_areas.sum(axis=1, keepdims=True)
            statistics[f"{marginal}, both"] = _judged(*together)
    if len(marginals) > 1:
        fits = [found.data, *found.first]
        each = np.array([[area_by_type(one._parameters, data, 0)] for one, data in fits])
        statistics[BY_TYPE] = _judged(each[0], each[1:])
    return {name: test.p_value for name, test in statistics.items()}


def _judged(of_data: Floats, of_surrogates: Floats) -> goodness.GoodnessOfFit:
    return goodness.GoodnessOfFit(of_data, of_surrogates, np.empty((0, 1)), ["linear"], 0, 0)


def one_person(
    table: pd.DataFrame, labels: dict[str, Any], n_surrogates: int, seed: int
) -> list[dict[str, Any]]:
    """The p-values of one person; `labels` are the dataset, the user, the model and the reading."""
    random = stream(seed, "readings", *labels.values())
    reading, model = READINGS[labels["reading"]], labels["model"]
    sequences = read_as(table, reading, random)
    found = fits_of(model, reading, sequences, n_surrogates, random)
    # With one event type, all marginals are the same.
    marginals = areas.MARGINALS if model == "pohmm" else areas.MARGINALS[:1]
    return [labels | {"statistic": one, "p": p} for one, p in p_values(found, marginals).items()]


def pieces_of(text: LongText, n_people: int, n_surrogates: int, seed: int) -> list[Piece]:
    """A piece for each model and reading; people are drawn by seed."""
    users = sequences_by_user(text.keystrokes)
    drawn = stream(seed, "people", text.name).permutation(len(users))[:n_people]
    chosen = [list(users)[place] for place in sorted(drawn.tolist())]
    found = []
    for model in MODELS:
        for name, reading in READINGS.items():
            # A model with one event type has nothing to smooth.
            if model == "hmm" and reading.smoothing != AS_FITTED:
                continue
            labels = {"dataset": text.name, "model": model, "reading": name}
            calls = [
                partial(one_person, users[user], labels | {"user": user}, n_surrogates, seed)
                for user in chosen
            ]
            settings = {
                "people": n_people,
                "surrogates": n_surrogates,
                "seed": seed,
                "reading": repr(reading),
            }
            title = f"{text.name}-{model}-{name.replace(' ', '-').replace(',', '')}"
            found.append(text_piece(title, text, calls, **settings))
    return found


def rates(tests: pd.DataFrame) -> pd.DataFrame:
    """The share rejected at 0.05 with its interval, and the published share."""
    rows = []
    keys = ["reading", "statistic", "dataset", "model"]
    for values, own in tests.groupby(keys, sort=False):
        labels = dict(zip(keys, map(str, values), strict=True))
        rejected = int((own["p"] <= LEVEL).sum())
        interval = binomtest(rejected, len(own)).proportion_ci(method="wilson")
        published = PUBLISHED.get((labels["dataset"], labels["model"]), np.nan)
        figures = {"rejected": rejected / len(own), "low": interval.low, "high": interval.high}
        near = bool(interval.low <= published <= interval.high)
        rows.append(labels | figures | {"published": published, "near": near, "people": len(own)})
    return pd.DataFrame(rows)


def summary(measured: pd.DataFrame) -> pd.DataFrame:
    """A line per reading and statistic: its rates, and how many published ones lie in their intervals.

    An HMM has a single statistic, which is repeated for each of the POHMM's.
    """
    lines = []
    pohmm, hmm = (measured[measured["model"] == model] for model in ("pohmm", "hmm"))
    for (reading, statistic), own in pohmm.groupby(["reading", "statistic"], sort=False):
        both = "exact, both" if str(statistic).endswith("both") else "exact"
        like = hmm[(hmm["reading"] == reading) & (hmm["statistic"] == both)]
        line: dict[str, Any] = {"reading": reading, "statistic": statistic}
        near = []
        for rows in (like, own):
            for row in rows.to_dict("records"):
                text = f"{row['rejected']:.2f} ({row['low']:.2f}–{row['high']:.2f})"
                line[f"{row['dataset']} {row['model']}"] = text
                near.append(row["near"])
        lines.append(line | {"near": f"{sum(near)} of {len(near)}"})
    columns = ["reading", "statistic", *(f"{d} {m}" for d in dict.fromkeys(pohmm["dataset"]) for m in MODELS)]
    return pd.DataFrame(lines).reindex(columns=[*columns, "near"])


def table_of(measured: pd.DataFrame, n_surrogates: int) -> Table:
    """The summary as a table."""
    published = ", ".join(f"{d} {m} {rate:.2f}" for (d, m), rate in PUBLISHED.items())
    note = (
        f"Share of {measured['people'].max()} people of each dataset, drawn by seed, who are rejected at "
        f"0.05 two-sided, with {n_surrogates} surrogates and Wilson's 95 % interval. Published: "
        f"{published}. Near: how many published rates lie in these intervals. Statistic: the area of the "
        "marginal as corrected (exact), as printed, or by states, of τ or of both features together; or the "
        "mean area of τ among events of one type."
    )
    title = "Readings of the test of fit"
    return plain_table("readings", title, note, summary(measured), labels=2)


def main(arguments: Sequence[str]) -> int:
    """Measure all readings, and print and write the table."""
    parser = argparse.ArgumentParser(prog="python -m keydyn.lab.goodness_of_fit.readings")
    parser.add_argument("--data", type=Path, help="folder with the recordings; or set KEYDYN_DATA")
    parser.add_argument("--dataset", action="append", help="fable, essay or simulated; repeatable")
    parser.add_argument("--people", type=int, default=PEOPLE, help="people of each dataset")
    parser.add_argument("--surrogates", type=int, default=SURROGATES, help="per test; 39 or more")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for all cores")
    parser.add_argument("--engine", default="", help="address of a Dask scheduler")
    parser.add_argument("--out", type=Path, default=Path("out/readings"))
    given = parser.parse_args(arguments)
    try:
        texts, warnings = chosen_texts(given.dataset, given.data)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    for line in warnings:
        print(line, file=sys.stderr)
    with using(given.engine), share_bar(hidden=False) as show_progress:
        parts = Parts(given.out / "parts", n_jobs=given.jobs, show_progress=show_progress)
        pieces = [
            piece for text in texts for piece in pieces_of(text, given.people, given.surrogates, given.seed)
        ]
        measured = rates(frame_of(run_pieces(pieces, parts), pieces))
    table = table_of(measured, given.surrogates)
    write_table(table, given.out / "tables")
    measured.to_csv(given.out / "tables" / "rates.csv", index=False)
    print(markdown(table))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
