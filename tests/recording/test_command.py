"""keydyn record, used as by a researcher."""

from __future__ import annotations

import builtins
import json
import signal
import socket
import stat
import subprocess
import sys
import threading
import webbrowser
from queue import Queue

import msgspec
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.exit_codes import UsageError
from keydyn.recording import server
from keydyn.recording.participants import COUNTS, Participants, TypedAttempt
from keydyn.recording.prompts import read_study
from keydyn.recording.recorded import opened
from keydyn.recording.server import opening, serve
from tests.ports import free_port
from tests.recording.studies import Page, participants_of, typed
from tests.waiting import PATIENCE

runner = CliRunner()


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "prompts.txt"
    path.write_text("one text\nanother\n")
    return path


def command(prompts, *options):
    return ["record", "--text", str(prompts), "--out", str(prompts.parent / "typing.csv"), *options]


class Started:
    """keydyn record in a process of its own."""

    def __init__(self, prompts, *options):
        arguments = [sys.executable, "-m", "keydyn", *command(prompts, "--no-open", "--json", *options)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(arguments, text=True, **pipes)

    def address(self):
        """The address of the page."""
        lines = ""
        while not lines.endswith("}\n"):
            lines += self.process.stdout.readline()
        return json.loads(lines)["address"]

    def ended(self):
        """The exit code, the table and the messages."""
        printed, messages = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, json.loads(printed)["participants"], messages


def test_interrupted(prompts):
    first = Started(prompts, "--user", "ann")
    with Page(first.address()) as page:
        page.consent()
        page.send(0, typed(0))
        first.process.send_signal(signal.SIGINT)
        code, table, messages = first.ended()
    assert code == 130
    assert "not all participants have finished" in messages
    assert "Traceback" not in messages
    assert (table[0]["samples"], table[0]["of"], table[0]["keystrokes"]) == (1, 2, 30)
    # Nothing but the recording is left, and a lock.
    assert {path.name for path in prompts.parent.iterdir()} == {
        "prompts.txt", "typing.csv", "typing.quality.csv", "typing.recording.json", ".typing.csv.lock",
    }  # fmt: skip


def test_it_ends_when_everybody_is_done(prompts):
    study, sha256 = read_study(prompts)
    out, addresses = prompts.parent / "typing.csv", Queue()
    with opened(out, prompts, sha256, COUNTS) as (recorded, about):
        participants = Participants(study, recorded, about, ["ann", "bob"])
        thread = threading.Thread(target=serve, args=(participants, 0, addresses.put))
        thread.start()
        address = addresses.get(timeout=PATIENCE)
        for user in ("ann", "bob"):
            with Page(address, user) as page:
                page.consent()
                for place in range(2):
                    assert thread.is_alive()
                    answer = page.send(place, typed(place))
                assert answer.json()["participant"]["task"] is None
        thread.join(PATIENCE)
        assert not thread.is_alive()
    done = runner.invoke(app, command(prompts, "--user", "ann", "--user", "bob"))
    assert done.exit_code == 0
    assert "already complete" in done.output


def test_the_address_is_shown_to_nobody_else(tmp_path, monkeypatch):
    """Arguments of programs can be seen by everybody: the browser is given a file that leads to the page."""
    shown = []
    monkeypatch.setattr(webbrowser, "open", shown.append)
    with opening(tmp_path) as open_page:
        open_page("http://127.0.0.1:1/#secret")
        (path,) = tmp_path.iterdir()
        assert shown == [path.as_uri()]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert 'content="0; url=http://127.0.0.1:1/#secret"' in path.read_text()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give --user"),
        (["--user", "ann", "--ask-user"], "give --user"),
        (["--user", "../ann"], "cannot be called '../ann'"),
        (["--user", "ann", "--out", "typing.xlsx"], "must end in .csv or .parquet"),
    ],
)
def test_wrong_usage(prompts, options, message):
    result = runner.invoke(app, command(prompts, *options))
    assert result.exit_code == 2
    assert message in result.output


def test_prompts_that_cannot_be_read(prompts):
    prompts.write_text("\n")
    result = runner.invoke(app, command(prompts, "--user", "ann"))
    assert result.exit_code == 4
    assert "there are no prompts" in result.output


def test_without_the_packages_of_the_service_it_says_so(prompts, monkeypatch):
    real = builtins.__import__

    def refusing(name, *arguments):
        if name == "keydyn.recording.server":
            raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", refusing)
    result = runner.invoke(app, command(prompts, "--user", "ann"))
    assert result.exit_code == 2
    assert "pip install 'keydyn[service]'" in result.output


def test_it_keeps_its_port_and_takes_another_if_that_is_in_use():
    # One that no other process is given meanwhile.
    with socket.create_server(("127.0.0.1", free_port())) as other:
        usual = other.getsockname()[1]
        with server._listening(None, usual) as listening:
            assert listening.getsockname()[1] != usual
        with pytest.raises(UsageError, match=f"port {usual}"):
            server._listening(usual)
    with server._listening(None, usual) as listening:
        assert listening.getsockname()[1] == usual


def test_a_recording_that_an_earlier_version_began_goes_on(tmp_path):
    """Its table of attempts has fewer columns, and keeps them."""
    prompts = 'prompts = [{ text = "one" }, { text = "two" }]\n'
    with participants_of(tmp_path, prompts) as participants:
        participants.consent("ann", participants.study.consent_sha256)
        assert participants.take(attempt_of(0)) == []
    quality = tmp_path / "typing.quality.csv"
    lines = [line.rsplit(",", 2)[0] for line in quality.read_text().splitlines()]
    assert lines[0].endswith("forgotten")
    quality.write_text("\n".join(lines) + "\n")
    with participants_of(tmp_path, prompts) as participants:
        assert participants.left("ann") == 1
        assert participants.take(attempt_of(1)) == []
        assert participants.finished()
    assert {line.count(",") for line in quality.read_text().splitlines()} == {lines[0].count(",")}


def attempt_of(place):
    """A sample of the participant ann."""
    return msgspec.convert({"user": "ann", "place": place, **typed(place)}, TypedAttempt)
