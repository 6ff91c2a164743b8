"""The Aalto desktop set: hand-written people, hostile files, and the real recordings where they are there."""

import csv
import hashlib
import io
import zipfile

import numpy as np
import pandas as pd
import pytest

from keydyn.datasets import fetch_dataset, load_dataset, reported_people, stream_aalto
from keydyn.datasets.published.aalto import load_people
from keydyn.datasets.published.fetching import FetchError, check_files
from keydyn.keystrokes import check_keystrokes
from keydyn.keystrokes.key_names import VIRTUAL_KEYS, names_of_codes
from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel

HEADER = (
    "PARTICIPANT_ID\tTEST_SECTION_ID\tSENTENCE\tUSER_INPUT\tKEYSTROKE_ID\tPRESS_TIME\tRELEASE_TIME\tLETTER"
    "\tKEYCODE"
)
BEGIN = 1471971049000


def row(person, section, press, release, code, sentence='He said "no', letter="a"):
    times = (str(BEGIN + press), "" if release is None else str(BEGIN + release))
    return "\t".join([str(person), str(section), sentence, sentence, "1", *times, letter, str(code)])


def file_of(*rows):
    return "\n".join([HEADER, *rows, ""]).encode("latin-1")


def archive(path, files, folder="Keystrokes/files/"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, contents in files.items():
            target.writestr(folder + name, contents)


ANN = file_of(
    # The later sentence comes first in the file, and its first two rows are not in order of press.
    row(31, 8, 9100, 9190, 66),
    row(31, 8, 9000, 9080, 65, letter=""),
    row(31, 7, 0, 238, 16, sentence="Caf\xe9", letter="SHIFT"),
    row(31, 7, 107, 90, 67),
    row(31, 7, 258, None, 190),
    row(31, 7, 300, 310, 999),
)
BOB = file_of(row(4, 1, 50, 120, 32), row(4, 1, 50, 130, 8))
SMALL = {"31_keystrokes.txt": ANN, "4_keystrokes.txt": BOB, "readme.txt": b"terms"}
EXPECTED = pd.DataFrame(
    [
        (4, 0, "space", 0, 70, BEGIN + 50),
        (4, 0, "backspace", 0, 80, BEGIN + 50),
        (31, 0, "shift", 0, 238, BEGIN),
        (31, 0, "c", 107, np.nan, BEGIN),
        (31, 0, "period", 258, np.nan, BEGIN),
        (31, 0, "key_999", 300, 310, BEGIN),
        (31, 1, "a", 0, 80, BEGIN + 9000),
        (31, 1, "b", 100, 190, BEGIN + 9000),
    ],
    columns=["user", "session", "keyname", "timepress", "timerelease", "started"],
)


@pytest.fixture
def folder(tmp_path, cache):
    """A data folder, and an empty cache."""
    data = tmp_path / "data"
    data.mkdir()
    return data


def check_frame(found):
    pd.testing.assert_frame_equal(found, EXPECTED, check_dtype=False)
    check_keystrokes(found)


def test_an_archive_is_read(folder):
    archive(folder / "aalto-1274.zip", SMALL)
    with pytest.warns(UserWarning, match="not the published file"):
        dataset = load_dataset("aalto", folder)
    check_frame(dataset.keystrokes)
    assert dataset.checksums == {
        "aalto-1274.zip": hashlib.sha256((folder / "aalto-1274.zip").read_bytes()).hexdigest()
    }
    assert "3173574.3174220" in dataset.citation
    assert "non-commercial" in dataset.terms


@pytest.mark.parametrize("form", ["whole archive", "folder"])
def test_the_authors_own_forms_are_read(folder, form):
    """They have no checksum to be compared with."""
    if form == "folder":
        files = folder / "Keystrokes" / "files"
        files.mkdir(parents=True)
        for name, contents in SMALL.items():
            (files / name).write_bytes(contents)
    else:
        archive(folder / "Keystrokes.zip", SMALL)
    dataset = load_dataset("aalto", folder)
    check_frame(dataset.keystrokes)
    assert dataset.checksums == {}


def test_parts_are_the_whole(folder):
    archive(folder / "Keystrokes.zip", SMALL)
    parts = list(stream_aalto(folder, chunk_users=1))
    assert [part["user"].unique().tolist() for part in parts] == [[4], [31]]
    check_frame(pd.concat(parts, ignore_index=True))
    with pytest.raises(ValueError, match="chunk_users"):
        stream_aalto(folder, chunk_users=0)


def test_nothing_there(folder):
    with pytest.raises(FileNotFoundError, match=r"aalto was not found.*136Mkeystrokes"):
        load_dataset("aalto", folder)
    with pytest.raises(FileNotFoundError, match="aalto was not found"):
        stream_aalto(folder)


def test_it_is_not_downloaded(folder):
    """No address is known; the message says where the whole set is."""
    with pytest.raises(FetchError, match="136Mkeystrokes"):
        fetch_dataset("aalto", folder)


def test_too_many_to_be_read_at_once(folder):
    archive(folder / "Keystrokes.zip", SMALL)
    with pytest.raises(ValueError, match=r"more than 7 keystrokes.*stream_aalto"):
        load_people(folder / "Keystrokes.zip", most=7)


DAMAGED = {
    "empty": b"",
    "header only": HEADER.encode() + b"\n",
    "cut": BOB[:-30],
    "no times": b"PARTICIPANT_ID\tKEYCODE\n5\t65\n",
    "words": file_of(row(5, 1, 0, 10, "x")),
    "another person": file_of(row(6, 1, 0, 10, 65)),
    "no press": file_of(row(5, 1, 0, 10, 65).replace(str(BEGIN), "")),
    "not text": bytes(range(256)) * 20,
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_left_out_and_named(folder, damage):
    archive(folder / "Keystrokes.zip", SMALL | {"5_keystrokes.txt": DAMAGED[damage]})
    with pytest.warns(UserWarning, match=r"left out, 1: 5_keystrokes\.txt \("):
        dataset = load_dataset("aalto", folder)
    check_frame(dataset.keystrokes)


def test_an_archive_of_damaged_files(folder):
    archive(folder / "Keystrokes.zip", {"5_keystrokes.txt": b"", "6_keystrokes.txt": b""})
    with pytest.raises(ValueError, match="no person's file can be read"):
        load_dataset("aalto", folder)


def test_a_file_that_unpacks_to_more_than_a_person_types(folder):
    """A hundred million bytes in a few thousand, and a field that is as long."""
    bomb = HEADER.encode() + b"\n" * 10**8
    field = file_of(row(6, 1, 0, 10, 65, sentence="x" * 10**7))
    archive(folder / "Keystrokes.zip", SMALL | {"5_keystrokes.txt": bomb, "6_keystrokes.txt": field})
    with pytest.warns(UserWarning, match=r"left out, 2: 5_key.*more than.*6_key.*more than"):
        check_frame(load_dataset("aalto", folder).keystrokes)


def test_an_archive_that_lies_about_sizes(folder):
    path = folder / "Keystrokes.zip"
    archive(path, SMALL | {"5_keystrokes.txt": b"\n" * 10**8})
    contents = path.read_bytes()
    # Sizes are little-endian numbers of four bytes, in the file's own header and in the directory.
    assert contents.count((10**8).to_bytes(4, "little")) == 2
    path.write_bytes(contents.replace((10**8).to_bytes(4, "little"), (100).to_bytes(4, "little")))
    with pytest.warns(UserWarning, match=r"left out, 1: 5_keystrokes"):
        check_frame(load_dataset("aalto", folder).keystrokes)


@pytest.mark.parametrize(
    "name", ["../31_keystrokes.txt", "/etc/31_keystrokes.txt", "a/../../31_keystrokes.txt"]
)
def test_a_path_that_leads_outside(folder, name):
    archive(folder / "Keystrokes.zip", {name: ANN}, folder="")
    with pytest.raises(ValueError, match="outside its own folder"):
        load_dataset("aalto", folder)


@pytest.mark.parametrize("contents", [b"", b"PK\x03\x04 not an archive", "cut"])
def test_an_archive_that_is_none(folder, contents):
    path = folder / "Keystrokes.zip"
    archive(path, SMALL)
    path.write_bytes(path.read_bytes()[:-30] if contents == "cut" else contents)
    with pytest.raises(ValueError, match="not a complete zip archive"):
        load_dataset("aalto", folder)


def test_an_archive_without_people(folder):
    archive(folder / "Keystrokes.zip", {"readme.txt": b"terms"})
    with pytest.raises(ValueError, match="no file of a person"):
        load_dataset("aalto", folder)


def test_a_population_from_parts(folder):
    """The parts are what a population is learnt from; people of several parts are people of one."""
    rng = np.random.default_rng(3)
    files = {}
    for person in range(6):
        rows = []
        for section in range(4):
            press = 10_000 * section + np.cumsum(rng.integers(80, 300, 30))
            codes = rng.choice([65, 66, 67, 32], 30)
            rows += [
                row(person, section, p, p + rng.integers(50, 120), c)
                for p, c in zip(press, codes, strict=True)
            ]
        files[f"{person}_keystrokes.txt"] = file_of(*rows)
    archive(folder / "Keystrokes.zip", files)
    parts = (Samples.without_vectors(part) for part in stream_aalto(folder, chunk_users=4))
    people = PopulationModel().fit(parts)
    assert set(people.fitted_.parameters.cells.vocabulary.tolist()) == {"a", "b", "c", "space"}


def test_names_of_keys_are_those_of_the_shipped_population():
    known = set(PopulationModel.shipped().fitted_.parameters.cells.vocabulary.tolist())
    assert {
        VIRTUAL_KEYS[code] for code in (*range(65, 91), *range(48, 58), 32, 16, 8, 20, 188, 190, 222)
    } <= known
    codes = np.array([65.0, np.nan, 65.0, 229.0, np.inf, -1.0, 1e300])
    assert names_of_codes(codes).tolist() == ["a", "key_0", "a", "key_229", "key_0", "key_0", "key_0"]


def test_times_that_cannot_be(folder):
    """A press without a time has no place; a release without one was not seen."""
    huge, never = "9" * 300, "inf"
    rows = [row(4, 1, 0, 80, 65), row(4, 1, 0, 80, 66).replace(str(BEGIN), huge, 1)]
    rows += [row(4, 1, 0, 80, 67).replace(str(BEGIN + 80), time) for time in (huge, never)]
    archive(folder / "Keystrokes.zip", {"4_keystrokes.txt": file_of(*rows)})
    found = check_keystrokes(load_dataset("aalto", folder).keystrokes)
    assert found["keyname"].tolist() == ["a", "c", "c"]
    assert found["timerelease"].isna().tolist() == [False, True, True]


def test_reported_people():
    """The rule, once more in its plainest form; order and repetition do not matter."""
    users = list(range(1000, 2000))
    by_hash = sorted(users, key=lambda user: hashlib.sha256(f"{user}".encode()).hexdigest())
    assert reported_people([*reversed(users), 1000]) == set(by_hash[:300])


def test_the_real_recordings(recordings):
    """Counts of the data's description, and three people's keystrokes read by Python's own csv."""
    dataset = load_dataset("aalto", recordings)
    keystrokes = check_keystrokes(dataset.keystrokes)
    assert (keystrokes["user"].nunique(), len(keystrokes)) == (1274, 927_643)
    assert (keystrokes.groupby("user")["session"].nunique() == 15).all()
    assert len(reported_people(keystrokes["user"].unique())) == 300
    assert [state.status for state in check_files(["aalto"], recordings)] == ["right"]
    held = keystrokes["timerelease"] - keystrokes["timepress"]
    assert int((held > 2000).sum()) == 654
    assert int((~(held > 0)).sum()) == 39
    with zipfile.ZipFile(recordings / "aalto-1274.zip") as files:
        for person in (3269, 5001, 7001):
            name = f"Keystrokes/files/{person}_keystrokes.txt"
            if name not in files.namelist():
                continue
            text = io.StringIO(files.read(name).decode("latin-1"))
            rows = list(csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE))
            mine = keystrokes[keystrokes["user"] == person]
            absolute = (mine["timepress"] + mine["started"]).tolist()
            assert absolute == [float(one["PRESS_TIME"]) for one in rows]
            assert mine["keyname"].tolist() == [
                VIRTUAL_KEYS.get(int(one["KEYCODE"]), f"key_{one['KEYCODE']}") for one in rows
            ]
