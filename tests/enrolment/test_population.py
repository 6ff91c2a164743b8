"""Enrolment with a population: one that is given, the folder's own, or the one that comes with keydyn."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.datasets import make_typists
from keydyn.enrolment import changing, enrol, load_enrolled, read_manifest
from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel

KEYS = 40


@pytest.fixture(scope="module")
def people():
    return PopulationModel().fit(
        Samples.of(make_typists(20, 4, "free", KEYS, first_user=100), first="missing")
    )


@pytest.fixture(scope="module")
def typing():
    return make_typists(4, 8, "free", KEYS).astype({"user": str})


def first(typing):
    return typing[typing["session"] < 5]


def later(typing):
    return typing[typing["session"] >= 5]


def test_what_is_stored_scores_as_before(people, typing, tmp_path):
    enrolled = enrol(first(typing), "population", population=people)
    with changing(tmp_path / "models") as change:
        change.commit(enrolled)
    read = load_enrolled(tmp_path / "models")
    samples = read.samples(later(typing))
    scores = read.scores(samples)
    np.testing.assert_array_equal(scores, enrolled.scores(samples))
    direct = people.log_likelihoods(
        [people.enrol(enrolled.samples(one)) for _, one in first(typing).groupby("user")], samples
    )
    np.testing.assert_allclose(scores, direct, rtol=1e-12)
    assert np.mean(read.users[scores.argmax(axis=1)] == samples.users) > 0.8
    assert read.claim_penalties("0", samples).shape == (samples.sequences.n_events,)


def test_newcomers_are_enrolled_with_the_folders_population(people, typing, tmp_path):
    folder, three = tmp_path / "models", typing[typing["user"] != "3"]
    with changing(folder) as change:
        change.commit(enrol(first(three), "population", population=people))
    population = read_manifest(folder).population
    newcomer = first(typing[typing["user"] == "3"])
    with changing(folder) as change:
        change.commit(enrol(newcomer, "population", beside=change.beside(["3"])))
    assert read_manifest(folder).population == population
    assert load_enrolled(folder).users.tolist() == ["0", "1", "2", "3"]
    with changing(folder) as change:
        with pytest.raises(ValueError, match="the same population"):
            enrol(newcomer, "population", beside=change.beside(["3"]), population=PopulationModel.shipped())
        change.commit(type(change.beside([]))(read_manifest(folder).without({"0"}), {}))
    assert load_enrolled(folder).users.tolist() == ["1", "2", "3"]


def test_a_population_that_is_damaged_or_missing_is_reported(people, typing, tmp_path):
    with changing(tmp_path / "models") as change:
        change.commit(enrol(first(typing), "population", population=people))
    file = tmp_path / "models" / f"{read_manifest(tmp_path / 'models').population}.keydyn"
    contents = file.read_bytes()
    file.write_bytes(contents[:-1] + bytes([contents[-1] ^ 1]))
    with pytest.raises(ValueError, match="is not the population with which people were enrolled"):
        load_enrolled(tmp_path / "models")
    file.unlink()
    with pytest.raises(ValueError, match="the population of everybody in the folder, cannot be read"):
        load_enrolled(tmp_path / "models")


def test_a_template_of_another_population_is_refused(people, typing, tmp_path):
    samples = Samples.of(first(typing), first="missing")
    own = samples[samples.users == "0"]
    template = people.enrol(own)
    people.save_template(template, tmp_path / "one.keydyn")
    read = people.load_template(tmp_path / "one.keydyn")
    np.testing.assert_array_equal(read.mean, template.mean)
    assert (read.n_samples, read.n_events) == (template.n_samples, template.n_events)
    with pytest.raises(ValueError, match="belongs to another population"):
        PopulationModel.shipped().load_template(tmp_path / "one.keydyn")
    people.save(tmp_path / "people.keydyn")
    with pytest.raises(ValueError, match="not a template"):
        people.load_template(tmp_path / "people.keydyn")


def test_from_the_command_line(people, typing, tmp_path):
    def run(*arguments):
        return CliRunner().invoke(app, [*map(str, arguments)])

    first(typing).to_csv(tmp_path / "typing.csv", index=False)
    later(typing).to_csv(tmp_path / "later.csv", index=False)
    people.save(tmp_path / "people.keydyn")
    population = ("--population", tmp_path / "people.keydyn")
    done = run("fit", tmp_path / "typing.csv", "--out", tmp_path / "models", *population, "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["detector"] == "population"
    assert all(set(user) == {"user", "samples", "threshold"} for user in facts["users"])
    shown = run("fit", tmp_path / "typing.csv", "--out", tmp_path / "models")
    assert shown.exit_code == 0, shown.output
    asked = (tmp_path / "later.csv", "--models", tmp_path / "models", "--json")
    found = json.loads(run("identify", *asked).stdout)
    best = [row for row in found if row.get("rank") == 1]
    assert np.mean([row["candidate"] == row["user"] for row in best]) > 0.8
    verified = json.loads(run("verify", *asked, "--user", "0").stdout)
    right = [(row["answer"] == "accept") == (row["user"] == "0") for row in verified]
    assert np.mean(right) > 0.8
    one = later(typing)[lambda frame: (frame["user"] == "0") & (frame["session"] == 5)]
    csv = one.drop(columns=["user", "session"]).to_csv(index=False)
    options = ["watch", "-", "--models", tmp_path / "models", "--user", "0", "--json"]
    watched = CliRunner().invoke(app, [*map(str, options)], input=csv)
    lines = [json.loads(line) for line in watched.stdout.splitlines()]
    assert len(lines) == len(one)
    one.to_csv(tmp_path / "one.csv", index=False)
    whole = json.loads(run("watch", tmp_path / "one.csv", *options[2:]).stdout)
    # A key's scores are known at the next key, so that the last one is not in the stream yet.
    assert max(line["penalty"] for line in lines) <= whole[0]["penalty"] + 1e-9
    wrong = run("fit", tmp_path / "typing.csv", "--out", tmp_path / "m2", "--detector", "pohmm", *population)
    assert wrong.exit_code == 2
    assert "for the detector population" in wrong.output
    # Nobody to compare with is needed to enrol with what comes with keydyn.
    alone = typing[typing["user"] == "0"]
    alone.to_csv(tmp_path / "alone.csv", index=False)
    done = run("fit", tmp_path / "alone.csv", "--out", tmp_path / "m3", "--detector", "population")
    assert done.exit_code == 0, done.output


def test_evaluate_with_a_population(people, typing, tmp_path):
    typing.to_csv(tmp_path / "typing.csv", index=False)
    people.save(tmp_path / "people.keydyn")
    arguments = ["evaluate", tmp_path / "typing.csv", "--out", tmp_path / "out", "--detector", "manhattan"]
    options = ["--population", tmp_path / "people.keydyn", "--protocol", "enrolment", "--groups", "2"]
    done = CliRunner().invoke(app, [*map(str, [*arguments, *options])])
    assert done.exit_code == 0, done.output
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    (settings,) = {json.dumps(row["population"]) for row in run["detectors"].values()}
    assert people.sha256 in settings
