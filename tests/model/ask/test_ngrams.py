"""Models of text, against Witten and Bell's rule written down once more, and keys summed over one by one."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from keydyn import POHMM, NGrams
from keydyn.model.ask import ngrams
from tests.model.enumeration import Truth, random_values

CLOSE = {"rtol": 1e-10, "atol": 1e-12}
TEXTS = ["the cat sat on the mat", "a rat", "the hat on the cat", "t", "cat?hat"]
TYPES = sorted(set("".join(TEXTS)) - {"?"})


def plain_probability(texts, types, order, before, after):
    """The rule as it is printed, from counts of every context; a type that is not listed ends a context."""
    if order == 0:
        return 1.0 / len(types)
    n = order - 1
    context = before[len(before) - n :] if n <= len(before) else None
    if context is None or any(key not in types for key in context):
        return plain_probability(texts, types, n, before, after)
    counts = Counter(
        text[place]
        for text in texts
        for place in range(n, len(text))
        if text[place - n : place] == context and text[place] in types
    )
    shorter = plain_probability(texts, types, n, before, after)
    total, distinct = sum(counts.values()), len(counts)
    return (counts[after] + distinct * shorter) / (total + distinct) if total else shorter


def plain_log_probability(texts, types, order, text):
    return sum(math.log(plain_probability(texts, types, order, text[:n], text[n])) for n in range(len(text)))


def learnt(texts, order, types=None):
    return NGrams.learn(list("".join(texts)), order, types, lengths=[len(text) for text in texts])


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_are_witten_and_bells(order):
    model = learnt(TEXTS, order, TYPES)
    asked = ["the cat", "tttt", "hat on", "ca", "nohe rat"]
    found = model.log_probability(list("".join(asked)), lengths=[len(text) for text in asked])
    expected = [plain_log_probability(TEXTS, TYPES, order, text) for text in asked]
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_an_unknown_type_is_impossible_and_ends_the_context():
    model = learnt(TEXTS, 3, TYPES)
    found = model.log_probabilities(list("th?he"))
    assert np.isneginf(found[2])
    assert found[3:].tolist() == pytest.approx(model.log_probabilities(list("he")).tolist())


@given(st.lists(st.text("abc", min_size=1, max_size=12), min_size=1, max_size=4), st.integers(1, 5))
def test_every_context_has_a_distribution_and_leads_to_the_longest_end(texts, order):
    model = learnt(texts, order)
    np.testing.assert_allclose(model.prob.sum(axis=1), 1.0, rtol=1e-12)
    assert (model.prob > 0).all()
    m, here, total = len(model.event_types), 0, 0.0
    text = texts[0]
    for key in text:
        place = model.event_types.tolist().index(key)
        total += math.log(model.prob[here, place])
        here = model.following[here, place]
        assert model.last[here] == place < m
    assert model.log_probability(list(text))[0] == pytest.approx(total, rel=1e-12)


@pytest.fixture(scope="module")
def case():
    """A model, a text for its n-grams, and sequences in which some types and values are missing."""
    rng = np.random.default_rng(11)
    truth = Truth.random(rng, m=3, n_states=2, families=("lognormal", "normal"))
    texts = ["".join(rng.choice(list("012"), n, p=[0.6, 0.3, 0.1])) for n in (30, 20)]
    lengths = [1, 4, 2, 5]
    x = [random_values(rng, ["lognormal", "normal"], n, missing=0.2) for n in lengths]
    codes = [rng.integers(0, truth.m + 1, n) for n in lengths]
    return POHMM.from_parameters(*truth.arguments()), truth, texts, x, codes


def text_model(truth, texts, order):
    names = [truth.types[int(key)] for key in "".join(texts)]
    return NGrams.learn(names, order, truth.types, lengths=[len(text) for text in texts])


def completions(truth, texts, order, x, codes):
    """Every way to fill in unknown types, with ln P(x, Ω): all paths summed, times the plain n-grams."""
    return {
        filled: truth.log_likelihood(x, filled)
        + plain_log_probability(texts, "012", order, "".join(map(str, filled)))
        for filled in truth.completions(codes)
    }


@pytest.mark.parametrize("order", [1, 2, 4])
def test_joint_likelihood_and_types_under_a_model_of_text(case, order):
    model, truth, texts, x, codes = case
    text = text_model(truth, texts, order)
    events = [[[*truth.types, None][w] for w in one] for one in codes]
    joint = model.score_joint(x, events=events, text=text)
    posterior = np.split(
        model.predict_events(x, events=events, text=text)[1], np.cumsum([len(one) for one in x])[:-1]
    )
    for s, (values, some) in enumerate(zip(x, codes, strict=True)):
        ways = completions(truth, texts, order, values, some)
        total = special.logsumexp(list(ways.values()))
        assert joint[s] == pytest.approx(total, rel=1e-10)
        expected = np.zeros((len(values), truth.m))
        for filled, log_p in ways.items():
            expected[np.arange(len(values)), list(filled)] += math.exp(log_p - total)
        np.testing.assert_allclose(posterior[s], expected, **CLOSE)


def test_known_types_alone_need_no_sum(case):
    model, truth, texts, x, _ = case
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, truth.m, len(one)) for one in x]
    events = [[truth.types[w] for w in one] for one in codes]
    found = model.score_joint(x, events=events, text=text_model(truth, texts, 3))
    expected = [
        truth.log_likelihood(values, one) + plain_log_probability(texts, "012", 3, "".join(map(str, one)))
        for values, one in zip(x, codes, strict=True)
    ]
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_all_sequences_have_the_probability_one_together():
    """The joint density integrates to one: over all texts of three types, without emissions."""
    model = learnt(TEXTS, 3, TYPES)
    texts = ["".join(keys) for keys in itertools.product(TYPES, repeat=3)]
    found = model.log_probability(list("".join(texts)), lengths=[3] * len(texts))
    assert special.logsumexp(found) == pytest.approx(0.0, abs=1e-12)


def test_what_cannot_be_learnt_or_used_is_refused(case):
    model, truth, _, x, _ = case
    with pytest.raises(ValueError, match="order must be a whole number, 1 or more"):
        NGrams.learn(["a"], order=0)
    with pytest.raises(ValueError, match="too many for order 40"):
        NGrams.learn(list("abc"), order=40)
    with pytest.raises(ValueError, match="no event types"):
        NGrams.learn([None, None])
    other = NGrams.learn([truth.types[1], truth.types[0]], order=1, event_types=truth.types[::-1])
    with pytest.raises(ValueError, match=r"event_types=model\.event_types_"):
        model.predict_events(x[1], text=other)


def test_a_sequence_whose_lattice_does_not_fit_is_named():
    keys = list("abcab" * 6)
    tau = np.random.default_rng(0).lognormal(5.0, 0.3, (30, 1))
    model = POHMM().fit(tau, events=keys)
    text = NGrams.learn(keys, order=3, event_types=model.event_types_)
    case = model._known().parameters, text, np.array([0, 10, 30])
    ngrams._walk(*case, largest=20 * len(text.prob) * 2)
    with pytest.raises(ValueError, match="sequence 1 has 20 events, too many"):
        ngrams._walk(*case, largest=20 * len(text.prob) * 2 - 1)
