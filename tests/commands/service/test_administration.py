"""keydyn service keys, users and population, and refusals of keydyn serve."""

from __future__ import annotations

import json
import stat
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.decisions import Verifier
from keydyn.decisions.calibration.background import write_background
from keydyn.service.storage.master_keys import open_master_keys
from keydyn.service.wall_clock import wall_clock
from tests.service.conftest import opened
from tests.service.running import http_post, running
from tests.service.typists import enrol, keystrokes_of

runner = CliRunner()


@pytest.fixture
def run(sqlite_url):
    """Run a command on the database of this test; return its output, or its error message."""

    def call(*arguments, code=0):
        result = runner.invoke(app, ["service", *arguments, "--database", sqlite_url])
        assert result.exit_code == code, result.output
        return result.output

    return call


@pytest.fixture
def served(sqlite_url):
    """The service on the database of this test, with the keys that the commands use."""
    for database in opened(sqlite_url):
        keys = open_master_keys(database)
    with running(sqlite_url, keys=keys) as service:
        yield service


def test_keys_are_made_shown_once_and_revoked(served, run):
    made = json.loads(run("keys", "create", "--tenant", "shop", "--scope", "enrol", "--json"))
    client = served.client(made["key"])
    assert client.post("/v1/users", json={"id": "ada"}).status_code == 201
    assert client.get("/v1/settings").status_code == 403
    listed = run("keys", "list", "--json")
    assert json.loads(listed)[0] | {"created": ""} == {
        "id": made["id"], "kind": "key", "tenant": "shop", "name": "", "scopes": "enrol", "created": "",
        "expires": "", "revoked": "",
    }  # fmt: skip
    assert made["key"].split("_", 2)[2] not in listed
    assert made["id"] in run("keys", "revoke", made["id"])
    assert client.get("/v1/users").status_code == 401
    assert "no valid key" in run("keys", "revoke", made["id"], code=2)
    refused = run("keys", "create", "--scope", "everything", code=2)
    assert "scopes are" in refused
    assert "all of these, not everything" in " ".join(refused.split())
    assert "tenant's name" in run("keys", "create", "--tenant", "A B", code=2)


def test_a_link_opens_the_page_for_a_tenant(served, run):
    served.clock.now = wall_clock()
    run("keys", "create", "--tenant", "shop")
    link = run("link", "--tenant", "shop", "--url", served.url + "/").strip()
    assert link.startswith(f"{served.url}/#link=kdl_")
    body, own = {"link": link.partition("=")[2]}, {"origin": served.url}
    answer = http_post(f"{served.url}/v1/session", json=body, headers=own)
    page = served.client(answer.json()["token"], **own)
    page.post("/v1/users", json={"id": "ada"})
    assert "ada" in run("users", "list", "--tenant", "shop")
    # The link is no key; the session is listed beside it, and can be ended like it.
    key, session = sorted(json.loads(run("keys", "list", "--json")), key=lambda one: one["kind"])
    assert (key["kind"], key["scopes"], session["kind"]) == ("key", "enrol, verify", "session")
    run("keys", "revoke", session["id"])
    assert page.get("/v1/users").status_code == 401
    assert "tenant's name" in run("link", "--tenant", "A B", code=2)


def test_a_mistyped_address_makes_no_database(run, tmp_path):
    assert "there is no database" in run("keys", "list", code=2)
    assert "there is no database" in run("users", "list", code=2)
    assert list(tmp_path.iterdir()) == []


def test_people_are_listed_exported_and_erased(served, run, tmp_path):
    key = run("keys", "create", "--scope", "all").strip()
    client = served.client(key)
    enrol(client, "ada", 0)
    served.idle()
    row = json.loads(run("users", "list", "--json"))[0]
    assert (row["id"], row["samples"], row["complete"]) == ("ada", 5, True)
    out = tmp_path / "ada.json"
    run("users", "export", "ada", "--out", str(out))
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    exported, again = json.loads(out.read_text()), client.get("/v1/users/ada/export").json()
    noted = [entry["action"] for entry in again.pop("audit")[len(exported.pop("audit")) :]]
    assert (exported, noted) == (again, ["person.exported"])
    run("users", "erase", "ada", code=1)
    assert client.get("/v1/users/ada").status_code == 200
    run("users", "erase", "ada", "--yes")
    assert client.get("/v1/users/ada").status_code == 404
    assert "no such user" in run("users", "erase", "ada", "--yes", code=2)
    assert "no tenant" in run("users", "list", "--tenant", "nobody", code=2)


def test_a_population_of_phones_lets_phones_in(served, run, tmp_path):
    client = served.client(run("keys", "create").strip())
    client.post("/v1/users", json={"id": "ada"})
    body = {"keystrokes": keystrokes_of(0, 0), "device": "phone"}
    assert client.post("/v1/users/ada/samples", json=body).status_code == 422
    path = tmp_path / "phones.keydyn"
    background = replace(Verifier.shipped().background, cohort=(), members=())
    background.population.save(path)
    assert "calibrate" in run("population", "install", str(path), "--device", "phone", code=4)
    write_background(path, background)
    run("population", "install", str(path), "--device", "phone")
    assert json.loads(run("population", "list", "--json"))[0]["device"] == "phone"
    assert client.post("/v1/users/ada/samples", json=body).status_code == 201
    assert "keyboard or phone" in run("population", "install", str(path), "--device", "tv", code=2)
    assert "not allow" in run("population", "learn", code=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "0.0.0.0"], "--behind-proxy"),
        (["--host", "192.0.2.1"], "--behind-proxy"),
        (["--behind-proxy"], "--name"),
        (["--database", "mysql://x/y"], "SQLite or PostgreSQL"),
        (["--database", "nonsense"], "sqlite:////"),
    ],
)
def test_what_would_be_unsafe_is_refused_before_anything_happens(options, said, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    result = runner.invoke(app, ["serve", "--port", "0", *options])
    assert result.exit_code in (2, 4)
    assert said in result.output
    assert list(tmp_path.iterdir()) == []
