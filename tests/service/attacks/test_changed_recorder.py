"""A changed recorder, served by an attacker who controls the service, is not run by a page with its hash."""

from __future__ import annotations

import base64
import hashlib
import re

from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.service.recorder_file import recorder_file
from tests.service.pages.guide import GUIDE
from tests.service.running import http_get


def test_the_guide_names_the_recorder_and_its_hash(attacked):
    (tag,) = re.findall(r"<script[^>]* src=[^>]*>", GUIDE)
    found = dict(re.findall(r'(\w+)="([^"]*)"', tag))
    # If this fails, the recorder has changed: keydyn service recorder prints the line for the guide.
    assert recorder_file().tag("http://127.0.0.1:8421").startswith(tag)
    assert tag.endswith(" crossorigin>")
    path = found["src"].removeprefix("http://127.0.0.1:8421")
    assert f'import {{ Recorder }} from "{found["src"]}"' in GUIDE
    answer = http_get(f"{attacked.url}{path}", headers={"origin": "https://shop.example"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    digest = base64.b64encode(hashlib.sha384(answer.content).digest()).decode()
    assert found["integrity"] == f"sha384-{digest}"
    # Browsers check the hash only of what any page may read.
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "immutable" in answer.headers["cache-control"]


def test_other_versions_are_not_served(attacked):
    for version in ("0" * 12, "", "..", "%00"):
        assert http_get(f"{attacked.url}/recorder-{version}.js").status_code == 404


def test_the_file_can_be_had_to_host_it_oneself(attacked, tmp_path):
    done = CliRunner().invoke(
        app, ["service", "recorder", "--out", str(tmp_path), "--url", "https://shop.example/static/"]
    )
    assert done.exit_code == 0, done.output
    found = recorder_file()
    assert (tmp_path / found.name).read_bytes() == http_get(f"{attacked.url}/recorder.js").content
    assert f'src="https://shop.example/static/{found.name}"' in done.output.replace("\n", "")
