"""The verifier: people come and go; claims are accepted, rejected, or neither, with reasons."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from keydyn.decisions import Costs, Targets, Verifier, Watching
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.calibration import open_set_scores
from keydyn.decisions.watching.sessions import watched_sessions
from keydyn.detectors import make_detector
from keydyn.keystrokes import Samples
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.population import PopulationModel
from tests.decisions.typed_samples import OTHERS, background, typed

USERS = ("ann", "bob", "eve")


def filled(verifier):
    verifier.enrol_many({user: typed(0, (user,)) for user in USERS})
    return verifier


@pytest.fixture(scope="module", params=["population", "pohmm"])
def verifier(request):
    """Three people, with the population that comes with keydyn or with a detector calibrated here."""
    return filled(Verifier.shipped() if request.param == "population" else Verifier.of(background()))


@pytest.fixture(scope="module")
def shipped():
    return filled(Verifier.shipped())


def one(user="ann", seed=1):
    """A fresh sample."""
    return typed(seed, (user,), 1)


def test_people_are_recognised_and_strangers_are_not(verifier):
    later = typed(1, (*USERS, "zoe"), 3)
    typist = recorded_samples(later).users
    for user in USERS:
        answers = np.array([decision.answer for decision in verifier.verify_many(user, later)])
        # Ten people calibrate here: beside so few, strangers sometimes score high, and the target is strict.
        assert (answers[typist == user] == "accept").mean() >= 1 / 3
        assert (answers[typist != user] == "reject").mean() > 0.6
        assert not (answers[typist != user] == "accept").any()
    named = [found.user for found in verifier.identify_many(later)]
    assert sum(name == who for name, who in zip(named, typist, strict=True) if who != "zoe") >= 8
    assert named[-3:] == [None] * 3


def test_a_decision_says_what_it_rests_on(verifier):
    own, other = verifier.verify("ann", one()), verifier.verify("ann", one("bob"))
    calibration = verifier.in_use.calibrations.at(verifier.person("ann").keys)
    for decision in (own, other):
        assert decision.claimed == "ann"
        assert decision.llr == pytest.approx(calibration.ratio(decision.score, 12))
        rate = calibration.false_match_rate(decision.score, 12)
        assert (decision.false_match_rate, *decision.interval) == (rate.value, rate.low, rate.high)
        assert decision.interval[0] <= decision.false_match_rate <= decision.interval[1]
        assert decision.evidence.keystrokes == decision.evidence.known == 12
        assert decision.reasons == ()
    assert own.accepted
    assert own.llr > 0 > other.llr
    assert not other.accepted
    if verifier.pattern.name == "population":
        assert all(spoke.nats > 0 for spoke in own.spoke_for)
        assert all(spoke.nats < 0 for spoke in other.spoke_against)
        assert 0 < len(other.spoke_against) <= 3
        assert str(other.spoke_against[0]).startswith(("interval before ", "hold of "))


def test_scores_are_those_of_the_definition():
    """Under templates fitted and scored one by one, beside the others of the cohort."""
    known = background()
    verifier = Verifier.of(known)
    # One of the cohort is enrolled too, from other samples, and does not count beside themselves.
    verifier.enrol_many({user: typed(0, (user,)) for user in ("ann", "other3")})
    later = recorded_samples(typed(1, ("ann", "other3"), 2))
    cohort = np.stack([template.score(later) for template in known.cohort], axis=1)
    for user in ("ann", "other3"):
        own = make_detector("pohmm").fit(recorded_samples(typed(0, (user,)))).score(later)
        beside = [n for n, name in enumerate(OTHERS) if name != user]
        assert len(beside) == (10 if user == "ann" else 9)
        expected = open_set_scores(own[:, None], cohort[:, beside], later.sequences.lengths)[:, 0]
        found = [decision.score for decision in verifier.verify_many(user, later)]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert [found.llr for found in verifier.verify_many(user, later)] == [
            candidate.llr
            for identified in verifier.identify_many(later)
            for candidate in identified.candidates
            if candidate.user == user
        ]


def test_people_whom_the_calibration_was_learnt_from_are_accepted():
    """They are in the cohort, and beside themselves nobody would stand out."""
    people = ("ann", *OTHERS)
    verifier = Verifier.learn(typed(0, people, 4), make_detector("pohmm"), n_jobs=2)
    verifier.enrol_many({user: typed(0, (user,), 4) for user in people})
    answers = [verifier.verify(user, one(user, seed)).answer for user in people for seed in (1, 2)]
    assert answers.count("accept") > 0.6 * len(answers)
    others = [verifier.verify("ann", one(user)).answer for user in OTHERS]
    assert others.count("reject") > 0.9 * len(others)


def test_probabilities_are_those_of_bayes(verifier):
    """Half for nobody before the sample is looked at, the other half shared by the enrolled people."""
    for sample in (one(), one("zoe")):
        found = verifier.identify(sample)
        ratios = np.array([verifier.verify(user, sample).llr for user in USERS])
        weights = np.append(np.exp(ratios) / 2 / len(USERS), 0.5)
        expected = dict(zip((*USERS, None), weights / weights.sum(), strict=True))
        assert found.nobody_probability == pytest.approx(expected[None])
        for candidate in found.candidates:
            assert candidate.probability == pytest.approx(expected[candidate.user])
        assert [one.probability for one in found.candidates] == sorted(
            (one.probability for one in found.candidates), reverse=True
        )


def test_people_come_and_go():
    verifier = filled(Verifier.of(background()))
    before = verifier.person("bob")
    assert verifier.users == [*USERS]
    verifier.remove("ann")
    assert verifier.users == ["bob", "eve"]
    for call in (verifier.remove, verifier.person, lambda user: verifier.verify(user, one())):
        with pytest.raises(ValueError, match="user 'ann' is not enrolled; enrolled are bob, eve"):
            call("ann")
    again = verifier.enrol("bob", typed(5, ("bob",), 4))
    assert verifier.users == ["bob", "eve"]
    assert verifier.person("bob") is again is not before
    assert (again.samples, again.keys, len(again.fingerprints)) == (4, 48, 4)
    assert "2 people with pohmm>" in repr(verifier)


def test_a_verifier_is_the_same_after_save_and_load(verifier, tmp_path):
    for key in (None, b"k" * 32):
        folder = tmp_path / str(key is None)
        verifier.save(folder, key)
        again = Verifier.load(folder, key)
        # Fresh samples and a copy.
        for samples in (typed(1, (*USERS, "zoe"), 2), typed(0, ("ann",), 1)):
            assert again.identify_many(samples) == verifier.identify_many(samples)
            for user in USERS:
                assert again.verify_many(user, samples) == verifier.verify_many(user, samples)
    alone = Verifier.load(tmp_path / "True", users=["bob"])
    assert alone.users == ["bob"]
    assert alone.verify("bob", one()) == verifier.verify("bob", one())


def test_readers_in_threads_see_a_whole_state():
    """While people are enrolled and removed, each answer is the one before a change or the one after it."""
    verifier = filled(Verifier.of(background()))
    sample = recorded_samples(one())
    newcomers = {f"new{n}": typed(n, (f"new{n}",), 2) for n in range(2)}
    verifier.enrol_many(newcomers)
    expected = {frozenset(verifier.users): verifier.identify(sample)}
    for name in newcomers:
        verifier.remove(name)
        expected[frozenset(verifier.users)] = verifier.identify(sample)
    own = verifier.verify("ann", sample)
    done = threading.Event()

    def read():
        seen = set()
        while not done.is_set() or not seen:
            found = verifier.identify(sample)
            people = frozenset(candidate.user for candidate in found.candidates)
            assert found == expected[people]
            assert verifier.verify("ann", sample) == own
            seen.add(people)
        return seen

    def write():
        for _ in range(10):
            verifier.enrol_many(newcomers)
            for name in newcomers:
                verifier.remove(name)
        done.set()

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        pool.submit(write).result()
        assert all(reader.result() for reader in readers)
    assert verifier.users == [*USERS]


def test_writers_in_threads_lose_nobody():
    verifier = Verifier.of(background())
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: verifier.enrol(f"u{n}", typed(n, (f"u{n}",), 2)), range(12)))
        list(pool.map(lambda n: verifier.remove(f"u{n}"), range(0, 12, 2)))
    assert sorted(verifier.users) == sorted(f"u{n}" for n in range(1, 12, 2))


def test_copies_are_rejected_and_later_ones_too_once_remembered(shipped):
    verifier = filled(Verifier.shipped())
    copied, later = typed(0, ("ann",), 1), one(seed=7)
    assert verifier.verify("ann", copied).answer == "reject"
    assert "a copy" in verifier.verify("ann", copied).reasons[0]
    assert verifier.identify(copied).user is None
    assert "a copy" in verifier.identify(copied).reasons[0]
    fresh = verifier.verify("ann", later)
    assert fresh.accepted
    verifier.remember("ann", later)
    again = verifier.verify("ann", later)
    assert (again.answer, again.llr) == ("reject", fresh.llr)
    assert verifier.verify("ann", one(seed=8)).accepted
    with pytest.raises(ValueError, match="'zoe' is not enrolled"):
        verifier.remember("zoe", later)


def steady(frame, tau, hold):
    press = np.arange(len(frame)) * tau
    return frame.assign(timepress=press, timerelease=press + hold)


def on_a_clock(frame, tick):
    press = (frame["timepress"] / tick).round() * tick
    release = press + ((frame["timerelease"] - frame["timepress"]) / tick).round().clip(lower=1) * tick
    return frame.assign(timepress=press, timerelease=release)


@pytest.mark.parametrize(
    ("change", "answer", "reason"),
    [
        (lambda frame: frame.head(5), "unsure", "5 keystrokes, fewer than 6"),
        (lambda frame: frame.assign(keyname="ß"), "unsure", "0 keystrokes of known keys, fewer than 4"),
        (
            lambda frame: frame.assign(keyname=["ß", "ä", "ö", "ü", *frame["keyname"][4:]]),
            None,
            "4 of 12 keystrokes are of keys never seen",
        ),
        (lambda frame: steady(frame, 5.0, np.linspace(40, 90, 12)), "reject", "pasted: keys came faster"),
        (lambda frame: steady(frame, 150.0, np.linspace(40, 90, 12)), "reject", "too regular: the intervals"),
        (lambda frame: on_a_clock(frame, 15.625), None, "a coarse clock: times fall on multiples of 15.6 ms"),
    ],
    ids=["short", "unknown keys", "some unknown", "pasted", "regular", "clock"],
)
def test_reasons(shipped, change, answer, reason):
    changed = change(one()).reset_index(drop=True)
    decision, found = shipped.verify("ann", changed), shipped.identify(changed)
    assert any(text.startswith(reason) for text in decision.reasons), decision.reasons
    if answer is not None:
        assert decision.answer == answer
        assert found.nobody
    # Of these only the times were changed, or nothing but names: everything is still a number.
    assert np.isfinite([decision.llr, decision.false_match_rate, *decision.interval]).all()


def test_another_text_is_not_judged():
    """The same keys in another order: the pairs were never typed at enrolment."""
    verifier, sample = filled(Verifier.of(background())), one().assign(keyname=[*"tesnoidarehh"])
    decision = verifier.verify("ann", sample)
    assert decision.answer == "unsure"
    assert decision.reasons == (
        "a different text than at enrolment: 0 of its 11 pairs of keys were typed then",
    )
    assert verifier.identify(sample).nobody


def test_too_little_is_judged_when_asked_for(shipped):
    verifier = filled(Verifier.of(shipped.background))
    verifier.least = 1, 0
    assert not any("fewer than" in reason for reason in verifier.verify("ann", one().head(5)).reasons)


def test_what_cannot_be_judged_is_refused(shipped):
    later = typed(1, ("ann",), 2)
    with pytest.raises(ValueError, match="verify takes one sample, not 2; verify_many takes several"):
        shipped.verify("ann", later)
    with pytest.raises(ValueError, match="identify takes one sample, not 2"):
        shipped.identify(later)
    with pytest.raises(ValueError, match="there are no keystrokes"):
        shipped.verify("ann", one().head(0))
    with pytest.raises(ValueError, match="user 'zoe' is not enrolled; enrolled are ann, bob, eve"):
        shipped.verify("zoe", one())
    with pytest.raises(ValueError, match="nobody is enrolled"):
        Verifier.shipped().identify(one())


def test_times_that_no_hand_makes_are_left_out(shipped):
    """A press at the time of the one before, a key that sticks: as if that time had not been seen."""
    frame, lost = one(), one()
    frame.loc[3, "timerelease"] = frame.loc[3, "timepress"] + 5_000
    lost.loc[3, "timerelease"] = np.nan
    assert shipped.verify("ann", frame) == shipped.verify("ann", lost)
    frame.loc[6, "timepress"] = frame.loc[5, "timepress"]
    decision = shipped.verify("ann", frame)
    assert decision.accepted
    assert decision.evidence.keystrokes == len(frame)


def test_times_that_are_missing_are_left_out(shipped):
    """A release that was never seen takes its hold away, and nothing else."""
    frame = one()
    frame.loc[[2, 5], "timerelease"] = np.nan
    decision = shipped.verify("ann", frame)
    assert decision.accepted
    assert decision.evidence.keystrokes == 12
    assert np.isfinite(decision.llr)
    none = one().assign(timerelease=np.nan)
    assert np.isfinite(shipped.verify("ann", none).llr)


def test_without_a_calibration_there_are_no_answers(tmp_path):
    for verifier in (Verifier(PopulationModel.shipped()), Verifier(make_detector("pohmm"))):
        verifier.enrol("ann", typed(0, ("ann",)))
        assert "not calibrated" in repr(verifier)
        for call in (
            lambda verifier=verifier: verifier.verify("ann", one()),
            lambda verifier=verifier: verifier.identify(one()),
            lambda verifier=verifier: verifier.watch("ann"),
            lambda verifier=verifier: verifier.save(tmp_path),
            lambda verifier=verifier: verifier.background,
        ):
            with pytest.raises(ValueError, match="not calibrated: call calibrate, or use shipped or learn"):
                call()
    with pytest.raises(
        ValueError, match="needs 10 people or more with two samples or more each; there are 3"
    ):
        Verifier(make_detector("pohmm")).calibrate(typed())


def test_calibrating_forgets_who_was_enrolled():
    verifier = Verifier(make_detector("pohmm"))
    verifier.enrol("ann", typed(0, ("ann",)))
    verifier.calibrate(typed(99, OTHERS, 4))
    assert verifier.users == []
    filled(verifier)
    same = filled(Verifier.of(background()))
    assert verifier.verify("ann", one()).score == pytest.approx(same.verify("ann", one()).score)


def test_operating_points(shipped):
    """The stricter the target, the fewer are accepted; costs draw one line and are never unsure by score."""
    later = typed(1, (*USERS, "zoe"), 3)

    def answers(at):
        verifier = filled(Verifier.shipped(at))
        return [decision for user in USERS for decision in verifier.verify_many(user, later)]

    for target in (0.2, 0.01, 0.0001):
        for decision in answers(Targets(false_match=target)):
            assert decision.accepted == (decision.false_match_rate <= target * (1 + 1e-9))
    costs = Costs(false_match=100.0, false_non_match=1.0, prior=0.2)
    assert costs.threshold == pytest.approx(np.log(100.0) + np.log(0.8 / 0.2))
    for decision in answers(costs):
        assert decision.answer == ("accept" if decision.llr >= costs.threshold else "reject")


def test_sessions_are_watched(shipped):
    sample = typed(1, ("ann", "bob"), 1)
    watch = shipped.watch("ann")
    own, other = (sample[sample["user"] == user].reset_index(drop=True) for user in ("ann", "bob"))
    watch.update(own)
    assert watch.standing == "trusted"
    both = shipped.watch_many(["ann", "ann"])
    found = both.update_keystrokes(pd.concat([own, other], ignore_index=True), np.repeat([0, 1], 12))
    assert found.ratio[11] > 0 > found.ratio[23]
    assert found.suspicion[23] > found.suspicion[11]
    state = watch.state()
    resumed = shipped.watch("ann")
    resumed.resume(state)
    assert resumed.update(other).suspicion.tolist() == watch.update(other).suspicion.tolist()
    with pytest.raises(ValueError, match="'zoe' is not enrolled"):
        shipped.watch("zoe")


@pytest.mark.parametrize("detector", ["population", "pohmm"])
def test_a_watched_session_has_the_suspicion_of_the_whole_sample(shipped, detector):
    verifier = shipped if detector == "population" else filled(Verifier.of(background()))
    frame = typed(1, ("ann", "bob"), 1)
    whole = verifier.suspicion("ann", Samples.without_vectors(frame, first="missing")).reshape(2, 12)
    # With a population a key's worth is known at the next one.
    expected = np.column_stack([np.zeros(2), whole[:, :-1]]) if detector == "population" else whole
    assert expected[1].max() > 1.0
    for at_a_time in (1, 5, 24):
        both = verifier.watch_many(["ann", "ann"], level=1.0)
        order = np.arange(24).reshape(2, 12).T.ravel()
        found = np.empty(24)
        for begin in range(0, 24, at_a_time):
            rows = order[begin : begin + at_a_time]
            found[rows] = both.update_keystrokes(frame.iloc[rows], rows // 12).suspicion
        np.testing.assert_allclose(found.reshape(2, 12), expected, rtol=1e-9, atol=1e-9)
        first = np.where((expected > 1.0).any(axis=1), np.argmax(expected > 1.0, axis=1) + 1, 0)
        assert both.locked_at.tolist() == first.tolist()


def test_sessions_of_hidden_markov_models_stay_where_they_are():
    verifier = filled(Verifier.of(background()))
    watch = verifier.watch("ann")
    sample = typed(1, ("ann",), 1)
    found = watch.update(sample)
    assert np.isnan(found.pausing).all()
    watch.restart()
    assert watch.update(sample).suspicion.tolist() == found.suspicion.tolist()
    with pytest.raises(ValueError, match="with a population only"):
        watch.state()
    for wrong, message in (
        (([[1.0, 2.0]], ["a", "b"]), "2 keys for 1 events"),
        (([[1.0, np.inf]], ["a"]), "finite"),
        (([[1.0]], ["a"]), "an event has 2 values"),
    ):
        with pytest.raises(ValueError, match=message):
            watch.update_values(*wrong)
    with pytest.raises(ValueError, match="cannot be followed key by key"):
        watched_sessions(background(), [make_detector("svm")], Watching(1.0), [-1])


def test_a_cohort_has_a_name_for_each_person():
    known = background()
    with pytest.raises(ValueError, match="10 people in the cohort have 0 names"):
        Background(known.pattern, known.cohort, known.calibrations)


def test_a_key_never_seen_is_called_that(shipped):
    decision = shipped.verify("ann", one().assign(keyname="ß"))
    assert {spoke.key for spoke in (*decision.spoke_for, *decision.spoke_against)} == {"a key never seen"}


@pytest.mark.parametrize("detector", ["population", "pohmm"])
def test_nobody_is_the_whole_cohort_beside_themselves(detector):
    """All of the cohort are enrolled, and all but two leave: where one more does, the other stands alone."""
    verifier = Verifier(PopulationModel.shipped() if detector == "population" else make_detector(detector))
    verifier.calibrate(typed(99, OTHERS, 4), n_jobs=2)
    verifier.enrol_many({user: typed(99, (user,), 4) for user in OTHERS})
    for user in OTHERS[:-2]:
        verifier.remove(user)
    last = OTHERS[-1]
    assert verifier.verify(last, one(last)).accepted
    if detector == "pohmm":
        with pytest.raises(ValueError, match="needs a cohort of people"):
            verifier.remove(OTHERS[-2])
        return
    verifier.remove(OTHERS[-2])
    assert verifier.background.members == ()
    assert np.isfinite(verifier.verify(last, one(last)).llr)
    assert np.isfinite(verifier.watch(last).update(one(last)).ratio[1:]).all()
