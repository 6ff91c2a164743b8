"""The measurements of the transfer study: people of one place, judged by a background from another.

Population, cohort and calibration of a place come from `Background.learnt`: the calibration is learnt from
claims among the place's own people, each in turn left out of the population, as a program with recordings of
one place would do it. The shipped background is learnt from fable and essay, with a calibration across the
two, and is tested on Aalto only. "Shipped and 30 own people" first enrols thirty further people of Aalto.
Password is another text: only its calibration is transferred, and is combined with a population and a cohort
of other people of keypad or mobile.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from keydyn.decisions.calibration.background import Background, shipped_background
from keydyn.decisions.known_twice import find_twice
from keydyn.decisions.verifier import Verifier
from keydyn.detectors import PopulationDetector
from keydyn.detectors.templates import fit_templates
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.resuming import Parts, Piece, run_pieces
from keydyn.lab.transfer.claims import amounts_for, claims_of, labelled
from keydyn.lab.transfer.disturbed import cases, disturbed
from keydyn.lab.transfer.places import OWN, SIMULATED, Place, with_keys_of
from keydyn.lab.transfer.watching import watched

SHIPPED, WITH_OWN = "shipped", f"shipped and {OWN} own people"
CALIBRATION_ALONE = "password, calibration alone"
# The number of samples that own people enrol with.
OWN_SAMPLES = 5
FOLDS = 4
CLAIMS, WATCHING, DISTURBED, REPEATS = "claims", "watching", "disturbed", "repeats"
# Places that the shipped background was not learnt from.
STRANGE = ("aalto", *SIMULATED)

Measured = dict[str, pd.DataFrame]


def run_transfer(places: Sequence[Place], seed: int, parts: Parts) -> Measured:
    """Run all measurements; parts that were made from the same inputs are reused."""
    pieces = pieces_of(places, seed)
    made = run_pieces(pieces, parts)
    found: dict[str, list[pd.DataFrame]] = {}
    for name in (name for piece in pieces for name in piece.names):
        found.setdefault(name.rpartition("-")[2], []).append(made[name].to_pandas())
    return {name: pd.concat(frames, ignore_index=True) for name, frames in found.items()}


def pieces_of(places: Sequence[Place], seed: int) -> list[Piece]:
    """A piece per background, which is learnt once and tested in every other place."""
    free, fixed = ([place for place in places if place.fixed is which] for which in (False, True))
    pieces = []
    for source in free:
        targets = [place for place in free if place is not source or not place.same_people]
        if targets:
            pieces.append(_piece(source.name, partial(_free, source), [source, *targets], targets, seed))
    for target in (place for place in free if place.name in STRANGE):
        pieces.append(_piece(SHIPPED, partial(_shipped, 0), [target], [target], seed))
        if not target.same_people:
            pieces.append(_piece(WITH_OWN, partial(_shipped, OWN), [target], [target], seed))
        keys, wrong = 2.0 * len(target.tried), {"cases": [case[:3] for case in cases()], "seed": seed}
        call = partial(_disturbed, target, seed)
        pieces.append(_piece_of(target, DISTURBED, call, "disturbed keys", keys, **wrong))
        pieces.append(_piece_of(target, REPEATS, partial(repeats_of, target), "known twice", 1.0))
    texts = {place.name: place for place in fixed}
    for one, other in (("keypad", "mobile"), ("mobile", "keypad")):
        if one in texts and other in texts:
            target = with_keys_of(texts[other], texts[one])
            pieces.append(_piece(one, partial(_free, texts[one]), [texts[one], target], [target], seed))
        if other in texts and "password" in texts:
            make = partial(_calibration_alone, texts["password"])
            pieces.append(
                _piece(CALIBRATION_ALONE, make, [texts["password"], texts[other]], [texts[other]], seed)
            )
    return pieces


def _piece(
    source: str, make: partial[Any], inputs: Sequence[Place], targets: Sequence[Place], seed: int
) -> Piece:
    """A piece with the tests of one background; the names of its parts end with their contents."""
    stem = "-".join([source.replace(" ", "_").replace(",", ""), *(place.name for place in targets)])
    stem = stem.replace(" ", "_")
    texts = all(not place.fixed for place in targets)
    names = tuple(f"{stem}-{what}" for what in ((CLAIMS, WATCHING) if texts else (CLAIMS,)))
    facts: dict[str, Any] = {
        "data": {place.name: place.checksums for place in inputs},
        "keystrokes": {place.name: [len(place.learnt), len(place.tried)] for place in inputs},
        "shipped": shipped_background().sha256 if source in (SHIPPED, WITH_OWN) else "",
        "seed": seed,
    }
    cost = float(sum(len(place.learnt) + len(place.tried) for place in inputs))
    what = f"{source} · {', '.join(place.name for place in targets)}"
    return Piece(names, facts, [partial(make, list(targets), source)], what, cost)


def _piece_of(target: Place, what: str, call: partial[Any], words: str, cost: float, **facts: Any) -> Piece:
    """A piece with results of one place under the shipped background."""
    inputs = {
        "data": target.checksums,
        "keystrokes": len(target.tried),
        "shipped": shipped_background().sha256,
        **facts,
    }
    name = f"{target.name.replace(' ', '_')}-{what}"
    return Piece((name,), inputs, [call], f"{target.name} · {words}", cost)


def _disturbed(target: Place, seed: int) -> pd.DataFrame:
    found = disturbed(shipped_background(), target.tried, seed)
    return _categories(found.assign(dataset_from=SHIPPED, dataset_to=target.name))


def repeats_of(place: Place) -> pd.DataFrame:
    """Pairs of tested people who are likely the same person, numbered as in the claims."""
    numbers = {user: number for number, user in enumerate(pd.unique(place.samples.users).tolist())}
    pairs = find_twice(place.tried)
    one, other = ([numbers[user] for user in pairs[name].tolist()] for name in ("user", "other"))
    return pd.DataFrame({"one": one, "other": other}, dtype="int64").assign(dataset=place.name)


def learnt_from(place: Place) -> Background:
    """The background learnt from a place's people, left out in turn for the calibration."""
    return Background.learnt(PopulationDetector(), place.known)


def _free(source: Place, targets: list[Place], name: str) -> tuple[pd.DataFrame, ...]:
    return _tried(learnt_from(source), targets, name)


def _shipped(own: int, targets: list[Place], name: str) -> tuple[pd.DataFrame, ...]:
    background = beside_own_people(targets[0].known, own) if own else shipped_background()
    return _tried(background, targets, name)


def beside_own_people(samples: Samples, own: int) -> Background:
    """The shipped background after some people of the place have been enrolled."""
    verifier = Verifier.shipped()
    some = pd.unique(samples.users)[:own]
    early = samples.numbers < OWN_SAMPLES
    verifier.enrol_many({f"own {user}": samples[early & (samples.users == user)] for user in some})
    return verifier.in_use


def _tried(background: Background, targets: list[Place], name: str) -> tuple[pd.DataFrame, ...]:
    claims = labelled(
        {
            (name, place.name, amount): claims_of(background, place.samples, amount)
            for place in targets
            for amount in amounts_for(place.samples)
        }
    )
    if any(place.fixed for place in targets):
        return (_categories(claims),)
    sessions = [
        watched(background, place.samples).assign(dataset_from=name, dataset_to=place.name)
        for place in targets
    ]
    return _categories(claims), _categories(pd.concat(sessions, ignore_index=True))


def _calibration_alone(source: Place, targets: list[Place], name: str) -> pd.DataFrame:
    calibrations = learnt_from(source).calibrations
    place, parts = targets[0], []
    people = pd.factorize(place.samples.users)[0]
    for fold in range(FOLDS):
        here = people % FOLDS == fold
        background = _of_others(place.samples[~here], calibrations)
        numbers = np.unique(people[here])
        for amount in amounts_for(place.samples):
            claims = claims_of(background, place.samples[here], amount)
            # Numbers of people and samples are those within the place.
            same = {column: numbers[claims[column]].astype(np.int32) for column in ("claimed", "typist")}
            apart = claims.assign(**same, sample=claims["sample"] * FOLDS + fold)
            parts.append(labelled({(name, place.name, amount): apart}))
    return _categories(pd.concat(parts, ignore_index=True))


def _of_others(samples: Samples, calibrations: Any) -> Background:
    """A population and a cohort of these people, with a calibration from elsewhere."""
    pattern = PopulationDetector().prepare(samples)
    users = pd.unique(samples.users)
    cohort = fit_templates(pattern, [samples[samples.users == user] for user in users])
    return Background(pattern, tuple(cohort), calibrations, tuple(f"cohort {user}" for user in users))


def _categories(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype(dict.fromkeys(("dataset_from", "dataset_to"), "category"))
