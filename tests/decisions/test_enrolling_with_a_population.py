"""Populations with their calibration: the one that comes with keydyn, one in files, one learnt on the way."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.datasets import make_typists
from keydyn.decisions import Verifier
from keydyn.decisions.calibration import background
from keydyn.decisions.calibration.amounts import CALIBRATIONS
from keydyn.decisions.calibration.background import (
    Background,
    calibration_file,
    read_background,
    shipped_background,
    write_background,
)
from keydyn.decisions.folder.folder import read_manifest
from keydyn.detectors import PopulationDetector
from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel

KEYS = 40


@pytest.fixture(scope="module")
def learnt():
    """A population that is its own cohort, learnt from twelve people and calibrated by folds over them."""
    typists = make_typists(12, 4, "free", KEYS, first_user=100)
    return Background.learnt(PopulationDetector(), Samples.of(typists, first="missing"), False, n_jobs=2)


@pytest.fixture(scope="module")
def people(learnt):
    return learnt.pattern.people


@pytest.fixture(scope="module")
def typing():
    return make_typists(4, 8, "free", KEYS).astype({"user": str})


def first(typing):
    return typing[typing["session"] < 5].reset_index(drop=True)


def later(typing):
    return typing[typing["session"] >= 5].reset_index(drop=True)


def of(typing, user):
    return typing[typing["user"] == user].reset_index(drop=True)


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "140"}, input=stdin)


def test_what_is_stored_scores_as_before(learnt, people, typing, tmp_path):
    verifier = Verifier.of(learnt)
    verifier.enrol_many({user: of(first(typing), user) for user in "0123"})
    verifier.save(tmp_path)
    read = Verifier.load(tmp_path)
    scores = read.log_likelihoods(later(typing))
    np.testing.assert_array_equal(scores, verifier.log_likelihoods(later(typing)))
    samples = Samples.of(later(typing), first="missing")
    templates = [people.enrol(Samples.of(of(first(typing), user), first="missing")) for user in "0123"]
    np.testing.assert_allclose(scores, people.log_likelihoods(templates, samples), rtol=1e-12)
    assert np.mean(scores.argmax(axis=1).astype(str) == samples.users) > 0.8
    file = tmp_path / f"{read_manifest(tmp_path).population}.keydyn"
    contents = file.read_bytes()
    file.write_bytes(contents[:-1] + bytes([contents[-1] ^ 1]))
    with pytest.raises(ValueError, match="the population of everybody, is not the file that was written"):
        Verifier.load(tmp_path)
    file.unlink()
    with pytest.raises(ValueError, match="the population of everybody, is missing: enrol everybody again"):
        Verifier.load(tmp_path)


def test_a_template_of_another_population_is_refused(people, typing, tmp_path):
    own = Samples.of(of(first(typing), "0"), first="missing")
    template = people.enrol(own)
    people.save_template(template, tmp_path / "one.keydyn")
    read = people.load_template(tmp_path / "one.keydyn")
    np.testing.assert_array_equal(read.mean, template.mean)
    assert (read.n_samples, read.n_events) == (template.n_samples, template.n_events)
    with pytest.raises(ValueError, match="belongs to another population"):
        PopulationModel.shipped().load_template(tmp_path / "one.keydyn")
    people.save(tmp_path / "people.keydyn")
    with pytest.raises(ValueError, match="not a PopulationTemplate"):
        people.load_template(tmp_path / "people.keydyn")


def test_a_calibration_lies_beside_its_population(learnt, people, tmp_path):
    path = tmp_path / "people.keydyn"
    assert calibration_file(path) == tmp_path / "people.calibration.keydyn"
    people.save(path)
    assert read_background(path, people) is None
    write_background(path, learnt)
    read = read_background(path, PopulationModel.load(path))
    assert read.cohort == ()
    for name in ("lengths", "intercept", "slope", "impostor", "low", "high", "genuine", "suspicion"):
        for again, one in zip(read.calibrations.each, learnt.calibrations.each, strict=True):
            np.testing.assert_array_equal(getattr(again, name), getattr(one, name))
    assert read.calibrations.n_people == 12
    with pytest.raises(ValueError, match="is the calibration of a different population from"):
        read_background(path, PopulationModel.shipped())
    people.save(calibration_file(path))
    with pytest.raises(ValueError, match=r"holds a .*, not a Calibration"):
        read_background(path, people)
    cohort = Background(learnt.pattern, (learnt.pattern.anyone(),), learnt.calibrations, ("anyone",))
    with pytest.raises(ValueError, match="only a population that is its own cohort"):
        write_background(path, cohort)


def test_the_shipped_calibration_is_that_of_the_shipped_population(tmp_path, monkeypatch):
    known = shipped_background()
    assert known.calibrations.population == PopulationModel.shipped().sha256
    assert known.calibrations.n_people == PopulationModel.shipped().parameters.n_people
    other = tmp_path / "shipped.keydyn"
    other.write_bytes(replace(known.calibrations, population="0" * 64).packed())
    assert CALIBRATIONS.parsed(other.read_bytes(), other).population == "0" * 64
    monkeypatch.setattr(background, "SHIPPED", other)
    with pytest.raises(ValueError, match="the calibration of another population: run make population"):
        shipped_background.__wrapped__()


def test_from_the_command_line(learnt, typing, tmp_path):
    first(typing).to_csv(tmp_path / "typing.csv", index=False)
    later(typing).to_csv(tmp_path / "later.csv", index=False)
    write_background(tmp_path / "people.keydyn", learnt)
    population = ("--population", tmp_path / "people.keydyn")
    done = run("fit", tmp_path / "typing.csv", "--out", tmp_path / "models", *population, "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["detector"] == "population"
    assert facts["calibration"] == {"origin": f"that of {tmp_path / 'people.keydyn'}", "people": 12}
    kept = read_manifest(tmp_path / "models")
    assert run("fit", tmp_path / "typing.csv", "--out", tmp_path / "models").exit_code == 0
    assert read_manifest(tmp_path / "models").population == kept.population
    twice = run("fit", tmp_path / "typing.csv", "--out", tmp_path / "models", *population)
    assert twice.exit_code == 2
    assert "leave out --population" in twice.stderr
    asked = (tmp_path / "later.csv", "--models", tmp_path / "models", "--json")
    found = json.loads(run("identify", *asked).stdout)
    assert np.mean([row["candidates"][0]["user"] == row["user"] for row in found]) > 0.8
    verified = json.loads(run("verify", *asked, "--user", "0").stdout)
    assert not any(row["answer"] == "accept" for row in verified if row["user"] != "0")
    wrong = run("fit", tmp_path / "typing.csv", "--out", tmp_path / "m2", "--detector", "pohmm", *population)
    assert wrong.exit_code == 2
    assert "for the detector population" in wrong.output
    # Without a calibration beside it, and with too few people to learn one from.
    calibration_file(tmp_path / "people.keydyn").unlink()
    bare = run("fit", tmp_path / "typing.csv", "--out", tmp_path / "m3", *population)
    assert bare.exit_code == 4
    assert "no calibration beside it" in bare.stderr.replace("\n", " ")
    assert "`keydyn population fit` writes both" in " ".join(bare.stderr.split())


def test_no_calibration_of_an_earlier_population_stays_beside_a_new_one(learnt, typing, tmp_path):
    """Four people are too few to calibrate with; the population that was there before had a calibration."""
    typing.to_csv(tmp_path / "typing.csv", index=False)
    path = tmp_path / "people.keydyn"
    for more in ([], ["--no-calibrate"]):
        write_background(path, learnt)
        done = run("population", "fit", tmp_path / "typing.csv", "--out", path, *more)
        assert done.exit_code == 0, done.output
        assert ("no calibration is written" in done.stderr) == (not more)
        assert read_background(path, PopulationModel.load(path)) is None


def test_a_stream_ends_as_a_file_does(learnt, typing, tmp_path):
    """A key's scores are known at the next key: the last one is not in the stream yet."""
    verifier = Verifier.of(learnt)
    verifier.enrol_many({user: of(first(typing), user) for user in "01"})
    verifier.save(tmp_path / "models")
    one = of(later(typing), "0")
    one = one[one["session"] == 5]
    one.to_csv(tmp_path / "one.csv", index=False)
    options = ("--models", tmp_path / "models", "--user", "0", "--json")
    stream = run("watch", "-", *options, stdin=one.drop(columns=["user", "session"]).to_csv(index=False))
    lines = [json.loads(line) for line in stream.stdout.splitlines()]
    assert len(lines) == len(one)
    (whole,) = json.loads(run("watch", tmp_path / "one.csv", *options).stdout)
    assert max(line["suspicion"] for line in lines) <= whole["suspicion"] + 1e-9
    # What a program follows with the verifier itself is the same.
    followed = verifier.watch("0").update(one.reset_index(drop=True))
    np.testing.assert_allclose([line["suspicion"] for line in lines], followed.suspicion, rtol=1e-9)


def test_evaluate_with_a_population(people, typing, tmp_path):
    typing.to_csv(tmp_path / "typing.csv", index=False)
    people.save(tmp_path / "people.keydyn")
    arguments = ["evaluate", tmp_path / "typing.csv", "--out", tmp_path / "out", "--detector", "manhattan"]
    options = ["--population", tmp_path / "people.keydyn", "--protocol", "enrolment", "--groups", "2"]
    done = run(*arguments, *options)
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "out" / "run.json").read_text())
    (settings,) = {json.dumps(row["population"]) for row in written["detectors"].values()}
    assert people.sha256 in settings
