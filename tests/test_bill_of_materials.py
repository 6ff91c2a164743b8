"""The bill of materials names what is installed, and known holes in it stop a release."""

from __future__ import annotations

import json
import re
import sys
import threading
import tomllib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version

import pytest

from tests import bill_of_materials
from tests.bill_of_materials import bill, canonical
from tests.documents import ROOT
from tests.ports import free_port

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def required(*groups):
    """The requirements of the package itself, and of these extras."""
    lines = [*PROJECT["dependencies"]]
    for group in groups:
        lines += PROJECT["optional-dependencies"][group]
    return [line for line in lines if not line.startswith("keydyn")]


def test_every_requirement_excludes_versions_that_were_not_tried():
    for line in required("service", "client", "distributed"):
        assert re.search(r">=[0-9.]+,<[0-9.]+$", line), line


def test_the_bill_names_every_requirement_with_the_version_that_is_installed():
    found = bill("keydyn", frozenset({"service"}))
    assert found["bomFormat"] == "CycloneDX"
    there = {one["name"]: one["version"] for one in found["components"]}
    for line in required("service", "client"):
        name = canonical(re.split(r"[\[>]", line)[0])
        assert there[name] == version(name)
    # What they need in turn, and nothing that only developers need.
    assert {"starlette", "pydantic", "h11"} <= set(there)
    assert not {"pytest", "mypy", "hypothesis"} & set(there)
    refs = {one["bom-ref"] for one in [*found["components"], found["metadata"]["component"]]}
    assert {one["ref"] for one in found["dependencies"]} == refs
    assert {need for one in found["dependencies"] for need in one["dependsOn"]} <= refs


@contextmanager
def advisories(about):
    """An advisory service that knows of one hole."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told = [
                {"vulns": [{"id": "HOLE-1"}]} if f"/{about}@" in query["package"]["purl"] else {}
                for query in asked["queries"]
            ]
            body = json.dumps({"results": told}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def run(monkeypatch, tmp_path, service):
    out = tmp_path / "bill.json"
    monkeypatch.setattr(sys, "argv", ["bill", str(out), "--advisories", service])
    bill_of_materials.main()
    assert json.loads(out.read_text())["components"]


def test_known_holes_stop_a_release(monkeypatch, tmp_path, capsys):
    with advisories("numpy") as service, pytest.raises(SystemExit, match=r"pkg:pypi/numpy@.*: HOLE-1"):
        run(monkeypatch, tmp_path, service)
    with advisories("no such package") as service:
        run(monkeypatch, tmp_path, service)
    assert "No known holes." in capsys.readouterr().out


def test_it_says_when_no_advisory_service_can_be_reached(monkeypatch, tmp_path, capsys):
    run(monkeypatch, tmp_path, f"http://127.0.0.1:{free_port()}/")
    assert "were not looked for" in capsys.readouterr().out
