"""keydyn fit adds people, and keydyn users lists and removes them; nothing is removed unasked."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.decisions import Verifier
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.folder.folder import changing, read_manifest
from keydyn.decisions.folder.manifest import file_of
from tests.decisions.test_known_twice import TWICE
from tests.decisions.typed_samples import OTHERS, background, manifest_of, typed, write_manifest
from tests.documents import ROOT


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "140"})


def one_line(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def three():
    verifier = Verifier.of(background())
    verifier.enrol_many({user: typed(0, (user,)) for user in ("ann", "bob", "eve")})
    return verifier


@pytest.fixture
def folder(three, tmp_path):
    """A folder of recordings, and of ann, bob and eve enrolled with pohmm."""
    three.save(tmp_path / "models")
    typed(3, users=("zoe",)).to_csv(tmp_path / "zoe.csv", index=False)
    typed(7, users=("zoe",), n_samples=1).to_csv(tmp_path / "later.csv", index=False)
    typed(4, users=("bob",), n_samples=4).to_csv(tmp_path / "bob.csv", index=False)
    return tmp_path


def names(folder):
    return Verifier.load(folder / "models").users


def test_fit_adds_people(folder):
    done = run("fit", folder / "zoe.csv", "--out", folder / "models")
    assert done.exit_code == 0, done.output
    assert "1 user enrolled with pohmm" in one_line(done.output)
    assert "4 users, 1 new, 0 enrolled again" in done.output
    assert names(folder) == ["ann", "bob", "eve", "zoe"]
    assert "Calibration: that of the folder (10 people)" in done.output
    call = ("--models", folder / "models", "--user", "zoe", "--false-match-rate", 0.05)
    own = run("verify", folder / "later.csv", *call)
    assert own.exit_code == 0, own.output


def test_fit_names_users_who_are_likely_one_person(tmp_path):
    some = TWICE[TWICE["user"].isin([*range(13), 1003, 1007])]
    some.to_csv(tmp_path / "typing.csv", index=False)
    done = run("fit", tmp_path / "typing.csv", "--out", tmp_path / "models", "--json")
    assert done.exit_code == 0, done.output
    assert "users 3 and 1003: likely the same person" in done.stderr
    printed = json.loads(done.stdout)
    assert sorted((pair["user"], pair["other"]) for pair in printed["twice"]) == [(3, 1003), (7, 1007)]
    assert printed["enrolled"] == 15


def test_fit_enrols_somebody_again(folder):
    before = {person.user: person for person in read_manifest(folder / "models").people}
    done = run("fit", folder / "bob.csv", "--out", folder / "models", "--json")
    assert json.loads(done.stdout)["replaced"] == ["bob"]
    assert json.loads(done.stdout)["enrolled"] == 3
    after = {person.user: person for person in read_manifest(folder / "models").people}
    assert [user for user in after if after[user] != before[user]] == ["bob"]
    assert after["bob"].samples == 4
    assert {path.name for path in (folder / "models").glob("*.key*")} == read_manifest(
        folder / "models"
    ).files


def test_fit_starts_anew_when_asked(folder):
    done = run("fit", folder / "zoe.csv", "--out", folder / "models", "--replace")
    assert done.exit_code == 0, done.output
    assert names(folder) == ["zoe"]
    assert "1 user enrolled with population" in one_line(done.output)


def test_people_in_a_file_calibrate_if_there_are_enough(tmp_path):
    """Those who are enrolled are in the cohort, too, and are recognised all the same."""
    people = (*OTHERS, *(f"more{n}" for n in range(10)))
    typed(0, people, 3).to_csv(tmp_path / "typing.csv", index=False)
    done = run("fit", tmp_path / "typing.csv", "--out", tmp_path / "models", "--json")
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert printed["detector"] == "population"
    assert printed["calibration"] == {"origin": "learnt from these people", "people": 20}
    assert {member.user for member in read_manifest(tmp_path / "models").cohort} == set(people)
    typed(1, people, 1).to_csv(tmp_path / "later.csv", index=False)
    call = [tmp_path / "later.csv", "--models", tmp_path / "models", "--json"]
    rows = json.loads(run("identify", *call).stdout)
    assert [row["candidates"][0]["user"] for row in rows] == [row["user"] for row in rows]
    assert sum(row["nobody"] for row in rows) <= 6
    watched = json.loads(run("watch", *call, "--user", "other0").stdout)
    assert [row["answer"] for row in watched if row["user"] == "other0"] == ["accept"]


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


def test_too_few_samples_are_noticed_before_anything_is_learnt(tmp_path, monkeypatch):
    frame = typed(0, (*OTHERS, *(f"more{n}" for n in range(11))), 2)
    frame[(frame["user"] != "more10") | (frame["session"] == 0)].to_csv(tmp_path / "t.csv", index=False)
    learnt = []
    monkeypatch.setattr(Background, "learnt", lambda *_, **__: learnt.append(1))
    done = run("fit", tmp_path / "t.csv", "--out", tmp_path / "m")
    assert done.exit_code == 4
    assert "user more10 has 1 sample; at least 2 are required" in one_line(done.stderr)
    assert not learnt


def test_a_second_writer_gets_a_message(folder):
    with changing(folder / "models"):
        done = run("fit", folder / "zoe.csv", "--out", folder / "models")
    assert done.exit_code == 4
    assert "another process is writing to" in done.stderr


def test_users_are_listed_and_removed(folder):
    listed = json.loads(run("users", "--models", folder / "models", "--json").stdout)
    assert [row["user"] for row in listed["users"]] == ["ann", "bob", "eve"]
    assert [(row["samples"], row["keys"]) for row in listed["users"]] == [(6, 72)] * 3
    assert "3 users enrolled with pohmm" in one_line(run("users", "--models", folder / "models").output)
    unknown = run("users", "--models", folder / "models", "--remove", "ann", "--remove", "zoe")
    assert unknown.exit_code == 2
    assert names(folder) == ["ann", "bob", "eve"]
    assert run("users", "--models", folder / "models", "--remove", "ann").exit_code == 0
    assert names(folder) == ["bob", "eve"]
    nobody = run("users", "--models", folder / "models", "--remove", "bob", "--remove", "eve")
    assert nobody.exit_code == 0
    assert "No user is enrolled" in nobody.output
    assert run("fit", folder / "zoe.csv", "--out", folder / "models").exit_code == 0
    assert names(folder) == ["zoe"]
    # An empty folder takes the detector of whoever comes next.
    assert read_manifest(folder / "models").detector == "population"


def test_a_folder_that_does_not_exist_is_not_made(tmp_path):
    done = run("users", "--models", tmp_path / "typo", "--remove", "ann")
    assert done.exit_code == 4
    assert not (tmp_path / "typo").exists()


def test_an_impostor_who_alters_the_folder(folder):
    """Swapped models, and under a key an altered list, are both refused by verify."""
    models, key = folder / "models", folder / "key"
    key.write_bytes(bytes(range(32)))
    claim = ["verify", folder / "zoe.csv", "--models", models, "--user", "ann"]
    assert run(*claim).exit_code == 1
    ann, bob = (models / file_of(read_manifest(models).person(user).sha256) for user in ("ann", "bob"))
    contents = ann.read_bytes()
    ann.write_bytes(bob.read_bytes())
    bob.write_bytes(contents)
    swapped = run(*claim)
    assert swapped.exit_code == 4
    assert "the model of ann, is not the file that was written" in " ".join(swapped.stderr.split())

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
    ann, zoe = manifest["users"][0], manifest["users"][3]
    ann["sha256"], zoe["sha256"] = zoe["sha256"], ann["sha256"]
    write_manifest(models, manifest)
    altered = run(*claim, "--key-file", key)
    assert altered.exit_code == 4
    assert "altered" in altered.stderr


def test_the_guide_lists_every_field_of_the_manifest(folder):
    guide = (ROOT / "docs" / "guide" / "enrolment.md").read_text(encoding="utf-8")
    manifest = manifest_of(folder / "models")
    for heading, fields in (("manifest", {*manifest, "hmac_sha256"}), ("user", {*manifest["users"][0]})):
        _, _, table = guide.partition(f"| field of {'the' if heading == 'manifest' else 'a'} {heading} |")
        rows = table.split("\n\n")[0].split("\n")[2:]
        assert {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])} == fields
    assert f'| `"{manifest["format"]}"`, {manifest["version"]} |' in guide


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_folder_of_an_earlier_version_is_enrolled_again(folder, version):
    models = folder / "models"
    write_manifest(models, manifest_of(models) | {"version": version})
    for call in (
        ["fit", folder / "zoe.csv", "--out", models],
        ["users", "--models", models],
        ["verify", folder / "zoe.csv", "--models", models, "--user", "ann"],
    ):
        done = run(*call)
        assert done.exit_code == 4
        assert "keydyn fit RECORDINGS --out FOLDER --replace" in " ".join(done.stderr.split())
    assert run("fit", folder / "zoe.csv", "--out", models, "--replace").exit_code == 0
    assert names(folder) == ["zoe"]


def test_somebody_alone_is_enrolled_and_verified(folder):
    """What scores mean comes with keydyn; nobody else is needed."""
    models = folder / "alone"
    assert run("fit", folder / "zoe.csv", "--out", models).exit_code == 0
    assert run("verify", folder / "later.csv", "--models", models, "--user", "zoe").exit_code == 0
    assert run("verify", folder / "bob.csv", "--models", models, "--user", "zoe").exit_code == 1
