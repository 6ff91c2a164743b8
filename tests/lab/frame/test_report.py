"""The report: whole, self-contained, well formed whatever names people have, and the same bytes each time."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keydyn.lab.frame.report import Picture, Section, facts_list, table_html, write_report
from keydyn.lab.frame.report_style import SCRIPT, STYLE
from keydyn.lab.frame.tables import plain_table, published_beside, write_table

VOID = {"meta", "link", "img", "br", "hr"}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
HOSTILE = [
    '<script>alert("x")</script>',
    "a_b & c",
    '"><img src=x onerror=alert(1)>',
    "</td></table>",
    "李 & Zoë",
]


class Page(HTMLParser):
    """What is on a page: tags, their attributes and the text; an `AssertionError` if tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def attributes(self, tag: str, name: str) -> list[str | None]:
        return [attributes.get(name) for found, attributes in self.tags if found == tag]

    def texts_in(self, *tags: str) -> list[str]:
        return [text for tag, text in self.texts if tag in tags]


def hostile_report(folder: Path) -> Page:
    frame = pd.DataFrame({"user": HOSTILE, "eer": [0.1] * len(HOSTILE)})
    table = plain_table("users", HOSTILE[0], HOSTILE[1], frame)
    picture = Picture(folder / "figures" / "roc & co.png", HOSTILE[2], HOSTILE[2])
    picture.path.parent.mkdir(parents=True, exist_ok=True)
    picture.path.write_bytes(PNG)
    picture.path.with_suffix(".pdf").write_bytes(b"%PDF")
    write_table(table, folder / "tables")
    sections = [Section(HOSTILE[3], HOSTILE, [table], [picture]), Section("Empty")]
    facts = {HOSTILE[0]: {HOSTILE[2]: [HOSTILE[3], {"a": HOSTILE[0]}]}, "version": "1.0"}
    write_report(folder / "report.html", HOSTILE[0], HOSTILE[3], sections, facts)
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def test_names_are_text_wherever_they_stand(tmp_path):
    page = hostile_report(tmp_path)
    tags = {tag for tag, _ in page.tags}
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert {"iframe", "object", "embed"} & tags == set()
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert page.texts_in("th") == ["user", "eer", *HOSTILE]
    assert page.texts_in("title") == page.texts_in("h1") == [HOSTILE[0]]
    assert page.attributes("img", "alt") == [HOSTILE[2]]
    assert HOSTILE[0] in page.texts_in("dt")
    assert HOSTILE[0] in page.texts_in("dd")


def test_it_loads_nothing_and_shows_the_very_picture(tmp_path):
    page = hostile_report(tmp_path)
    (source,) = page.attributes("img", "src")
    kind, _, data = source.partition(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(data) == PNG
    assert all(href == "data:," for href in page.attributes("link", "href"))
    assert not any(attributes for tag, attributes in page.tags if tag == "script")
    assert not re.search(r"url\(|@import|https?:", STYLE + SCRIPT)


def test_no_other_script_than_our_own_may_run(tmp_path):
    """The page's policy names the hash of its script, computed here from the page itself."""
    hostile_report(tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert "script-src 'unsafe-inline'" not in text


def test_links_lead_to_what_is_there(tmp_path):
    page = hostile_report(tmp_path)
    anchors = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    assert len(anchors) == sum("id" in attributes for _, attributes in page.tags)
    links = page.attributes("a", "href")
    assert [link for link in links if link.startswith("#")] == ["#section-1", "#section-2", "#how"]
    assert {link[1:] for link in links if link.startswith("#")} <= anchors
    files = [link for link in links if not link.startswith("#")]
    expected = ["tables/users.csv", "tables/users.md", "tables/users.tex"]
    assert files == [*expected, "figures/roc%20%26%20co.pdf", "figures/roc%20%26%20co.png"]
    labels = [attributes["aria-labelledby"] for _, attributes in page.tags if "aria-labelledby" in attributes]
    assert set(labels) <= anchors


def test_readable_on_a_phone_and_by_a_screen_reader(tmp_path):
    page = hostile_report(tmp_path)
    assert page.attributes("html", "lang") == ["en"]
    assert any("width=device-width" in (content or "") for content in page.attributes("meta", "content"))
    assert set(page.attributes("th", "scope")) == {"col", "row"}
    boxes = [attributes for tag, attributes in page.tags if tag == "div"]
    assert all(box["role"] == "region" and box["tabindex"] == "0" for box in boxes)
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_published_figures_are_labelled_and_best_ones_strong():
    columns = ["dataset", "detector", "acc_mean", "acc_std", "published_acc_mean", "published_acc_std"]
    frame = pd.DataFrame([("keypad", "pohmm", 0.75, 0.15, 0.748, 0.151)], columns=columns).assign(best=True)
    page = Page(table_html(published_beside("t", "T", "", frame, "acc"), 1))
    assert page.texts_in("strong") == ["0.750 (0.150)"]
    marked = [attributes.get("class") for tag, attributes in page.tags if tag in ("th", "td")]
    assert sum("published" in (classes or "") for classes in marked) == 2
    assert "published" in page.texts_in("th")
    assert [span for span in page.attributes("th", "rowspan") if span] == ["2"]
    assert page.texts_in("th").count("Keypad") == 1


def test_groups_span_as_many_rows_as_they_have():
    frame = pd.DataFrame({"dataset": ["a", "a", "a", "b", "a"], "detector": list("xyzxx"), "eer": [0.1] * 5})
    page = Page(table_html(plain_table("t", "T", "", frame, labels=2), 1))
    spans = [int(span) for span in page.attributes("th", "rowspan") if span]
    assert spans == [3]
    assert sum(tag == "tbody" for tag, _ in page.tags) == 3
    # Five detectors, and a dataset where it begins: a, b and a again.
    assert sum(scope in ("row", "rowgroup") for scope in page.attributes("th", "scope")) == 5 + 3


@pytest.mark.parametrize("labels", [0, 1, 2])
def test_a_table_without_lines_has_its_heads(labels):
    table = plain_table("none", "Nothing", "", pd.DataFrame({"a": [], "b": [], "c": []}), labels=labels)
    page = Page(table_html(table, 1))
    assert [tag for tag, _ in page.tags].count("th") == 3
    assert "td" not in [tag for tag, _ in page.tags]


def test_same_input_same_bytes(tmp_path):
    hostile_report(tmp_path / "a")
    hostile_report(tmp_path / "b")
    assert (tmp_path / "a" / "report.html").read_bytes() == (tmp_path / "b" / "report.html").read_bytes()


def test_a_report_that_cannot_be_made_leaves_the_old_one(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    missing = Section("S", figures=[Picture(tmp_path / "none.png", "", "")])
    with pytest.raises(FileNotFoundError):
        write_report(path, "T", "", [missing], {})
    wrong = Section("S", figures=[Picture(tmp_path / "none.pdf", "", "")])
    with pytest.raises(ValueError, match="a figure in a report is one of"):
        write_report(path, "T", "", [wrong], {})
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_report_of_nothing_is_still_a_page(tmp_path):
    write_report(tmp_path / "report.html", "Nothing", [], [], {})
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.texts_in("h2") == ["Contents", "How this was made"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=3))
def test_facts_of_any_depth_are_well_formed(facts):
    page = Page(facts_list(facts))
    assert {tag for tag, _ in page.tags} <= {"dl", "dt", "dd", "ul", "li", "code", "p"}


def colours(block: str) -> dict[str, str]:
    return dict(re.findall(r"--(\w+): (#\w+)", block))


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2."""
    digits = colour[1:] if len(colour) == 7 else "".join(letter * 2 for letter in colour[1:])
    channels = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_stands_out_from_its_ground_in_every_mode():
    """Contrast of 4.5 or more, WCAG 2 level AA."""
    modes = [colours(block) for block in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)]
    assert len(modes) == 3
    for mode in modes:
        for ground in ("paper", "box"):
            for text in ("ink", "quiet", "accent"):
                low, high = sorted((luminance(mode[ground]), luminance(mode[text])))
                assert (high + 0.05) / (low + 0.05) >= 4.5, (ground, text)
