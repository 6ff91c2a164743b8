"""The five datasets as they are loaded; the real ones where they are available."""

import csv
import gzip
import hashlib
import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from keydyn.datasets import dataset_summary, load_dataset
from keydyn.datasets.published.catalogue import PUBLISHED
from keydyn.keystrokes.schema import check_keystrokes

PASSWORD_KEYS = ["period", "t", "i", "e", "five", "Shift.r", "o", "a", "n", "l", "Return"]


@pytest.fixture(scope="session")
def five(recordings):
    return {name: load_dataset(name, recordings) for name in PUBLISHED}


def test_summary_is_the_papers_first_table(five):
    """Users, samples per user, keys per sample and mean τ in milliseconds, as published."""
    table = dataset_summary(five.values()).round()
    assert table[["users", "samples", "keys", "tau"]].astype(int).T.to_dict("list") == {
        "password": [51, 400, 11, 249],
        "keypad": [30, 20, 11, 376],
        "mobile": [51, 20, 11, 366],
        "fable": [60, 4, 100, 264],
        "essay": [55, 6, 500, 284],
    }
    assert table["category"].tolist() == ["fixed", "fixed", "fixed", "constrained", "free"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_all_are_in_the_schema(five, name):
    """Complete and regular, with integer labels except in password, and keys as text."""
    dataset = five[name]
    frame = dataset.keystrokes
    pd.testing.assert_frame_equal(check_keystrokes(frame), frame)
    assert len(set(frame.groupby(["user", "session"]).size())) == 1
    first = frame.groupby(["user", "session"])["timepress"].first()
    assert (first == 0).all()
    assert (frame["user"].dtype.kind == "i") == (name != "password")
    assert all(isinstance(key, str) for key in frame["keyname"].unique())
    assert dataset.citation
    assert dataset.terms
    assert all(len(checksum) == 64 for checksum in dataset.checksums.values())


@pytest.mark.parametrize("name", ["keypad", "mobile", "fable", "essay"])
def test_files_in_the_schema_are_read_as_they_are(five, recordings, name):
    """Python's own reader is the judge."""
    with open(recordings / f"{name}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    frame = five[name].keystrokes
    assert frame["keyname"].tolist() == [row["keyname"] for row in rows]
    for column in set(rows[0]) - {"keyname"}:
        assert frame[column].tolist() == [float(row[column]) for row in rows]


def test_password_times_are_the_files_sums(five, recordings):
    """Every press and release is the double nearest to the exact sum of the file's decimals."""
    with gzip.open(recordings / "password.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))[::97]
    frame = five["password"].keystrokes.set_index(["user", "sitting", "repetition"])
    for row in rows:
        sample = frame.loc[(row["subject"], int(row["sessionIndex"]), int(row["rep"]))]
        press, expected = Decimal(0), []
        for key, after in zip(PASSWORD_KEYS, [*PASSWORD_KEYS[1:], None], strict=True):
            expected.append((key, float(1000 * press), float(1000 * (press + Decimal(row[f"H.{key}"])))))
            press += Decimal(row[f"DD.{key}.{after}"]) if after else 0
        assert (
            list(zip(sample["keyname"], sample["timepress"], sample["timerelease"], strict=True)) == expected
        )


def test_password_sessions_follow_sittings(five):
    frame = five["password"].keystrokes
    assert (frame["session"] == 50 * (frame["sitting"] - 1) + frame["repetition"] - 1).all()
    assert sorted(frame["session"].unique()) == list(range(400))
    assert frame["user"].iloc[0] == "s002"


def test_sensors_and_vectors(five):
    sensors = five["mobile"].sensors
    assert len(sensors) == 10
    assert list(sensors) == sorted(sensors)
    assert five["mobile"].keystrokes[list(sensors)].notna().all(axis=None)
    for name, dataset in five.items():
        if name not in ("fable", "essay"):
            assert dataset.vectors is None
            continue
        assert dataset.vectors.shape == (dataset.keystrokes.groupby(["user", "session"]).ngroups, 218)
        assert dataset.vectors.index.names == ["user", "session"]
        assert dataset.vectors.notna().all(axis=None)


def test_the_one_copy_is_found(five):
    found = {name: dataset.duplicates for name, dataset in five.items() if len(dataset.duplicates)}
    assert list(found) == ["essay"]
    assert found["essay"].to_numpy().tolist() == [[27, 4, 27, 1]]
    assert found["essay"].columns.tolist() == ["user", "session", "same_as_user", "same_as_session"]
    essay = five["essay"].keystrokes.set_index(["user", "session"])
    assert essay.loc[(27, 1)].to_numpy().tolist() == essay.loc[(27, 4)].to_numpy().tolist()


# Hold and interval of every key, and nothing between release and press, in seconds.
TENTHS = [*["0.1", "0.1", "0"] * 10, "0.1"]


def password_file(rows):
    """Samples in the layout of the password file."""
    names = ["subject", "sessionIndex", "rep"]
    for key, after in zip(PASSWORD_KEYS, [*PASSWORD_KEYS[1:], None], strict=True):
        names += [f"H.{key}"] + ([f"DD.{key}.{after}", f"UD.{key}.{after}"] if after else [])
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([names, *rows])
    return text.getvalue().encode()


def test_a_changed_file_is_read_with_a_warning(cache, tmp_path):
    (tmp_path / "DSL-StrongPasswordData.csv").write_bytes(password_file([["s1", 1, 1, *TENTHS]]))
    with pytest.warns(UserWarning, match="is not the published file"):
        dataset = load_dataset("password", tmp_path)
    assert dataset.keystrokes["timepress"].tolist() == [100.0 * i for i in range(11)]
    expected = hashlib.sha256((tmp_path / "DSL-StrongPasswordData.csv").read_bytes()).hexdigest()
    assert dataset.checksums == {"DSL-StrongPasswordData.csv": expected}


@pytest.mark.filterwarnings("ignore:.*is not the published file")
def test_what_is_wrong_with_a_changed_file_is_said(cache, tmp_path):
    path = tmp_path / "password.csv"
    row = TENTHS
    for rows, message in [
        ([["s1", 1, 1, *row], ["s1", 1, 2, "x", *row[1:]]], "line 3: H.period 'x' is not a number"),
        ([["s1", 1, 1, *row], ["s1", 1, 2, "", *row[1:]]], "line 3: H.period is missing"),
    ]:
        path.write_bytes(password_file(rows))
        with pytest.raises(ValueError, match=message) as caught:
            load_dataset("password", tmp_path)
        assert str(caught.value).startswith(str(path))
    path.write_bytes(password_file([["s1", 1, 1, *row], ["s1", 1, 2, "-0.1", "0.1", "0.2", *row[3:]]]))
    with pytest.warns(UserWarning, match=r"1 rows with a release before its press.*\(user s1: 1\)"):
        changed = load_dataset("password", tmp_path)
    assert np.flatnonzero(changed.keystrokes["timerelease"].isna()).tolist() == [11]
    path.write_bytes(password_file([["s1", 1, 1, *row]]).replace(b"DD.a.n", b"DD.a"))
    with pytest.raises(ValueError, match=r"no column 'DD.a.n'"):
        load_dataset("password", tmp_path)


def test_where_files_are_looked_for(small_fable, cache, tmp_path, monkeypatch):
    """In `data`, then where KEYDYN_DATA says, then in the cache."""
    with pytest.raises(
        FileNotFoundError, match=r"looked for fable.csv or .*fixed_text.csv.*keydyn data fetch fable"
    ):
        load_dataset("fable")
    folders = [cache, tmp_path / "variable", tmp_path / "argument"]
    for number, folder in enumerate(folders):
        folder.mkdir()
        (folder / "fable.csv").write_bytes(
            small_fable["fixed_text.csv"].replace(b"e", b"xyz"[number : number + 1])
        )
    monkeypatch.setenv("KEYDYN_DATA", str(folders[1]))
    for data, key in [(folders[2], "z"), (None, "y")]:
        with (
            pytest.warns(UserWarning, match="not the published"),
            pytest.raises(ValueError, match=f"us{key}r"),
        ):
            load_dataset("fable", data)
    monkeypatch.delenv("KEYDYN_DATA")
    with pytest.warns(UserWarning, match="not the published"), pytest.raises(ValueError, match="usxr"):
        load_dataset("fable")
    with pytest.raises(FileNotFoundError, match="which is not a folder"):
        load_dataset("fable", tmp_path / "nowhere")


def test_vectors_of_other_samples_are_refused(small_fable, cache):
    cache.mkdir()
    (cache / "fixed_text.csv").write_bytes(small_fable["fixed_text.csv"])
    assert load_dataset("fable").vectors is None
    (cache / "fixed_text_features.csv").write_bytes(b"user,session,du_a.mean\n0,0,60\n")
    with (
        pytest.warns(UserWarning, match="not the published"),
        pytest.raises(ValueError, match="its samples are not"),
    ):
        load_dataset("fable")


def test_unknown_name():
    with pytest.raises(
        ValueError, match="no dataset 'novel'; there are password, keypad, mobile, fable, essay"
    ):
        load_dataset("novel")


def test_summary_of_own_recordings():
    """Two samples of three and one keystrokes; the pause between samples is not an interval."""
    frame = pd.DataFrame(
        {"user": "u", "session": [0, 0, 0, 1], "keyname": "a", "timepress": [0.0, 100, 300, 9000]}
    )
    table = dataset_summary({"mine": frame.assign(timerelease=np.nan)})
    assert table.loc["mine", ["users", "samples", "keys", "tau"]].tolist() == [1, 2, 2, 150]
