"""Many people: in parts, on threads, with others held out, and with further people later."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.population import PopulationModel
from keydyn.population.learn import groups, rounds
from keydyn.population.saved import fingerprint
from tests.population.simulated import samples_of_people


@pytest.fixture(scope="module")
def everybody():
    return samples_of_people(n_people=30, n_samples=4, n_keys=25)


def parts_of(samples, n):
    """The samples of some people each."""
    return [samples[np.isin(samples.users, who)] for who in np.array_split(np.unique(samples.users), n)]


def same(one, other):
    """The same people in the same order of magnitude of rounding; factors may be turned."""
    assert (one.n_people, one.n_samples) == (other.n_people, other.n_samples)
    np.testing.assert_array_equal(one.cells.vocabulary, other.cells.vocabulary)
    np.testing.assert_array_equal(one.cells.before, other.cells.before)
    for name in ("location", "scale", "support"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8, atol=1e-9)
    V, W = one.loadings, other.loadings
    np.testing.assert_allclose(V @ V.T, W @ W.T, atol=1e-8)
    for name in ("cell", "key", "tempo", "noise", "slope", "slope_variance", "gain"):
        expected = getattr(other.variances, name)
        np.testing.assert_allclose(getattr(one.variances, name), expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.chain.location, other.chain.location, atol=1e-6)
    np.testing.assert_allclose(one.chain.transitions, other.chain.transitions, atol=1e-6)


@pytest.fixture(params=["halves", "some held out"])
def course(request, monkeypatch):
    """Either way of holding people out of the loadings."""
    if request.param == "some held out":
        monkeypatch.setattr(rounds, "MOST_HELD_OUT", 12)


@pytest.mark.parametrize("n_parts", [2, 7])
def test_parts_give_what_one_piece_gives(everybody, course, n_parts):
    whole = PopulationModel().fit(everybody).parameters
    same(PopulationModel().fit(iter(parts_of(everybody, n_parts))).parameters, whole)


def test_groups_give_what_one_group_gives(everybody, course):
    whole = PopulationModel().fit(everybody).parameters
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "MOST_PEOPLE", 4)
        model = PopulationModel().fit(everybody)
        same(model.parameters, whole)
        patch.setattr(groups, "MOST_EVENTS", 150)
        same(PopulationModel().fit(everybody).parameters, whole)
        # Neither threads nor files change a bit.
        patch.setattr(groups, "MOST_EVENTS", 10**9)
        patch.setattr(rounds, "MOST_IN_MEMORY", 0)
        assert PopulationModel().fit(everybody, n_jobs=3).sha256 == model.sha256


def test_nobody_is_both_learnt_from_and_estimated_on(everybody, course):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "MOST_PEOPLE", 4)
        store = rounds.Store(None)
        splits = rounds._splits(groups.gathered(everybody, store))
    assert splits
    for learnt_from, estimated_on in splits:
        for some, others in zip(learnt_from, estimated_on, strict=True):
            np.testing.assert_array_equal(some, ~others)
        assert 12 <= sum(others.sum() for others in estimated_on) <= 15


def test_scratch_files_are_private_and_removed(everybody, tmp_path):
    seen = []

    def look(_share):
        for folder in tmp_path.iterdir():
            seen.append(folder.stat().st_mode & 0o077)
            seen.append(len(list(folder.iterdir())) == 0)

    PopulationModel().fit(parts_of(everybody, 2), scratch=tmp_path, progress=look)
    assert seen
    assert not any(seen)
    assert list(tmp_path.iterdir()) == []

    def stop(_share):
        raise KeyboardInterrupt

    model = PopulationModel()
    with pytest.raises(KeyboardInterrupt):
        model.fit(parts_of(everybody, 2), scratch=tmp_path, progress=stop)
    assert list(tmp_path.iterdir()) == []
    assert not hasattr(model, "fitted_")


def test_a_person_in_two_parts_is_refused(everybody):
    with pytest.raises(ValueError, match="user 0 has samples in more than one part"):
        PopulationModel().fit([everybody, everybody[everybody.users == 0]])
    with pytest.raises(TypeError, match="not int"):
        PopulationModel().fit([1])
    with pytest.raises(ValueError, match="no samples"):
        PopulationModel().fit([])
    with pytest.raises(ValueError, match="2 people or more"):
        PopulationModel().fit([everybody[everybody.users == 0]])


def test_further_people_bring_it_nearer_to_having_known_them_from_the_start():
    """Held-out people become more likely, by most of what learning from all at once would have gained."""
    together = samples_of_people(n_people=110, n_samples=3, n_keys=30, rank=2, spread=0.6, seed=5)
    first, more = (together[together.users < 24], together[(together.users >= 24) & (together.users < 90)])
    strangers = together[together.users >= 90]
    enrolled, later = strangers[strangers.numbers < 1], strangers[strangers.numbers >= 1]

    def of_strangers(model):
        users = np.unique(strangers.users)
        templates = [model.enrol(enrolled[enrolled.users == user]) for user in users]
        scores = model.log_likelihoods(templates, later)
        return scores[np.arange(len(later)), np.searchsorted(users, later.users)].sum()

    few = PopulationModel().fit(first)
    before = few.sha256
    some = of_strangers(few)
    few.partial_fit(more)
    assert few.sha256 != before
    assert few.parameters.n_people == 90
    everybody = PopulationModel().fit(together[together.users < 90])
    assert some < of_strangers(few)
    assert of_strangers(few) < of_strangers(everybody) + 50


def test_partial_fit_begins_with_fit_and_keeps_what_it_knows(everybody):
    model = PopulationModel().partial_fit(everybody)
    assert model.sha256 == PopulationModel().fit(everybody).sha256
    before = model.parameters
    others = samples_of_people(n_people=3, n_samples=2, n_keys=10, seed=9)
    model.partial_fit(others)
    after = model.parameters
    assert after.n_samples == before.n_samples + 6
    assert after.cells is before.cells
    assert (after.support >= before.support).all()
    assert fingerprint(after) == model.sha256


@pytest.mark.parametrize("part", rounds.PARTS)
def test_parts_can_be_left_out(everybody, part):
    known = PopulationModel(without=[part]).fit(everybody).parameters
    full = PopulationModel().fit(everybody).parameters
    left_out = {
        "low rank": not known.loadings.any(),
        "scales": known.variances.noise_leans.min() > 1e5,
        "slopes": not known.variances.slope.any() and known.variances.slope_variance.max() < 1e-6,
        "contexts": not any(known.wide.codes),
        "tempo": known.variances.tempo.max() < 1e-6,
        "tails": known.chain.degrees.min() == 100 and known.variances.degrees[0] == 100,
    }
    assert [name for name, is_so in left_out.items() if is_so] == [part]
    assert full.loadings.any()


def test_a_part_that_is_none_is_refused(everybody):
    with pytest.raises(ValueError, match="without names 'rank'"):
        PopulationModel(without=["rank"]).fit(everybody)


@pytest.mark.parametrize("settings", [{}, {"hidden_states": False}, {"without": ("low rank", "contexts")}])
def test_progress_ends_at_one(everybody, course, settings):
    shares = []
    PopulationModel(**settings).fit(everybody, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    few = everybody[everybody.users < 3]
    PopulationModel(**settings).fit(few, progress=shares.append)
    assert shares[-1] == 1.0


def test_progress_of_partial_fit_ends_at_one(everybody):
    shares = []
    PopulationModel().fit(everybody).partial_fit(everybody[everybody.users < 3], progress=shares.append)
    assert shares[-1] == 1.0
