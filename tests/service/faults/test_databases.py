"""Databases that are killed, stopped or full, and clocks set back: clear errors, then recovery."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.left_out import leave_out
from tests.service.faults.conftest import busy, note, prepared
from tests.service.faults.served import ENVIRONMENT, Served, wait_for_answer
from tests.service.faults.test_kills import wait_until
from tests.service.faults.whole import assert_whole
from tests.service.running import UNENCRYPTED, running
from tests.service.typists import enrol, keystrokes_of
from tests.waiting import PATIENCE

TIMES = [2, pytest.param(100, marks=pytest.mark.slow)]
HOUR = 3_600_000


@pytest.fixture
def served(loaded, postgres_url):
    found = Served(loaded, postgres_url)
    yield found
    found.close()


@pytest.fixture
def restarted(postgres):
    """Make sure that PostgreSQL runs after the test."""
    yield
    postgres.ensure()


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("way", ["killed", pytest.param("stopped", marks=pytest.mark.slow)])
@pytest.mark.usefixtures("restarted")
def test_postgresql_goes_and_comes_back(postgres, postgres_url, served, way, times):
    """Under load: the service says so, stays up, and goes on without help when it is back."""
    key = prepared(postgres_url)
    served.start()
    headers = {"authorization": f"Bearer {key}"}
    client = httpx.Client(base_url=served.url, headers=headers, timeout=PATIENCE, verify=UNENCRYPTED)
    with client, busy(served.url, key) as acknowledged:
        for _ in range(times):
            before = acknowledged.total()
            wait_until(lambda before=before: acknowledged.total() > before + 5)
            (postgres.kill if way == "killed" else postgres.stop)()
            # Asked for directly: the clients may all be watching, which goes on without a database.
            wait_until(lambda: client.get("/readyz").status_code == 503)
            assert client.get("/healthz").status_code == 200
            assert client.post("/v1/users", json={}).status_code == 503
            postgres.start()
            wait_for_answer(served.url)
            before = acknowledged.total()
            wait_until(lambda before=before: acknowledged.total() > before)
    served.kill()
    assert_whole(postgres_url, acknowledged, settled=True)
    assert set(acknowledged.statuses) <= {200, 201, 503}
    if times == 100:
        note(
            f"postgresql-{way}",
            f"PostgreSQL {way} under load",
            times=times,
            requests_acknowledged=acknowledged.total(),
            requests_answered_with_503=acknowledged.statuses[503],
        )


@pytest.fixture
def small_disk():
    """A file system of 32 MB, which is large enough for a database of either kind."""
    folder = tempfile.mkdtemp(prefix="keydyn-disk-")
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m,mode=777", "tmpfs", folder]
    mounted = os.getuid() == 0 and subprocess.run(mount, check=False, capture_output=True).returncode == 0
    if mounted:
        yield Path(folder)
        subprocess.run(["umount", "--lazy", folder], check=True)
    os.rmdir(folder)
    if not mounted:
        leave_out("a file system that can be mounted", "run as root")


@pytest.fixture(params=["sqlite", "postgresql"])
def url_on_disk(request, small_disk):
    """The address of a database on the small disk: all of SQLite, but only the tables of PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{small_disk / 'service.db'}"
    else:
        with request.getfixturevalue("postgres").new_database(small_disk) as url:
            yield url


def test_a_full_disk(small_disk, url_on_disk):
    """Writes are refused, what is stored can be read, and with room again everything works."""
    with running(url_on_disk) as service:
        client = service.client()
        enrol(client, "ada", 0)
        filler = small_disk / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        refused = None
        for n in range(200):
            answer = client.post("/v1/users", json={"id": f"user-{n}"})
            if answer.status_code != 201:
                refused = answer
                break
        assert refused is not None
        assert refused.status_code == 503
        assert refused.json()["type"] == "urn:keydyn:problem:database-unavailable"
        assert int(refused.headers["retry-after"]) >= 1
        assert client.get("/v1/users/ada").json()["profiles"][0]["samples"] == 5
        assert client.get(f"/v1/users/user-{n}").status_code == 404
        assert client.post("/v1/users/ada/verify", json={"keystrokes": keystrokes_of(0, 8)}).status_code in (
            200,
            503,
        )
        filler.unlink()
        assert client.post("/v1/users", json={"id": f"user-{n}"}).status_code == 201
        sent = {"keystrokes": keystrokes_of(0, 9)}
        assert client.post("/v1/users/ada/verify", json=sent).json()["answer"] == "accept"


def test_a_clock_that_is_moved_back(sqlite_url):
    """No one waits longer than they should, nothing is dated before it happened, jobs are still done."""
    with running(sqlite_url) as service:
        client = service.client()
        enrol(client, "ada", 0)
        stranger = [{"keystrokes": keystrokes_of(1, n)} for n in range(8)]
        for sample in stranger[:5]:
            assert client.post("/v1/users/ada/verify", json=sample).json()["answer"] != "accept"
        assert client.post("/v1/users/ada/verify", json=stranger[5]).status_code == 429
        service.clock.now -= 1000 * HOUR
        waiting = client.get("/v1/users/ada").json()["wait_s"]
        assert 0 < waiting <= 30
        assert client.post("/v1/users/ada/verify", json=stranger[6]).status_code == 429
        token = client.post("/v1/users/ada/token", json={"purpose": "enrol"})
        assert token.status_code == 201
        assert client.post("/v1/users", json={"id": "bob"}).status_code == 201
        made = client.get("/v1/users").json()["users"]
        assert {one["id"] for one in made} == {"ada", "bob"}
        assert client.post("/v1/users/ada/reset").status_code == 200
        for session in range(7, 12):
            sample = client.post("/v1/users/ada/samples", json={"keystrokes": keystrokes_of(0, session)})
            assert sample.status_code == 201
        wait_until(lambda: fitted(service, client))
        service.clock.now += HOUR
        answer = client.post("/v1/users/ada/verify", json={"keystrokes": keystrokes_of(0, 8)})
        assert answer.status_code == 200


def fitted(service, client):
    """Whether the template is up to date; checks that the age of one from the future is not negative."""
    profile = client.get("/v1/users/ada").json()["profiles"][0]
    assert profile["template_age_s"] is None or profile["template_age_s"] >= 0
    return profile["template_at"] == service.clock.now


@pytest.mark.slow
def test_a_killed_worker_is_replaced(sqlite_url):
    """`keydyn serve` itself, with two workers: clients notice a killed one by its lost connections alone."""
    key = prepared(sqlite_url)
    command = [sys.executable, "-m", "keydyn", "serve", "--port", "0", "--workers", "2"]
    process = subprocess.Popen(
        [*command, "--database", sqlite_url],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | ENVIRONMENT,
    )
    try:
        line = next(line for line in process.stdout if "http://" in line)
        url = "http://" + line.partition("http://")[2].split()[0]
        wait_for_answer(url)
        # A single client: new workers need the processor to load everything.
        with busy(url, key, number=1) as acknowledged:
            for n in range(20):
                wait_until(lambda: len(workers_of(process.pid)) == 2)
                before = acknowledged.total()
                wait_until(lambda before=before: acknowledged.total() > before)
                there = workers_of(process.pid)
                os.kill(there[n % 2], 9)
                wait_until(lambda there=there: set(workers_of(process.pid)) - set(there))
        with acknowledged.lock:
            assert set(acknowledged.statuses) <= {200, 201, 503}
    finally:
        process.terminate()
        process.wait(PATIENCE)
        process.stdout.close()
    assert_whole(sqlite_url, acknowledged, settled=True)
    note(
        "killed-workers",
        "One of two workers killed under load, on SQLite",
        times=20,
        requests_acknowledged=acknowledged.total(),
    )


def workers_of(parent):
    """The processes started by `parent` that serve requests."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent_id = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            serves = b"spawn_main" in (folder / "cmdline").read_bytes()
            if int(parent_id) == parent and state != "Z" and serves:
                found.append(int(folder.name))
    return sorted(found)
