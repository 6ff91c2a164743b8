"""Files of prompts: accepted contents, refusals, and the resulting order of samples."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from keydyn.recording.prompts import Prompt, Study, Task, read_study
from tests.documents import ROOT
from tests.recording.studies import study_of


def test_lines_or_paragraphs_of_plain_text(tmp_path):
    lines = study_of(tmp_path, "\ufeff\none  line\r\nanother\n\n", "a.txt")
    assert [prompt.text for prompt in lines.prompts] == ["one line", "another"]
    wrapped = study_of(tmp_path, "a paragraph\nof two lines\n \nanother one\n", "a.txt")
    assert [prompt.text for prompt in wrapped.prompts] == ["a paragraph of two lines", "another one"]
    # Without a text of its own, a study asks for consent all the same.
    assert "which keys you press" in lines.consent


def test_every_prompt_is_asked_for_as_often_as_the_file_says(tmp_path):
    study = study_of(
        tmp_path,
        'sittings = 2\nrepetitions = 2\n[[prompts]]\ntext = "a"\n[[prompts]]\ntext = "b"\nrepetitions = 3\n',
    )
    once = [(1, 1), (2, 1), (1, 2), (2, 2), (2, 3)]
    assert study.course("ann") == [Task(sitting, *each) for sitting in (1, 2) for each in once]


def test_a_shuffled_order_differs_between_people_and_sittings_and_not_between_runs(tmp_path):
    text = 'sittings = 2\norder = "shuffled"\nseed = 3\n' + '[[prompts]]\ntext = "a"\n' * 20
    study = study_of(tmp_path, text)
    ann, bob = study.course("ann"), study.course("bob")
    assert [task.sitting for task in ann] == [1] * 20 + [2] * 20
    first, second = [task.prompt for task in ann[:20]], [task.prompt for task in ann[20:]]
    assert Counter(first) == Counter(second) == Counter(range(1, 21))
    assert first != second
    assert first != list(range(1, 21))
    assert ann != bob
    assert ann == study_of(tmp_path, text).course("ann")
    assert ann != study_of(tmp_path, text.replace("seed = 3", "seed = 4")).course("ann")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing required field `prompts`"),
        ("prompts = []", "prompts: Expected `array` of length >= 1"),
        ('[[prompts]]\ntext = "a"\n[[prompts]]\ntext = ""', "prompts.2.text: Expected `str` of length >= 1"),
        (
            '[[prompts]]\ntext = "a"\nkind = "spoken"',
            "prompts.1.kind: Invalid enum value 'spoken'; it is one of copy, fixed",
        ),
        ('[[prompts]]\ntext = "a"\nkeystrokes = 9', 'keystrokes applies only to prompts of the kind "free"'),
        ('[[prompts]]\ntext = "a\\nb"\nkind = "password"', "a password text must have only one line"),
        ('[[prompts]]\ntext = "a\\u0007"', "prompts.1.text: Expected `str` matching regex"),
        ('sitings = 2\n[[prompts]]\ntext = "a"', "unknown field `sitings`"),
        ('sittings = 1000\nrepetitions = 1000\n[[prompts]]\ntext = "a"', "1,000,000 samples"),
        ('break_between_prompts = -1\n[[prompts]]\ntext = "a"', "break_between_prompts: Expected `int` >= 0"),
        ("title = ", "Invalid value"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, text, message):
    with pytest.raises(ValueError, match=r"study\.toml: ") as error:
        study_of(tmp_path, text)
    assert message in str(error.value)


def test_files_that_are_no_prompts(tmp_path):
    path = tmp_path / "prompts.txt"
    for contents, message in ((b" \n\n", "no prompts in it"), (b"\xff\xfea", "not UTF-8 text")):
        path.write_bytes(contents)
        with pytest.raises(ValueError, match=message):
            read_study(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_study(tmp_path / "absent.txt")
    with pytest.raises(ValueError, match="it is a folder"):
        read_study(tmp_path)


def test_the_example_of_the_guide(tmp_path):
    guide = (ROOT / "docs" / "guide" / "collecting.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    study = study_of(tmp_path, example)
    assert len(study.course("p01")) == 2 * (1 + 10 + 1)
    # Every setting is explained.
    names = [*Study.__struct_fields__, *Prompt.__struct_fields__]
    assert [name for name in names if f"`{name}`" not in guide and f"\n{name} =" not in guide] == []
