"""Writes the report of a study: one self-contained HTML file for screens, phones and paper."""

from __future__ import annotations

import base64
import os
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import quote

from keydyn.atomic import write_text
from keydyn.lab.frame.json_and_parquet import plain
from keydyn.lab.frame.report_style import HASH, SCRIPT, STYLE
from keydyn.lab.frame.table_text import lines, right_aligned
from keydyn.lab.frame.tables import Table

# Checksums and commits, which are set in a typewriter face.
CODE = re.compile(r"[0-9a-f]{16,}|sha256[:=]\S+", re.IGNORECASE)
LONG = 28


def paragraphs_of(texts: Sequence[str], kind: str = "") -> str:
    """The texts as HTML paragraphs, without empty ones."""
    attribute = f' class="{kind}"' if kind else ""
    return "\n".join(f"<p{attribute}>{_with_code(text)}</p>" for text in texts if text)


def _with_code(text: str) -> str:
    """A text as HTML, with text between backticks set in a typewriter face."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def table_html(table: Table, number: int) -> str:
    """A table in a box that scrolls, with its caption, its note and links to its files."""
    right = right_aligned(table)
    words = [
        not figures and bool(table.shown.iloc[:, place].astype(str).str.len().gt(LONG).any())
        for place, figures in enumerate(right)
    ]
    heads = [
        f'<th scope="col"{_classes(right=right[place], pinned=place == 0 and table.labels > 0)}>'
        f"{escape(str(name))}</th>"
        for place, name in enumerate(table.shown.columns)
    ]
    bodies: list[list[str]] = []
    for span, cells in zip(_spans(table), lines(table), strict=True):
        row = [
            _cell(cell, column, span, table, right[column], words[column])
            for column, cell in enumerate(cells)
        ]
        # Consecutive lines with the same first label form a group of rows.
        if not bodies or (span and table.labels > 1):
            bodies.append([])
        bodies[-1].append(f"<tr>{''.join(row)}</tr>")
    title = f"<b>Table {number}.</b> {escape(table.title)}"
    note = f'<p class="note">{_with_code(table.note)}</p>' if table.note else ""
    links = " ".join(
        f'<a href="tables/{quote(table.name)}{ending}">{kind}</a>'
        for ending, kind in ((".csv", "CSV"), (".md", "Markdown"), (".tex", "LaTeX"))
    )
    anchor = f"table-{number}"
    return "\n".join(
        part
        for part in [
            '<figure class="table">',
            f'<figcaption id="{anchor}">{title}</figcaption>',
            # A box that scrolls must have a name and be reachable from the keyboard.
            f'<div class="scroll" role="region" aria-labelledby="{anchor}" tabindex="0">',
            f'<table aria-labelledby="{anchor}">',
            f"<thead><tr>{''.join(heads)}</tr></thead>",
            *("\n".join(["<tbody>", *rows, "</tbody>"]) for rows in bodies),
            "</table>",
            "</div>",
            note,
            f'<p class="links">{links}</p>',
            "</figure>",
        ]
        if part
    )


def facts_list(facts: Mapping[str, Any]) -> str:
    """Facts as a list of terms and values; facts within facts become nested lists."""
    entries = "\n".join(
        f"<dt>{escape(str(name).replace('_', ' '))}</dt><dd>{_fact(value)}</dd>"
        for name, value in facts.items()
    )
    return f'<dl class="facts">\n{entries}\n</dl>' if facts else "<p>Nothing was recorded.</p>"


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return facts_list(value) if value else "none"
    if isinstance(value, list):
        if any(isinstance(item, (Mapping, list)) for item in value):
            return "<ul>" + "".join(f"<li>{_fact(item)}</li>" for item in value) + "</ul>"
        return ", ".join(_fact(item) for item in value) or "none"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    return f"<code>{escape(text)}</code>" if CODE.fullmatch(text) else escape(text)


def _spans(table: Table) -> list[int]:
    """The number of lines that the first label of each line spans; 0 if it repeats the one above."""
    if table.labels < 2:
        return [1] * len(table.shown)
    texts = table.shown.iloc[:, 0].astype(str).tolist()
    begins = [place for place in range(len(texts)) if place == 0 or texts[place] != texts[place - 1]]
    spans = [0] * len(texts)
    for begin, end in pairwise([*begins, len(texts)]):
        spans[begin] = end - begin
    return spans


def _cell(
    cell: tuple[str, bool, bool], column: int, span: int, table: Table, right: bool, words: bool
) -> str:
    text, bold, published = cell
    # On narrow screens, where a table is shown row by row, the heading stands before the value.
    label = f' data-label="{escape(str(table.shown.columns[column]))}"' if column else ""
    if column < table.labels:
        if column == 0 and span == 0:
            return ""
        classes = _classes(pinned=column == 0, published=published)
        reach = f' rowspan="{span}"' if column == 0 and span > 1 else ""
        scope = "rowgroup" if reach else "row"
        return f'<th scope="{scope}"{reach}{classes}{label}>{escape(text)}</th>'
    classes = _classes(right=right, published=published, words=words)
    inside = f"<strong>{escape(text)}</strong>" if bold else escape(text)
    return f"<td{classes}{label}>{inside}</td>"


def _classes(**given: bool) -> str:
    names = " ".join(name for name, there in given.items() if there)
    return f' class="{names}"' if names else ""


HOW = "How this was made"
KINDS = {".png": "image/png", ".svg": "image/svg+xml"}
PNG = b"\x89PNG\r\n\x1a\n"
# Screen pixels per pixel of a figure: the width it is shown at, and the least width.
SHOWN, LEAST = 0.62, 0.36

# Nothing is loaded from elsewhere, and only our own script can run, whatever text a name contains.
PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src '$hash'">
<meta name="generator" content="keydyn">
<title>$title</title>
<link rel="icon" href="data:,">
<style>$style</style>
</head>
<body>
<header>
<h1>$title</h1>
$lead
<nav aria-labelledby="contents">
<h2 id="contents">Contents</h2>
<ol>
$contents
</ol>
</nav>
</header>
<main>
$sections
</main>
<footer><p>$footer</p></footer>
<script>$script</script>
</body>
</html>
""")


@dataclass(frozen=True)
class Picture:
    """A figure: the PNG (or SVG) file to show, its caption, and a description for readers who cannot see it.

    A PDF of the same name in the same folder is linked.
    """

    path: Path
    caption: str
    alt: str


@dataclass(frozen=True)
class Section:
    """A heading with its content: paragraphs, then tables, then figures."""

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Picture] = ()


def write_report(
    path: str | Path,
    title: str,
    lead: str | Sequence[str],
    sections: Sequence[Section],
    facts: Mapping[str, Any],
) -> None:
    """Write the report; `facts`, the contents of run.json, become its last section.

    All text is escaped, so nothing in it is interpreted as HTML. Tables link to the files that `write_table`
    writes into tables/ in the report's folder.
    """
    path = Path(path)
    parts, entries = [], []
    n_tables = n_figures = 0
    for number, section in enumerate(sections, 1):
        body = [paragraphs_of(section.paragraphs)]
        for table in section.tables:
            n_tables += 1
            body.append(table_html(table, n_tables))
        for picture in section.figures:
            n_figures += 1
            body.append(_picture(picture, n_figures, path.parent))
        parts.append(_section(f"section-{number}", section.title, body))
        entries.append(_entry(f"section-{number}", section.title))
    facts = plain(facts)
    parts.append(_section("how", HOW, [facts_list(facts)]))
    entries.append(_entry("how", HOW))
    page = PAGE.substitute(
        title=escape(title),
        style=STYLE,
        script=SCRIPT,
        hash=HASH,
        lead=paragraphs_of([lead] if isinstance(lead, str) else lead, "lead"),
        contents="\n".join(entries),
        sections="\n".join(parts),
        footer=escape(f"Made with keydyn {facts.get('version', '')}".strip() + "."),
    )
    write_text(path, page)


def _section(anchor: str, title: str, body: Sequence[str]) -> str:
    inside = "\n".join(part for part in body if part)
    heading = f'<h2 id="{anchor}-title">{escape(title)}</h2>'
    return f'<section id="{anchor}" aria-labelledby="{anchor}-title">\n{heading}\n{inside}\n</section>'


def _entry(anchor: str, title: str) -> str:
    return f'<li><a href="#{anchor}">{escape(title)}</a></li>'


def _picture(picture: Picture, number: int, folder: Path) -> str:
    """A figure embedded in the page, with links to its files."""
    path = Path(picture.path)
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"{path}: a figure in a report is one of {', '.join(KINDS)}")
    contents = path.read_bytes()
    data = base64.b64encode(contents).decode("ascii")
    files = [path.with_suffix(".pdf"), path]
    links = " ".join(
        f'<a href="{escape(_address(file, folder))}">{file.suffix[1:].upper()}</a>'
        for file in files
        if file.exists()
    )
    caption = f"<b>Figure {number}.</b> {escape(picture.caption)}"
    return "\n".join(
        [
            '<figure class="picture">',
            f'<div class="scroll" role="region" aria-labelledby="figure-{number}" tabindex="0">',
            f'<img src="data:{kind};base64,{data}" alt="{escape(picture.alt)}"{_size(contents)}>',
            "</div>",
            f'<figcaption id="figure-{number}">{caption}</figcaption>',
            f'<p class="links">{links}</p>',
            "</figure>",
        ]
    )


def _size(contents: bytes) -> str:
    """Attributes for the size of a PNG, which keeps its letters readable on a phone, where it scrolls."""
    if not contents.startswith(PNG):
        return ""
    width, height = struct.unpack(">II", contents[16:24])
    style = f"width:{SHOWN * width:.0f}px;min-width:{LEAST * width:.0f}px"
    return f' width="{width}" height="{height}" style="{style}"'


def _address(file: Path, folder: Path) -> str:
    """The address of a file relative to the folder of the report."""
    return quote(Path(os.path.relpath(file, folder)).as_posix())
