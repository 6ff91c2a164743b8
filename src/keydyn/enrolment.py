"""Enrolled users: a model for each, and the thresholds at which a claim is believed.

Thresholds come from the enrolment samples alone: each is scored by models that were fitted without it, and a
user's threshold is where false acceptance and false rejection of these scores cross. Scores are scaled to
0 … 1 over all enrolled users, so that a threshold means the same for everybody.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from keydyn import __version__
from keydyn.arrays import Floats
from keydyn.atomic import write_text
from keydyn.detectors import Markov, fit_population, make_detector
from keydyn.engine import Progress, counting_on
from keydyn.evaluation.penalty import rank_penalty
from keydyn.evaluation.rates import error_rates
from keydyn.evaluation.scores import min_max
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import SAMPLE, sample_starts
from keydyn.model import POHMM, load
from keydyn.model.data.vocabulary import Types
from keydyn.model.fit.many import score_many

MANIFEST = "models.json"
FORMAT, VERSION = "keydyn-models", 1
FOLDS = 5


@dataclass(frozen=True)
class Enrolled:
    """Users with their models and thresholds.

    Attributes
    ----------
    detector : the detector's name; sensors : columns used beside the timings
    users : (U,); models : one per user; n_samples : (U,) how many samples each was fitted to
    thresholds : (U,) the least scaled score at which a claim is believed; NaN where it could not be estimated
    penalties : (U,) the largest rank penalty of a genuine sample; NaN where it could not be estimated
    """

    detector: str
    sensors: tuple[str, ...]
    users: Types
    models: list[POHMM]
    n_samples: np.ndarray
    thresholds: Floats
    penalties: Floats

    def number(self, user: str) -> int:
        """The place of a user; for a user who is not enrolled a `ValueError` that names some who are."""
        names = [str(name) for name in self.users]
        if user not in names:
            some = ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
            raise ValueError(f"user {user!r} is not enrolled; enrolled are {some}")
        return names.index(user)

    def samples(self, keystrokes: pd.DataFrame) -> Samples:
        """The samples in the form that the models need, without vectors."""
        return _sequence_samples(keystrokes, self.sensors)

    def scores(self, samples: Samples) -> Floats:
        """Log-likelihood of every sample under every model, (n, U)."""
        return np.ascontiguousarray(score_many(self.models, samples.sequences).T)

    def event_penalties(self, samples: Samples) -> Floats:
        """Rank penalty of every model at every event, (N, U)."""
        scores = np.stack([model.score_samples(samples.sequences) for model in self.models], axis=1)
        return rank_penalty(scores, samples.sequences.offsets)

    def save(self, folder: str | Path) -> None:
        """Write the models and then the manifest that lists them; an earlier enrolment is removed."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # An earlier manifest must not list other people's models while these are written.
        (folder / MANIFEST).unlink(missing_ok=True)
        entries = []
        for u, model in enumerate(self.models):
            name = f"user-{u:06d}.keydyn"
            model.save(folder / name)
            entries.append(
                {
                    "user": self.users.tolist()[u],
                    "file": name,
                    "samples": int(self.n_samples[u]),
                    "threshold": _number_or_none(self.thresholds[u]),
                    "penalty": _number_or_none(self.penalties[u]),
                }
            )
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "keydyn": __version__,
            "detector": self.detector,
            "sensors": list(self.sensors),
            "users": entries,
        }
        write_text(folder / MANIFEST, json.dumps(manifest, indent=1))
        written = {folder / str(entry["file"]) for entry in entries}
        for earlier in set(folder.glob("user-*.keydyn")) - written:
            earlier.unlink()


def load_enrolled(folder: str | Path) -> Enrolled:
    """Read what `Enrolled.save` wrote; a `ValueError` says what is wrong with any other folder."""
    path = Path(folder) / MANIFEST
    if not path.exists():
        raise ValueError(f"{folder} holds no enrolled users: there is no {MANIFEST} in it (see keydyn fit)")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT or manifest["version"] != VERSION:
            raise ValueError(f"format {manifest['format']!r}, version {manifest['version']!r}")
        entries: list[dict[str, Any]] = manifest["users"]
        files = [Path(folder) / str(entry["file"]) for entry in entries]
        if any(file.parent != Path(folder) for file in files):
            raise ValueError("a file outside the folder")
        users = np.array([entry["user"] for entry in entries])
        if len({str(user) for user in users}) < len(users):
            raise ValueError("a user is in it twice")
        numbers = [[entry[name] for entry in entries] for name in ("samples", "threshold", "penalty")]
        detector, sensors = str(manifest["detector"]), tuple(map(str, manifest["sensors"]))
        n_samples = np.array(numbers[0], dtype=np.int64)
        thresholds, penalties = (np.array(column, dtype=np.float64) for column in numbers[1:])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not entries:
        raise ValueError(f"{path} lists no users")
    return Enrolled(
        detector, sensors, users, [load(file) for file in files], n_samples, thresholds, penalties
    )


def enrol(
    keystrokes: pd.DataFrame,
    detector: str = "pohmm",
    sensors: tuple[str, ...] = (),
    min_samples: int = 2,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Enrolled:
    """Fit a model to each user's samples and find the thresholds.

    `detector` is hmm, pohmm or pohmm-recommended: their templates can be stored, and need only keys and times
    to score samples and to watch sessions. `progress` is called with the number of models fitted so far, of
    U·(folds + 1).
    """
    pattern = make_detector(detector)
    if not isinstance(pattern, Markov):
        raise ValueError(f"{detector} cannot enrol users here; hmm, pohmm and pohmm-recommended can")
    samples = _sequence_samples(keystrokes, sensors)
    codes, names = pd.factorize(samples.users)
    counts = np.bincount(codes)
    few = np.flatnonzero(counts < min_samples)
    if len(few):
        raise ValueError(
            f"user {names[few[0]]} has {counts[few[0]]} samples, fewer than the {min_samples} that are needed"
        )
    population = fit_population(pattern, samples, n_jobs, progress)
    models = [template.model_ for template in population.detectors if isinstance(template, Markov)]
    later = counting_on(progress, len(models))
    thresholds, penalties = _thresholds(pattern, samples, population.users, n_jobs, later)
    return Enrolled(detector, sensors, population.users, models, counts, thresholds, penalties)


def n_fits(keystrokes: pd.DataFrame) -> int:
    """How many models `enrol` will fit, for a progress bar."""
    users = keystrokes.iloc[sample_starts(keystrokes)]["user"]
    return users.nunique() * (_n_folds(users.to_numpy()) + 1)


def _n_folds(users: Types) -> int:
    """As many as the user with the fewest samples has, five at most; 0 where nothing can be held out."""
    counts = np.bincount(pd.factorize(users)[0])
    return min(FOLDS, int(counts.min())) if len(counts) > 1 and counts.min() > 1 else 0


def _thresholds(
    pattern: Markov, samples: Samples, users: Types, n_jobs: int | None, progress: Progress | None
) -> tuple[Floats, Floats]:
    """Each user's threshold and largest genuine penalty, from models that were fitted without the sample."""
    n_folds = _n_folds(samples.users)
    if n_folds == 0:
        return np.full(len(users), np.nan), np.full(len(users), np.nan)
    fold_of = samples.numbers % n_folds
    owners = pd.Index(users).get_indexer(pd.Index(samples.users))
    scaled = np.empty((len(samples), len(users)))
    penalties = np.zeros(len(users))
    for fold in range(n_folds):
        held_out, known = samples[fold_of == fold], samples[fold_of != fold]
        n_before = fold * len(users)
        population = fit_population(pattern, known, n_jobs, counting_on(progress, n_before)).of(users)
        events, offsets = population.score_events(held_out, n_jobs), held_out.sequences.offsets
        # The log-likelihood of a sample is the sum of its events'.
        scaled[fold_of == fold] = min_max(np.add.reduceat(events, offsets[:-1], axis=0))
        event_owners = np.repeat(owners[fold_of == fold], held_out.sequences.lengths)
        genuine = rank_penalty(events, offsets)[np.arange(len(events)), event_owners]
        np.maximum.at(penalties, event_owners, genuine)
    thresholds = [_crossing(scaled[owners == u, u], scaled[owners != u, u]) for u in range(len(users))]
    return np.array(thresholds), penalties


def _crossing(genuine: Floats, impostor: Floats) -> float:
    """A threshold at which false acceptance and false rejection are as close to each other as possible.

    It lies halfway to the next score below, so that a sample need not match another to the last digit.
    """
    accepted, rejected = error_rates(genuine, impostor)
    levels = np.unique(np.concatenate([genuine, impostor]))[::-1]
    # The first point of the rates accepts nobody; there is no score for it.
    nearest = int(np.argmin(np.abs(accepted - rejected)[1:]))
    return float(levels[nearest : nearest + 2].mean())


def _sequence_samples(keystrokes: pd.DataFrame, sensors: tuple[str, ...]) -> Samples:
    """Samples without vectors, which the Markov models do not need."""
    starts = sample_starts(keystrokes)
    index = pd.MultiIndex.from_frame(keystrokes.iloc[starts][SAMPLE])
    samples = Samples.of(keystrokes, sensors, vectors=pd.DataFrame(index=index))
    _refuse_zero_times(samples)
    return samples


def _refuse_zero_times(samples: Samples) -> None:
    """A time of 0 ms has no logarithm; a `ValueError` says where it is and what can be done."""
    sequences = samples.sequences
    zero = (sequences.X <= 0) & (np.array(samples.emission) == "lognormal")
    if zero.any():
        row, k = (int(place) for place in np.argwhere(zero)[0])
        s = int(np.searchsorted(sequences.offsets, row, side="right")) - 1
        user, session = samples.index[s]
        name = (sequences.feature_names or ())[k]
        raise ValueError(
            f"user {user}, session {session}, keystroke {row - int(sequences.offsets[s]) + 1}: {name} is "
            "0 ms, which no model of times can take; --clean leaves such times out, as do the rules "
            "equal_presses and zero_durations of keydyn.keystrokes.clean"
        )


def _number_or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
