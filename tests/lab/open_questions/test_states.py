"""How many states there are, and what they mean: found again where both are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.evaluation.protocols.protocol import MonacoTappert
from keydyn.evaluation.protocols.running import enrolments, score_protocol
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.study_data import Row
from keydyn.lab.open_questions.state_scores import (
    MEANT,
    RECOGNISED,
    POHMMOfStates,
    detector_of,
    found,
    meanings,
    own_likelihoods,
)
from keydyn.lab.open_questions.states import (
    QUESTION,
    best_numbers,
    draw_meaning,
    draw_numbers,
    meaning_table,
    numbers_table,
)

INTERVALS = (60.0, 250.0, 1500.0)


def typists(n_users=3, n_samples=4, n_keys=120):
    """People with three states: intervals of about 60, 250 and 1,500 ms; spaces come in the last one only."""
    random, rows = np.random.default_rng(5), []
    for user in range(n_users):
        for session in range(n_samples):
            state = np.zeros(n_keys, dtype=int)
            for n in range(1, n_keys):
                state[n] = state[n - 1] if random.random() < 0.6 else random.integers(3)
            tau = np.array(INTERVALS)[state] * (1.0 + 0.1 * user) * random.lognormal(0.0, 0.12, n_keys)
            press = np.cumsum(tau)
            hold = random.lognormal(4.3, 0.1, n_keys)
            spaces = (state == 2) & (random.random(n_keys) < 0.5)
            keys = np.where(spaces, "space", random.choice(["a", "e"], n_keys))
            rows.append(
                pd.DataFrame(
                    {
                        "user": user,
                        "session": session,
                        "keyname": keys,
                        "timepress": press,
                        "timerelease": press + hold,
                    }
                )
            )
    return pd.concat(rows, ignore_index=True)


@pytest.fixture(scope="module")
def row():
    return Row("mine", Samples.of(typists(), kind="long text"), MonacoTappert(), {}, "ours")


@pytest.fixture(scope="module")
def by_number(row):
    return pd.concat([found(row, "pohmm", n) for n in (1, 2, 3, 4)], ignore_index=True)


def test_three_states_are_found_where_there_are_three(by_number):
    """What is held out is most probable under a model with as many states as there are."""
    table = numbers_table({RECOGNISED: by_number}, 0).frame
    gain = table.set_index("states")["log_likelihood"]
    assert gain[2] == 0.0
    # A third state narrows one of the two that are left to it, by a factor of ten or more.
    assert gain[3] > 0.1
    assert gain[3] > gain[4]
    assert gain[1] < 0.0
    assert best_numbers(table, "pohmm", "log_likelihood") == {"mine": 3}


def test_what_each_of_the_three_states_means(by_number):
    """Their intervals are those that letters were drawn with; spaces are slow in whichever state they are."""
    table = meaning_table({RECOGNISED: by_number}, 0).frame
    three = table[table["states"] == 3].set_index(["class", "state"])
    # People are 0, 10 and 20 % slower: the mean of the logarithms of 1, 1.1 and 1.2.
    slower = np.exp(np.log([1.0, 1.1, 1.2]).mean())
    # Half of the last state's keys are spaces. States are a factor of four or more apart: 0.1 is smoothing.
    for state, (interval, share) in enumerate(zip(INTERVALS, (0.4, 0.4, 0.2), strict=True), 1):
        assert three.loc[("letter", state), "interval"] == pytest.approx(interval * slower, rel=0.1)
        assert three.loc[("letter", state), "share"] == pytest.approx(share, abs=0.05)
        assert three.loc[("space", state), "interval"] == pytest.approx(INTERVALS[2] * slower, rel=0.1)
    by_class = table.groupby(["states", "class"])["share"].sum()
    np.testing.assert_allclose(by_class, 1.0, atol=1e-9)


def test_the_likelihood_is_that_of_queries_under_their_owners(row):
    scores = score_protocol(row.protocol, POHMMOfStates(3), row.samples)
    (first, *_), samples = enrolments(row.protocol, POHMMOfStates(3), row.samples), row.samples
    user = scores.users[1]
    template = first.population.detectors[1]
    own = samples[(samples.users == user) & first.split.query]
    one = own_likelihoods(scores, samples)
    alone = scores.raw[(scores.owners == user) & (scores.folds == 0), 1]
    np.testing.assert_allclose(alone, template.score(own))
    mine = scores.owners == user
    assert one[user] == pytest.approx(scores.raw[mine, 1].sum() / (mine.sum() * 120), rel=1e-12)


@pytest.mark.parametrize(("model", "n"), [("pohmm", 1), ("population", 1), ("population", 3)])
def test_every_number_of_states_has_its_figures(row, model, n):
    table = found(row, model, n)
    people = table[table["part"] == RECOGNISED]
    assert people[["acc", "eer", "rejection", "log_likelihood"]].notna().all(axis=None)
    meant = table[table["part"] == MEANT]
    sums = meant.groupby("class")["in_state"].sum()
    np.testing.assert_allclose(sums, meant.groupby("class")["keys"].first(), rtol=1e-9)
    assert meant["state"].nunique() == n


def test_a_person_who_asks_nothing_means_nothing(row):
    (first, *_) = enrolments(row.protocol, detector_of("pohmm", 2), row.samples)
    some = row.samples[first.split.query]
    whole = meanings(first, row.samples, 2)
    assert whole.groupby("class")["keys"].first().sum() == some.sequences.n_events


def test_figures_and_the_answer(by_number):
    both = pd.concat([by_number, by_number.assign(model="population")], ignore_index=True)
    values = {
        RECOGNISED: numbers_table({RECOGNISED: both}, 0).frame,
        MEANT: meaning_table({RECOGNISED: both}, 0).frame,
    }
    first, second = QUESTION.answer(values)
    assert "most probable under a POHMM of 3 (mine) states" in first
    assert "the equal error rate of the POHMM is significantly better on no dataset" in second
    assert len(draw_numbers(values[RECOGNISED]).axes) == 6
    assert [axes.get_title(loc="left") for axes in draw_meaning(values[MEANT]).axes][1] == "mine, 3 states"
