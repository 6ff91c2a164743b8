"""Many sessions at once: the terms of whole samples, in any interleaving, after any interruption."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel
from keydyn.population.stream.session_state import packed, packed_each, parsed, record_of
from tests.population.simulated import people, samples_of_people
from tests.population.test_model import of

N_COHORT = 5


@pytest.fixture(scope="module")
def known():
    """A population whose vocabulary has a space, six people, and samples with gaps and unknown keys."""
    everyone = people(n_people=6, n_samples=2, n_keys=40)
    everyone["keyname"] = everyone["keyname"].replace("a", "space")
    everyone = Samples.of(everyone, first="missing")
    model = PopulationModel().fit(everyone)
    templates = [model.enrol(of(everyone, user)) for user in range(6)]
    frame = people(n_people=9, n_samples=1, n_keys=70, seed=3)
    frame["keyname"] = frame["keyname"].replace("a", "space")
    random = np.random.default_rng(1)
    frame = frame[random.random(len(frame)) < np.repeat(np.linspace(0.03, 1.0, 9), 70)]
    frame = frame.reset_index(drop=True)
    frame.loc[frame.index % 7 == 3, "timerelease"] = np.nan
    frame.loc[frame.index % 11 == 5, "keyname"] = "ß"
    return model, templates, Samples.of(frame, first="missing")


def setting(known):
    """Streams, one per sample; the events (values, names, sample) in order; and what is to come out."""
    model, templates, samples = known
    claimed = [templates[q % 6] for q in range(len(samples))]
    sequences = samples.sequences
    columns = [sequences.feature_names.index(name) for name in ("tau", "duration")]
    owner = np.repeat(np.arange(len(samples)), np.diff(sequences.offsets))
    expected = np.empty((sequences.n_events, 1 + N_COHORT))
    for q, template in enumerate(claimed):
        rows = slice(sequences.offsets[q], sequences.offsets[q + 1])
        expected[rows] = model.event_log_likelihoods([template, *templates[:N_COHORT]], samples[[q]])
    streams = model.online_many(claimed, templates[:N_COHORT])
    return streams, sequences.X[:, columns], sequences.event_types[sequences.codes], owner, expected


def interleaved(owner, random):
    """The events in another order, those of a session in theirs."""
    drawn = random.permutation(owner)
    order = np.empty(len(owner), dtype=np.int64)
    order[np.argsort(drawn, kind="stable")] = np.arange(len(owner))
    return order


@pytest.mark.parametrize("at_a_time", [1, 13, 10_000])
def test_any_interleaving_gives_the_terms_of_whole_samples(known, at_a_time):
    streams, values, names, owner, expected = setting(known)
    order = interleaved(owner, np.random.default_rng(at_a_time))
    found = np.full_like(expected, np.nan)
    last = {}
    for begin in range(0, len(order), at_a_time):
        rows = order[begin : begin + at_a_time]
        terms = streams.update(values[rows], names[rows].tolist(), owner[rows])
        for row, term in zip(rows, terms, strict=True):
            assert np.isnan(term).all() == (owner[row] not in last)
            if owner[row] in last:
                found[last[owner[row]]] = term
            last[owner[row]] = row
    for session, row in last.items():
        found[row] = streams.end([session])[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    assert (streams.n_events == 0).all()


def test_a_sensor_is_followed_as_it_is():
    """Of times the logarithms are followed; a pressure may be negative, and has no logarithm."""
    frame = people(n_people=4, n_samples=3)
    pressure = np.random.default_rng(0).normal(size=len(frame))
    typed = Samples.of(frame.assign(pressure=pressure), sensors=["pressure"])
    model = PopulationModel().fit(typed)
    template, sample = model.enrol(of(typed, 0)), typed[[4]]
    names = sample.sequences.feature_names
    columns = [names.index(name) for name in ("tau", "duration", "pressure")]
    streams, found = model.online_many([template], []), []
    for values, key in zip(sample.sequences.X[:, columns], sample.sequences.labels(), strict=True):
        found.append(streams.update(values[None], [key], [0])[0, 0])
    found.append(streams.end()[0, 0])
    expected = model.event_log_likelihoods([template], sample)[:, 0]
    np.testing.assert_allclose(found[1:], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("cut", [0, 1, 5, 150])
def test_what_is_saved_midway_goes_on_bit_for_bit(known, cut):
    streams, values, names, owner, _ = setting(known)
    other = setting(known)[0]
    order = interleaved(owner, np.random.default_rng(0))
    codes = streams.encode(names)
    first, then = order[:cut], order[cut:]
    streams.update(values[first], sessions=owner[first], codes=codes[first])
    # Some sessions from one file, the rest from another, into streams that were elsewhere.
    other.update(values[:7], sessions=owner[:7], codes=codes[:7])
    some, rest = np.array([8, 2, 3]), np.array([0, 1, 4, 5, 6, 7])
    for which in (some, rest):
        state = streams.state(which)
        other.restore(parsed(packed(state), record_of(state)), which)
        alone = [packed(streams.state([session])) for session in which]
        assert packed_each(state) == alone
    expected = streams.update(values[then], sessions=owner[then], codes=codes[then])
    found = other.update(values[then], sessions=owner[then], codes=codes[then])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(other.end(), streams.end())


def test_thousands_of_sessions_that_begin_and_end_apart(known):
    """Each session types the same sample, but begins at another step and claims another person."""
    model, templates, samples = known
    n, session = 3000, samples[[8]]
    sequences = session.sequences
    columns = [sequences.feature_names.index(name) for name in ("tau", "duration")]
    values, length = sequences.X[:, columns], sequences.n_events
    expected = model.event_log_likelihoods(templates, session)
    streams = model.online_many([templates[s % 6] for s in range(n)], templates[:N_COHORT])
    codes = streams.encode(sequences.event_types[sequences.codes])
    begins = np.arange(n) % 17
    for step in range(length + 17):
        which = np.flatnonzero((step >= begins) & (step < begins + length))
        place = step - begins[which]
        terms = streams.update(values[place], sessions=which, codes=codes[place])
        assert np.isnan(terms[place == 0]).all()
        then = which[place > 0]
        np.testing.assert_allclose(terms[place > 0, 0], expected[place[place > 0] - 1, then % 6], atol=1e-9)
        np.testing.assert_allclose(terms[place > 0, 1:], expected[place[place > 0] - 1, :N_COHORT], atol=1e-9)
        over = np.flatnonzero(step == begins + length - 1)
        if len(over):
            np.testing.assert_allclose(streams.end(over)[:, 0], expected[-1, over % 6], atol=1e-9)
    assert (streams.n_events == 0).all()


def test_a_session_may_be_given_another_claim(known):
    model, templates, samples = known
    streams, values, names, owner, _ = setting(known)
    rows = np.flatnonzero(owner == 8)
    streams.update(values[:3], names[:3], owner[:3])
    streams.restart([8], [templates[5]])
    found = streams.update(values[rows], names[rows], owner[rows])
    expected = model.event_log_likelihoods([templates[5], *templates[:N_COHORT]], samples[[8]])
    np.testing.assert_allclose(found[1:], expected[:-1], atol=1e-9)


def test_what_is_refused_leaves_nothing(known):
    model, templates, _ = known
    streams, values, names, owner, expected = setting(known)
    rows = np.flatnonzero(owner == 7)
    streams.update(values[rows[:4]], names[rows[:4]], owner[rows[:4]])
    for wrong in (0.0, -3.0, np.inf, -np.inf):
        with pytest.raises(ValueError, match="event 1 are"):
            streams.update([[90.0, 80.0], [wrong, 80.0]], ["a", "b"], [7, 7])
    refused = [
        ({"values": [[90.0]], "keys": ["a"], "sessions": [7]}, "values"),
        ({"values": [[90.0, 80.0]], "keys": ["a"], "sessions": [9]}, "numbered 0 to 8"),
        ({"values": [[90.0, 80.0]], "keys": ["a"], "sessions": [-1]}, "numbered 0 to 8"),
        ({"values": [[90.0, 80.0]], "keys": ["a"], "sessions": [0.5]}, "whole numbers"),
        ({"values": [[90.0, 80.0]], "keys": ["a", "b"], "sessions": [7]}, "2 keys"),
        ({"values": [[90.0, 80.0]], "sessions": [7]}, "keys or codes"),
        ({"values": [[90.0, 80.0]], "sessions": [7], "codes": [99]}, "codes are numbered"),
    ]
    for arguments, message in refused:
        with pytest.raises(ValueError, match=message):
            streams.update(**arguments)
    with pytest.raises(ValueError, match="no event"):
        streams.end([0])
    with pytest.raises(ValueError, match="twice"):
        streams.end([7, 7])
    with pytest.raises(ValueError, match="no sessions"):
        model.online_many([])
    found = streams.update(values[rows[4:]], names[rows[4:]], owner[rows[4:]])
    np.testing.assert_allclose(found, expected[rows[3:-1]], atol=1e-9)
    assert streams.update(np.empty((0, 2)), [], []).shape == (0, 1 + N_COHORT)
    other = PopulationModel().fit(samples_of_people(n_people=3, n_samples=2, seed=4))
    for claimed, cohort in ((templates[:1], ()), ([other.anyone()], templates[:1])):
        with pytest.raises(ValueError, match="another population"):
            other.online_many(claimed, cohort)


def test_values_that_are_all_missing_say_nothing(known):
    """Without times every template is as probable as any other."""
    streams = setting(known)[0]
    terms = streams.update(np.full((30, 2), np.nan), ["a"] * 30, [0] * 30)
    assert np.isnan(terms[0]).all()
    np.testing.assert_allclose(terms[1:], 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("codes", lambda a: a + 1000, "codes has values that are not between"),
        ("codes", lambda a: -1 - a, "codes has values that are not between"),
        ("count", lambda a: a - 100, "count has values that are not between"),
        ("count", lambda a: a.astype(np.int32), "int32"),
        ("states", lambda a: a * 2, "states has values"),
        ("variance", lambda a: -1 - a, "variance has values that are not between"),
        ("residuals", lambda a: a * np.nan, "residuals has values that are not between"),
        ("values", lambda a: a * 0 + np.inf, "values has values that are not"),
        ("tempo", lambda a: a[:, :1], "shape"),
        ("claimed", lambda a: a + 1, "another claimed"),
        ("cohort", lambda a: a + 1, "another cohort"),
        ("population", lambda a: a + 1, "another population"),
        ("in_word", None, "no in_word"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(known, name, change, message):
    streams, values, names, owner, _ = setting(known)
    rows = np.flatnonzero(owner == 8)
    streams.update(values[rows[:9]], names[rows[:9]], owner[rows[:9]])
    state = streams.state()
    wrong = {other: array for other, array in state.items() if other != name}
    if change is not None:
        wrong[name] = change(state[name])
    with pytest.raises(ValueError, match=message):
        streams.restore(wrong)
    np.testing.assert_array_equal(streams.state()["tempo"], state["tempo"])
    contents = bytearray(packed(state))
    contents[-1] ^= 1
    with pytest.raises(ValueError, match="damaged"):
        parsed(bytes(contents), record_of(state))
    for cut in (b"", contents[:40], packed(state)[:-8]):
        with pytest.raises(ValueError, match=r"cut short|damaged"):
            parsed(bytes(cut), record_of(state))


def test_an_infinite_value_of_a_sensor_is_refused_wherever_it_stands():
    frame = people(n_people=3, n_samples=2, n_keys=20)
    frame["pressure"] = np.random.default_rng(2).normal(size=len(frame))
    model = PopulationModel().fit(Samples.of(frame, sensors=["pressure"], first="missing"))
    streams = model.online_many([model.anyone()] * 2, [model.anyone()])
    streams.update(np.full((2, 3), 50.0), ["a", "b"], [0, 1])
    state = streams.state()
    for session in range(2):
        values = state["values"].copy()
        values[session, 2] = np.inf
        with pytest.raises(ValueError, match="values has values that are not finite"):
            streams.restore(state | {"values": values})
    streams.restore(state)
