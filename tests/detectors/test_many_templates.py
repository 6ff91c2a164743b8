"""Many templates at once: what they are one by one, with the same errors, warnings and progress."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from keydyn import POHMM
from keydyn.detectors import Markov, Population, detector_names, fit_population, make_detector
from keydyn.detectors.markov import MANY
from keydyn.detectors.templates import LARGEST_BATCH, _batches
from tests.detectors.test_detectors import Median, typed

MARKOV = ("hmm", "pohmm", "pohmm-recommended")


def groups_of(samples):
    return [samples[samples.users == user] for user in dict.fromkeys(samples.users.tolist())]


def one_by_one(detector, samples):
    return [detector.fresh().fit(own) for own in groups_of(samples)]


@pytest.mark.parametrize("name", detector_names())
def test_every_detector_fits_and_scores_many_as_one_by_one(name):
    samples, later = typed(1), typed(2)
    detector = make_detector(name).prepare(samples)
    alone = one_by_one(detector, samples)
    together = detector.fit_many(groups_of(samples))
    assert [type(template) for template in together] == [type(detector)] * 3
    expected = np.stack([template.score(later) for template in alone], axis=1)
    for templates in (alone, together):
        found = type(detector).score_many(templates, later)
        # The log-likelihoods are some tens: their tenth decimal is the last but a few.
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", MARKOV)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_large_population_of_one_text_is_that_of_one_by_one(name, n_jobs):
    """So many that the models are fitted side by side; texts and features are the same."""
    samples = typed(3, users=tuple(range(MANY + 2)), n_samples=3, step=0.01)
    seen = []
    population = fit_population(name, samples, n_jobs, seen.append)
    assert seen[-1] == MANY + 2
    assert seen == sorted(set(seen))
    alone = one_by_one(make_detector(name), samples)
    later = typed(4, users=("ann", "bob"), n_samples=3)
    scores = population.score(later, n_jobs)
    np.testing.assert_allclose(
        scores, np.stack([one.score(later) for one in alone], axis=1), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(
        population.score_events(later, n_jobs),
        np.stack([one.score_events(later) for one in alone], axis=1),
        rtol=1e-10,
        atol=1e-10,
    )
    assert scores.flags.c_contiguous
    limited = [one.limited for one in alone]
    assert [template.limited for template in population.detectors] == limited


def test_only_many_of_the_same_text_are_worth_a_large_batch():
    detector = make_detector("pohmm")
    same = groups_of(typed(users=tuple(range(MANY)), n_samples=2, step=0.01))
    assert detector.batch_size(same) > MANY
    assert detector.batch_size(same[1:]) == 1
    assert detector.batch_size([*same, same[0][:1]]) == 1
    assert detector.batch_size([]) == 1
    assert make_detector("manhattan").batch_size(same) == 1


@given(
    n_items=st.integers(0, 5000),
    n_jobs=st.one_of(st.none(), st.integers(1, 64)),
    batch_size=st.integers(1, 300),
)
def test_batches_have_every_item_once(n_items, n_jobs, batch_size):
    batches = _batches(n_items, n_jobs, batch_size)
    assert [k for batch in batches for k in batch] == list(range(n_items))
    sizes = [len(batch) for batch in batches]
    if n_items:
        assert max(sizes) - min(sizes) <= 1, "none has much more to do than another"
        assert max(sizes) <= LARGEST_BATCH
        assert len(sizes) >= min(n_items, n_jobs or 1), "no worker is left without work"


def test_an_error_among_many_names_the_user():
    """A time of 0 has no logarithm: the second user's model cannot be fitted, whatever is beside it."""
    samples = typed()
    values = samples.sequences.X.copy()
    values[samples.sequences.offsets[30]] = 0.0
    object.__setattr__(samples, "sequences", samples.sequences.with_values(values))
    for n_jobs in (1, 2):
        with pytest.raises(ValueError, match=r"^user bob: sequence 0, row 0 .*: 0\.0 is not a value"):
            fit_population("pohmm", samples, n_jobs)


def test_one_warning_names_the_first_user_who_has_not_converged():
    samples = typed()
    hasty = make_detector("pohmm", model=POHMM(max_iter=1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        population = fit_population(hasty, samples, 2)
    assert [template.limited for template in population.detectors] == [True] * 3
    (warning,) = caught
    assert warning.category is ConvergenceWarning
    assert "3 of 3 templates had not converged" in str(warning.message)
    assert "user ann" in str(warning.message)
    assert warning.filename == __file__


class Patient(Markov):
    """A user's subclass with a way of its own to fit and to score."""

    name, title = "patient", "Patient"

    def pattern(self):
        return POHMM()

    def fit(self, samples):
        self.fitted_here_ = True
        return super().fit(samples)

    def score(self, samples):
        return super().score(samples) / samples.sequences.lengths


def test_a_subclass_is_fitted_and_scored_in_its_own_way():
    samples = typed()
    population = fit_population(Patient(), samples)
    assert all(template.fitted_here_ for template in population.detectors)
    expected = np.stack([template.score(samples) for template in population.detectors], axis=1)
    np.testing.assert_array_equal(population.score(samples), expected)


def test_a_population_of_several_kinds_is_scored():
    samples = typed()
    own = groups_of(samples)
    templates = [make_detector("pohmm").fit(own[0]), Median().fit(own[1])]
    scores = Population(np.array(["ann", "bob"]), templates).score(samples)
    np.testing.assert_array_equal(scores, np.stack([one.score(samples) for one in templates], axis=1))


def test_a_population_has_people():
    none = Population(np.array([]), [])
    with pytest.raises(ValueError, match="there are no templates to score against"):
        none.score(typed())
