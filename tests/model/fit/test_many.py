"""Many models of data of their own, against each fitted alone."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from keydyn import HMM, POHMM, Sequences, fit_many
from keydyn.model.data.vocabulary import SINGLE_TYPE
from keydyn.model.fit import many


def items(n=9, seed=0):
    """Data of different lengths, types and holes; some without any type, one of a single event."""
    rng = np.random.default_rng(seed)
    made = []
    for k in range(n):
        lengths = rng.integers(1, 9, rng.integers(2, 6)).tolist()
        X = rng.lognormal(5.0, 0.5, (sum(lengths), 2))
        X[rng.random(X.shape) < 0.05] = np.nan
        X[0] = 100.0
        events = rng.choice(list("abcdef")[: 2 + k % 5], len(X)).astype(object)
        events[rng.random(len(X)) < 0.1] = None
        made.append(Sequences.from_arrays(X, None if k % 4 == 3 else events, lengths))
    made.append(Sequences.from_arrays(np.array([[90.0, 80.0]]), ["a"]))
    return made


@pytest.mark.parametrize("kind", [POHMM, POHMM.published, HMM])
@pytest.mark.parametrize("changes", [{}, {"n_states": 3}, {"emission": "logstudent"}, {"emission": "gamma"}])
@pytest.mark.parametrize("weighted", [False, True])
def test_together_as_alone(kind, changes, weighted):
    """Bit for bit, whatever the data and whoever else is fitted; a sequence of weight zero counts as none."""
    data, model = items(), kind(**({"tol": 1e-2} | changes))
    weights = [np.arange(len(item)) % 3 + (len(item) < 3) for item in data] if weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        together = fit_many(model, data, sample_weight=weights)
        alone = [
            kind(**model.get_params()).fit(item, sample_weight=None if weights is None else weights[k])
            for k, item in enumerate(data)
        ]
    for one, other in zip(together, alone, strict=True):
        assert one.event_types_.tolist() == other.event_types_.tolist()
        for name in ("log_likelihood_", "n_iter_", "stop_reason_", "n_parameters_", "n_parameters_full_"):
            assert getattr(one, name) == getattr(other, name), name
        for name in ("history_", "startprob_", "transmat_", "event_prob_", "event_transmat_", "stationary_"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
        for a, b in zip(one.emission_, other.emission_, strict=True):
            for name in a.params:
                np.testing.assert_array_equal(a.params[name], b.params[name])
        np.testing.assert_array_equal(one.scale_floored_, other.scale_floored_)
        np.testing.assert_array_equal(
            one._state.result.statistics.transitions, other._state.result.statistics.transitions
        )


def test_the_name_of_a_single_type_as_a_label():
    """It is fitted the long way, also where others are fitted together."""
    bad = Sequences.from_arrays(np.full((3, 1), 90.0), [SINGLE_TYPE] * 3)
    good = Sequences.from_arrays(np.array([[90.0], [80.0], [70.0]]), ["a", "b", "a"])
    alone = POHMM(tol=1.0).fit(bad)
    together = fit_many(POHMM(tol=1.0), [good, bad, good])
    assert together[1].event_types_.tolist() == alone.event_types_.tolist()
    assert together[1].log_likelihood_ == alone.log_likelihood_


def test_a_copy_of_a_model_that_nobody_looked_at_yet():
    """What was found is unpacked when it is first asked for, in a copy too, and only once."""
    (model,) = fit_many(POHMM(tol=1e-2), items(1)[:1])
    other = copy.deepcopy(model)
    np.testing.assert_array_equal(other.transmat_, model.transmat_)
    assert model._parameters is model._parameters
    before = vars(model).copy()
    model.score(items(1)[0])
    assert vars(model) == before


def test_one_warning_for_all_that_did_not_converge():
    data = items()
    with pytest.warns(ConvergenceWarning, match=r"of 10 models had not converged .* model 0") as caught:
        fit_many(POHMM(max_iter=1, tol=0.0), data)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_what_python_has_to_see_is_seen_in_every_fit(capsys):
    """Several starts, a callback, or a report of each iteration, each of them alone."""
    data = items(2)
    for one in fit_many(POHMM(tol=1e9, n_init=2, random_state=0), data):
        assert len(one.init_results_) == 2
    seen = []
    fit_many(POHMM(tol=1e9, callback=seen.append), data)
    assert [iteration.number for iteration in seen].count(1) == len(data)
    fit_many(POHMM(tol=1e9, verbose=True), data)
    assert capsys.readouterr().err.count("iteration 1:") == len(data)


def test_a_parameter_that_can_be_changed_in_place_is_not_shared():
    pattern = POHMM(emission=("lognormal", ["gamma"]), fixed=("start",))
    first, second = many.unfitted(pattern, 2)
    assert first.emission == second.emission == pattern.emission
    assert len({id(one.emission[1]) for one in (first, second, pattern)}) == 3


def test_an_error_names_the_model():
    data = items()
    data[4] = Sequences.from_arrays(-np.ones((3, 2)), list("abc"))
    with pytest.raises(ValueError, match=r"model 4: .*is not a value of a lognormal emission"):
        fit_many(POHMM(), data)
    weights = [np.ones(len(item)) for item in items()]
    weights[2] = -weights[2]
    with pytest.raises(ValueError, match=r"model 2: sample_weight of sequence 0 is -1"):
        fit_many(POHMM(tol=1.0), items(), sample_weight=weights)
