"""The folder of enrolled people: changes are whole, files are their owners', readers are not disturbed."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import os
import shutil
import stat
from dataclasses import replace

import numpy as np
import pytest

from keydyn import HMM, load
from keydyn.decisions import Verifier
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.folder import folder
from keydyn.decisions.folder.folder import Change, changing, new_secret, read_folder, read_manifest
from keydyn.decisions.folder.manifest import file_of
from tests.decisions.typed_samples import background, manifest_of, typed, write_manifest

SECRET = bytes(range(32))


def enrolled(*users, seed=0, n_samples=6):
    verifier = Verifier.of(background())
    verifier.secret = SECRET
    return verifier.enrol_many({user: typed(seed, (user,), n_samples) for user in users})


@pytest.fixture(scope="module")
def three():
    return enrolled("ann", "bob", "eve")


@pytest.fixture(scope="module")
def zoe():
    return enrolled("zoe")


@pytest.fixture
def models(three, tmp_path):
    """A folder with three people."""
    store(three, tmp_path / "models")
    return tmp_path / "models"


def store(people, place, key=None, anew=True, secret=SECRET):
    with changing(place, key, anew=anew) as change:
        return change.commit(background(), people, secret)


def users(place, key=None):
    return Verifier.load(place, key).users


def add(place, people, key=None):
    """As `keydyn fit` does, without the fitting."""
    return store(people, place, key, anew=False)


def files(place):
    return {path.name for path in place.glob("*.keydyn")}


def listed(place):
    return {name for name in read_manifest(place).files if name.endswith(".keydyn")}


def secret_in(place):
    (found,) = place.glob("*.key")
    return found


def template_of(place, user):
    return place / file_of(read_manifest(place).person(user).sha256)


def test_people_of_the_folders_background_need_a_folder_that_has_one(three, tmp_path):
    with (
        changing(tmp_path / "models", None, anew=True) as change,
        pytest.raises(ValueError, match="nobody is enrolled in"),
    ):
        change.commit(None, three, SECRET)
    assert not files(tmp_path / "models")


def test_a_round_trip(three, models):
    """Every decision is the same to the last digit."""
    before, again = Verifier.of(background()), Verifier.load(models)
    before.secret = SECRET
    before.enrol_many({user: typed(0, (user,)) for user in three})
    assert again.users == before.users == ["ann", "bob", "eve"]
    assert again.secret == SECRET
    # Fresh samples, and copies of enrolment samples.
    for later in (typed(1, ("ann", "bob", "zoe"), 2), typed(0, ("bob",))):
        for user in before.users:
            assert again.verify_many(user, later) == before.verify_many(user, later)
        assert again.identify_many(later) == before.identify_many(later)
    assert [(one.samples, one.keys) for one in read_manifest(models).people] == [(6, 72)] * 3


def test_files_are_named_by_their_content(models):
    # Ten people of the cohort, the calibration, and a template and fingerprints for each of three.
    assert len(files(models)) == 10 + 1 + 3 * 2
    for path in models.glob("*.keydyn"):
        assert path.name == f"{hashlib.sha256(path.read_bytes()).hexdigest()}.keydyn"
    assert files(models) == listed(models)


def test_adding_somebody_leaves_the_files_of_others_alone(models, zoe):
    before = {path.name: path.read_bytes() for path in models.iterdir()}
    add(models, zoe)
    after = {path.name: path.read_bytes() for path in models.iterdir()}
    person = read_manifest(models).person("zoe")
    own = {file_of(person.sha256), file_of(person.fingerprints)}
    assert {name for name in after if after[name] != before.get(name)} == {"models.json", *own}
    assert set(before) <= set(after)


def test_people_enrolled_again_leave_no_files(models):
    before = template_of(models, "bob")
    add(models, enrolled("bob", seed=5))
    assert users(models) == ["ann", "bob", "eve"]
    assert not before.exists()
    assert files(models) == listed(models)
    store(enrolled("zoe", "ann", n_samples=2), models)
    assert users(models) == ["zoe", "ann"]
    assert len(files(models)) == 10 + 1 + 2 * 2


def test_what_is_not_ours_is_left_alone(models, zoe):
    others = {"notes.txt", "typist.keydyn", ".hidden", "user-1.keydyn"}
    for name in others:
        (models / name).write_text("mine")
    for name in (".0123456789abcdef.keydyn", ".0123456789abcdef.key", f"{'0' * 64}.keydyn"):
        (models / name).write_text("half written, or of nobody")
    add(models, zoe)
    left = {path.name for path in models.iterdir()}
    assert left == others | read_manifest(models).files | {"models.json", ".lock"}


@pytest.mark.parametrize("step", ["fsync", "replace", "write"])
def test_a_disk_that_is_full_at_any_moment_loses_nobody(models, zoe, step, monkeypatch):
    """Every write fails in turn; each time the people are those before, or, at the very end, those after."""
    calls = {"fsync": (os, "fsync"), "replace": (os, "replace"), "write": (type(models), "write_bytes")}[step]
    plain = getattr(*calls)
    intact = shutil.copytree(models, models.parent / "intact")
    outcomes = []
    for failing in range(80):
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
                add(models, zoe)
                outcomes.append("done")
            except OSError:
                outcomes.append("failed")
        found = users(models)
        assert found in (["ann", "bob", "eve"], ["ann", "bob", "eve", "zoe"])
        if outcomes[-1] == "done":
            assert found[-1] == "zoe"
            break
        assert not list(models.glob(".*.json"))
        assert files(models) == listed(models)
    assert outcomes.count("failed") >= 2
    assert outcomes[-1] == "done"


def test_a_change_that_fails_changes_nothing(models, zoe):
    before = {path.name: path.read_bytes() for path in models.iterdir()}

    def interrupted():
        with changing(models) as change:
            change._saved("zoe", zoe["zoe"])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert {path.name: path.read_bytes() for path in models.iterdir()} == before


def test_a_second_writer_is_refused(models, zoe):
    with changing(models), pytest.raises(OSError, match="another process is writing to"):
        add(models, zoe)
    add(models, zoe)
    assert users(models) == ["ann", "bob", "eve", "zoe"]


def test_a_reader_who_meets_a_change_reads_again(models, monkeypatch):
    """Between the manifest and the templates somebody is enrolled again, and somebody leaves."""
    again = enrolled("bob", seed=5)

    def change_it():
        add(models, again)
        with changing(models) as change:
            change.remove(["eve"])

    plain, changes = folder._read, [change_it]

    def meanwhile(*arguments):
        if changes:
            changes.pop()()
        return plain(*arguments)

    monkeypatch.setattr(folder, "_read", meanwhile)
    found = Verifier.load(models)
    assert found.users == ["ann", "bob"]
    fresh = Verifier.of(background())
    fresh.enrol("bob", typed(5, ("bob",)))
    later = typed(1, ("ann", "bob"), 2)
    np.testing.assert_array_equal(found.log_likelihoods(later)[:, 1], fresh.log_likelihoods(later)[:, 0])


def test_a_claim_reads_only_what_it_needs(models):
    for user in ("ann", "eve"):
        template_of(models, user).unlink()
    found = read_folder(models, users=["bob"])
    assert list(found.people) == ["bob"]
    assert len(found.manifest.people) == 3
    with pytest.raises(ValueError, match="user 'zoe' is not enrolled; enrolled are ann, bob, eve"):
        read_folder(models, users=["zoe"])


def test_swapped_files_are_refused(models):
    """Otherwise ann's typing would be accepted as bob's."""
    ann, bob = (template_of(models, user) for user in ("ann", "bob"))
    ann.rename(models / "aside")
    bob.rename(ann)
    (models / "aside").rename(bob)
    with pytest.raises(ValueError, match="the model of ann, is not the file that was written: enrol ann"):
        Verifier.load(models)


def test_somebody_whose_model_is_gone_can_be_enrolled_again(models):
    template_of(models, "bob").unlink()
    with pytest.raises(ValueError, match="the model of bob, is missing: enrol bob again, or remove bob"):
        Verifier.load(models)
    add(models, enrolled("bob", seed=5))
    assert users(models) == ["ann", "bob", "eve"]


@pytest.mark.parametrize(
    ("which", "message"),
    [
        (lambda manifest: manifest.calibration, "the calibration"),
        (lambda manifest: manifest.cohort[3].sha256, "the model of other3 in the cohort"),
        (lambda manifest: manifest.people[0].fingerprints, "the fingerprints of ann"),
    ],
    ids=["calibration", "cohort", "fingerprints"],
)
def test_what_decisions_rest_on_must_be_what_was_written(models, which, message):
    path = models / file_of(which(read_manifest(models)))
    contents = path.read_bytes()
    path.write_bytes(contents[:-1] + bytes([contents[-1] ^ 1]))
    with pytest.raises(ValueError, match=f"{message}, is not the file that was written: enrol"):
        Verifier.load(models)
    path.unlink()
    with pytest.raises(ValueError, match=f"{message}, is missing: enrol"):
        Verifier.load(models)


def test_a_calibration_must_be_a_calibration(models):
    manifest = manifest_of(models)
    manifest["calibration"] = manifest["users"][0]["sha256"]
    write_manifest(models, manifest)
    with pytest.raises(ValueError, match="holds a POHMM, not a Calibration"):
        Verifier.load(models)


def test_a_name_that_could_not_be_read_again_is_not_written(models):
    before = {path.name: path.read_bytes() for path in models.iterdir()}
    with pytest.raises(ValueError, match="user is '', not text"):
        add(models, enrolled(""))
    assert {path.name: path.read_bytes() for path in models.iterdir()} == before


def test_people_with_the_same_samples_are_refused(models, three):
    with pytest.raises(ValueError, match="users ann and zoe have the same samples"):
        add(models, {"zoe": three["ann"]})
    assert users(models) == ["ann", "bob", "eve"]


def test_people_in_one_folder_share_what_decisions_rest_on(models, zoe):
    own = background()
    fewer = Background(own.pattern, own.cohort[:5], own.calibrations, own.members[:5])
    with changing(models) as change, pytest.raises(ValueError, match="the same detector, sensors, cohort"):
        change.commit(fewer, zoe, SECRET)
    with changing(models) as change, pytest.raises(ValueError, match="the same detector, sensors, cohort"):
        change.commit(own, zoe, SECRET, ("pressure",))
    assert users(models) == ["ann", "bob", "eve"]
    # In a folder that everybody has left, others may come with their own.
    with changing(models) as change:
        change.remove(["ann", "bob", "eve"])
        assert not read_manifest(models).people
    with changing(models) as change:
        change.commit(fewer, zoe, SECRET)
    assert users(models) == ["zoe"]
    assert len(read_manifest(models).cohort) == 5


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
        Verifier.load(models)


def test_a_model_of_other_features_is_refused(models):
    ann = load(template_of(models, "ann"))
    ann._state = dataclasses.replace(ann._state, feature_names=np.array(["tau", "duration"], dtype=object))
    replaced_file(models, ann.save)
    with pytest.raises(ValueError, match="is not a model as pohmm fits it"):
        Verifier.load(models)


@pytest.mark.parametrize("what", ["model", "manifest", "secret"])
@pytest.mark.skipif(os.name != "posix", reason="links and pipes are those of POSIX")
def test_links_and_pipes_are_refused(models, what, tmp_path):
    """A link out of the folder is not followed, and a pipe is not waited for."""
    path = {
        "model": template_of(models, "ann"),
        "manifest": models / "models.json",
        "secret": secret_in(models),
    }[what]
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="is a link, not a file"):
        Verifier.load(models)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ValueError, match="not a regular file"):
        Verifier.load(models)
    if what == "manifest":
        with pytest.raises(ValueError, match="is not a regular file"), changing(models, anew=True):
            pass


def test_files_of_a_mad_size_are_refused(models):
    with open(models / "models.json", "r+b") as file:
        file.truncate(folder.LARGEST_FILE + 1)
    with pytest.raises(ValueError, match="at most 268,435,456 are read"):
        read_manifest(models)


def test_the_secret_is_for_the_owner_alone_and_stays(models, zoe):
    path = secret_in(models)
    assert path.read_bytes() == SECRET
    add(models, zoe)
    other = SECRET[::-1]
    with pytest.raises(ValueError, match=r"people in one folder need the same .* secret"):
        store(zoe, models, anew=False, secret=other)
    assert secret_in(models) == path
    assert path.read_bytes() == Verifier.load(models).secret == SECRET
    store(zoe, models, secret=other)
    assert secret_in(models) != path
    assert secret_in(models).read_bytes() == other
    if os.name == "posix":
        assert stat.S_IMODE(secret_in(models).stat().st_mode) == 0o600


def test_a_secret_that_is_another_or_missing_is_reported(models):
    """Copies would pass for fresh samples."""
    for contents in (SECRET[:-1], SECRET[::-1], b""):
        secret_in(models).write_bytes(contents)
        with pytest.raises(ValueError, match="the secret of the folder, is not the one that was written"):
            Verifier.load(models)
    secret_in(models).unlink()
    with pytest.raises(ValueError, match="the secret of the folder, is missing: without it copies"):
        Verifier.load(models)


def test_with_a_key_a_secret_of_ones_own_is_kept_too(three, tmp_path):
    """Otherwise copies of what was enrolled before would not be recognised after loading."""
    key = b"k" * 32
    store(three, tmp_path, key)
    assert secret_in(tmp_path).read_bytes() == Verifier.load(tmp_path, key).secret == SECRET
    (decision,) = Verifier.load(tmp_path, key).verify_many("ann", typed(0, ("ann",), 1))
    assert decision.answer == "reject"
    assert "a copy" in decision.reasons[0]


@pytest.mark.parametrize("version", [1, 2])
def test_folders_of_earlier_versions_are_refused_with_the_command_that_helps(models, three, version):
    write_manifest(models, manifest_of(models) | {"version": version})
    (models / "user-000000.keydyn").write_text("of version 1")
    with pytest.raises(
        ValueError, match=f"its version is {version}: .*keydyn fit RECORDINGS --out FOLDER --replace"
    ):
        Verifier.load(models)
    with pytest.raises(ValueError, match="--replace"):
        add(models, three)
    store(three, models)
    assert users(models) == ["ann", "bob", "eve"]
    assert not list(models.glob("user-*"))


def test_a_key_binds_the_manifest(models, three, zoe, tmp_path):
    key, other = b"k" * 32, b"o" * 32
    keyed = tmp_path / "keyed"
    store(three, keyed, key, secret=new_secret(key))
    assert users(keyed, key) == ["ann", "bob", "eve"]
    # Whoever reads the folder finds no secret in it.
    assert Verifier.load(keyed, key).secret == new_secret(key) != new_secret(other)
    assert not list(keyed.glob("*.key"))
    for given, message in (
        (None, "authenticated with a key: give that"),
        (other, "altered, or written with"),
    ):
        with pytest.raises(ValueError, match=message):
            Verifier.load(keyed, given)
        with pytest.raises(ValueError, match=message):
            add(keyed, zoe, given)
    with pytest.raises(ValueError, match="is not authenticated"):
        Verifier.load(models, key)
    store(zoe, keyed, key, anew=False, secret=new_secret(key))
    manifest = manifest_of(keyed)
    ann, bob = manifest["users"][:2]
    for altered in (
        manifest | {"users": [ann | {"samples": 7}, *manifest["users"][1:]]},
        manifest | {"users": [ann | {"sha256": bob["sha256"]}, bob | {"sha256": ann["sha256"]}]},
        manifest | {"users": [ann | {"fingerprints": ""}, *manifest["users"][1:]]},
        manifest | {"users": manifest["users"][1:]},
        manifest | {"cohort": manifest["cohort"][1:]},
        manifest | {"calibration": "0" * 64},
        manifest | {"secret": "0" * 64},
        manifest | {"detector": "hmm"},
        manifest | {"hmac_sha256": "0" * 64},
        manifest | {"hmac_sha256": "é"},
        manifest | {"hmac_sha256": 7},
    ):
        write_manifest(keyed, altered)
        with pytest.raises(ValueError, match="its authentication code is wrong"):
            Verifier.load(keyed, key)
    write_manifest(keyed, {name: value for name, value in manifest.items() if name != "hmac_sha256"})
    with pytest.raises(ValueError, match="is not authenticated"):
        Verifier.load(keyed, key)


def test_a_folder_without_anybody(tmp_path, models):
    with pytest.raises(ValueError, match=r"there is no models\.json in it"):
        Verifier.load(tmp_path)
    with changing(tmp_path / "none") as change, pytest.raises(ValueError, match="nobody is enrolled in"):
        change.remove(["ann"])
    with changing(models) as change:
        with pytest.raises(ValueError, match="user 'zoe' is not enrolled"):
            change.remove(["ann", "zoe"])
        change.remove(["ann", "bob", "eve"])
    assert files(models) == listed(models)
    verifier = Verifier.load(models)
    assert verifier.users == []
    with pytest.raises(ValueError, match="nobody is enrolled"):
        verifier.identify(typed(1, ("ann",), 1))


def test_whoever_is_removed_leaves_the_cohort_but_somebody_must_stay_in_it(models):
    """The cohort is of people who are not enrolled here; two of them are enrolled, then removed."""
    manifest = read_manifest(models)
    names = [member.user for member in manifest.cohort]
    assert names
    cohort = tuple(
        replace(member, user=user) for user, member in zip(("ann", "bob"), manifest.cohort, strict=False)
    )
    alone = replace(manifest, cohort=cohort, population="")
    with pytest.raises(ValueError, match="too few people are left to compare claims with"):
        Change(models, None, alone).remove(["ann"])
    some = replace(manifest, cohort=(replace(manifest.cohort[0], user="ann"), *manifest.cohort[1:]))
    left = Change(models, None, some).remove(["ann"])
    assert [member.user for member in left.cohort] == names[1:]
    assert "ann" not in [person.user for person in read_manifest(models).people]
