"""The folder of enrolled people: changes are whole, files are their owners', readers are not disturbed."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from keydyn import HMM, load
from keydyn.enrolment import Enrolled, changing, enrol, folder, load_enrolled, read_manifest
from keydyn.enrolment.folder import claim_of
from tests.enrolment.typed_samples import as_version_1, manifest_of, typed, write_manifest


@pytest.fixture(scope="module")
def three():
    return enrol(typed())


@pytest.fixture(scope="module")
def four(three):
    return enrol(typed(3, users=("zoe",), tempos=[1.5]), beside=three)


@pytest.fixture
def models(three, tmp_path):
    """A folder with three people."""
    store(three, tmp_path / "models")
    return tmp_path / "models"


def store(enrolled, place, key=None, anew=True):
    with changing(place, key, anew=anew) as change:
        return change.commit(enrolled)


def add_zoe(place, four, key=None):
    """As `keydyn fit` does, without the fitting."""
    with changing(place, key) as change:
        zoe = four.manifest.person("zoe")
        people = (*change.before.people, zoe)
        change.commit(Enrolled(replace(change.before, people=people, next_number=4), four.templates))


def files(place):
    return {path.name for path in place.glob("*.keydyn")}


def test_a_round_trip(three, models):
    again = load_enrolled(models)
    assert again.users.tolist() == ["ann", "bob", "eve"]
    for person, before in zip(again.manifest.people, three.manifest.people, strict=True):
        assert replace(person, sha256="", file="") == before
    later = three.samples(typed(1))
    np.testing.assert_array_equal(again.scores(later), three.scores(later))
    np.testing.assert_array_equal(again.claim_scores("bob", later), three.claim_scores("bob", later))
    np.testing.assert_array_equal(again.claim_penalties("bob", later), three.claim_penalties("bob", later))


def test_files_are_named_by_their_content(models):
    assert len(files(models)) == 3
    for path in models.glob("*.keydyn"):
        assert path.name == f"{hashlib.sha256(path.read_bytes()).hexdigest()}.keydyn"


def test_adding_somebody_writes_one_model_and_one_manifest(models, four, monkeypatch):
    before = {path.name: path.stat().st_mtime_ns for path in models.iterdir()}
    saved = []
    monkeypatch.setattr(
        folder.Change, "_saved", lambda *a, plain=folder.Change._saved: saved.append(a) or plain(*a)
    )
    add_zoe(models, four)
    after = {path.name: path.stat().st_mtime_ns for path in models.iterdir()}
    zoe = read_manifest(models).person("zoe")
    assert {name for name in after if after[name] != before.get(name)} == {"models.json", zoe.file}
    assert len(saved) == 1


def test_people_enrolled_again_leave_no_files(models, three):
    again = enrol(typed(5, users=("bob",), tempos=[1]), beside=load_enrolled(models))
    store(again, models, anew=False)
    assert files(models) == {person.file for person in read_manifest(models).people}
    store(enrol(typed(users=("zoe", "ann"), n_samples=2)), models)
    assert load_enrolled(models).users.tolist() == ["zoe", "ann"]
    assert len(files(models)) == 2


def test_what_is_not_ours_is_left_alone(models, four):
    others = {"notes.txt", "typist.keydyn", ".hidden", "user-1.keydyn"}
    for name in others:
        (models / name).write_text("mine")
    (models / ".0123456789abcdef.keydyn").write_text("half written")
    (models / f"{'0' * 64}.keydyn").write_text("of nobody")
    add_zoe(models, four)
    left = {path.name for path in models.iterdir()}
    assert others <= left
    assert len(left - others) == 4 + 1 + 1  # models, the manifest, the lock


@pytest.mark.parametrize("step", ["fsync", "replace", "write"])
def test_a_disk_that_is_full_at_any_moment_loses_nobody(models, four, step, monkeypatch):
    """Every write fails in turn; each time the people are those before, or, at the very end, those after."""
    calls = {"fsync": (os, "fsync"), "replace": (os, "replace"), "write": (type(models), "write_bytes")}[step]
    plain = getattr(*calls)
    intact = shutil.copytree(models, models.parent / "intact")
    outcomes = []
    for failing in range(50):
        shutil.rmtree(models)
        shutil.copytree(intact, models)
        done = 0

        def write(*arguments, failing=failing):
            nonlocal done
            done += 1
            if done == failing + 1:
                if step == "write":
                    plain(arguments[0], arguments[1][: len(arguments[1]) // 2])
                raise OSError(errno.ENOSPC, "No space left on device")
            return plain(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr(*calls, write)
            try:
                add_zoe(models, four)
                outcomes.append("done")
            except OSError:
                outcomes.append("failed")
        found = load_enrolled(models).users.tolist()
        assert found in (["ann", "bob", "eve"], ["ann", "bob", "eve", "zoe"])
        if outcomes[-1] == "done":
            assert found[-1] == "zoe"
            break
        assert not list(models.glob(".*.json"))
        assert files(models) == {person.file for person in read_manifest(models).people}
    assert outcomes.count("failed") >= 2
    assert outcomes[-1] == "done"


def test_a_change_that_fails_changes_nothing(models, four):
    before = {path.name: path.read_bytes() for path in models.iterdir()}

    def interrupted():
        with changing(models) as change:
            change._saved(four.manifest.person("zoe"), four.templates["zoe"])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert {path.name: path.read_bytes() for path in models.iterdir()} == before


def test_a_second_writer_is_refused(models, four):
    with changing(models), pytest.raises(OSError, match="another process is writing to"):
        add_zoe(models, four)
    add_zoe(models, four)
    assert load_enrolled(models).users.tolist() == ["ann", "bob", "eve", "zoe"]


def test_a_reader_who_meets_a_change_reads_again(models, three, monkeypatch):
    """Between the manifest and the models somebody is enrolled again, and somebody leaves."""
    again = enrol(typed(5, users=("bob",), tempos=[1]), beside=load_enrolled(models))
    changed = replace(again, manifest=again.manifest.without({"eve"}))
    plain, changes = folder._with_templates, [lambda: store(changed, models, anew=False)]

    def meanwhile(*arguments):
        if changes:
            changes.pop()()
        return plain(*arguments)

    monkeypatch.setattr(folder, "_with_templates", meanwhile)
    found = load_enrolled(models)
    assert found.users.tolist() == ["ann", "bob"]
    assert found.manifest.person("bob").number == 1
    later = three.samples(typed(1))
    np.testing.assert_array_equal(found.scores(later)[:, 1], again.scores(later)[:, 1])


def test_a_claim_reads_only_what_it_needs(models, monkeypatch):
    monkeypatch.setattr("keydyn.enrolment.manifest.LARGEST_COHORT", 1)
    whole, part = load_enrolled(models), load_enrolled(models, whose=claim_of("eve"))
    assert sorted(part.templates) == ["ann", "eve"]
    later = whole.samples(typed(1))
    np.testing.assert_array_equal(part.claim_scores("eve", later), whole.claim_scores("eve", later))
    np.testing.assert_array_equal(part.claim_penalties("eve", later), whole.claim_penalties("eve", later))


def test_swapped_files_are_refused(models):
    """Otherwise ann's typing would be accepted as bob's."""
    ann, bob = (models / read_manifest(models).person(user).file for user in ("ann", "bob"))
    ann.rename(models / "aside")
    bob.rename(ann)
    (models / "aside").rename(bob)
    with pytest.raises(ValueError, match="is not the model with which ann was enrolled"):
        load_enrolled(models)


def test_somebody_whose_model_is_gone_can_be_enrolled_again(models):
    (models / read_manifest(models).person("bob").file).unlink()
    with pytest.raises(ValueError, match="the model of bob, is missing: enrol bob again, or remove bob"):
        load_enrolled(models)
    with changing(models) as change:
        change.commit(enrol(typed(5, users=("bob",), tempos=[1]), beside=change.beside(["bob"])))
    assert load_enrolled(models).users.tolist() == ["ann", "bob", "eve"]


def test_a_name_that_could_not_be_read_again_is_not_written(models):
    before = {path.name: path.read_bytes() for path in models.iterdir()}
    with changing(models) as change:
        enrolled = enrol(typed(5, users=("",)), beside=change.beside([""]))
        with pytest.raises(ValueError, match="user is '', not text"):
            change.commit(enrolled)
    assert {path.name: path.read_bytes() for path in models.iterdir()} == before


def test_people_with_the_same_samples_are_refused(tmp_path):
    frame = typed(users=("ann", "bob"))
    twin = frame[frame["user"] == "ann"].assign(user="zoe")
    store(enrol(frame), tmp_path)
    more = enrol(twin, beside=load_enrolled(tmp_path))
    with pytest.raises(ValueError, match="users ann and zoe have the same samples"):
        store(more, tmp_path, anew=False)
    assert load_enrolled(tmp_path).users.tolist() == ["ann", "bob"]


def replaced_file(models, change):
    """Change the file of ann in the folder, and the manifest so that it names the new content."""
    manifest = manifest_of(models)
    path = models / f"{manifest['users'][0]['sha256']}.keydyn"
    change(path)
    manifest["users"][0]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    path.rename(models / f"{manifest['users'][0]['sha256']}.keydyn")
    write_manifest(models, manifest)


def test_another_kind_of_model_is_refused(models):
    other = HMM(emission="lognormal").fit(np.random.default_rng(0).lognormal(size=(50, 2)))
    replaced_file(models, other.save)
    with pytest.raises(ValueError, match="is not a model as pohmm fits it to duration, tau"):
        load_enrolled(models)


def test_a_model_of_other_features_is_refused(models):
    ann = load(models / read_manifest(models).person("ann").file)
    ann.feature_names_in_ = np.array(["tau", "duration"], dtype=object)
    replaced_file(models, ann.save)
    with pytest.raises(ValueError, match="is not a model as pohmm fits it"):
        load_enrolled(models)


@pytest.mark.parametrize("what", ["model", "manifest"])
@pytest.mark.skipif(os.name != "posix", reason="links and pipes are those of POSIX")
def test_links_and_pipes_are_refused(models, what, tmp_path):
    """A link out of the folder is not followed, and a pipe is not waited for."""
    path = models / (read_manifest(models).person("ann").file if what == "model" else "models.json")
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="is a link, not a file"):
        load_enrolled(models)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ValueError, match="not a regular file"):
        load_enrolled(models)
    if what == "manifest":
        with pytest.raises(ValueError, match="is not a regular file"), changing(models, anew=True):
            pass


def test_files_of_a_mad_size_are_refused(models):
    with open(models / "models.json", "r+b") as file:
        file.truncate(folder.LARGEST_FILE + 1)
    with pytest.raises(ValueError, match="at most 268,435,456 are read"):
        read_manifest(models)


def test_folders_of_version_1_are_read_and_converted(models, three, four):
    expected = load_enrolled(models)
    as_version_1(models)
    found = load_enrolled(models)
    assert [replace(person, file="") for person in found.manifest.people] == list(three.manifest.people)
    later = three.samples(typed(1))
    np.testing.assert_array_equal(found.claim_scores("eve", later), expected.claim_scores("eve", later))
    add_zoe(models, four)
    assert manifest_of(models)["version"] == 2
    converted = load_enrolled(models)
    assert converted.manifest.people[:3] == expected.manifest.people
    assert not list(models.glob("user-*"))


def test_a_key_binds_the_manifest(models, three, four, tmp_path):
    key, other = b"k" * 32, b"o" * 32
    keyed = tmp_path / "keyed"
    store(three, keyed, key)
    assert load_enrolled(keyed, key).users.tolist() == ["ann", "bob", "eve"]
    for given, message in (
        (None, "authenticated with a key: give that"),
        (other, "altered, or written with"),
    ):
        with pytest.raises(ValueError, match=message):
            load_enrolled(keyed, given)
        with pytest.raises(ValueError, match=message):
            add_zoe(keyed, four, given)
    with pytest.raises(ValueError, match="is not authenticated"):
        load_enrolled(models, key)
    add_zoe(keyed, four, key)
    manifest = manifest_of(keyed)
    ann, bob = manifest["users"][:2]
    for altered in (
        manifest | {"users": [ann | {"threshold": 0.0}, *manifest["users"][1:]]},
        manifest | {"users": [ann | {"sha256": bob["sha256"]}, bob | {"sha256": ann["sha256"]}]},
        manifest | {"users": manifest["users"][1:]},
        manifest | {"detector": "hmm"},
        manifest | {"hmac_sha256": "0" * 64},
        manifest | {"hmac_sha256": "é"},
        manifest | {"hmac_sha256": 7},
    ):
        write_manifest(keyed, altered)
        with pytest.raises(ValueError, match="its authentication code is wrong"):
            load_enrolled(keyed, key)
    write_manifest(keyed, {name: value for name, value in manifest.items() if name != "hmac_sha256"})
    with pytest.raises(ValueError, match="is not authenticated"):
        load_enrolled(keyed, key)


def test_a_folder_without_anybody(tmp_path, models):
    with pytest.raises(ValueError, match=r"there is no models\.json in it"):
        load_enrolled(tmp_path)
    nobody = read_manifest(models).without({"ann", "bob", "eve"})
    store(Enrolled(nobody, {}), models, anew=False)
    assert not files(models)
    with pytest.raises(ValueError, match="nobody is enrolled in"):
        load_enrolled(models)
