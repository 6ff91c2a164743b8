"""What tells typing from forgeries, learnt from measures whose law is known."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.decisions.liveness.hands import K
from keydyn.keystrokes.samples import Samples
from keydyn.lab import typed_or_forged
from keydyn.lab.typed_or_forged import FOLDS, LENGTHS, RATES, Material, Measured, learn, material_of

PEOPLE, EACH = 40, 12


def measured(seed, place=0, shift=0.0, lengths=LENGTHS, follows=0.0):
    """Everyone's samples of each length: noise about a person's own values, those that were enrolled."""
    random = np.random.default_rng(seed)
    n = PEOPLE * EACH * len(lengths)
    person = np.repeat(np.arange(PEOPLE), EACH * len(lengths))
    enrolled = random.normal(size=(PEOPLE, K))[person]
    values = follows * enrolled + random.normal(size=(n, K))
    values[:, 0] += shift
    manner = np.column_stack([np.full(n, 300.0), enrolled])
    keys = np.tile(lengths, PEOPLE * EACH)
    return Measured(values, manner, keys, np.zeros(n, dtype=bool), person, np.full(n, place))


@pytest.fixture(scope="module")
def known():
    humans = Measured.joined([measured(0), measured(1, place=1)])
    forged = {"low": measured(2, shift=-4.0), "high": measured(3, shift=4.0)}
    return Material(humans, forged)


def test_ratios_tell_what_was_learnt_from_and_not_what_was_left_out(known):
    hands = learn(known, ("high",))
    for shift, less in ((-4.0, True), (4.0, False)):
        some = measured(9, shift=shift)
        human = hands.llr(known.humans.values, known.humans.keys, known.humans.manner)
        assert (np.median(hands.llr(some.values, some.keys, some.manner)) < np.quantile(human, 0.1)) == less


def test_as_many_other_people_are_below_a_level_as_it_says(known):
    hands = learn(known, ("high",))
    other = measured(17)
    llr = hands.llr(other.values, other.keys, other.manner)
    for j, keys in enumerate(LENGTHS):
        below = (llr[other.keys == keys] < hands.levels[0, j, RATES.tolist().index(0.1)]).mean()
        # 480 samples: three standard deviations are .04, and the level has an error of its own.
        assert below == pytest.approx(0.1, abs=0.06)


def test_nothing_is_learnt_without_attacks(known):
    with pytest.raises(ValueError, match="no family"):
        learn(known, ("low", "high"))


def test_what_was_enrolled_leads_to_expect_its_share():
    humans = measured(5, follows=0.6)
    _, reach, follows = typed_or_forged._followed(humans)
    # 300 enrolled keys count 300 / (300 + 100).
    assert follows.mean() == pytest.approx(0.6 * 400 / 300, abs=0.02)
    assert reach.mean() == pytest.approx(3.0, abs=0.2)
    nobody = humans._replace(manner=0.0 * humans.manner)
    assert not any(one.any() for one in typed_or_forged._followed(nobody))


def test_samples_count_the_same_and_one_place_alone_sets_no_level():
    many, few = measured(0, lengths=(40, 100, 200)), measured(1, place=1, lengths=(40,))
    humans = Measured.joined([many, many, few])
    llr = np.where(humans.place == 0, 1.0, 0.0) + np.linspace(0.0, 0.1, len(humans.place))
    levels = typed_or_forged._levels(llr, humans)
    of_few = np.searchsorted(RATES, 1 / 3)
    # A third of all samples of 40 keys are those of the smaller place, whose ratios are below 0.2.
    assert levels[0, 0, of_few - 1] < 0.2 < 1.0 < levels[0, 0, of_few]
    np.testing.assert_allclose(levels[0, 1], levels[0, 0])
    np.testing.assert_allclose(levels[1], levels[0])


def test_nobody_is_measured_by_a_population_that_knows_them(monkeypatch):
    learnt, judged = [], []

    class Population:
        def fit(self, places, n_jobs):
            learnt.append({user for place in places for user in place.users.tolist()})
            return self

    def material(place, people, about, random, enrolled):
        judged.append((set(place.users.tolist()), about))
        return Material(measured(0), {"low": measured(1)})

    monkeypatch.setattr(typed_or_forged, "PopulationModel", Population)
    monkeypatch.setattr(typed_or_forged, "material", material)
    place = Samples.without_vectors(make_typists(9, 1, "free", 5))
    material_of([place, place], 0, enrolled=True)
    assert len(learnt) == FOLDS
    for users, (_, fold) in judged:
        assert users
        assert not users & learnt[fold]
    # People of the two places are different, though their names are the same.
    assert len(set().union(*(users for users, _ in judged))) == 18


def test_people_who_type_samples_of_one_length_set_the_level_of_every_length():
    one = (100,)
    hands = learn(Material(measured(0, lengths=one), {"low": measured(2, shift=-4.0, lengths=one)}), ())
    level = float(hands.levels[0, 0, RATES.tolist().index(0.1)])
    for keys in (40, 100, 400):
        assert hands.rate(level, keys, coarse=False) == pytest.approx(0.1)
