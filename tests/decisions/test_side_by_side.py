"""Decisions of the paper's recordings, beside the cohort's templates one at a time and term by term."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.datasets import load_dataset, make_typists
from keydyn.decisions import Verifier, recorded_samples

# Sums of logarithms and logarithms of products differ by rounding alone.
ROUNDING = 1e-9


def sums_under(people, template, samples):
    """Each sample's log-likelihood, from the terms of its keys under one template on its own."""
    terms = people.event_log_likelihoods([template], samples)[:, 0]
    return np.array([part.sum() for part in np.split(terms, samples.sequences.offsets[1:-1])])


def meaning(background, own, beside, samples, enrolled):
    """Each sample's score and ratio, from its log-likelihoods as claimed, (n,), and of the cohort, (C, n)."""
    beside = np.sort(beside, axis=0)[::-1]
    n, best = len(beside), max(round(0.1 * len(beside)), 3)
    upper = beside[: (n + 1) // 2] - np.median(beside, axis=0)
    keys = samples.sequences.lengths
    spread = np.sqrt(((upper**2).sum(axis=0) + 50.0 * keys) / (len(upper) + 50.0))
    scores = (own - beside[:best].mean(axis=0)) / spread
    vocabulary = background.population.parameters.cells.vocabulary
    scored = np.isin(samples.sequences.labels(), vocabulary) & np.isfinite(samples.sequences.X).any(axis=1)
    counted = np.add.reduceat(scored.astype(np.int64), samples.sequences.offsets[:-1])
    return scores, background.calibrations.at(enrolled).llr(scores, np.maximum(counted, 1))


def check_everybody(samples):
    """Everyone claims to be themselves with all of their samples, and to be everyone else with the first."""
    verifier, codes = Verifier.shipped(), samples.people[0]
    users = [str(user) for user in samples.people[1].tolist()]
    halves = {user: samples[codes == u][: max(1, (codes == u).sum() // 2)] for u, user in enumerate(users)}
    verifier.enrol_many(halves)
    background = verifier.in_use
    people, members = background.population, np.array(background.members)
    cohort = np.array([sums_under(people, one.template_, samples) for one in background.cohort])
    for u, user in enumerate(users):
        chosen, person = (codes == u) | (samples.numbers == 0), verifier.person(user)
        asked = samples[chosen]
        own = sums_under(people, person.template.template_, asked)
        beside = cohort[members != user][:, chosen]
        scores, ratios = meaning(background, own, beside, asked, person.keys)
        decisions = verifier.verify_many(user, asked)
        np.testing.assert_allclose([one.score for one in decisions], scores, rtol=ROUNDING, atol=ROUNDING)
        np.testing.assert_allclose([one.llr for one in decisions], ratios, rtol=ROUNDING, atol=ROUNDING)


def test_simulated_people():
    check_everybody(recorded_samples(make_typists(4, 3, "free", 60)))


@pytest.mark.parametrize("name", ["fable"])
def test_people_of_the_paper(recordings, name):
    check_everybody(recorded_samples(load_dataset(name, recordings).keystrokes))


def test_one_sample_of_several_and_alone_score_alike():
    """A batch is scored in one pass; so is each of its samples, from a frame or from `Samples`."""
    typing = make_typists(3, 4, "free", 60)
    ada, verifier = typing[typing["user"] == 0], Verifier.shipped()
    verifier.enrol("ada", ada[ada["session"] < 2])
    together = verifier.verify_many("ada", ada)
    for session, decision in enumerate(together):
        frame = ada[ada["session"] == session]
        for typed in (frame, recorded_samples(frame)):
            alone = verifier.verify("ada", typed)
            assert alone.answer == decision.answer
            assert alone.llr == pytest.approx(decision.llr, abs=ROUNDING)


def test_who_typed_a_sample_is_answered_alike_when_asked_again():
    """From the second question on, templates are laid out; a change of the people is a new beginning."""
    samples = recorded_samples(make_typists(4, 3, "free", 60))
    verifier, codes = Verifier.shipped(), samples.people[0]
    for u in range(3):
        verifier.enrol(f"user {u}", samples[codes == u][:2])

    def asked():
        found = verifier.identify_many(samples)
        return [{one.user: one.llr for one in each.candidates} for each in found]

    first, again = asked(), asked()
    for one, other in zip(first, again, strict=True):
        assert one == pytest.approx(other, abs=ROUNDING)
    verifier.enrol("user 3", samples[codes == 3][:2])
    verifier.remove("user 0")
    for _ in range(2):
        assert all(set(one) == {"user 1", "user 2", "user 3"} for one in asked())
        assert verifier.identify(samples[codes == 3][2:]).candidates[0].user == "user 3"
