"""Backup and restore with the commands of the deployment page, on both databases."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import select

from keydyn.service.storage.tables import users
from keydyn.service.wall_clock import wall_clock
from tests.documents import ROOT
from tests.service.running import running
from tests.service.typists import enrol, keystrokes_of

PAGE = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
# The master key of the services that tests run.
KEY = base64.b64encode(b"k" * 32).decode()


def run(code: str, folder: Path, **more: str) -> str:
    """Run the page's commands, which must all succeed, and return their output."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "KEYDYN_MASTER_KEY": KEY, **more}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@contextmanager
def empty_database(like: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of another database of the same kind."""
    if like.startswith("sqlite"):
        yield f"sqlite:///{folder / 'restored.db'}"
    else:
        with request.getfixturevalue("postgres").new_database() as url:
            yield url


@pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
def test_backup_and_restore(database_url, tmp_path, request):
    with running(database_url) as service:
        client = service.client()
        enrol(client, "ada", 0)
        accepted = client.post("/v1/users/ada/verify", json={"keystrokes": keystrokes_of(0, 6)})
        assert accepted.json()["answer"] == "accept"
        service.idle()
        # While the service runs.
        back_up, restore = BLOCKS
        run(back_up, tmp_path, KEYDYN_DATABASE=database_url)
        exported = client.get("/v1/users/ada/export").json()
        # After the backup.
        assert client.post("/v1/users", json={"id": "bob"}).status_code == 201
        key = client.headers["authorization"].removeprefix("Bearer ")
    assert (tmp_path / "keydyn.backup").stat().st_mode & 0o077 == 0
    with empty_database(database_url, tmp_path, request) as restored:
        began = wall_clock()
        said = run(restore, tmp_path, RESTORED=restored)
        assert key.split("_")[1] in said
        assert "1 API keys, links and sessions were revoked" in " ".join(said.split())
        _same_people(restored, key, exported, began)


def _same_people(url, key, exported, began):
    with running(url) as service:
        assert service.client(key).get("/v1/users").status_code == 401
        client = service.client()
        # Attempts that failed after the backup are forgotten: the next one has to wait.
        own = {"keystrokes": keystrokes_of(0, 7)}
        with service.database.reading() as connection:
            service.clock.now = connection.execute(select(users.c.failed_at)).scalar_one()
        assert began <= service.clock.now <= wall_clock()
        assert client.post("/v1/users/ada/verify", json=own).status_code == 429
        service.clock.now += 60_000
        assert [user["id"] for user in client.get("/v1/users").json()["users"]] == ["ada"]
        found = client.get("/v1/users/ada/export").json()
        assert {**found, "failed_attempts": exported["failed_attempts"]} == exported
        assert client.post("/v1/users/ada/verify", json=own).json()["answer"] == "accept"
        copy = client.post("/v1/users/ada/verify", json={"keystrokes": keystrokes_of(0, 6)})
        assert copy.json()["answer"] == "reject"
