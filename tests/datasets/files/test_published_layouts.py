"""Small files in the layouts of published collections, written by hand, with answers worked out by hand."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.datasets import load_recordings
from keydyn.datasets.files.file_form import FileForm
from keydyn.datasets.files.recordings import read_recording
from keydyn.keystrokes import ReadingError


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "300"})


def written(tmp_path, text, name):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rows(frame):
    columns = ["user", "session", "keyname", "timepress", "timerelease"]
    return [
        tuple(None if value != value else value for value in row)
        for row in frame[columns].itertuples(index=False, name=None)
    ]


def counted(path, **form):
    recording = read_recording(path, FileForm(**form))
    return rows(recording.keystrokes), {
        (user, reason): count for user, reason, count in recording.impossible.to_numpy().tolist()
    }


# h is pressed at 0 and released at 95, e 80 to 150, l 300 to 370, l again 450 to 560: "hell", e overlaps h.
HELL = "subject,H.h,DD.h.e,UD.h.e,H.e,DD.e.l,UD.e.l,H.l,DD.l.l,UD.l.l,H.l\n"
HELL_ROW = "ann,0.095,0.080,-0.015,0.070,0.220,0.150,0.070,0.150,0.080,0.110\n"
HELL_KEYS = [("h", 0.0, 95.0), ("e", 80.0, 150.0), ("l", 300.0, 370.0), ("l", 450.0, 560.0)]


@pytest.mark.parametrize("again", ["H.l", "H.l.1"], ids=["the same name twice", "numbered by pandas"])
def test_a_table_of_holds_and_latencies_has_any_keys(tmp_path, again):
    header = HELL.removesuffix("H.l\n") + again + "\n"
    path = written(tmp_path, header + HELL_ROW, "hell.csv")
    expected = [("ann", 0, *key) for key in HELL_KEYS]
    assert counted(path) == (expected, {})
    name, *seconds = HELL_ROW.strip().split(",")
    thousand = ",".join([name, *(f"{1000 * float(value):g}" for value in seconds)])
    assert counted(written(tmp_path, header + thousand + "\n", "ms.csv")) == (expected, {})


# KeyRecs' fixed text, cut to three keys: v 0 to 100, p 150 to 230, w 130 to 260, pressed before p; in the
# second row p is released before it is pressed, and the last UU does not add up: it is 50, and should be 130.
FIXED = (
    "participant,session,repetition,DU.v.v,DD.v.p,DU.v.p,UD.v.p,UU.v.p,DU.p.p,DD.p.w,DU.p.w,UD.p.w,UU.p.w,DU.w.w,"
    "total time\n"
    "p001,1,1,0.100,0.150,0.230,0.050,0.130,0.080,-0.020,0.110,-0.100,0.030,0.130,0.260\n"
    "p001,1,2,0.100,0.150,0.140,0.050,0.040,-0.010,0.030,0.120,0.040,0.050,0.090,0.270\n"
)


def test_keyrecs_fixed_text(tmp_path):
    path = written(tmp_path, FIXED, "fixed-text.csv")
    found, impossible = counted(path)
    assert found == [
        ("p001", 0, "v", 0.0, 100.0),
        ("p001", 0, "w", 130.0, 260.0),
        ("p001", 0, "p", 150.0, 230.0),
        ("p001", 1, "v", 0.0, 100.0),
        ("p001", 1, "p", 150.0, None),
        ("p001", 1, "w", 180.0, 270.0),
    ]
    assert impossible == {
        ("p001", "negative_intervals"): 1,
        ("p001", "negative_holds"): 1,
        ("p001", "contradictions"): 1,
    }
    with pytest.warns(UserWarning, match=r"fixed-text\.csv: 1 rows") as said:
        frame = load_recordings(path)
    assert len(said) == 3
    assert frame[["sitting", "repetition"]].to_numpy().tolist() == [[1, 1]] * 3 + [[1, 2]] * 3


FREE_HEADER = (
    "participant,session,key1,key2,DU.key1.key1,DD.key1.key2,DU.key1.key2,UD.key1.key2,UU.key1.key2 \n"
)
# "the" is t 0 to 100, h 150 to 230, e 270 to 360; then the file goes on with x and y, y pressed first.
FREE = FREE_HEADER + (
    "p1,1,t,h,0.100,0.150,0.230,0.050,0.130\n"
    "p1,1,h,e,0.080,0.120,0.210,0.040,0.130\n"
    "p1,1,x,y,0.090,-0.020,0.050,-0.110,-0.040\n"
    "p2,1,a,b,0.070,0.200,0.290,0.130,0.220\n"
)


def test_keyrecs_free_text(tmp_path):
    found, impossible = counted(written(tmp_path, FREE, "free-text.csv"))
    assert found == [
        ("p1", 1, "t", 0.0, 100.0),
        ("p1", 1, "h", 150.0, 230.0),
        ("p1", 1, "e", 270.0, 360.0),
        ("p1", 2, "y", 0.0, 70.0),
        ("p1", 2, "x", 20.0, 110.0),
        ("p2", 1, "a", 0.0, 70.0),
        ("p2", 1, "b", 200.0, 290.0),
    ]
    assert impossible == {("p1", "negative_intervals"): 1, ("p1", "broken_chains"): 1}


def test_times_of_a_pair_that_are_missing_or_contradict_each_other(tmp_path):
    """Without DD there is UD; without both the next press is unknown; a UD that does not fit is counted."""
    text = FREE_HEADER + (
        "p1,1,t,h,0.100,,,0.050,\np1,1,h,e,0.080,,,,\np1,1,e,s,,0.100,,,\np1,1,s,t,0.090,0.120,,0.130,\n"
    )
    found, impossible = counted(written(tmp_path, text, "free.csv"))
    assert found == [
        ("p1", 1, "t", 0.0, 100.0),
        ("p1", 1, "h", 150.0, 230.0),
        ("p1", 2, "e", 0.0, None),
        ("p1", 2, "s", 100.0, 190.0),
        ("p1", 2, "t", 220.0, None),
    ]
    assert impossible == {("p1", "missing_presses"): 1, ("p1", "contradictions"): 1}


def test_commands_say_what_cannot_be(tmp_path):
    path = written(tmp_path, FREE, "free-text.csv")
    done = run("fit", path, "--out", tmp_path / "models", "--min-samples", 1)
    assert "1 rows in which a key is pressed before the one above it; put in order of press (user p1: 1)" in (
        done.stderr
    )


TICKS = 636_000_000_000_000_000
UTC = 1 << 62


def clarkson(events, bits=0):
    lines = ((TICKS + 10_000 * ms | bits) - (1 << 64 if bits >> 63 else 0) for ms, *_ in events)
    return "".join(f"{ticks}\t{kind}\t{key}\n" for ticks, (_, kind, key) in zip(lines, events, strict=True))


EVENTS = [
    (0, 1, "LShiftKey"),
    (60, 1, "H"),
    (150, 0, "H"),
    (170, 0, "LShiftKey"),
    (300, 1, "D1"),
    (380, 0, "D1"),
]
CODED = {"LShiftKey": 160, "H": 72, "D1": 49}
PAIRED = [("shift", 0.0, 170.0), ("h", 60.0, 150.0), ("1", 300.0, 380.0)]
BUFFALO = "".join(
    f"{key} {'KeyDown' if kind else 'KeyUp'} {63578429792961 + ms}\r\n" for ms, kind, key in EVENTS
)
BB_MAS = "EID,key,direction,time\n" + "".join(
    f"{n},{key},{1 - kind},2018-11-30 10:41:26.{ms:03d}\n" for n, (ms, kind, key) in enumerate(EVENTS)
)
LOGS = {
    "84500": (clarkson(EVENTS), 84500, 0),
    "84501": (clarkson(EVENTS, UTC), 84501, 0),
    "84502": (clarkson(EVENTS, 1 << 63), 84502, 0),
    "84503": (clarkson([(ms, kind, CODED[key]) for ms, kind, key in EVENTS]), 84503, 0),
    "002101.txt": (BUFFALO, 2, "s1k0t1"),
    "57_Desktop_Keyboard.csv": (BB_MAS, 57, "Desktop"),
    "9_HandPhone_Keyboard_(HTC_One).csv": (BB_MAS, 9, "HandPhone"),
}


@pytest.mark.parametrize("name", LOGS)
def test_logs_say_who_typed_by_their_names(tmp_path, name):
    text, user, session = LOGS[name]
    done = run("pair", written(tmp_path, text, name), "--out", tmp_path / "k.csv")
    assert done.exit_code == 0, done.output
    assert rows(pd.read_csv(tmp_path / "k.csv")) == [(user, session, *key) for key in PAIRED]
    assert list(pd.read_csv(tmp_path / "k.csv").columns)[5:] == []
    run("pair", tmp_path / name, "--out", tmp_path / "k.csv", "--user", "ann", "--session", 4)
    assert rows(pd.read_csv(tmp_path / "k.csv"))[0][:2] == ("ann", 4)


def test_a_folder_of_logs_is_read_at_once(tmp_path):
    """As Buffalo's folders are; what is called otherwise is left alone, and an empty file is counted."""
    for name in ("s0/baseline/001001.txt", "s0/rotation/076011.txt", "s1/baseline/001100.txt"):
        written(tmp_path / "set", BUFFALO, name)
    written(tmp_path / "set", "nothing of the kind", "readme.txt")
    written(tmp_path / "set", "", "s0/baseline/002001.txt")
    done = run("pair", tmp_path / "set", "--out", tmp_path / "k.csv")
    assert done.exit_code == 0, done.output
    assert "Left out: 1 empty files" in done.output
    found = pd.read_csv(tmp_path / "k.csv")[["user", "session"]].drop_duplicates().to_numpy().tolist()
    assert found == [[1, "s0k0t1"], [76, "s0k1t1"], [1, "s1k0t0"]]
    (tmp_path / "none").mkdir()
    assert "no file below it is called as a published log is" in (
        run("pair", tmp_path / "none", "--out", tmp_path / "k.csv").stderr
    )


def test_a_log_that_was_appended_to_itself_is_divided_and_its_user_named(tmp_path):
    """As some of Clarkson's files are: the clock goes back to its beginning."""
    later = [(ms + 5000, kind, key) for ms, kind, key in EVENTS]
    once = clarkson([*EVENTS, *later])
    written(tmp_path / "set", once + once, "1")
    written(tmp_path / "set", once, "2")
    done = run("pair", tmp_path / "set", "--out", tmp_path / "k.csv")
    assert "1          times the clock was set back; a new sample begins (user 1: 1)" in done.output
    assert "user 1, session 1 is the same recording as user 1, session 0" in done.output


SECTION_NAMES = (
    '"Field","Type"\n"TEST_SECTION_ID","int"\n"SENTENCE_ID","int"\n"PARTICIPANT_ID","int"\n"INPUT","text"\n'
)
SECTIONS = '"10","3","7","say \\"hi\\", ok"\n"11","4","7","x"\n"12","4","8","y"\n'
KEY_NAMES = (
    '"Field","Type"\n"KEYSTROKE_ID","int"\n"PRESS_TIME","bigint"\n"RELEASE_TIME","bigint"\n"LETTER","text"\n'
    '"TEST_SECTION_ID","int"\n"KEYCODE","int"\n'
)
# Sentence 11 was typed before 10; key 2 was released before it was pressed, and is there twice; 4 has no
# press, 3 no release and no code; 5 belongs to no sentence, and 6 is cut off.
KEYS = (
    '"1","1500000000000","1500000000090","a","10","65"\n'
    '"2","1500000000150","1500000000120","\\"","10","229"\n'
    '"2","1500000000150","1500000000120","\\"","10","229"\n'
    '"3","1500000009000",\\N,"\xe9","12",""\n'
    '"4","0","0","b","12","66"\n'
    '"5","1500000009000","1500000009100","b","99","66"\n'
    '"6","15000"\n'
    '"7","1400000000000","1400000000080","a","11","65"\n'
)


def mobile(tmp_path, **changed):
    files = {
        "test_sections_header.csv": SECTION_NAMES,
        "test_sections.csv": SECTIONS,
        "keystrokes_header.csv": KEY_NAMES,
        "keystrokes.csv": KEYS,
    }
    for name, text in files.items():
        if changed.get(name.removesuffix(".csv"), text) is not None:
            written(tmp_path, changed.get(name.removesuffix(".csv"), text).encode("latin-1"), name)
    return tmp_path / "keystrokes.csv"


def test_the_aalto_mobile_sets_two_tables(tmp_path):
    path = mobile(tmp_path)
    found, impossible = counted(path)
    assert found == [
        (7, 0, "a", 0.0, 80.0),
        (7, 1, "a", 0.0, 90.0),
        (7, 1, "key_229", 150.0, None),
        (8, 0, "key_0", 0.0, None),
    ]
    assert impossible == {
        (7, "negative_holds"): 1,
        (7, "repeated_rows"): 1,
        (8, "missing_presses"): 1,
        ("nobody", "strange_rows"): 2,
    }
    recording = read_recording(path, FileForm())
    assert recording.keystrokes["started"].tolist() == [1.4e12, 1.5e12, 1.5e12, 1.500000009e12]


def test_tables_with_headers_of_their_own_are_read_too(tmp_path):
    heads = [
        ",".join(line.split(",")[0] for line in text.splitlines()[1:]) for text in (SECTION_NAMES, KEY_NAMES)
    ]
    path = mobile(
        tmp_path / "named",
        test_sections=f"{heads[0]}\n{SECTIONS}",
        keystrokes=f"{heads[1]}\n{KEYS}",
        test_sections_header=None,
        keystrokes_header=None,
    )
    assert counted(path) == counted(mobile(tmp_path / "apart"))


WRONG = {
    "a hold is missing": ("t.csv", HELL + HELL_ROW.replace("0.095", ""), "line 2: H.h is missing"),
    "a hold is no number": (
        "t.csv",
        HELL + HELL_ROW.replace("0.095", "x"),
        "line 2: H.h 'x' is not a number",
    ),
    "NaN among latencies": (
        "t.csv",
        HELL + HELL_ROW.replace("0.080,-", "NaN,-"),
        "line 2: DD.h.e is missing",
    ),
    "a pair is not there": ("t.csv", (HELL + HELL_ROW).replace("DD.h.e", "DD.h.x"), "no column 'DD.h.e'"),
    "a cut line": ("t.csv", HELL + HELL_ROW[:40] + "\n", "line 2: there are .* values for 11 columns"),
    "no unit fits": ("t.csv", HELL + "ann" + ",7777" * 10 + "\n", "not how people type in any unit"),
    "no rows": ("t.csv", HELL, "it has a header but no rows"),
    "no user": ("t.csv", (HELL + HELL_ROW).replace("subject", "colour"), "no column 'user' or 'subject'"),
    "a pair without a key": ("t.csv", FREE.replace("p1,1,h,e", "p1,1,,e"), "line 3: key1 is empty"),
    "a pair of words": (
        "t.csv",
        FREE.replace("0.080", "soon"),
        "line 3: DU.key1.key1 'soon' is not a number",
    ),
    "pairs without holds": ("t.csv", FREE.replace("DU.key1.key1", "other"), "no column 'DU.key1.key1'"),
    "pairs without latencies": ("t.csv", "key1,key2,DU.key1.key1\na,b,0.1\n", "no column 'DD.key1.key2'"),
    "an infinite latency": ("t.csv", FREE.replace("0.120", "inf"), "line 3: DD.key1.key2 'inf' is infinite"),
    "an empty file": ("t.csv", "", "it is empty"),
    "a cut log": ("84500", clarkson(EVENTS) + "63600000\t1", "line 7: there are 2 values for 3 columns"),
    "a log with words": ("84500", clarkson(EVENTS).replace("\t0\tH", "\tno\tH"), "line 3: type is 'no'"),
    "a log without time": ("84500", clarkson(EVENTS).replace(f"{TICKS}\t", "x\t"), "separated by tabs"),
    "two logs in one": ("002001.txt", BUFFALO + clarkson(EVENTS), "line 7: there are 1 values for 3 columns"),
    "a time that is none": ("5_Desktop_Keyboard.csv", BB_MAS.replace("10:41:26.060", "noon"), "line 3: time"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said_with_its_place(tmp_path, what):
    name, text, message = WRONG[what]
    path = written(tmp_path, text, name)
    if name == "t.csv":
        with pytest.raises(ReadingError, match=message) as caught:
            load_recordings(path)
        assert str(path) in str(caught.value)
        return
    done = run("pair", path, "--out", tmp_path / "k.csv")
    assert done.exit_code != 0
    assert str(path) in done.stderr
    with pytest.raises(ReadingError, match=message):
        raise ReadingError(done.stderr)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"keystrokes_header": None}, "keystrokes.csv: its first line has no names of columns"),
        ({"test_sections_header": SECTION_NAMES.replace("PARTICIPANT", "P")}, "no column 'PARTICIPANT_ID'"),
        (
            {"keystrokes": KEYS.replace('"1500000000000"', '"soon"')},
            "keystrokes.csv: it cannot be read: .*'soon'",
        ),
        ({"keystrokes": ""}, "keystrokes.csv: it"),
        ({"test_sections": SECTIONS.replace('"1', '"9')}, "no keystroke with the time of its press"),
    ],
)
def test_what_is_wrong_with_the_two_tables(tmp_path, changed, message):
    path = mobile(tmp_path, **changed)
    with pytest.raises(ReadingError, match=message) as caught:
        load_recordings(path)
    assert str(path) in str(caught.value)


def test_layouts_written_from_any_keystrokes_give_them_back(tmp_path):
    """Latencies by their definitions, from presses and releases that were drawn."""
    rng = np.random.default_rng(1)
    for trial in range(20):
        n = int(rng.integers(2, 12))
        keys = rng.choice(list("abc"), n)
        press = np.concatenate([[0], np.cumsum(rng.integers(1, 400, n - 1))])
        release = press + rng.integers(40, 300, n)
        expected = [(1, 0, *row) for row in zip(keys, press, release, strict=True)]
        pairs = range(n - 1)
        free = [FREE_HEADER.replace("participant", "user")]
        free += [
            f"1,0,{keys[i]},{keys[i + 1]},{release[i] - press[i]},{press[i + 1] - press[i]},"
            f"{release[i + 1] - press[i]},{press[i + 1] - release[i]},{release[i + 1] - release[i]}\n"
            for i in pairs
        ]
        assert counted(written(tmp_path, "".join(free), f"free{trial}.csv"), unit="ms") == (expected, {})
        names = [f"H.{keys[0]}"] + [
            name for i in pairs for name in (f"UD.{keys[i]}.{keys[i + 1]}", f"H.{keys[i + 1]}")
        ]
        values = [release[0] - press[0]] + [
            time for i in pairs for time in (press[i + 1] - release[i], release[i + 1] - press[i + 1])
        ]
        wide = f"user,{','.join(names)}\n1,{','.join(map(str, values))}\n"
        assert counted(written(tmp_path, wide, f"wide{trial}.csv"), unit="ms") == (expected, {})


def test_the_counts_are_in_what_programs_read(tmp_path):
    """run.json of an evaluation has them by user and reason."""
    from keydyn.datasets.files.notes import notes_of

    recording = read_recording(written(tmp_path, FREE, "free-text.csv"), FileForm())
    notes = notes_of(recording).to_dict()
    assert json.loads(json.dumps(notes["impossible"])) == [
        {"user": "p1", "reason": "negative_intervals", "count": 1},
        {"user": "p1", "reason": "broken_chains", "count": 1},
    ]
