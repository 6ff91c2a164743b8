"""People drawn from a population are as the population says people are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel
from tests.population.simulated import KEYS, samples_of_people


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "states"])
def fitted(request):
    return PopulationModel(hidden_states=request.param).fit(samples_of_people(n_people=20))


def test_moments_of_drawn_people(fitted):
    """Means covary as V Vᵀ, κ within a key and λ within a cell say; noise and slopes are about theirs."""
    known, n = fitted.parameters, 4000
    people = fitted.draw(n, random_state=0)
    cells, variances, V = known.cells, known.variances, known.loadings
    same_key = cells.key[:, None] == cells.key
    truth = V @ V.T + same_key * variances.key[cells.feature] + np.diag(variances.cell[cells.feature])
    means = np.stack([one.mean for one in people])
    deviation = np.sqrt(np.diag(truth))
    # Of that many entries the farthest is some 4.5 standard errors away; none is 6.
    assert (np.abs(means.mean(axis=0)) < 6 * deviation / np.sqrt(n)).all()
    error = np.sqrt((truth**2 + np.outer(np.diag(truth), np.diag(truth))) / n)
    assert (np.abs(np.cov(means.T) - truth) < 6 * error).all()
    # The inverse of a noise is a product of means of χ² over their degrees, each one on average.
    inverse = np.stack([variances.noise[cells.feature] / one.scale**2 for one in people])
    assert (np.abs(inverse.mean(axis=0) - 1) < 6 * inverse.std(axis=0) / np.sqrt(n)).all()
    relative = np.prod(1 + 2 / variances.noise_leans) - 1
    assert inverse.var() == pytest.approx(relative, rel=0.1)
    slopes = np.stack([one.slopes for one in people])
    error = np.sqrt(variances.slope_variance / n)
    assert (np.abs(slopes.mean(axis=0) - variances.slope) < 6 * error).all()
    np.testing.assert_allclose(slopes.var(axis=0), variances.slope_variance, rtol=0.15)


def test_drawn_people_are_recovered_from_their_typing(fitted):
    random = np.random.default_rng(1)
    for person in fitted.draw(2, random_state=2):
        parts = []
        for session in range(60):
            typed = fitted.sample(person, random.choice(KEYS, 60), random)
            press = typed["tau"].fillna(0.0).cumsum()
            release = press + typed["duration"]
            names = {"user": 0, "session": session, "keyname": typed["keyname"]}
            parts.append(pd.DataFrame({**names, "timepress": press, "timerelease": release}))
        samples = Samples.of(pd.concat(parts, ignore_index=True), kind="long text")
        template = fitted.enrol(samples)
        pairs = np.arange(fitted.parameters.cells.n_keys, fitted.parameters.cells.n_cells)
        gap = template.mean[pairs] - person.mean[pairs]
        # Some 50 values per pair; the anonymous start is a whole deviation of people away.
        assert np.sqrt(np.mean(gap**2)) < 0.3 * person.mean[pairs].std()
        np.testing.assert_allclose(template.slopes, person.slopes, atol=0.12)


def test_the_same_people_again(fitted):
    one, other = fitted.draw(3, random_state=5), fitted.draw(3, random_state=5)
    assert all(
        (a.mean == b.mean).all() and (a.scale == b.scale).all() for a, b in zip(one, other, strict=True)
    )
    assert not (one[0].mean == one[1].mean).any()
    assert fitted.draw(0) == []
    with pytest.raises(ValueError, match="must not be negative"):
        fitted.draw(-1)
    assert fitted.log_likelihoods(one, samples_of_people(n_people=2)).shape == (8, 3)


def test_expected_typing_is_the_middle_of_what_is_drawn(fitted):
    """The median of many drawn times is the expected one, but for what the hidden states add."""
    people = fitted.draw(2, random_state=3)
    keys = KEYS * 2
    expected = fitted.typed_by(people, keys, None)
    drawn = fitted.typed_by([people[0]] * 4000, keys, np.random.default_rng(0))
    assert expected.shape == (2, 16, 2)
    assert np.isnan(expected[:, 0, 0]).all()
    assert np.isnan(drawn[:, 0, 0]).all()
    ratio = np.median(drawn, axis=0).ravel()[1:] / expected[0].ravel()[1:]
    np.testing.assert_allclose(np.log(ratio), 0.0, atol=0.1)
    assert np.nanmax(np.abs(np.log(expected[0] / expected[1]))) > 0.2
