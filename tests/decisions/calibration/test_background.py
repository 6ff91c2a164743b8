"""What decisions rest on: held-out claims, cohorts and calibrations, against what is computed by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.datasets import make_typists
from keydyn.decisions import Targets, Verifier
from keydyn.decisions.calibration.background import FOLDS, Background, learnt_with_trials
from keydyn.decisions.calibration.calibration import open_set_scores
from keydyn.decisions.calibration.trials import Cohort, Typists, _held_out, claims
from keydyn.detectors import PopulationDetector, make_detector
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel
from tests.decisions.typed_samples import OTHERS, typed


def turns(*counts):
    """Which samples of each person enrol and which ask, turn by turn."""
    frame = pd.concat([typed(0, (f"u{u}",), n, 2) for u, n in enumerate(counts)], ignore_index=True)
    samples = recorded_samples(frame)
    people = pd.factorize(samples.users)[0]
    return [
        [
            (samples.numbers[enrol & (people == u)].tolist(), samples.numbers[ask & (people == u)].tolist())
            for u in range(len(counts))
        ]
        for enrol, ask in _held_out(samples, people)
    ]


def test_with_many_samples_the_first_half_enrols():
    assert turns(9) == [[([0, 1, 2, 3, 4], [5, 6, 7, 8])]]
    assert turns(8) == [[([0, 1, 2, 3], [4, 5, 6, 7])]]


def test_with_few_samples_each_is_left_out_in_turn():
    assert turns(3) == [[([1, 2], [0])], [([0, 2], [1])], [([0, 1], [2])]]
    # One with many asks once; one with fewer than there are turns has nothing left to ask with.
    many, few = ([0, 1, 2, 3], [4, 5, 6, 7]), ([0, 1, 2, 3], [])
    assert [turn[0] for turn in turns(8, 3)] == [many, few, few]
    assert turns(2, 3)[2] == [([0, 1], []), ([0, 1], [2])]
    # A single sample asks and never enrols.
    assert [turn[1] for turn in turns(2, 1)] == [([], [0]), ([0], [])]


def test_claims_are_scored_beside_people_at_large():
    """Neither the claimed person nor the typist counts in the cohort; after so many keys, and at the end."""
    samples = recorded_samples(typed(99, OTHERS, n_samples=3, n_keys=16))
    typists, pattern = Typists.of(samples), make_detector("pohmm")
    people, lengths = typists.people, typists.lengths
    cohort = [pattern.fresh().fit(samples[people == u]) for u in range(10)]
    assert lengths.tolist() == [10, 16]
    asked = np.array([1, 4, 7])
    trials = claims(pattern, typists, asked, Cohort(cohort, np.arange(10)))
    assert len(trials.scores) == 3 * 3 * 3
    assert trials.genuine.sum() == 9
    rows = iter(zip(trials.scores, trials.claimed, trials.typist, strict=True))
    for left_out in range(3):
        held = samples.numbers == left_out
        enrolled = {u: pattern.fresh().fit(samples[~held & (people == u)]) for u in asked.tolist()}
        for typist in asked.tolist():
            query = samples[held & (people == typist)]
            for claimed in asked.tolist():
                found, said, by = next(rows)
                assert (said, by) == (claimed, typist)
                others = [cohort[u] for u in range(10) if u not in (claimed, typist)]
                for g, length in enumerate(lengths.tolist()):
                    own, beside = (
                        np.array([[one.score_events(query)[:length].sum() for one in these]])
                        for these in ([enrolled[claimed]], others)
                    )
                    assert found[g] == pytest.approx(
                        open_set_scores(own, beside, np.array([length]))[0, 0], rel=1e-9
                    )
    assert len(trials.suspicion) == 9 * 16
    assert trials.offsets.tolist() == list(range(0, 9 * 16 + 1, 16))
    assert trials.n_people == 3


def test_folds_prepare_the_detector_on_others(monkeypatch):
    """Whoever is asked is unknown to the population that scores them."""
    samples = Samples.of(make_typists(11, 3, "free", 20).astype({"user": str}), first="missing")
    prepared, asked = [], []
    plain = PopulationDetector.prepare

    def prepare(self, known):
        prepared.append(set(known.users))
        return plain(self, known)

    def noted(pattern, typists, here, *rest):
        asked.append(set(typists.names(here)))
        return claims(pattern, typists, here, *rest)

    monkeypatch.setattr(PopulationDetector, "prepare", prepare)
    monkeypatch.setattr("keydyn.decisions.calibration.background.claims", noted)
    seen = []
    learnt, trials = learnt_with_trials(PopulationDetector(), samples, False, None, 2, seen.append)
    everybody = set(samples.users)
    assert len(asked) == FOLDS
    assert sorted(user for fold in asked for user in fold) == sorted(everybody)
    assert prepared == [*(everybody - fold for fold in asked), everybody]
    assert seen == [1, 2, 3, 4, 5]
    assert learnt.cohort == learnt.members == ()
    assert learnt.calibrations.n_people == trials.n_people == 11
    # Everybody's claims to be those of the same fold.
    sizes = [len(fold) for fold in asked]
    assert len(trials.scores) == 3 * sum(size**2 for size in sizes)


def test_too_few_people_are_refused():
    for users, problem in ((OTHERS[:9], "there are 9"), (OTHERS[:1], "there is 1")):
        samples = recorded_samples(typed(0, users, 2, 4))
        for learn in (Background.learnt, Background.calibrated):
            with pytest.raises(ValueError, match=f"10 people or more with two samples .* each; {problem}"):
                learn(make_detector("pohmm"), samples)
    single = recorded_samples(typed(0, OTHERS, 1, 4))
    with pytest.raises(ValueError, match="there are 0"):
        Background.calibrated(make_detector("pohmm"), single)


def test_only_a_population_needs_nobody_to_compare_with():
    samples = recorded_samples(typed(99, OTHERS, n_samples=3))
    with pytest.raises(ValueError, match="pohmm needs a cohort of people"):
        Background.calibrated(make_detector("pohmm"), samples, keep_cohort=False)
    seen: list[int] = []
    kept = Background.calibrated(make_detector("pohmm"), samples, progress=seen.append)
    assert seen == [1]
    assert kept.members == OTHERS
    assert [kept.place(user) for user in ("other0", "other9", "ann")] == [0, 9, -1]
    assert len(kept.beside("other4")) == 9
    assert kept.cohort[4] not in kept.beside("other4")


@pytest.fixture(scope="module")
def simulated():
    """A population, and a calibration by people it does not know; many strangers besides."""
    people = make_typists(24, 4, "free", 40, random_state=1)
    population = PopulationModel().fit(Samples.of(people, first="missing"), n_jobs=2)
    calibrating = make_typists(30, 4, "free", 40, first_user=100, random_state=1).astype({"user": str})
    verifier = Verifier(population)
    verifier.calibrate(calibrating, n_jobs=2)
    return verifier


@pytest.mark.parametrize("target", [0.01, 0.05])
def test_strangers_are_accepted_as_rarely_as_the_target_says(simulated, target):
    """Forty people whom nobody has learnt from claim to be each other; the interval is over people."""
    others = make_typists(40, 5, "free", 40, first_user=500, random_state=1).astype({"user": str})
    verifier = Verifier.of(simulated.background, Targets(false_match=target))
    samples = recorded_samples(others)
    enrol, ask = samples.numbers < 4, samples.numbers == 4
    users = sorted(set(samples.users))
    verifier.enrol_many({user: samples[enrol & (samples.users == user)] for user in users}, n_jobs=2)
    later = samples[ask]
    templates = {user: verifier.person(user).template for user in users}
    scores = simulated.background.scores(templates, later)
    keys = later.sequences.lengths
    accepted = (
        np.array(
            [
                verifier.at.answers(simulated.background.calibrations.at(4 * 40).meanings(scores[:, u], keys))
                for u in range(len(users))
            ]
        ).T
        == "accept"
    )
    own = later.users[:, None] == np.array(users)
    assert accepted[own].mean() > 0.6
    # Rates of typists and of claimed people vary; the spread of both gives the chance.
    strange = np.where(own, np.nan, accepted)
    rate = np.nanmean(strange)
    chance = np.hypot(*(np.nanmean(strange, axis=axis).std() / np.sqrt(len(users)) for axis in (0, 1)))
    # The calibration itself is learnt from thirty people, and has an interval.
    assert rate <= target + 3 * np.hypot(chance, target / 2)
    assert rate > 0


def test_people_with_a_single_sample_may_fill_a_fold():
    """Every fourth person has one: in that fold nobody can be enrolled, and the others calibrate."""
    frames = [typed(n, (f"p{n}",), 1 if n % FOLDS == 3 else 3) for n in range(16)]
    _, trials = learnt_with_trials(
        PopulationDetector(), recorded_samples(pd.concat(frames, ignore_index=True))
    )
    assert set(trials.claimed % FOLDS) == {0, 1, 2}
    assert trials.genuine.sum() == 12 * 3
