"""Recognition with one to five hidden states, and the meaning of these states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from keydyn.arrays import Floats
from keydyn.detectors import Detector, PopulationDetector
from keydyn.detectors.markov import Markov, RecommendedPOHMM
from keydyn.evaluation.continuous.rejection import continuous, has_published_thresholds
from keydyn.evaluation.protocols.running import FittedSplit, enrolments, n_templates, scores_and_ranks
from keydyn.evaluation.rates.verification import recognition
from keydyn.evaluation.scores import Scores
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.resuming import Piece
from keydyn.lab.frame.score_datasets import inputs_of
from keydyn.lab.frame.study_data import FirstFolds, Row
from keydyn.model import POHMM
from keydyn.population.chain import CLASSES, classes_of

RECOGNISED, MEANT = "states", "state_meaning"
STATES = (1, 2, 3, 4, 5)
# The number of first enrolments used in a row whose population of eleven further features takes long to
# learn.
FOLDS = {"mobile+": 4}
MODELS = {"pohmm": "POHMM", "population": "Population's chain"}
# The factor by which each further state prolongs fitting a template; used for the progress bar only.
GROWTH = 1.5


class POHMMOfStates(RecommendedPOHMM):
    """The recommended POHMM with another number of states."""

    name: ClassVar[str] = "pohmm-states"
    title: ClassVar[str] = "POHMM by its number of states"

    def __init__(self, n_states: int = 2) -> None:
        super().__init__()
        self.n_states = n_states

    def pattern(self) -> POHMM:
        pattern = super().pattern()
        pattern.set_params(n_states=self.n_states)
        return pattern


def detector_of(model: str, n_states: int) -> Detector:
    """The POHMM or the population model with this many states."""
    return POHMMOfStates(n_states) if model == "pohmm" else PopulationDetector(hidden_states=n_states)


def pieces(rows: Sequence[Row], seed: int) -> Mapping[str, Sequence[Piece]]:
    """A piece for each row, model and number of states, with recognition and the meaning of states."""
    made = [_piece(row, model, n) for row, model, n in product(rows, MODELS, STATES)]
    return {RECOGNISED: made}


def _piece(row: Row, model: str, n_states: int) -> Piece:
    detector, protocol = detector_of(model, n_states), protocol_of(row)
    events = row.samples.sequences.n_events / len(row.samples.people[1])
    cost = n_templates(protocol, detector, row.samples) * events * GROWTH**n_states
    inputs = inputs_of(row, detector) | {"protocol": protocol.describe()}
    call = partial(found, row, model, n_states)
    return Piece((f"states-{row.name}-{model}-{n_states}",), inputs, [call], f"{row.name} · {model}", cost)


def protocol_of(row: Row) -> Any:
    """The protocol of the row, or its first enrolments."""
    return FirstFolds(row.protocol, FOLDS[row.name]) if row.name in FOLDS else row.protocol


def found(row: Row, model: str, n_states: int) -> pd.DataFrame:
    """A row for each user, and one for each state and class of keys; `part` tells them apart.

    For a user: acc, eer, rejection (the mean of the maximum rejection times, in keys) and log_likelihood, per
    key, of samples left out of the user's enrolment. For a state and a class of keys: the number of keys, the
    number of those in the state, and the mean logarithm of their intervals, under their owners' templates,
    which were fitted without them.
    """
    protocol, detector = protocol_of(row), detector_of(model, n_states)
    enrolled = enrolments(protocol, detector, row.samples)
    scores, ranks = scores_and_ranks(protocol, enrolled, row.samples)
    users = recognition(scores)[["acc", "eer"]]
    times = pd.Series(np.nan, index=users.index)
    if has_published_thresholds(ranks):
        per_sample = continuous(ranks).per_sample
        times = per_sample.groupby("user")["rejection_time"].mean().reindex(users.index)
    held_out = own_likelihoods(scores, row.samples).reindex(users.index)
    people = users.assign(rejection=times, log_likelihood=held_out).rename_axis("user").reset_index()
    meaning = meanings(enrolled[0], row.samples, n_states)
    both = [people.astype({"user": str}).assign(part=RECOGNISED), meaning.assign(part=MEANT)]
    return pd.concat(both, ignore_index=True).assign(dataset=row.name, model=model, states=n_states)


def own_likelihoods(scores: Scores, samples: Samples) -> pd.Series[float]:
    """ln P per key of each user's queries under the user's own template."""
    keys = pd.Series(samples.sequences.lengths.astype(np.float64), index=samples.index)
    place = {user: u for u, user in enumerate(scores.users.tolist())}
    own = [place[user] for user in scores.owners.tolist()]
    table = pd.DataFrame({"user": scores.owners, "score": scores.raw[np.arange(len(own)), own]})
    table["keys"] = keys.loc[list(zip(scores.owners, scores.sessions, strict=True))].to_numpy()
    sums = table.groupby("user")[["score", "keys"]].sum()
    return sums["score"] / sums["keys"]


def meanings(one: FittedSplit, samples: Samples, n_states: int) -> pd.DataFrame:
    """A frame of class, keys, state, in_state (number of keys) and log_interval, over a split's people."""
    asked = samples[one.split.query]
    keys = np.zeros(len(CLASSES))
    inside, timed, logs = (np.zeros((len(CLASSES), n_states)) for _ in range(3))
    tau = list(samples.sequences.feature_names or ()).index("tau")
    for user, template in zip(one.population.users.tolist(), one.population.detectors, strict=True):
        own = asked[asked.users == user]
        if len(own) == 0:
            continue
        posterior = posterior_of(template, own, tau)
        kind = classes_of(own.sequences.event_types)[own.sequences.codes]
        interval = own.sequences.X[:, tau]
        there = np.isfinite(interval) & (interval > 0.0)
        keys += np.bincount(kind, minlength=len(CLASSES))
        for j in range(n_states):
            inside[:, j] += np.bincount(kind, posterior[:, j], len(CLASSES))
            weight = posterior[there, j]
            timed[:, j] += np.bincount(kind[there], weight, len(CLASSES))
            logs[:, j] += np.bincount(kind[there], weight * np.log(interval[there]), len(CLASSES))
    rows = [
        {
            "class": CLASSES[c],
            "keys": keys[c],
            "state": j + 1,
            "in_state": inside[c, j],
            "timed": timed[c, j],
            "log_interval": logs[c, j] / timed[c, j] if timed[c, j] > 0.0 else np.nan,
        }
        for c in range(len(CLASSES))
        for j in range(n_states)
        if keys[c] > 0
    ]
    return pd.DataFrame(rows)


def posterior_of(template: Detector, samples: Samples, tau: int) -> Floats:
    """The probability (N, S) of each state at each key of the samples, under a template.

    The states of a POHMM are ordered by the mean intervals of their marginal distributions.
    """
    if isinstance(template, Markov):
        location = template.model_.marginal_.emission[tau].loc
        posterior: Floats = template.model_.predict_proba(samples.sequences)[:, np.argsort(location.ravel())]
        return posterior
    assert isinstance(template, PopulationDetector)
    return template.people.predict_proba(template.template_, samples)
