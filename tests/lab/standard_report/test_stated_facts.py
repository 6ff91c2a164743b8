"""Facts that only a person knows: the template, what is read from it, and files that cannot be used."""

from __future__ import annotations

import tomllib

import pytest

from keydyn.lab.standard_report.stated_facts import (
    LARGEST,
    LONGEST,
    QUESTIONS,
    missing_facts,
    read_facts,
    template,
    write_template,
)


def written(folder, text):
    path = folder / "facts.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_template_asks_everything_and_states_nothing(tmp_path):
    asked = tomllib.loads(template())
    assert {section: list(answers) for section, answers in asked.items()} == {
        section: list(questions) for section, questions in QUESTIONS.items()
    }
    stated = read_facts(written(tmp_path, template()))
    assert missing_facts(stated) == [
        f"{section}.{name}" for section in QUESTIONS for name in QUESTIONS[section]
    ]
    lines = template().splitlines()
    assert all(lines[place - 1].startswith("# ") for place, line in enumerate(lines) if line.endswith('= ""'))


def test_answers_are_kept_as_they_are(tmp_path):
    text = '[people]\nconsent = """\nAsked.\n<b>Agreed</b> """\n[test]\ndates = 2026-03-02\ntitle = " "\n'
    stated = read_facts(written(tmp_path, text))
    assert stated == {"people": {"consent": "Asked.\n<b>Agreed</b>"}, "test": {"dates": "2026-03-02"}}
    assert "people.consent" not in missing_facts(stated)
    assert "test.title" in missing_facts(stated)


def test_a_template_that_was_filled_in_is_not_overwritten(tmp_path):
    write_template(tmp_path)
    path = tmp_path / "facts.toml"
    assert path.read_text() == template()
    path.write_text("[test]\n")
    write_template(tmp_path)
    assert path.read_text() == "[test]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[people\n", r"not TOML.*line 1"),
        ("people = 1\n", r"people must be a table of answers, \[people\], not a number"),
        ("[[people]]\nconsent = 'yes'\n", "not a list"),
        ("[peopel]\n", r"no \[peopel\]; there are test, people"),
        ("[people]\nconsents = ''\n", r"\[people\] has no 'consents'; it has recruitment"),
        ("[people]\nconsent = true\n", "people.consent must be text, not true or false"),
        ("[people]\nconsent = 3.5\n", "not a number"),
        ("[people]\nconsent = ['a', 'b']\n", "not a list"),
        ("[people]\nconsent = {a = 'b'}\n", "not a table"),
        ("[people]\nconsent = 07:32:00\n", "not a time"),
        (f"[people]\nconsent = '{'a' * (LONGEST + 1)}'\n", r"has 5,001 characters; 5,000 are allowed"),
        (b"[people]\nconsent = '\xff'\n", "not UTF-8: byte 20"),
        ("#" * (LARGEST + 1), "at most 65,536 are read"),
        ("people = " + "[" * 20_000, "not TOML"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path, text, words):
    path = written(tmp_path, text)
    with pytest.raises(ValueError, match=words) as error:
        read_facts(path)
    assert str(error.value).startswith(str(path))


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="it is a folder"):
        read_facts(tmp_path)
