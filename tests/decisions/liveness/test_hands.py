"""Whether a hand typed it: the ratio, its rate, the answer, and the file."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from keydyn import files
from keydyn.datasets import make_typists
from keydyn.decisions import Targets, Verifier, enrolled_of, template_bytes, typed
from keydyn.decisions.decision import as_json
from keydyn.decisions.liveness.hands import (
    ANYONE,
    BURSTS,
    CLAIMED,
    HANDS,
    LEAST_KEYS,
    REASONS,
    REJECTED_FROM,
    SPREAD,
    STEEP,
    _loudest,
    typed_in_name_of,
    with_manner,
)
from keydyn.decisions.liveness.measures import GROUPS, MEASURES, NAMES, measured, quick_share
from keydyn.decisions.liveness.not_typed import SampleTimes
from keydyn.detectors import PopulationDetector
from keydyn.files import ModelFileError
from keydyn.keystrokes.samples import Samples
from keydyn.lab.forgeries import FORGERS, InBursts, joined
from keydyn.population import PopulationModel

PEOPLE = PopulationModel.shipped()
HAND = HANDS.parsed(files.read(ANYONE), ANYONE)


@pytest.fixture(scope="module")
def drawn():
    """Three samples each of forty people who do not exist."""
    return PEOPLE.retyped(PEOPLE.draw(40, 1), 3, 120, 1)


@pytest.fixture(scope="module")
def averages(drawn):
    recorded, texts = drawn[[0, 1]], drawn[[2]]
    return FORGERS["averages by context"].forge(recorded, texts, np.random.default_rng(0))


def test_drawn_people_are_seldom_taken_for_forgeries(drawn):
    # The model is not quite a person: it is alarmed about at 7 %, and the bound is for a share of 15 %.
    found = HAND.judged(PEOPLE, drawn)
    assert sum(one.answer == "no" for one in found) <= binom.ppf(0.999, len(drawn), 0.15)


def test_samples_judged_together_are_judged_each_by_its_own_clock():
    typing = make_typists(n_users=3, n_samples=1, text="free", n_keys=120, random_state=4)
    times, coarse = ["timepress", "timerelease"], typing["user"] == typing["user"].iloc[-1]
    typing[times] = typing[times].astype(float)
    typing.loc[coarse, times] = 15.625 * np.round(typing.loc[coarse, times] / 15.625)
    samples = Samples.of(typing)
    assert [SampleTimes.of(samples[[n]]).tick for n in range(3)] == [0.0, 0.0, 15.625]
    together = HAND.judged(PEOPLE, samples)
    assert together == [HAND.judged(PEOPLE, samples[[n]])[0] for n in range(3)]


def test_averages_are_noticed_with_or_without_enrolment(drawn, averages):
    answer = typed(averages)
    assert answer.answer == "no"
    assert answer.reason in REASONS
    assert answer.llr < 0.0
    assert answer.rate <= 0.01
    verifier = Verifier.shipped()
    verifier.enrol("ada", drawn[[0, 1]])
    decision = verifier.verify("ada", averages)
    assert (decision.answer, decision.typed.answer) == ("reject", "no")
    assert decision.typed.reason in decision.reasons
    assert as_json(decision)["typed"] == "no"
    assert verifier.identify(averages).typed.answer == "no"


def test_alarms_of_zero_reject_nothing_as_forged(drawn, averages):
    verifier = Verifier.shipped(Targets(alarms=0.0))
    verifier.enrol("ada", drawn[[0, 1]])
    decision = verifier.verify("ada", averages)
    assert decision.typed.answer == "no"
    assert not set(REASONS) & set(decision.reasons)


@pytest.mark.parametrize("alarms", [-0.1, 1.0, np.nan])
def test_alarms_must_be_a_share(alarms):
    with pytest.raises(ValueError, match="alarms"):
        Targets(alarms=alarms)
    with pytest.raises(ValueError, match="alarms"):
        typed(make_typists(1, 1, "free", 50), alarms)


def test_short_samples_and_unknown_keys_are_not_judged(drawn):
    assert typed(make_typists(1, 1, "free", LEAST_KEYS - 1)).answer == "unsure"
    frame = make_typists(1, 1, "free", 100).assign(keyname="a key of another world")
    assert typed(frame) == typed(frame.iloc[:1])
    with pytest.raises(ValueError, match="one sample"):
        typed(drawn[:2])


def test_a_claim_is_rejected_as_forged_only_from_enough_keys(drawn):
    verifier = Verifier.shipped()
    verifier.enrol("ada", drawn[[0, 1]])
    texts = Samples.without_vectors(make_typists(1, 1, "free", REJECTED_FROM - 30))
    short = FORGERS["averages by key"].forge(drawn[[0, 1]], texts, np.random.default_rng(0))
    decision = verifier.verify("ada", short)
    assert decision.typed.answer == "no"
    assert not set(REASONS) & set(decision.reasons)


def test_missing_times_do_no_harm(drawn):
    X = np.array(drawn[[0]].sequences.X)
    X[::3] = np.nan
    one = replace(drawn[[0]], sequences=drawn[[0]].sequences.with_values(X))
    assert np.isfinite(typed(one).llr)


def test_other_detectors_are_judged_beside_anyone(drawn, averages):
    assert typed_in_name_of(object(), averages) == typed(averages)


def test_the_ratio_is_the_weighted_sum_of_its_terms(drawn):
    people = HANDS.parsed(files.read(CLAIMED), CLAIMED)
    manner = with_manner(PEOPLE, PEOPLE.enrol(drawn[[0, 1]]), drawn[[0, 1]]).manner
    values, keys = measured(PEOPLE, drawn[:2])
    K, longer = len(MEASURES), np.log(keys[1] / 100.0)
    z = []
    for k in range(K):
        own = np.clip(manner[1 + k] - people.enrolled[k], -people.reach[k], people.reach[k])
        usual = people.centre[k] + manner[0] / (manner[0] + 100.0) * people.follows[k] * own
        deviation = np.sqrt(people.among[k] + people.chance[k] / keys[1])
        z.append(np.clip((values[1, k] - usual) / deviation, -3, 3))
    unusual = np.log(1 + sum(z[i] * people.precision[i, j] * z[j] for i in range(K) for j in range(K)) / K)
    terms = np.array([*z, unusual, longer * unusual, longer, 1.0])
    assert people.weighed(values, keys, manner).ratio[1] == pytest.approx(terms @ people.weights)


def test_the_reason_is_the_group_of_measures_that_says_most_against_a_hand(drawn):
    weighed = HAND.weighed(*measured(PEOPLE, drawn)).terms * HAND.weights
    for terms in weighed:
        sums = dict.fromkeys(GROUPS, 0.0)
        for group, term in zip(GROUPS, terms[: len(GROUPS)], strict=True):
            sums[group] += term
        assert _loudest(terms) == min(sums, key=sums.get)


def test_times_as_the_model_expects_them_are_too_even_for_a_hand(drawn):
    values, keys = measured(PEOPLE, drawn)
    assert (HAND.weighed(values, keys).even == 0.0).all()
    expected = FORGERS["expected by the model"].forge(drawn[[0, 1]], drawn[[2]], np.random.default_rng(0))
    found = typed(expected)
    assert (found.answer, found.reason) == ("no", REASONS[SPREAD])
    deviations = np.array([[1.0], [-2.9], [-4.0]]) * np.sqrt(HAND.among + HAND.chance / 100)
    even = HAND.weighed(HAND.centre + deviations, np.array([100] * 3)).even
    # By both spreads.
    np.testing.assert_allclose(even, [0.0, 0.0, 2 * STEEP], atol=1e-9)


def test_enrolled_samples_are_measured_as_one_without_intervals_between_them(drawn):
    template = PEOPLE.enrol(drawn[[0, 1]])
    manner = with_manner(PEOPLE, template, drawn[[0, 1]]).manner
    (values,), (keys,) = measured(PEOPLE, joined(drawn[[0, 1]], 240), template)
    assert manner[0] == keys == 240
    np.testing.assert_allclose(manner[1:], values)
    assert with_manner(PEOPLE, template, drawn[:0]) is template


def test_a_hand_that_types_as_when_it_enrolled_is_less_unusual(drawn):
    people = HANDS.parsed(files.read(CLAIMED), CLAIMED)
    k = MEASURES.index("overlaps")
    assert people.follows[k] > 0.0
    keys, values = np.array([100]), people.centre[None] + 0.0
    values[0, k] += 0.2
    same = np.concatenate([[500.0], people.enrolled])
    same[1 + k] += 0.2
    assert abs(people.weighed(values, keys, same).z[0, k]) < people.weighed(values, keys).z[0, k]
    nothing = np.concatenate([[0.0], same[1:]])
    np.testing.assert_allclose(people.llr(values, keys, nothing), people.llr(values, keys))


def test_templates_that_do_not_say_what_was_enrolled_are_judged_beside_anyone(drawn):
    one = PopulationDetector(population=PEOPLE)
    template = PEOPLE.enrol(drawn[[0, 1]])
    assert typed_in_name_of(one.carrying(template), drawn[[2]]) == typed(drawn[[2]])
    other = one.carrying(replace(template, manner=np.ones(3)))
    assert typed_in_name_of(other, drawn[[2]]) == typed(drawn[[2]])
    known = one.carrying(with_manner(PEOPLE, template, drawn[[0, 1]]))
    assert typed_in_name_of(known, drawn[[2]]) != typed(drawn[[2]])


def test_what_was_enrolled_is_kept_with_the_template(drawn):
    verifier = Verifier.shipped()
    enrolled = verifier.enrol("ada", drawn[[0, 1]])
    pattern = verifier.background.pattern
    again = enrolled_of(template_bytes(enrolled), pattern, enrolled.fingerprints)
    np.testing.assert_array_equal(again.template.template_.manner, enrolled.template.template_.manner)
    followed = enrolled.updated(drawn[[2]]).template.template_
    np.testing.assert_array_equal(followed.manner, enrolled.template.template_.manner)


@pytest.mark.parametrize("path", [ANYONE, CLAIMED])
def test_rates_are_those_at_levels_and_grow_with_the_ratio(path):
    hand = HANDS.parsed(files.read(path), path)
    for clock in range(2):
        for j, keys in enumerate(hand.lengths.tolist()):
            for q, rate in enumerate(hand.rates.tolist()):
                assert hand.rate(hand.levels[clock, j, q], int(keys), bool(clock)) == pytest.approx(rate)
    rates = [hand.rate(llr, 130, False) for llr in np.linspace(-9, 9, 50)]
    assert (np.diff(rates) >= 0).all()


def test_there_is_a_reason_for_each_group_of_measures_and_for_bursts():
    assert len(REASONS) == len(NAMES) + 1


def test_forgeries_in_bursts_are_not_called_forged_and_not_accepted(drawn, averages):
    forger = InBursts(FORGERS["averages by context"], 0.1)
    sent = forger.forge(drawn[[0, 1]], drawn[[2]], np.random.default_rng(0))
    assert quick_share(measured(PEOPLE, sent)[0])[0] > BURSTS > quick_share(measured(PEOPLE, averages)[0])[0]
    answer = typed(sent)
    assert (answer.answer, answer.reason) == ("unsure", REASONS[-1])
    assert answer.rate <= 0.01
    # Whatever the score says.
    verifier = Verifier.shipped(Targets(false_match=0.99))
    verifier.enrol("ada", drawn[[0, 1]])
    decision = verifier.verify("ada", sent)
    assert decision.answer == "unsure"
    assert REASONS[-1] in decision.reasons
    assert verifier.identify(sent).nobody


def test_the_share_of_quick_intervals_is_read_from_the_measures():
    frame = make_typists(1, 1, "free", 60)
    press = np.cumsum(np.where(np.arange(60) % 10 == 5, 20.0, 150.0))
    frame = frame.assign(timepress=press, timerelease=press + 80.0)
    assert quick_share(measured(PEOPLE, Samples.without_vectors(frame))[0])[0] == pytest.approx(0.1)


def test_a_file_is_read_as_it_was_written():
    again = HANDS.parsed(HAND.packed(), "again")
    for name in HANDS.tensors({}):
        np.testing.assert_array_equal(getattr(again, name), getattr(HAND, name))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("weights", lambda values: values[:-1]),
        ("among", lambda values: values * 0.0),
        ("centre", lambda values: values * np.nan),
        ("enrolled", lambda values: values + np.inf),
        ("reach", lambda values: values - 1.0),
        ("follows", lambda values: values + 3.0),
        ("levels", lambda values: values[..., ::-1].copy()),
        ("lengths", lambda values: values[::-1].copy()),
        ("rates", lambda values: values * 2.0),
    ],
)
def test_files_that_are_wrong_are_refused_by_name(name, change):
    with pytest.raises(ModelFileError, match=name):
        HANDS.parsed(replace(HAND, **{name: change(getattr(HAND, name))}).packed(), "hostile.keydyn")


def test_a_file_of_other_measures_is_refused():
    tensors = {n: getattr(HAND, n) for n in HANDS.tensors({})}
    with pytest.raises(ModelFileError, match="measures"):
        HANDS.parsed(HANDS.packed({"measures": ["something else"]}, tensors), "old.keydyn")
