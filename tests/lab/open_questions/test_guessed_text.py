"""Text from timings, where it is known how much they can say."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from keydyn import POHMM, NGrams, Sequences
from keydyn.lab.open_questions.guessed_text import (
    CHAIN,
    LETTERS,
    Attacker,
    _word_ranks,
    bits_per_key,
    guessed,
    in_windows,
    rounded,
    words_of,
)
from keydyn.lab.open_questions.text_recovery import ANOTHER, OTHERS, OWN, people_of, recovery
from tests.population.simulated import samples_of_people


def typist(distance):
    """Two keys, equally frequent and independent, whose times are so many deviations apart."""
    location = np.array([[5.0, 5.0], [5.0 + distance, 5.0 + distance]])
    return POHMM.from_parameters(
        ["a", "b"],
        startprob=[[0.5, 0.5]] * 2,
        transmat=np.full((2, 2, 2, 2), 0.5),
        emission=[("lognormal", location, 1.0)],
        event_transmat=np.full((2, 2), 0.5),
    )


def attacker_of(model):
    """One who knows these times, and that both keys are as frequent in every place."""
    text = NGrams.learn(["a", "b"] * 500, order=1, event_types=["a", "b"])
    return Attacker(model, {LETTERS: text})


def typed_by(model, n):
    X, events, _ = model.sample(lengths=[n], random_state=0)
    return Sequences.from_arrays(X, events, [n])


@pytest.mark.parametrize(
    ("distance", "share", "bits"), [(0.0, None, 0.0), (2.0, 0.8413, 0.4859), (20.0, 1.0, 1.0)]
)
def test_keys_are_recovered_as_far_as_times_tell_them_apart(distance, share, bits):
    """Two normal distributions at a distance of 2: a share Φ(1) is told apart, which carries .4859 bits."""
    model = typist(distance)
    typed = typed_by(model, 20_000)
    found = guessed(attacker_of(model), LETTERS, typed)
    assert bits_per_key(attacker_of(model), LETTERS, typed) == pytest.approx(bits, abs=0.02)
    assert found["top_1"] == pytest.approx(0.5 if share is None else share, abs=0.01)
    assert found["top_5"] == 1.0


def test_without_timings_the_text_alone_decides():
    """Three keys in four are a: always to guess a is right for three in four, whatever the times say."""
    model = typist(20.0)
    text = NGrams.learn(list("aaab") * 500, order=1, event_types=["a", "b"])
    events = list("abaa") * 50
    X, _, _ = model.sample(events=events, random_state=0)
    typed = Sequences.from_arrays(X, events, [len(events)])
    attacker = Attacker(model, {LETTERS: text})
    assert guessed(attacker, LETTERS, typed, timed=False)["top_1"] == 0.75
    assert guessed(attacker, LETTERS, typed)["top_1"] == 1.0


def test_an_unknown_key_is_not_guessed():
    model = typist(20.0)
    sample = typed_by(model, 100)
    labels = sample.labels().astype(object)
    labels[:50] = "c"
    typed = Sequences.from_arrays(sample.X, labels, [100])
    assert guessed(attacker_of(model), LETTERS, typed)["top_1"] == pytest.approx(0.5)
    assert guessed(attacker_of(model), LETTERS, typed)["top_5"] == pytest.approx(0.5)
    assert bits_per_key(attacker_of(model), LETTERS, typed) == pytest.approx(1.0, abs=0.3)


def test_words_are_runs_of_letters_within_a_text():
    keys = [*"a", "space", *"cat", "comma", *"on", *"up", "7", *"it"]
    sequences = Sequences.from_arrays(np.ones((len(keys), 1)), keys, [8, len(keys) - 8])
    assert words_of(sequences).tolist() == [[2, 5], [6, 8], [8, 10], [11, 13]]


def test_ranks_of_words_are_those_of_all_strings():
    """Against all 4³ + 4² strings of two words, sorted."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        log_p = np.log(rng.dirichlet(np.ones(4), 5))
        own = rng.integers(0, 4, 5)
        words = np.array([[0, 3], [3, 5]])
        found = _word_ranks(log_p, log_p[np.arange(5), own], words)
        for rank, (first, end) in zip(found, words, strict=True):
            every = itertools.product(range(4), repeat=end - first)
            products = [sum(log_p[first + k, key] for k, key in enumerate(keys)) for keys in every]
            typed = sum(log_p[k, own[k]] for k in range(first, end))
            assert rank == min(5, sum(product > typed + 1e-12 for product in products))


def test_windows_leave_out_what_is_left_over():
    sequences = Sequences.from_arrays(np.arange(1.0, 13.0)[:, None], list("abcdefghijkl"), [7, 2, 3])
    windows = in_windows(sequences, 3)
    assert ["".join(one.labels()) for one in windows] == ["abc", "def", "jkl"]
    assert windows.X[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 10, 11, 12]


def test_rounded_times_are_multiples_and_never_nothing():
    sequences = Sequences.from_arrays(np.array([[3.0], [4.1], [12.0], [160.0]]), list("abcd"), [4])
    assert rounded(sequences, 8).X[:, 0].tolist() == [4.0, 8.0, 16.0, 160.0]
    assert rounded(sequences, 0) is sequences


class Simulated:
    """A row of the study: ten people whose keys differ in their times."""

    name = "simulated"
    samples = samples_of_people(n_people=10, n_samples=6, n_keys=120, cell=1.0, noise=0.05, seed=5)


def test_own_models_know_more_than_others_and_coarse_times_say_less():
    attacked, teachers = people_of(Simulated.samples, 0)
    assert not set(attacked) & set(teachers)
    table = recovery(Simulated, 0, [0, 1, 2], None, lengths=(10, 100), grains=(1, 1000))
    assert table["user"].unique().tolist() == [str(user) for user in attacked[:3]]
    means = table.groupby(["what", "source", "text"]).mean(numeric_only=True)
    text = means.loc["text"]
    assert text.loc[OWN, CHAIN]["bits"] > text.loc[OTHERS, CHAIN]["bits"]
    assert text.loc[OWN, CHAIN]["top_1"] > text.loc[ANOTHER, CHAIN]["top_1"]
    assert text.loc[OWN, CHAIN]["top_1"] > text.loc[OWN, CHAIN]["alone_top_1"]
    assert (table["top_5"] >= table["top_1"]).all()
    by_grain = table[(table["what"] == "grain") & (table["source"] == OWN)].groupby("grain")["bits"].mean()
    assert by_grain[1] > by_grain[1000]
    assert by_grain[1000] < 0.5
    assert not math.isnan(text.loc[OTHERS, CHAIN]["alone_top_5"])


def test_one_person_alone_cannot_be_attacked():
    with pytest.raises(ValueError, match="fewer than 2"):
        people_of(Simulated.samples[Simulated.samples.users == 0], 0)
