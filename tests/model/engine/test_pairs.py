"""The transitions of any pair of event types against Eqs. 35–36, written out."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn import POHMM
from keydyn.model.engine.pairs import between


def fitted(smoothing, transition_weights):
    rng = np.random.default_rng(5)
    events = rng.choice(list("abcde"), 60, p=[0.5, 0.3, 0.1, 0.05, 0.05])
    settings = {"smoothing": smoothing, "transition_weights": transition_weights, "tol": 1e9}
    return POHMM(**settings).fit(rng.lognormal(5.0, 0.4, (60, 1)), events=events)._parameters


def expected(theta, before, after):
    """a[i, j | ψ, ω] of one pair; a type that is not known is integrated out."""
    marginal, m, n_states = theta.marginal, theta.n_types, theta.n_states
    if before == m:
        return marginal.transmat if after == m else marginal.transmat_to[after]
    if after == m:
        return marginal.transmat_from[before]
    listed = np.flatnonzero((theta.pairs == [before, after]).all(axis=1))
    if len(listed):
        return theta.transmat[listed[0]]
    rule = theta.smoothing.transitions
    if rule is None:
        return np.full((n_states, n_states), 1 / n_states)
    of_earlier = of_later = rule
    if rule == "frequency":
        of_earlier, of_later = 1 / (1 + theta.chain.entering[after]), 1 / (1 + theta.chain.leaving[before])
    else:
        of_earlier = of_later = rule / 2
    if not theta.smoothing.published:
        excess = max(of_earlier + of_later, 1.0)
        of_earlier, of_later = of_earlier / excess, of_later / excess
    mixed = (1 - of_earlier - of_later) / n_states
    mixed = mixed + of_earlier * marginal.transmat_from[before] + of_later * marginal.transmat_to[after]
    mixed = np.maximum(mixed, 0.0)
    return mixed / mixed.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("weights", ["proper", "published"])
@pytest.mark.parametrize("smoothing", ["frequency", 0.3, None])
def test_any_pair(smoothing, weights):
    theta = fitted(smoothing, weights)
    m = theta.n_types
    before, after = np.divmod(np.arange((m + 1) ** 2), m + 1)
    truth = np.stack([expected(theta, *pair) for pair in zip(before, after, strict=True)])
    np.testing.assert_allclose(theta.transmat_of(before, after), truth, rtol=1e-12)
    np.testing.assert_allclose(theta.all_steps[..., 0], truth, rtol=1e-12)
    unseen = (before < m) & (after < m)
    unseen[[int(psi * (m + 1) + omega) for psi, omega in theta.pairs]] = False
    assert unseen.any()
    assert (between(theta.pair_index, theta.transitions, before, after)[0][unseen] == -1).all()


def test_types_that_there_are_not_are_refused():
    theta = fitted("frequency", "proper")
    # One among others that there are, on either side.
    for wrong in ([0, -1, 1], [0, theta.n_types + 1, 1]):
        for before, after in ((wrong, [0, 1, 2]), ([0, 1, 2], wrong)):
            with pytest.raises(ValueError, match="numbered 0 to 5"):
                theta.transmat_of(np.array(before), np.array(after))
