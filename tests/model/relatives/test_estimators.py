"""The relatives as estimators: scikit-learn's conventions, input checks, files, degenerate data."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from keydyn import HMM, ContextHMM, PartiallyHMM, PartlyHMM, POHMMClassifier, Sequences, fit_many, load
from keydyn.files import packed
from keydyn.model import Bins, ModelFileError
from tests.model.test_sklearn import EXPECTED_FAILURES

MODELS = {
    "context": ContextHMM(tol=1e-2),
    "partly": PartlyHMM(tol=1e-2),
    "partially": PartiallyHMM(tol=1e-2),
}


def every(test):
    return pytest.mark.parametrize("kind", MODELS)(test)


@pytest.fixture(scope="module")
def sequences():
    truth = HMM.from_parameters(
        [0.5, 0.5],
        [[0.9, 0.1], [0.3, 0.7]],
        [("lognormal", [4.6, 6.0], [0.3, 0.5]), ("lognormal", [4.4, 4.6], [0.2, 0.2])],
    )
    X, _, _ = truth.sample(lengths=[25] * 9, random_state=1)
    return Sequences.from_arrays(X, lengths=[25] * 9)


@pytest.fixture(scope="module", name="fitted")
def fitted_models(sequences):
    models = {name: clone(model).fit(sequences) for name, model in MODELS.items()}
    labels = np.where(sequences.X[:, 0] > 200, "slow", "fast").astype(object)
    labels[::3] = None
    models["partially, labelled"] = PartiallyHMM(tol=1e-2).fit(
        sequences.X, lengths=sequences.lengths, labels=labels
    )
    return models


@every
def test_check_estimator(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(MODELS[kind]).set_params(emission="normal")
        results = check_estimator(model, expected_failed_checks=EXPECTED_FAILURES, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(EXPECTED_FAILURES), "an expected failure that passes is no longer expected"
    assert sum(result["status"] == "passed" for result in results) > 30


def test_clone_and_parameters():
    for model in (
        ContextHMM(3, emission_context=Bins((1.0, 2.0)), transition_context=None, fixed=("start",)),
        PartlyHMM(previous_feature=1, density_floor=1e-5),
        PartiallyHMM(p_observed=None, p_true=1.0, state_labels=("a", "b")),
    ):
        copied = clone(model)
        assert copied.get_params() == model.get_params()
        assert type(copied) is type(model)


@every
def test_cross_validation(sequences, kind):
    model = MODELS[kind]
    scores = cross_val_score(model, sequences, cv=KFold(3))
    for score, (train, test) in zip(scores, KFold(3).split(np.arange(9)), strict=True):
        expected = clone(model).fit(sequences[train]).score(sequences[test])
        assert score == pytest.approx(expected, rel=1e-12)
    search = GridSearchCV(clone(model), {"n_states": [1, 2]}, cv=2).fit([s.X for s in sequences])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@every
def test_input_forms_agree(sequences, kind):
    model = clone(MODELS[kind]).fit(sequences)
    X, lengths = sequences.X, sequences.lengths
    events = ["k"] * len(X)
    for form, given in (
        (X, {"lengths": lengths}),
        ([s.X for s in sequences], {}),
        (list(sequences), {}),
        (X, {"lengths": lengths, "events": events}),
        (Sequences.from_arrays(X, events, lengths), {}),
    ):
        np.testing.assert_array_equal(clone(MODELS[kind]).fit(form, **given).history_, model.history_)
        np.testing.assert_array_equal(model.predict_proba(form, **given), model.predict_proba(sequences))
    frame = pd.DataFrame(X, columns=["duration", "tau"])
    named = clone(MODELS[kind]).fit(frame, lengths=lengths)
    assert named.feature_names_in_.tolist() == ["duration", "tau"]
    with pytest.raises(ValueError, match="feature names should match"):
        named.score(frame[["tau", "duration"]])


@every
def test_wrong_input(sequences, fitted, kind):
    model, X = MODELS[kind], sequences.X
    for call in (clone(model).fit, fitted[kind].score):
        bad = X.copy()
        bad[30, 1] = -1.0
        with pytest.raises(
            ValueError, match=r"sequence 1, row 5 .*column 1: -1\.0 is not a value of a lognormal"
        ):
            call(bad, lengths=sequences.lengths)
        bad[30, 1] = np.inf
        with pytest.raises(ValueError, match=r"sequence 1, row 5.*infinite"):
            call(bad, lengths=sequences.lengths)
        with pytest.raises(ValueError, match="lengths add up to 2"):
            call(X, lengths=[2])
        with pytest.raises(ValueError, match="X is empty"):
            call([])
    with pytest.raises(ValueError, match="column 0 has no value at all"):
        clone(model).fit(np.where([True, False], np.nan, X))
    with pytest.raises(ValueError, match="2 features"):
        fitted[kind].score(X[:, :1])
    for name, wrong in (("n_states", 0), ("tol", -1), ("max_iter", 0.5), ("min_scale", "no"), ("fixed", "x")):
        with pytest.raises(ValueError, match=f"{name} must be"):
            clone(model).set_params(**{name: wrong}).fit(X)
    with pytest.raises(ValueError, match="sample_weight of sequence 0"):
        clone(model).fit(X, sample_weight=[-1.0])
    with pytest.raises(NotFittedError):
        clone(model).score(X)
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = clone(model).transmat_
    with pytest.raises(ValueError, match="n_events must be"):
        fitted[kind].sample(0)


@every
def test_many_models_and_classes(kind):
    """`fit_many` and the classifier take a relative where they take a POHMM."""
    rng = np.random.default_rng(0)
    slow, fast = ([rng.lognormal(mean, 0.3, (20, 1)) for _ in range(5)] for mean in (6.0, 5.0))
    models = fit_many(MODELS[kind], [slow, fast])
    np.testing.assert_array_equal(models[1].history_, clone(MODELS[kind]).fit(fast).history_)
    classifier = POHMMClassifier(MODELS[kind]).fit(slow[:3] + fast[:3], ["slow"] * 3 + ["fast"] * 3)
    assert classifier.predict(slow[3:] + fast[3:]).tolist() == ["slow", "slow", "fast", "fast"]


def test_a_failed_fit_leaves_the_model(sequences, fitted):
    """Also one that fails after the contexts were learnt."""
    model = clone(MODELS["context"]).fit(sequences)
    before = model.score(sequences)
    with pytest.raises(ZeroDivisionError):
        model.set_params(callback=lambda it: 1 / 0).fit(sequences.X * 3.0)
    assert model.set_params(callback=None).score(sequences) == before


def test_scoring_never_changes_a_model(sequences, fitted):
    for model in fitted.values():
        before = model.__dict__.copy()
        for call in (model.score, model.predict_proba, model.decode, model.bic, model.score_samples):
            call(sequences)
        model.sample(5, random_state=0)
        assert model.__dict__ == before


def test_criteria(sequences, fitted):
    model = fitted["context"]
    assert model.n_parameters_ == 1 + 3 * 2 + 4 * 2 * 4
    assert model.aic(sequences) == pytest.approx(2 * model.n_parameters_ - 2 * model.score(sequences))
    penalty = model.n_parameters_ * np.log(sequences.n_events)
    assert model.bic(sequences) == pytest.approx(penalty - 2 * model.score(sequences))
    assert "approximate" not in str(model.bic(sequences))
    floored = ContextHMM(density_floor=1e-5, tol=1e-2).fit(sequences)
    assert "approximate" in str(floored.bic(sequences))
    # Start, transitions and their slopes; two features of locations, scales and slopes.
    assert fitted["partly"].n_parameters_ == 1 + 2 + 2 + 2 * 2 * 3


@pytest.mark.parametrize("kind", [*MODELS, "partially, labelled"])
def test_round_trip(sequences, fitted, kind, tmp_path):
    """Every number comes back bit by bit, and the file is the same when written again."""
    model, path = fitted[kind], tmp_path / "model.keydyn"
    model.save(path)
    again = load(path)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.score_samples(sequences), model.score_samples(sequences))
    for name in ("startprob_", "transmat_", "history_", "n_iter_", "n_parameters_", "stop_reason_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    for ours, theirs in zip(again.scale_floored_, model.scale_floored_, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    if kind == "partially, labelled":
        assert again.state_labels_.tolist() == model.state_labels_.tolist()
        assert (again.p_observed_, again.p_true_) == (model.p_observed_, model.p_true_)
    again.save(tmp_path / "again.keydyn")
    assert (tmp_path / "again.keydyn").read_bytes() == path.read_bytes()


def test_given_models_in_files(tmp_path):
    made = PartlyHMM.from_parameters(
        [1.0, 0.0],
        [[0.5, 0.5], [0.0, 1.0]],
        [("normal", [[0.0, 1.0]], [[1.0, 2.0]])],
        emission_slopes=[[0.5, 0.0]],
    )
    made.save(tmp_path / "made.keydyn")
    again = load(tmp_path / "made.keydyn")
    X, _, _ = made.sample(50, random_state=0)
    assert again.score(X) == made.score(X)
    assert not hasattr(again, "log_likelihood_")
    np.testing.assert_array_equal(again.emission_slopes_, [[0.5, 0.0]])


def rewritten(path, target, change):
    """The same file with its header and tensors changed, and a digest that fits."""
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["keydyn"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    del header["sha256"]
    change(header, tensors)
    target.write_bytes(packed(header, tensors))
    return target


SPOILT = {
    "class": lambda h, t: h.update({"class": "PartlyHMM"}),
    "no class": lambda h, t: h.update({"class": "Nobody"}),
    "field": lambda h, t: h.update({"more": 1}),
    "tensor": lambda h, t: t.update({"more": np.zeros(2)}),
    "missing tensor": lambda h, t: t.pop("transmat"),
    "negative": lambda h, t: t.update({"startprob": np.array([-0.5, 1.5])}),
    "states": lambda h, t: t.update({"startprob": np.array([0.5, 0.25, 0.25])}),
    "nan": lambda h, t: t["emission.0.loc"].__setitem__((0, 0), np.nan),
    "rows": lambda h, t: t.update({"emission.0.loc": t["emission.0.loc"][:1]}),
    "edges": lambda h, t: h["contexts"][0].update({"edges": [5.0, 1.0]}),
    "feature": lambda h, t: h["contexts"][0].update({"feature": 7}),
    "context": lambda h, t: h["contexts"].__setitem__(0, {"kind": "code", "run": "x"}),
    "contexts": lambda h, t: h.update({"contexts": None}),
    "settings": lambda h, t: h["settings"].update({"n_states": 5}),
    "setting": lambda h, t: h["settings"].update({"tol": -1}),
    "family": lambda h, t: h["families"].__setitem__(0, {"family": "normal"}),
    "labels": lambda h, t: h.update({"labels": {"observed": 2, "true": 1, "estimated": [], "names": [0, 1]}}),
    "fit": lambda h, t: h["fit"].update({"n_iter_": -1}),
    "history": lambda h, t: t.update({"history": np.zeros(1)}),
    "names": lambda h, t: h.update({"feature_names": ["one"]}),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_a_spoilt_file_is_refused(fitted, kind, tmp_path):
    fitted["context"].save(tmp_path / "right.keydyn")
    path = rewritten(tmp_path / "right.keydyn", tmp_path / "spoilt.keydyn", SPOILT[kind])
    with pytest.raises(ModelFileError):
        load(path)


@pytest.mark.parametrize(
    "change", [("names", [0]), ("true", 1.5), ("estimated", ["x"]), ("observed", "much")]
)
def test_spoilt_labels_are_refused(fitted, change, tmp_path):
    fitted["partially, labelled"].save(tmp_path / "right.keydyn")
    name, value = change
    path = rewritten(
        tmp_path / "right.keydyn", tmp_path / "spoilt.keydyn", lambda h, t: h["labels"].update({name: value})
    )
    with pytest.raises(ModelFileError, match=rf"labels\.{name}"):
        load(path)


def test_changed_after_fitting(sequences, tmp_path):
    model = clone(MODELS["partly"]).fit(sequences).set_params(n_states=3)
    with pytest.raises(ValueError, match="fit again before saving"):
        model.save(tmp_path / "changed.keydyn")


def test_files_of_models_that_had_bins(fitted, tmp_path):
    """A setting that was there once is read where it says what is so now, and refused where it does not."""
    fitted["partly"].save(tmp_path / "right.keydyn")
    for previous, read in (("linear", True), (3, False)):
        path = rewritten(
            tmp_path / "right.keydyn",
            tmp_path / "earlier.keydyn",
            lambda h, t, previous=previous: h["settings"].update({"previous": previous}),
        )
        if read:
            assert load(path).get_params() == fitted["partly"].get_params()
        else:
            with pytest.raises(ModelFileError, match="ContextHMM with the same bins"):
                load(path)


def test_the_file_holds_a_tampered_byte(fitted, tmp_path):
    path = tmp_path / "model.keydyn"
    fitted["partly"].save(path)
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    tensors["startprob"] = tensors["startprob"][::-1].copy()
    save_file(tensors, path, metadata)
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


DEGENERATE = {
    "one event": (np.array([[100.0, 80.0]]), [1]),
    "sequences of one event": (np.linspace(50, 300, 20).reshape(10, 2), [1] * 10),
    "equal values": (np.full((30, 2), 120.0), [30]),
    "two values": (np.tile([[100.0, 50.0], [200.0, 50.0]], (15, 1)), [15, 15]),
    "mostly missing": (np.where(np.arange(60).reshape(30, 2) % 7 == 0, 100.0, np.nan), [10, 20]),
    "first values missing": (np.concatenate([np.full((3, 2), np.nan), np.full((9, 2), 90.0)] * 2), [12, 12]),
    "an outlier": (np.concatenate([np.full((30, 2), 100.0), [[1e7, 1e-7]], np.full((9, 2), 99.0)]), [40]),
}


@every
@pytest.mark.parametrize("data", DEGENERATE)
@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_degenerate_data(kind, data, n_states):
    """A finite score and proper probabilities, whatever there is to learn from."""
    X, lengths = DEGENERATE[data]
    model = clone(MODELS[kind]).set_params(n_states=n_states, tol=1e-3, max_iter=50)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="not converged")
        model.fit(X, lengths=lengths)
    assert np.isfinite(model.score(X, lengths=lengths))
    gamma = model.predict_proba(X, lengths=lengths)
    np.testing.assert_allclose(gamma.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(model.transmat_.sum(axis=-1), 1.0, rtol=1e-9)
    other = np.array([[np.nan, 3.0], [1e5, np.nan], [40.0, 60.0]])
    assert np.isfinite(model.score(other))
    drawn, _, states = model.sample(lengths=[4, 4], random_state=0)
    assert np.isfinite(drawn).all()
    assert states.max() < n_states


def test_impossible_paths():
    """What cannot be scores −inf and has no states to speak of; underflow is no impossibility."""
    far = PartlyHMM.from_parameters(
        [1.0, 0.0], np.eye(2), [("normal", [[0.0, 100.0]], [[1.0, 1.0]])], transition_slopes=np.zeros((2, 2))
    )
    x = np.array([[0.0], [100.0], [0.0]])
    assert far.score(x) == pytest.approx(-0.5 * 100**2 - 1.5 * np.log(2 * np.pi))
    model = ContextHMM.from_parameters(
        [1.0],
        [[[1.0]]] * 3,
        [("categorical", {"p0": [[1.0], [1.0], [0.5]], "p1": [[0.0], [0.0], [0.5]]})],
        emission_context=Bins(()),
        transition_context=Bins(()),
    )
    assert model.score(np.array([[0.0], [1.0]])) == -np.inf
    with pytest.raises(ValueError, match="probability zero"):
        model.predict_proba(np.array([[0.0], [1.0]]))
    with pytest.raises(ValueError, match="no path is possible"):
        model.decode(np.array([[0.0], [1.0]]))


def test_given_parameters_are_checked():
    parts = ([0.5, 0.5], [[0.5, 0.5]] * 2, [("normal", [[0.0, 1.0]], [[1.0, 1.0]])])
    with pytest.raises(ValueError, match=r"emission_slopes must be finite numbers of shape \(1, 2\)"):
        PartlyHMM.from_parameters(*parts, emission_slopes=[[1.0, np.nan]])
    with pytest.raises(ValueError, match=r"transmat must have shape \(4, 2, 2\)"):
        ContextHMM.from_parameters(
            [0.5, 0.5],
            [[[0.5, 0.5]] * 2] * 2,
            [("normal", np.zeros((4, 2)), np.ones((4, 2)))],
            emission_context=Bins((1.0,)),
            transition_context=Bins((1.0,)),
        )
    with pytest.raises(ValueError, match="p_true must be"):
        PartiallyHMM.from_parameters(*parts, p_observed=0.5, p_true=1.2)
    with pytest.raises(ValueError, match="previous_feature"):
        PartlyHMM.from_parameters(*parts, previous_feature=3)
