"""The documentation has a page for every command, and the examples on it can be typed."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.documents import program


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    written = program("command_pages").write_pages(folder)
    assert sorted(folder.iterdir()) == sorted(written)
    return {path.stem: path.read_text(encoding="utf-8") for path in written}


def test_every_command_is_in_the_index(pages):
    assert {"keydyn-fit", "keydyn-service-keys-create", "keydyn-study-recognition", "keydyn-record"} <= set(
        pages
    )
    assert set(re.findall(r"{doc}`([^`]+)`", pages["index"])) == set(pages) - {"index"}


def test_examples_use_options_that_there_are(pages):
    examples = 0
    for name, text in pages.items():
        known = set(re.findall(r"`(--?[a-z][a-z-]*)`", text))
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
            for line in block.splitlines():
                words = shlex.split(line, comments=True)
                assert name == "-".join(words[: name.count("-") + 1]) or "-".join(words).startswith(name)
                used = {word.partition("=")[0] for word in words if word.startswith("--")}
                assert used <= known, (name, line)
                examples += 1
    assert examples > 30
