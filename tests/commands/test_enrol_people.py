"""fit adds people and users lists and removes them; nothing is lost without being asked for."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.enrolment import changing, enrol, load_enrolled, read_manifest
from tests.enrolment.typed_samples import as_version_1, manifest_of, typed, write_manifest


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "140"})


@pytest.fixture(scope="module")
def three():
    return enrol(typed())


@pytest.fixture
def folder(three, tmp_path):
    """Recordings, and a folder in which ann, bob and eve are enrolled."""
    with changing(tmp_path / "models") as change:
        change.commit(three)
    typed(3, users=("zoe",), tempos=[1.5]).to_csv(tmp_path / "zoe.csv", index=False)
    typed(4, users=("bob",), tempos=[1], n_samples=4).to_csv(tmp_path / "bob.csv", index=False)
    return tmp_path


def names(folder):
    return load_enrolled(folder / "models").users.tolist()


def test_fit_adds_people(folder):
    done = run("fit", folder / "zoe.csv", "--out", folder / "models")
    assert done.exit_code == 0, done.output
    assert "1 user enrolled with pohmm" in done.output
    assert "4 users, 1 new, 0 enrolled again" in done.output
    assert names(folder) == ["ann", "bob", "eve", "zoe"]
    own = run("verify", folder / "zoe.csv", "--models", folder / "models", "--user", "zoe")
    assert own.exit_code == 0, own.output


def test_fit_enrols_somebody_again(folder):
    before = {person.user: person for person in read_manifest(folder / "models").people}
    done = run("fit", folder / "bob.csv", "--out", folder / "models", "--json")
    assert json.loads(done.stdout)["replaced"] == ["bob"]
    assert json.loads(done.stdout)["enrolled"] == 3
    after = {person.user: person for person in read_manifest(folder / "models").people}
    assert [user for user in after if after[user] != before[user]] == ["bob"]
    assert after["bob"].samples == 4
    assert len(list((folder / "models").glob("*.keydyn"))) == 3


def test_fit_starts_anew_when_asked(folder):
    done = run("fit", folder / "zoe.csv", "--out", folder / "models", "--replace", "--detector", "hmm")
    assert done.exit_code == 0, done.output
    assert names(folder) == ["zoe"]
    assert "enrol these again" in done.output


def test_fit_that_fails_leaves_everybody(folder):
    typed(users=("zoe",), n_samples=1).to_csv(folder / "one.csv", index=False)
    before = {path.name: path.read_bytes() for path in (folder / "models").iterdir()}
    for arguments, code in (
        (["fit", folder / "one.csv"], 4),
        (["fit", folder / "one.csv", "--replace"], 4),
        (["fit", folder / "zoe.csv", "--detector", "hmm"], 2),
        (["fit", folder / "zoe.csv", "--sensors", "pressure"], 2),
    ):
        done = run(*arguments, "--out", folder / "models")
        assert done.exit_code == code
    assert {path.name: path.read_bytes() for path in (folder / "models").iterdir()} == before


def test_a_second_writer_gets_a_message(folder):
    with changing(folder / "models"):
        done = run("fit", folder / "zoe.csv", "--out", folder / "models")
    assert done.exit_code == 4
    assert "another process is writing to" in done.stderr


def test_users_are_listed_and_removed(folder):
    listed = json.loads(run("users", "--models", folder / "models", "--json").stdout)
    assert [row["user"] for row in listed["users"]] == ["ann", "bob", "eve"]
    assert [row["judged_beside"] for row in listed["users"]] == [2, 2, 2]
    assert "3 users enrolled with pohmm" in run("users", "--models", folder / "models").output
    unknown = run("users", "--models", folder / "models", "--remove", "ann", "--remove", "zoe")
    assert unknown.exit_code == 2
    assert names(folder) == ["ann", "bob", "eve"]
    assert run("users", "--models", folder / "models", "--remove", "ann").exit_code == 0
    assert names(folder) == ["bob", "eve"]
    assert len(list((folder / "models").glob("*.keydyn"))) == 2
    nobody = run("users", "--models", folder / "models", "--remove", "bob", "--remove", "eve")
    assert nobody.exit_code == 0
    assert "Nobody is enrolled" in nobody.output
    assert run("fit", folder / "zoe.csv", "--out", folder / "models", "--detector", "hmm").exit_code == 0
    assert names(folder) == ["zoe"]


def test_a_folder_that_does_not_exist_is_not_made(tmp_path):
    done = run("users", "--models", tmp_path / "typo", "--remove", "ann")
    assert done.exit_code == 4
    assert not (tmp_path / "typo").exists()


def test_an_impostor_who_alters_the_folder(folder):
    """Swapped models, and a threshold of zero under a key, are both refused by verify."""
    models, key = folder / "models", folder / "key"
    key.write_bytes(bytes(range(32)))
    claim = ["verify", folder / "zoe.csv", "--models", models, "--user", "ann"]
    assert run(*claim).exit_code == 1
    ann, bob = (models / read_manifest(models).person(user).file for user in ("ann", "bob"))
    contents = ann.read_bytes()
    ann.write_bytes(bob.read_bytes())
    bob.write_bytes(contents)
    swapped = run(*claim)
    assert swapped.exit_code == 4
    assert "is not the model with which ann was enrolled" in swapped.stderr

    typed().to_csv(folder / "all.csv", index=False)
    assert run("fit", folder / "all.csv", "--out", models, "--replace", "--key-file", key).exit_code == 0
    assert run(*claim, "--key-file", key).exit_code == 1
    without = run(*claim)
    assert without.exit_code == 4
    assert "give that with --key-file" in without.stderr
    for command in ("identify", "score", "watch"):
        more = ["--user", "ann"] if command == "watch" else []
        call = [command, folder / "zoe.csv", "--models", models, *more]
        assert run(*call).exit_code == 4
        assert run(*call, "--key-file", key).exit_code in (0, 1)
    assert run("users", "--models", models).exit_code == 4
    assert run("users", "--models", models, "--key-file", key).exit_code == 0
    assert run("fit", folder / "zoe.csv", "--out", models).exit_code == 4
    assert run("fit", folder / "zoe.csv", "--out", models, "--key-file", key).exit_code == 0
    manifest = manifest_of(models)
    manifest["users"][0]["threshold"] = 0.0
    write_manifest(models, manifest)
    altered = run(*claim, "--key-file", key)
    assert altered.exit_code == 4
    assert "altered" in altered.stderr


def test_people_are_added_to_a_folder_of_version_1(folder):
    as_version_1(folder / "models")
    assert run("fit", folder / "zoe.csv", "--out", folder / "models").exit_code == 0
    assert names(folder) == ["ann", "bob", "eve", "zoe"]


def test_somebody_enrolled_alone_is_told_what_to_do(folder):
    models = folder / "alone"
    assert run("fit", folder / "bob.csv", "--out", models).exit_code == 0
    assert run("fit", folder / "zoe.csv", "--out", models).exit_code == 0
    claim = ["verify", folder / "bob.csv", "--models", models, "--user", "bob"]
    first = run(*claim)
    assert first.exit_code == 4
    assert "bob has no threshold" in first.stderr
    assert run("verify", folder / "zoe.csv", "--models", models, "--user", "zoe").exit_code == 0
    assert run("fit", folder / "bob.csv", "--out", models).exit_code == 0
    assert run(*claim).exit_code == 0
