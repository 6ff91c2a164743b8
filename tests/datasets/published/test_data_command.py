"""keydyn data, as a person uses it."""

import gzip
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from keydyn.commands.data import app
from keydyn.datasets.files.published_logs import LOGS
from keydyn.datasets.published.catalogue import CATALOGUE, NAMES
from tests.datasets.published.server import closed_address
from tests.waiting import PATIENCE


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def states(*arguments):
    done = run("check", "--json", *arguments)
    return {row["file"]: row["status"] for row in json.loads(done.stdout)}, done.exit_code


def test_list(cache, small_fable):
    shown = run("list")
    assert shown.exit_code == 0
    assert all(name in shown.stdout for name in NAMES)
    listed = json.loads(run("list", "--json").stdout)
    own = [row for row in listed if not row["files"]]
    assert [row["name"] for row in listed] == [*NAMES, *(row["name"] for row in own)]
    assert all(row["citation"] and row["terms"] for row in listed)
    assert {*LOGS, "keyrecs", "aalto-mobile"} == {row["name"] for row in own}
    assert all(row["name"] in shown.stdout and row["read"].startswith("keydyn ") for row in own)
    cache.mkdir()
    (cache / "fixed_text.csv").write_bytes(small_fable["fixed_text.csv"])
    files = {row["name"]: row["files"] for row in json.loads(run("list", "--json").stdout)}
    assert files["fable"] == {
        "fixed_text.csv": str(cache / "fixed_text.csv"),
        "fixed_text_features.csv": None,
    }


def test_fetch_then_check(server, cache):
    done = run("fetch", "fable", "--mirror", server.address)
    assert done.exit_code == 0, done.output
    assert str(cache / "fable.csv") in done.stdout
    assert "EISIC 2013" in done.stdout
    assert "fixed_text.csv" in done.stderr  # the bar
    assert states("fable") == ({"fixed_text.csv": "right", "fixed_text_features.csv": "right"}, 0)
    again = run("fetch", "fable", "--mirror", server.address)
    assert again.exit_code == 0
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("mood", "message"), [("corrupt", "SHA-256"), ("cut", "connection was lost"), ("missing", "HTTP 404")]
)
def test_fetch_that_fails(server, cache, mood, message):
    server.mood = mood
    done = run("fetch", "fable", "--mirror", server.address)
    assert done.exit_code == 4
    assert message in done.stderr
    assert "Traceback" not in done.output
    assert states("fable") == ({"fixed_text.csv": "absent", "fixed_text_features.csv": "absent"}, 1)


def test_fetch_offline(small_fable, cache):
    with closed_address() as address:
        done = run("fetch", "fable", "--mirror", address)
    assert done.exit_code == 4
    assert "there is no network" in done.stderr
    assert "--data" in done.stderr


def test_one_that_fails_does_not_stop_the_others(server, cache):
    done = run("fetch", "keypad", "fable", "--mirror", server.address)
    assert done.exit_code == 4
    assert "keypad: " in done.stderr
    assert (cache / "fable.csv").is_file()


def test_check_finds_what_is_wrong(small_fable, cache, tmp_path):
    """A changed or unreadable file is always an error, an absent one only if it was asked for."""
    assert states()[1] == 1
    packed = tmp_path / "fable.csv.gz"
    packed.write_bytes(gzip.compress(small_fable["fixed_text.csv"]))
    every = {file.source: "absent" for entry in CATALOGUE.values() for file in entry.files}
    assert states("--data", tmp_path) == (every | {"fixed_text.csv": "right"}, 0)
    assert states("fable", "--data", tmp_path)[1] == 1
    packed.write_bytes(packed.read_bytes()[:-9])
    assert states("--data", tmp_path) == (every | {"fixed_text.csv": "changed"}, 1)
    packed.write_bytes(gzip.compress(small_fable["fixed_text.csv"] + b"1,9,x,0,1\n"))
    assert states("--data", tmp_path) == (every | {"fixed_text.csv": "changed"}, 1)
    shown = run("check", "--data", tmp_path)
    assert "not the published file (checksum differs)" in shown.stdout
    assert f"not the published files: {packed}" in shown.stderr


def test_check_looks_where_the_variable_says(small_fable, cache, tmp_path, monkeypatch):
    (tmp_path / "fable.csv").write_bytes(small_fable["fixed_text.csv"])
    monkeypatch.setenv("KEYDYN_DATA", str(tmp_path))
    assert states()[0]["fixed_text.csv"] == "right"
    monkeypatch.setenv("KEYDYN_DATA", str(tmp_path / "nowhere"))
    done = run("check")
    assert done.exit_code == 4
    assert "KEYDYN_DATA names" in done.stderr


def test_check_of_the_real_recordings(cache, recordings):
    found, exit_code = states("--data", recordings)
    assert set(found.values()) == {"right"}
    assert exit_code == 0


def test_wrong_names(cache):
    for command in ("fetch", "check"):
        done = run(command, "novel")
        assert done.exit_code == 2
        assert "novel" in done.stderr
        assert "essay" in done.stderr


def test_list_does_not_import_the_numerical_stack():
    """A list must not cost seconds."""
    code = (
        "import sys; from keydyn.commands.data import app; app(['list'], standalone_mode=False); "
        "heavy = {'numpy', 'numba', 'scipy', 'pandas', 'sklearn', 'pyarrow'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
