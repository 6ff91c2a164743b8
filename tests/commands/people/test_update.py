"""keydyn verify --update updates a person's template in the folder, and users --undo restores it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.datasets import make_typists
from keydyn.decisions import Verifier
from keydyn.decisions.folder.folder import changing, read_manifest
from tests.decisions.typed_samples import background, typed

# Users whose names are numbers; from 100 keys on, simulated typists are taken for machines.
TYPISTS = make_typists(6, 7, text="free", n_keys=95, random_state=5)


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "140"})


def of(user, *sessions):
    return TYPISTS[(TYPISTS["user"] == user) & TYPISTS["session"].isin(sessions)]


@pytest.fixture
def folder(tmp_path):
    """Users 0 and 1 enrolled, later samples of user 0 and one of a stranger."""
    TYPISTS[(TYPISTS["user"] < 2) & (TYPISTS["session"] < 4)].to_csv(tmp_path / "typing.csv", index=False)
    assert run("fit", tmp_path / "typing.csv", "--out", tmp_path / "models").exit_code == 0
    of(0, 4).to_csv(tmp_path / "later.csv", index=False)
    of(0, 4, 5, 6).to_csv(tmp_path / "several.csv", index=False)
    of(5, 4).to_csv(tmp_path / "stranger.csv", index=False)
    return tmp_path


def people(folder):
    return {person.user: person for person in read_manifest(folder / "models").people}


def updated(folder):
    rows = json.loads(run("users", "--models", folder / "models", "--json").stdout)["users"]
    return [row["user"] for row in rows if row["updated"]]


def verify(folder, file, *more):
    done = run("verify", folder / file, "--models", folder / "models", "--user", 0, "--json", *more)
    return [row["answer"] for row in json.loads(done.stdout)], done.exit_code


def test_an_update_changes_one_person_and_can_be_undone(folder):
    before = people(folder)
    assert verify(folder, "later.csv") == (["accept"], 0)
    assert people(folder) == before
    assert verify(folder, "later.csv", "--update") == (["accept"], 0)
    after = people(folder)
    assert after["1"] == before["1"]
    assert after["0"].sha256 != before["0"].sha256
    assert after["0"].enrolment == after["0"].previous == before["0"].sha256
    assert updated(folder) == ["0"]
    said = run("verify", folder / "stranger.csv", "--models", folder / "models", "--user", 0, "--update")
    assert "0 of 1 samples updated the template of 0." in said.stdout
    assert people(folder) == after
    # It is a copy from now on, and a copy updates nothing.
    assert verify(folder, "later.csv", "--update") == (["reject"], 1)
    assert people(folder) == after
    undone = run("users", "--models", folder / "models", "--undo", 0)
    assert undone.exit_code == 0, undone.output
    assert people(folder)["0"].sha256 == before["0"].sha256
    assert updated(folder) == []
    again = run("users", "--models", folder / "models", "--undo", 0)
    assert again.exit_code == 4
    assert "there is no update to undo" in again.stderr


def test_several_samples_update_one_after_the_other(folder):
    """As one call for each would; what is undone is the last of them."""
    verifier = Verifier.load(folder / "models")
    for session in (4, 5):
        verifier.update("0", of(0, session))
    before_last = verifier.person("0").template.template_.mean
    verifier.update("0", of(0, 6))
    assert verify(folder, "several.csv", "--update") == (["accept"] * 3, 0)
    found = Verifier.load(folder / "models").person("0")
    assert (found.template.template_.mean == verifier.person("0").template.template_.mean).all()
    assert run("users", "--models", folder / "models", "--undo", 0).exit_code == 0
    assert (Verifier.load(folder / "models").person("0").template.template_.mean == before_last).all()


def test_a_stranger_updates_nothing(folder):
    before = people(folder)
    answers, code = verify(folder, "stranger.csv", "--update")
    assert "accept" not in answers
    assert code != 0
    assert people(folder) == before


def test_files_that_are_no_longer_needed_go(folder):
    for file in ("later.csv", "several.csv"):
        verify(folder, file, "--update")
    run("users", "--models", folder / "models", "--undo", 0)
    there = {path.name for path in (folder / "models").iterdir()}
    assert there == read_manifest(folder / "models").files | {"models.json", ".lock"}


def test_what_cannot_be_updated_or_undone_is_reported(folder):
    models = folder / "models"
    unknown = run("users", "--models", models, "--undo", "zoe")
    assert unknown.exit_code == 2
    assert "'zoe' is not enrolled" in unknown.stderr
    with changing(models):
        assert run("verify", folder / "later.csv", "--models", models, "--user", 0, "--update").exit_code == 4
        assert run("users", "--models", models, "--undo", 0).exit_code == 4


def test_only_templates_of_a_population_are_updated(tmp_path):
    """Whatever the answer would have been."""
    verifier = Verifier.of(background())
    verifier.enrol("ann", typed(0, ("ann",)))
    verifier.save(tmp_path / "models")
    for user in ("ann", "bob"):
        typed(1, (user,), 1).to_csv(tmp_path / "one.csv", index=False)
        done = run(
            "verify", tmp_path / "one.csv", "--models", tmp_path / "models", "--user", "ann", "--update"
        )
        assert done.exit_code == 2
        assert "--update is for the detector population, not for pohmm" in done.stderr
