"""What timings give away of the text, and what a stolen template gives away of its owner's."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from keydyn.arrays import Floats
from keydyn.detectors.markov import RecommendedPOHMM
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.long_texts import stream
from keydyn.model import POHMM, Sequences
from keydyn.model.data.vocabulary import Types
from keydyn.population import PopulationModel, Template
from keydyn.population.parameters import Parameters

OWN, OTHERS = "own", "others'"
# Users whose text is guessed, others from whom the attacker learns, and samples of each of these.
USERS, TEACHERS, LESSONS = 20, 20, 2
FIRST_GUESSES = 5
# Reweighting steps of least absolute deviations, and deviations that are none.
ITERATIONS, NEGLIGIBLE = 40, 1e-6


def text_recovery(samples: Samples, seed: int = 0, n_users: int = USERS) -> pd.DataFrame:
    """Keys guessed from timings alone, one row per user and model: the user's own and other people's.

    The last sample of each user is guessed. The own model knows the user's other samples, that of the others
    samples of people whose text is not guessed. `top_1` and `top_5` are the shares of keys that were the most
    probable, and among the five most probable; `chain_1` and `chain_5` the same without timings, from the
    event chain alone. `bits` is what timings say of a key beyond the chain: ln P(x, Ω) − ln P(x) − ln P(Ω)
    per key, in bits; first keys and keys that the model does not know are left out of it.
    """
    random = stream(seed, "text recovery")
    users = random.permutation(np.array(sorted(set(samples.users.tolist()), key=str), dtype=object))
    guessed, teachers = users[:n_users], users[n_users : n_users + TEACHERS]
    if len(teachers) == 0:
        raise ValueError(
            f"text is guessed for {n_users} users and learnt from others, but there are {len(users)}"
        )
    lessons = np.isin(samples.users.astype(object), teachers) & (samples.numbers < LESSONS)
    of_others = _fitted(samples[lessons])
    rows = []
    for user in guessed:
        own = samples[samples.users == user]
        for name, model in ((OWN, _fitted(own[: len(own) - 1])), (OTHERS, of_others)):
            rows.append({"model": name, "user": user, **recovered(model, own[len(own) - 1 :])})
    return pd.DataFrame(rows)


def _fitted(samples: Samples) -> POHMM:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model: POHMM = RecommendedPOHMM().fit(samples).model_
    return model


def recovered(model: POHMM, sample: Samples) -> dict[str, float]:
    """What the model makes of a sample's timings: the columns of `text_recovery`."""
    sequences = sample.sequences
    typed = sequences.labels().astype(object)
    known = np.isin(typed, model.event_types_)
    # A key that no sample began with would be impossible as the first.
    known[sequences.offsets[:-1]] = False
    labels = typed.copy()
    labels[~known] = None
    timed = Sequences.from_arrays(
        pd.DataFrame(sequences.X, columns=sequences.feature_names), labels, sequences.lengths
    )
    untimed = timed.with_values(np.full_like(timed.X, np.nan))
    joint, timings, text = (model.score_joint(one).sum() for one in (timed, timed.without_events(), untimed))
    row = {"keys": float(len(typed)), "bits": float((joint - timings - text) / math.log(2) / known.sum())}
    for name, one in (("top", timed), ("chain", untimed)):
        rank = _ranks(model.predict_events(one.without_events())[1], model.event_types_, typed)
        row |= {f"{name}_{k}": float((rank < k).mean()) for k in (1, FIRST_GUESSES)}
    return row


def _ranks(probability: Floats, types: Types, typed: Types) -> Floats:
    """How many types are more probable than the one typed; infinite if that is not known."""
    order = {label: k for k, label in enumerate(types.tolist())}
    place = np.array([order.get(label, -1) for label in typed.tolist()])
    own = probability[np.arange(len(place)), place]
    rank: Floats = (probability > own[:, None]).sum(axis=1).astype(np.float64)
    rank[place < 0] = np.inf
    return rank


def template_leakage(population: PopulationModel, samples: Samples) -> pd.DataFrame:
    """Which pairs of keys a template's owner typed while enrolling, told by the template: one row per user.

    The mean of a pair that was not typed is what the population expects of it given all else, and follows
    from few numbers; that of a typed pair does not. `found` is the share of typed pairs among as many pairs
    that are the least explained, `chance` that of typed pairs among all. `auc` is the probability that a
    typed pair is less explained than one that was not typed.
    """
    known = population.parameters
    pairs = slice(known.cells.n_keys, known.cells.n_cells)
    rows: list[dict[str, Any]] = []
    for user in dict.fromkeys(samples.users.tolist()):
        own = samples[samples.users == user]
        typed = np.zeros(known.cells.n_cells, dtype=bool)
        seen = known.seen(own)
        y, cell, _ = known.contexts.standardised(seen.values, seen.around(known.cells.spaces))
        typed[cell[np.isfinite(y)]] = True
        there, left = typed[pairs], unexplained(known, population.enrol(own))[pairs]
        least_explained = np.argsort(-left, kind="stable")[: there.sum()]
        rows.append(
            {
                "user": user,
                "keys": int(own.sequences.n_events),
                "auc": float(roc_auc_score(there, left)),
                "found": float(there[least_explained].mean()),
                "chance": float(there.mean()),
            }
        )
    return pd.DataFrame(rows)


def unexplained(known: Parameters, template: Template) -> Floats:
    """(C,) what no z and no effects of keys can explain of a template's means: least absolute deviations."""
    V, cells = known.loadings, known.cells
    design = np.column_stack([V, np.eye(cells.n_keys)[cells.key]])
    left = np.ones(cells.n_cells)
    for _ in range(ITERATIONS):
        weighted = design / np.maximum(left, NEGLIGIBLE)[:, None]
        ridge = NEGLIGIBLE * np.eye(design.shape[1])
        found = np.linalg.solve(weighted.T @ design + ridge, weighted.T @ template.mean)
        left = np.abs(template.mean - design @ found)
    return left
