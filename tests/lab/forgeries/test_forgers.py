"""Every attack has the keys of the texts, possible times, and the same ones for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.decisions.liveness.not_typed import times_of
from keydyn.lab.forgeries import (
    ENROLLED,
    FORGERS,
    KNOWLEDGE,
    NOTHING,
    STOLEN,
    TEMPLATE,
    BrowserRobot,
    ByContext,
    FromPopulation,
    Robot,
    averages,
    histograms,
    stolen,
    uniform,
)
from keydyn.population import PopulationModel
from tests.lab.forgeries.recordings import random_recording, typed

RECORDED = random_recording(8, 40, seed=1, keys=["a", "b", "e", "space"])
# The key "q" was never recorded.
TEXTS = random_recording(3, 25, seed=2, keys=["a", "b", "e", "space", "q"])


@pytest.mark.parametrize("name", FORGERS)
def test_keys_stay_and_times_are_possible(name):
    forger = FORGERS[name]
    one, same, other = (forger.forge(RECORDED, TEXTS, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert one.names == TEXTS.names
    assert one.sequences.labels().tolist() == TEXTS.sequences.labels().tolist()
    times = times_of(one)
    first = np.zeros(len(times), dtype=bool)
    first[one.sequences.offsets[:-1]] = True
    np.testing.assert_array_equal(np.isnan(times[:, 0]), first)
    assert np.nanmin(times) >= 1
    assert (np.nan_to_num(times) == np.round(np.nan_to_num(times))).all()
    np.testing.assert_array_equal(times, times_of(same))
    chance = "averages" not in name and "expected" not in name and name != "robot"
    assert np.array_equal(times, times_of(other), equal_nan=True) != chance
    assert set(forger.knowledge) <= set(KNOWLEDGE)


@pytest.mark.parametrize("name", FORGERS)
def test_little_or_nothing_recorded(name):
    forger, random = FORGERS[name], np.random.default_rng(0)
    assert np.isfinite(times_of(forger.forge(RECORDED[:1], TEXTS, random))[1:25]).all()
    assert len(forger.forge(RECORDED, TEXTS[:0], random)) == 0
    if NOTHING in forger.knowledge:
        assert len(forger.forge(RECORDED[:0], TEXTS, random)) == 3
    else:
        with pytest.raises(ValueError, match="nothing was recorded"):
            forger.forge(RECORDED[:0], TEXTS, random)


def test_averages_of_a_recording_written_down():
    recorded = typed(("aab", [0, 100, 200], [50, 60, 70]), ("aab", [0, 120, 260], [54, 66, 80]))
    text = typed(("aabc", [0, 1, 1, 1], [1, 1, 1, 1]))
    random = np.random.default_rng(0)

    def forged(**settings):
        return times_of(
            ByContext(averages, "averages", rounded=False, **settings).forge(recorded, text, random)
        )

    # An unknown key gets the mean of all: intervals 680 / 4, holds 380 / 6.
    unknown = [170.0, 380 / 6]
    by_key = [[np.nan, 57.5], [110, 57.5], [230, 75], unknown]
    by_context = [[np.nan, 57.5], [110, 63], [230, 75], unknown]
    np.testing.assert_allclose(forged(longest=1, least=1), by_key)
    np.testing.assert_allclose(forged(least=1), by_context)
    # Pairs were recorded twice each; three times, only keys were, and b not even that.
    np.testing.assert_allclose(forged(least=2), by_context)
    np.testing.assert_allclose(forged(least=3)[:, 1], [57.5, 57.5, unknown[1], unknown[1]])
    # Flights from release to press: 50, 140 and 66, 194; the mean of all is 112.5.
    flights = forged(least=1, release_to_press=True)
    np.testing.assert_allclose(flights[1:, 0], [57.5 + 58, 63 + 167, 75 + 112.5])
    np.testing.assert_allclose(flights[:, 1], forged(least=1)[:, 1])


def test_overlapping_keys_stay_at_least_a_millisecond_apart():
    recorded = typed(("abababab", [0] + [10] * 7, [200] * 8))
    forger = ByContext(uniform, "uniform", release_to_press=True)
    assert (times_of(forger.forge(recorded, recorded, np.random.default_rng(0)))[1:, 0] == 10).all()


def test_unrounded_times_are_fractions():
    forger = ByContext(histograms, "histograms", rounded=False)
    times = times_of(forger.forge(RECORDED, TEXTS, np.random.default_rng(0)))
    assert (np.round(times) != times).mean() > 0.9


def test_recordings_that_attackers_have():
    enrolled, others = RECORDED[:2], RECORDED[2:]
    for knowledge in (ENROLLED, TEMPLATE):
        assert stolen(knowledge, enrolled, others).names == enrolled.names
    assert len(stolen(NOTHING, enrolled, others)) == 0
    assert [len(stolen(k, enrolled, others)) for k in STOLEN] == [3, 6, 6]
    with pytest.raises(ValueError, match="knowledge must be one of"):
        stolen("everything", enrolled, others)


def test_a_robot_is_constant_and_its_chance_is_as_stated():
    medians = np.nanmedian(times_of(RECORDED), axis=0)
    many = random_recording(1, 4000, seed=5)
    random = np.random.default_rng(0)
    np.testing.assert_allclose(
        times_of(Robot().forge(RECORDED, many, random))[1:], [np.round(medians)] * 3999
    )
    spread = times_of(Robot(spread=0.5, rounded=False).forge(RECORDED, many, random))[1:] / medians
    assert spread.min() >= 0.5
    assert spread.max() <= 1.5
    # A uniform law of width 1 has a standard deviation of 1/√12.
    np.testing.assert_allclose(spread.std(axis=0), 12**-0.5, rtol=0.05)
    jitter = times_of(Robot(jitter=4.0, rounded=False).forge(RECORDED, many, random))[1:]
    np.testing.assert_allclose(jitter.std(axis=0), 4.0 * 2**0.5, rtol=0.1)


def test_a_browser_holds_keys_for_the_delay_and_a_little():
    many = random_recording(1, 4000, seed=5)
    nobody = RECORDED[:0]
    random = np.random.default_rng(0)
    typing = times_of(BrowserRobot(rounded=False).forge(nobody, many, random))
    assert np.median(typing[:, 1]) == pytest.approx(90 + 3.5, abs=0.2)
    # The next key is pressed at once.
    np.testing.assert_allclose(typing[1:, 0] - typing[:-1, 1], 0.9)
    waiting = times_of(BrowserRobot(waits=True, rounded=False).forge(nobody, many, random))
    assert np.median(waiting[1:, 0]) == pytest.approx(180 + 2 * 3.5 + 0.9, abs=1.0)


def test_the_model_draws_from_the_template_of_what_was_recorded():
    """The drawn times are the model's own for the template that enrolment gives, sample by sample."""
    people = PopulationModel.shipped()
    forged = times_of(FromPopulation(rounded=False).forge(RECORDED, TEXTS, np.random.default_rng(3)))
    random, template = np.random.default_rng(3), people.enrol(RECORDED)
    for part, one in zip(np.split(forged, TEXTS.sequences.offsets[1:-1]), TEXTS.sequences, strict=True):
        drawn = people.sample(template, one.labels().tolist(), random)
        np.testing.assert_allclose(part, np.maximum(drawn[["tau", "duration"]].to_numpy(), 1.0))


def test_those_who_have_the_detector_send_the_draw_that_it_prefers():
    """A detector that likes slow typing makes it slower than the mean of draws, and draws stay draws."""
    people = PopulationModel.shipped()

    def slow(samples, template=None):
        return np.array([np.nanmean(times_of(samples[n : n + 1])) for n in range(len(samples))])

    random = np.random.default_rng(0)
    picked = FromPopulation(people, preferred=slow, tries=20).forge(RECORDED, TEXTS, random)
    assert picked.names == TEXTS.names
    drawn = [slow(FromPopulation(people).forge(RECORDED, TEXTS, random)) for _ in range(20)]
    assert (slow(picked) > np.mean(drawn, axis=0)).all()
