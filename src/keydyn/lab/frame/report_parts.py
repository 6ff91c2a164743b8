"""The parts of a report: a table, paragraphs, and facts of any depth as lists of terms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from keydyn.lab.frame.table_text import lines, right_aligned
from keydyn.lab.frame.tables import Table

# A checksum, a commit, a path: set in a typewriter face.
CODE = re.compile(r"[0-9a-f]{16,}|sha256[:=]\S+", re.IGNORECASE)
LONG = 28


def paragraphs_of(texts: Sequence[str], kind: str = "") -> str:
    """Each text as a paragraph."""
    attribute = f' class="{kind}"' if kind else ""
    return "\n".join(f"<p{attribute}>{escape(text)}</p>" for text in texts if text)


def table_html(table: Table, number: int) -> str:
    """A table that scrolls in its own box, with its caption, its note and links to its files."""
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
        # Lines that share their first label are a group of rows.
        if not bodies or (span and table.labels > 1):
            bodies.append([])
        bodies[-1].append(f"<tr>{''.join(row)}</tr>")
    title = f"<b>Table {number}.</b> {escape(table.title)}"
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
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
            # A box that scrolls must be reachable from the keyboard, and have a name.
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
    """Facts as terms with their values; facts within facts become nested lists."""
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
    """How many lines the first label of each row stands for; 0 if it is the same as the one above."""
    if table.labels < 2:
        return [1] * len(table.shown)
    texts = table.shown.iloc[:, 0].astype(str).tolist()
    begins = [place for place in range(len(texts)) if place == 0 or texts[place] != texts[place - 1]]
    spans = [0] * len(texts)
    for begin, end in zip(begins, [*begins[1:], len(texts)], strict=True):
        spans[begin] = end - begin
    return spans


def _cell(
    cell: tuple[str, bool, bool], column: int, span: int, table: Table, right: bool, words: bool
) -> str:
    text, bold, published = cell
    # Where a table is shown row by row, the heading stands before the value.
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
