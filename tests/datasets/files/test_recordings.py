"""Your own recordings: exact round trips, units, and a message for every way in which a file can be wrong."""

import gzip
import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydyn.datasets import load_recordings, save_recordings
from tests.examples import examples

HEADER = "user,session,keyname,timepress,timerelease\n"
GOOD = HEADER + "0,0,a,0,80\n0,0,b,100,190\n0,1,NA,0,70\n"
KEY_NAMES = st.one_of(
    st.sampled_from(
        ["NA", "null", "nan", "None", " ", ",", '"', "'", "\n", "\r", "\r\n", "1", "01", "1e5", "-", "é"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4),
)
TIMES = st.floats(0, 1e13, allow_subnormal=False)


def written(tmp_path, text, name="mine.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


@st.composite
def keystrokes(draw):
    names = st.sampled_from(["ann", "0x", "7.0", "007", "Ω, the last"])
    users = draw(st.one_of(st.lists(names, min_size=1, unique=True), st.just([3, 0, -1])))
    rows = []
    for user in users:
        for session in range(draw(st.integers(1, 2))):
            presses = sorted(draw(st.lists(TIMES, min_size=1, max_size=4)))
            for press in presses:
                release = press + draw(st.one_of(st.just(np.nan), TIMES))
                rows.append((user, session, draw(KEY_NAMES), press, release))
    frame = pd.DataFrame(rows, columns=["user", "session", "keyname", "timepress", "timerelease"])
    floats = st.one_of(st.just(np.nan), st.floats(allow_nan=False, allow_infinity=False))
    frame["pressure"] = draw(st.lists(floats, min_size=len(rows), max_size=len(rows)))
    frame["count"] = draw(st.lists(st.integers(-(10**15), 10**15), min_size=len(rows), max_size=len(rows)))
    return frame


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
@settings(max_examples=examples(60), deadline=None)
@given(frame=keystrokes())
def test_round_trip_is_exact(tmp_path, ending, frame):
    path = tmp_path / f"mine{ending}"
    save_recordings(frame, path)
    back = load_recordings(path)
    for column in frame:
        assert all(a == b or a != a for a, b in zip(frame[column], back[column], strict=True))
        assert back[column].isna().tolist() == frame[column].isna().tolist()
        assert (back[column].dtype.kind == "i") == (frame[column].dtype.kind == "i")
    assert list(tmp_path.iterdir()) == [path]


def test_missing_folders_are_created(tmp_path):
    frame = load_recordings(written(tmp_path, GOOD))
    path = tmp_path / "new" / "folder" / "mine.csv"
    save_recordings(frame, path)
    assert load_recordings(path).equals(frame)
    assert list(path.parent.iterdir()) == [path]


def test_what_csv_cannot_hold_is_refused_and_parquet_takes_it(tmp_path):
    frame = pd.DataFrame(
        {"user": ["1", "2"], "session": 0, "keyname": "a", "timepress": 0.0, "timerelease": 90.0}
    )
    before = written(tmp_path, "what was there")
    with pytest.raises(ValueError, match=r"mine.csv: user '1' would be read back as .*1.*parquet"):
        save_recordings(frame, before)
    assert before.read_text() == "what was there"
    assert list(tmp_path.iterdir()) == [before]
    save_recordings(frame, tmp_path / "mine.parquet")
    assert load_recordings(tmp_path / "mine.parquet")["user"].tolist() == ["1", "2"]
    with pytest.raises(ValueError, match=r"must end in .csv, .csv.gz, .parquet"):
        save_recordings(frame, tmp_path / "mine.xlsx")


def test_key_names_are_text(tmp_path):
    names = ["1", "01", "NA", "null", "nan", "None", " ", "1.0", "TRUE", "inf"]
    rows = "".join(f"0,0,{name},{100 * i},{100 * i + 50}\n" for i, name in enumerate(names))
    assert load_recordings(written(tmp_path, HEADER + rows))["keyname"].tolist() == names


def test_what_is_not_there_is_missing_not_zero(tmp_path):
    frame = load_recordings(written(tmp_path, HEADER + "0,0,a,0,\n0,0,b,5,NA\n0,0,c,6,NaN\n0,0,d,7,9\n"))
    assert frame["timerelease"].isna().tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("unit", "factor"),
    [("s", "1000"), ("ms", "1"), ("us", "0.001"), ("µs", "0.001"), ("μs", "0.001"), ("ns", "0.000001")],
)
def test_units_are_exact(tmp_path, unit, factor):
    """Each time is the double nearest to the decimal number that was written, times the unit."""
    rng = np.random.default_rng(0)
    texts = [f"{value:.4f}" for value in np.sort(rng.uniform(0, 5e6, 500))]
    rows = "".join(f"0,0,a,{text},{text}\n" for text in texts)
    frame = load_recordings(written(tmp_path, HEADER + rows), unit=unit)
    expected = [float(Decimal(text) * Decimal(factor)) for text in texts]
    # Smaller units round twice: the text, then the quotient.
    tolerance = 0 if unit in ("s", "ms") else np.finfo(float).eps
    np.testing.assert_allclose(frame["timepress"], expected, rtol=tolerance, atol=0)


def test_own_names_constants_and_further_columns(tmp_path):
    path = written(tmp_path, "key,down,up,Pressure,device\n1,0.1,0.2,0.5,phone\n2,0.3,,,phone\n")
    own = {"keyname": "key", "timepress": "down", "timerelease": "up"}
    frame = load_recordings(path, own, "s", user="ann", session=3)
    assert list(frame.columns[:5]) == ["user", "session", "keyname", "timepress", "timerelease"]
    assert frame["user"].tolist() == ["ann", "ann"]
    assert frame["session"].tolist() == [3, 3]
    assert frame["timepress"].tolist() == [100.0, 300.0]
    assert frame["Pressure"].tolist() == pytest.approx([0.5, np.nan], nan_ok=True)
    assert frame["device"].tolist() == ["phone", "phone"]
    assert "Pressure" not in load_recordings(path, own, user=0, session=0, others=["device"])


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_forms_of_the_same_file(tmp_path, ending):
    """Line ends, byte-order mark, packing, blank lines, encodings and separators change nothing."""
    expected = load_recordings(written(tmp_path, GOOD, "good.csv"))
    text = GOOD.replace("\n", ending)
    for name, contents, options in [
        ("bom.csv", ("\ufeff" + text).encode(), {}),
        ("packed.csv.gz", gzip.compress(text.encode()), {}),
        ("packed-without-saying.csv", gzip.compress(text.encode()), {}),
        ("blank.csv", (text.replace("0,1,NA", ending + "0,1,NA") + ending * 3).encode(), {}),
        ("utf16.csv", text.encode("utf-16"), {"encoding": "utf-16"}),
        ("semicolons.csv", text.replace(",", ";").encode(), {"separator": ";"}),
        (
            "commas.csv",
            text.replace(",", ";").replace("190", "190,0").encode(),
            {"separator": ";", "decimal": ","},
        ),
        ("spaced.csv", text.replace("user,session", "user , session").encode(), {}),
        ("quoted.csv", text.replace("NA", '"NA"').replace("user", '"user"').encode(), {}),
    ]:
        (tmp_path / name).write_bytes(contents)
        pd.testing.assert_frame_equal(load_recordings(tmp_path / name, **options), expected)


def test_sorting(tmp_path):
    path = written(tmp_path, HEADER + "b,0,y,50,60\na,0,x,0,9\nb,0,x,10,20\na,0,y,5,7\n")
    with pytest.raises(
        ValueError, match=r"line 4: the rows of user b, session 0 are not contiguous.*sort=True"
    ):
        load_recordings(path)
    frame = load_recordings(path, sort=True)
    assert (frame["user"] + frame["keyname"]).tolist() == ["ax", "ay", "bx", "by"]
    wrong = written(tmp_path, HEADER + "b,0,y,50,60\na,0,x,0,9\nb,0,x,10,5\n")
    with pytest.raises(ValueError, match="line 4: timerelease is before the press"):
        load_recordings(wrong, sort=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("\n\n", "it is empty"),
        (HEADER, "header but no rows"),
        ("\n" + GOOD, "line 1: it is empty"),
        (GOOD.replace(",", ";"), r"separated by semicolons; give `separator=';'`"),
        (GOOD.replace(",", "\t"), r"separated by tabs; give `separator='\\t'`"),
        (GOOD.replace("session", "user"), "more than one column is called 'user'"),
        (
            GOOD.replace("user", "subject"),
            r"no column 'user'; there are 'subject'.*`columns={'user': 'subject'}`",
        ),
        (GOOD.replace("session", "n"), "no column 'session'.*; give `session=0`"),
        (GOOD.replace("keyname", "Key"), "no column 'keyname'.*{'keyname': 'Key'}"),
        (GOOD.replace("timepress", "t"), "no column 'timepress'; there are .*'t'.*`columns`"),
        (GOOD.replace(",b,", ",,"), "line 3: keyname is empty"),
        (GOOD.replace("0,0,b", ",0,b"), "line 3: user is empty"),
        (GOOD.replace("0,0,b", "0,,b"), "line 3: session is empty"),
        (GOOD.replace("100", "1oo"), "line 3: timepress '1oo' is not a number"),
        (GOOD.replace("100", "0x64"), "line 3: timepress '0x64' is not a number"),
        (GOOD.replace("100", "1_0"), "line 3: timepress '1_0' is not a number"),
        (GOOD.replace("100", ""), "line 3: timepress is missing"),
        (GOOD.replace("190", "inf"), "line 3: timerelease 'inf' is infinite"),
        (GOOD.replace("190", '"190,5"'), "line 3: timerelease '190,5' is not a number; `decimal=','`"),
        (GOOD.replace("190", "99"), "line 3: timerelease is before the press"),
        (
            GOOD.replace("0,0,a,0,80", "0,0,a,101,180"),
            "line 3: timepress is before the press above it.*sort=True",
        ),
        (
            GOOD.replace("0,1,NA,0,70", "1,0,c,0,70\n0,0,d,200,270"),
            "line 5: the rows of user 0, session 0 are not contiguous",
        ),
        (GOOD.replace(",190", ""), "line 3: there are 4 values for 5 columns"),
        (GOOD.replace(",b,", ",,,"), "line 3: there are 6 values for 5 columns"),
        (GOOD.replace(",b,", ',",'), "line 3: there are 3 values for 5 columns"),
        (GOOD.replace(",a,", ',"\n",').replace("190", "x"), "line 4: timerelease 'x' is not a number"),
        (GOOD.replace(",a,", ',"\n",').replace("190", "99"), "line 4: timerelease is before the press"),
        (GOOD.replace(",a,", ',"\n",').replace(",190", ""), "line 4: there are 4 values"),
        (GOOD.replace("0,0,b", "\n\n0,0,b").replace("190", "99"), "line 5: timerelease is before the press"),
        (
            "x," + GOOD.replace("\n0", "\n1,0").replace("1,0,0,b", "y,0,0,b"),
            "line 3: x 'y' is not a number; other lines",
        ),
    ],
)
def test_wrong_files(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(ValueError, match=message) as caught:
        load_recordings(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_wrong_encodings(tmp_path):
    accented = GOOD.replace(",b,", ",é,")
    with pytest.raises(ValueError, match=r"line 3: byte 0xe9 is not utf-8; .*give `encoding='latin-1'`"):
        load_recordings(written(tmp_path, accented, encoding="latin-1"))
    assert load_recordings(tmp_path / "mine.csv", encoding="latin-1")["keyname"].tolist() == ["a", "é", "NA"]
    with pytest.raises(ValueError, match="UTF-16; give `encoding='utf-16'`"):
        load_recordings(written(tmp_path, accented, encoding="utf-16"))
    with pytest.raises(ValueError, match="there is no encoding 'klingon'"):
        load_recordings(tmp_path / "mine.csv", encoding="klingon")


def test_wrong_arguments(tmp_path):
    path = written(tmp_path, GOOD)
    for options, message in [
        ({"unit": "minutes"}, "the unit must be s, ms, us or ns, not 'minutes'"),
        ({"columns": {"keyname": "key"}}, "no column 'key' for keyname; there are 'user'"),
        ({"columns": {"keyname": "session"}, "session": 0}, "has a column 'keyname' as well as 'session'"),
        ({"user": "ann"}, "there is a column user"),
        ({"others": ["pressure"]}, "no column 'pressure', which is in `others`"),
        ({"separator": ", "}, "the separator must be one character"),
    ]:
        with pytest.raises(ValueError, match=message):
            load_recordings(path, **options)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nowhere.csv"):
        load_recordings(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match="it is a folder"):
        load_recordings(tmp_path)


def test_files_of_another_kind(tmp_path):
    for name, contents, message in [
        ("mine.csv.gz", gzip.compress(GOOD.encode())[:-9], "cannot be unpacked"),
        ("mine.parquet", b"PAR1 and no more", "not a Parquet file, or it is truncated"),
        ("mine.parquet", GOOD.encode(), "not a Parquet file"),
        ("mine.csv", b"PK\x03\x04rest", "spreadsheet or a zip archive"),
    ]:
        (tmp_path / name).write_bytes(contents)
        with pytest.raises(ValueError, match=message):
            load_recordings(tmp_path / name)


def test_parquet_of_other_types(tmp_path):
    """Parquet has types: whole numbers are fine as key names, dates as times, truth values as neither."""
    path = tmp_path / "mine.parquet"
    frame = pd.DataFrame({"user": ["a", "a"], "session": 0, "keyname": [1, 2], "timepress": [5, 90]})
    frame["timerelease"] = pd.array([None, 100], dtype="Int64")
    frame.to_parquet(path)
    loaded = load_recordings(path, unit="us")
    assert loaded["keyname"].tolist() == ["1", "2"]
    assert loaded["timepress"].tolist() == [0.005, 0.09]
    assert loaded["timerelease"].tolist() == pytest.approx([np.nan, 0.1], nan_ok=True)
    dates = pd.to_datetime(["2026-01-01 12:00:00.005", "2026-01-01 12:00:00.090"])
    frame.assign(timepress=dates, timerelease=dates + pd.Timedelta(40, "ms")).to_parquet(path)
    dated = load_recordings(path)
    assert dated["timepress"].diff()[1] == 85.0
    assert (dated["timerelease"] - dated["timepress"]).tolist() == [40.0, 40.0]
    frame.assign(timepress=[False, True]).to_parquet(path)
    with pytest.raises(ValueError, match="timepress holds bool, not numbers"):
        load_recordings(path)
    frame.assign(keyname=[1.5, 2.5]).to_parquet(path)
    with pytest.raises(ValueError, match="keyname holds double, not text"):
        load_recordings(path)
    frame.assign(timerelease=[1, 2]).to_parquet(path)
    with pytest.raises(ValueError, match="row 1: timerelease is before the press"):
        load_recordings(path)
    frame.assign(keyname=["a", None]).to_parquet(path)
    with pytest.raises(ValueError, match="row 2: keyname is empty"):
        load_recordings(path)
    frame.iloc[:0].to_parquet(path)
    with pytest.raises(ValueError, match="no rows"):
        load_recordings(path)


def test_parquet_columns_as_other_programs_write_them(tmp_path):
    """Whole numbers stored as floats, decimals, and a column without values."""
    path = tmp_path / "mine.parquet"
    frame = pd.DataFrame({"user": [1.0, 1.0], "session": [0.0, 0.0], "keyname": ["a", "b"]})
    frame["timepress"] = [Decimal("0.5"), Decimal("90.25")]
    frame["timerelease"] = None
    frame.to_parquet(path)
    loaded = load_recordings(path)
    assert loaded["user"].dtype == loaded["session"].dtype == np.int64
    assert loaded["timepress"].tolist() == [0.5, 90.25]
    assert loaded["timerelease"].isna().all()
    frame.assign(user=[[1], [1]]).to_parquet(path)
    with pytest.raises(ValueError, match=r"user holds list.*, not text or numbers"):
        load_recordings(path)


def test_a_quotation_mark_that_never_closes_in_a_long_file(tmp_path):
    rows = "".join(f"0,0,a,{100 * i},{100 * i + 50}\n" for i in range(100_000))
    with pytest.raises(ValueError, match="a quotation mark opens a value that is never closed"):
        load_recordings(written(tmp_path, HEADER + '0,0,",0,1\n' + rows))


@pytest.mark.parametrize(
    ("text", "message"),
    [(GOOD.replace(",", " "), "separated by spaces"), ("\0".join(GOOD), "NUL characters, as UTF-16 does")],
)
def test_other_forms_that_are_told(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        load_recordings(written(tmp_path, text))


def test_sorting_does_not_depend_on_the_order_of_rows(tmp_path):
    """Sessions come in their own order: 2 before 10, and s2 before s10."""
    rows = [
        (user, f"s{n}", "a", 100 * n + k, 100 * n + k + 50)
        for user in (1, 10, 2)
        for n in (2, 10)
        for k in (0, 9)
    ]
    frame = pd.DataFrame(rows, columns=HEADER.strip().split(","))
    loaded = []
    for seed in range(3):
        path = tmp_path / f"{seed}.csv"
        frame.sample(frac=1, random_state=seed).to_csv(path, index=False)
        loaded.append(load_recordings(path, sort=True))
    assert loaded[0]["user"].unique().tolist() == [1, 2, 10]
    assert loaded[0]["session"].unique().tolist() == ["s2", "s10"]
    assert loaded[0].equals(loaded[1])
    assert loaded[0].equals(loaded[2])


@pytest.mark.parametrize("form", ["lines", "list"])
def test_json(tmp_path, form):
    expected = load_recordings(written(tmp_path, GOOD, "good.csv"))
    text = expected.to_json(orient="records", lines=form == "lines")
    assert load_recordings(written(tmp_path, text, "good.jsonl")).equals(expected)
    for wrong in ("{]", "[1, 2]", "[" * 100_000):
        with pytest.raises(ValueError, match="cannot be read as JSON lines"):
            load_recordings(written(tmp_path, wrong, "wrong.json"))


def test_a_file_without_a_header(tmp_path):
    path = written(tmp_path, GOOD.removeprefix(HEADER))
    with pytest.raises(ValueError, match=r"line 1: it holds values.*`header=\['user', 'session', 'keyname'"):
        load_recordings(path)
    names = HEADER.strip().split(",")
    assert load_recordings(path, header=names).equals(load_recordings(written(tmp_path, GOOD, "named.csv")))
    wrong = written(tmp_path, GOOD.removeprefix(HEADER).replace("190", "99"))
    with pytest.raises(ValueError, match="line 2: timerelease is before the press"):
        load_recordings(wrong, header=names)
    short = written(tmp_path, GOOD.removeprefix(HEADER).replace(",190", ""))
    with pytest.raises(ValueError, match="line 2: there are 4 values for 5 columns"):
        load_recordings(short, header=names)


def test_an_open_file(tmp_path):
    path = written(tmp_path, GOOD)
    with path.open("rb") as file:
        assert load_recordings(file).equals(load_recordings(path))
    with pytest.raises(ValueError, match="standard input: it is empty"):
        load_recordings(io.BytesIO())


def test_the_password_layout_is_read_in_anybodys_file(tmp_path):
    """Holds and intervals by hand; UD alone gives the same, and so do decimal commas and milliseconds."""
    table = pd.DataFrame(
        {
            "subject": ["b", "a", "b"],
            "H.x": [0.1, 0.2, 0.3],
            "UD.x.y": [0.05, -0.1, 0.0],
            "H.y": [0.08, 0.09, 0.1],
        }
    )
    table["DD.x.y"] = (table["H.x"] + table["UD.x.y"]).round(4)
    path = tmp_path / "mine.csv"
    table.to_csv(path, index=False)
    frame = load_recordings(path)
    assert frame[["user", "session"]].to_numpy().tolist() == [["b", 0]] * 2 + [["a", 0]] * 2 + [["b", 1]] * 2
    assert frame["keyname"].tolist() == ["x", "y"] * 3
    assert frame["timepress"].tolist() == [0, 150, 0, 100, 0, 300]
    assert frame["timerelease"].tolist() == [100, 230, 200, 190, 300, 400]
    table.drop(columns="DD.x.y").to_csv(path, index=False)
    assert load_recordings(path).equals(frame)
    table.to_csv(path, index=False, sep=";", decimal=",")
    assert load_recordings(path, separator=";", decimal=",").equals(frame)
    thousand = table.set_index("subject").mul(1000).reset_index()
    thousand.to_csv(path, index=False)
    assert load_recordings(path, unit="ms").equals(frame)
    table.drop(columns="subject").to_csv(path, index=False)
    with pytest.raises(ValueError, match="no column 'user' or 'subject'"):
        load_recordings(path)
    assert load_recordings(path, user="ann")["session"].max() == 2


def test_raw_events_are_recognised(tmp_path):
    text = "timeStamp,type,code\n0,keydown,KeyA\n80,keyup,KeyA\n"
    with pytest.raises(ValueError, match=r"in rows of their own; `keydyn\.keystrokes\.pair_events` makes"):
        load_recordings(written(tmp_path, text))
