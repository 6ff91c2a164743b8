"""Every command ends with a code that says how, and with a line that says why."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from keydyn import exit_codes
from keydyn.cli import app
from keydyn.exit_codes import ExitCode, UsageError, checking_options, fail_clearly
from tests.waiting import PATIENCE

# Every command, and something that it does early.
COMMANDS = {
    "pair x.csv --out y.csv": "keydyn.datasets.files.log_files.read_log",
    "fit x.csv --out m": "keydyn.datasets.files.recordings.read_recording",
    "users --models m": "keydyn.decisions.folder.folder.read_manifest",
    "score x.csv --models m": "keydyn.decisions.folder.folder.read_manifest",
    "identify x.csv --models m": "keydyn.decisions.folder.folder.read_manifest",
    "verify x.csv --models m --user a": "keydyn.decisions.folder.folder.read_manifest",
    "watch x.csv --models m --user a": "keydyn.decisions.folder.folder.read_manifest",
    "evaluate x.csv": "keydyn.datasets.files.recordings.read_recording",
    "report out": "json.loads",
    "record --user a --text x --out y.csv": "keydyn.recording.prompts.read_study",
    "demo": "keydyn.demo.run",
    "population fit x.csv --out p": "keydyn.datasets.files.recordings.read_recording",
    "population info p": "keydyn.population.PopulationModel.load",
    "data list": "keydyn.datasets.published.fetching.data_folders",
    "data fetch fable": "keydyn.datasets.published.fetching.fetch_dataset",
    "data check": "keydyn.datasets.published.fetching.check_files",
    "study all": "keydyn.lab.frame.study_data.load_row",
    **{
        f"study {name}": "keydyn.lab.frame.study_data.load_row"
        for name in (
            *("recognition", "continuous", "recommended", "relatives", "population"),
            *("verification", "open-questions"),
        )
    },
    **{
        f"study {name}": "keydyn.lab.frame.study_data.load_text"
        for name in ("goodness-of-fit", "calibration", "model-choice")
    },
    "study transfer": "keydyn.lab.transfer.places.load_place",
    **{
        f"service database {name}": "keydyn.service.settings.default_database"
        for name in ("upgrade", "check", "rotate-key", "backup x", "restore x")
    },
    "serve": "keydyn.service.settings.default_database",
    "service examples": "keydyn.datasets.make_typists",
    "service recorder": "keydyn.service.recorder_file.recorder_file",
    **{
        f"service {name}": "keydyn.service.settings.default_database"
        for name in (
            *("keys create", "keys list", "keys revoke x"),
            *("users list", "users export a --out x", "users erase a --yes"),
            *("population install x", "population learn", "population list"),
            *("tenants list", "tenants rotate-key a", "tenants delete a --yes"),
            "link",
        )
    },
    "study simulation": "keydyn.lab.simulation.measurements.true_model",
}


def commands_of(group, before=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands_of(command, (*before, name))
        else:
            yield " ".join((*before, name))


def invoke(call, target, error, tmp_path, monkeypatch):
    """The outcome of a command in which something raises an error early on."""

    def fails(*_, **__):
        raise error

    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.json").write_text("{}")
    monkeypatch.setattr(target, fails)
    return CliRunner().invoke(app, call.split())


def test_every_command_is_here():
    named = [f"{name} " for name in commands_of(typer.main.get_command(app))]
    assert [name for name in named if not any(f"{call} ".startswith(name) for call in COMMANDS)] == []


@pytest.mark.parametrize(("call", "target"), COMMANDS.items(), ids=COMMANDS)
def test_any_command_can_be_interrupted(call, target, tmp_path, monkeypatch):
    done = invoke(call, target, KeyboardInterrupt(), tmp_path, monkeypatch)
    assert done.exit_code == ExitCode.INTERRUPTED == 130
    assert done.stderr == "keydyn: interrupted\n"
    assert {path.name for path in tmp_path.rglob("*")} <= {"out", "run.json"}


@pytest.mark.parametrize(("call", "target"), COMMANDS.items(), ids=COMMANDS)
def test_a_crash_looks_like_nothing_else(call, target, tmp_path, monkeypatch):
    done = invoke(call, target, TypeError("impossible"), tmp_path, monkeypatch)
    assert done.exit_code == ExitCode.INTERNAL == 70
    assert "TypeError: impossible" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("keydyn: internal error")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("no such thing"), 2, "keydyn: no such thing\n"),
        (ValueError("bad column"), 4, "keydyn: bad column\n"),
        (OSError(28, "No space left on device"), 4, "keydyn: No space left on device\n"),
        (OSError(2, "No such file", "here.csv"), 4, "keydyn: here.csv: No such file\n"),
        (OSError(18, "Cross-device link", "a", None, "b"), 4, "keydyn: a -> b: Cross-device link\n"),
        (OSError("the reader said why"), 4, "keydyn: the reader said why\n"),
        (MemoryError(), 4, "keydyn: there is not enough memory for this\n"),
        (RecursionError("deep"), 70, None),
    ],
)
def test_errors_have_codes(error, code, message, tmp_path, monkeypatch):
    done = invoke("demo", "keydyn.demo.run", error, tmp_path, monkeypatch)
    assert done.exit_code == code
    assert message in (None, done.stderr)


def test_what_is_wrong_with_options_is_usage():
    def check():
        with checking_options():
            raise ValueError("--this is not that")

    with pytest.raises(UsageError, match="--this is not that"):
        check()


def test_exits_of_a_command_are_its_own():
    @fail_clearly
    def command():
        raise typer.Exit(ExitCode.REJECTED)

    with pytest.raises(typer.Exit) as ended:
        command()
    assert ended.value.exit_code == 1


def test_an_interrupt_while_modules_are_imported():
    code = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from keydyn.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 130
    assert done.stderr == "keydyn: interrupted\n"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are closed otherwise there")
def test_a_reader_who_has_had_enough_is_no_rejection():
    """Into a pipe that nobody reads any more: not 1, and no complaint from Python at the end."""
    code = (
        "import os, sys\n"
        "reading, writing = os.pipe()\n"
        "os.dup2(writing, 1)\n"
        "os.close(reading)\n"
        "sys.argv = ['keydyn', 'data', 'list', '--json']\n"
        "from keydyn.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert done.returncode == 4
    assert done.stderr == ""


def test_codes_are_in_the_help():
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    assert "Exit codes:" in shown
    assert all(str(code.value) in exit_codes.EXIT_CODES for code in ExitCode)


def options_of(group):
    for command in group.commands.values():
        if hasattr(command, "commands"):
            yield from options_of(command)
        else:
            yield command.name, {name for parameter in command.params for name in parameter.opts}


def test_every_command_speaks_to_machines_and_can_be_quiet():
    for name, options in options_of(typer.main.get_command(app)):
        assert {"--json", "--quiet"} <= options, name
