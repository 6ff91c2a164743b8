"""Tables read back from Markdown, as rows of texts: what a reader sees, and nothing else."""

from __future__ import annotations

import re

# One row of a table: the text of each column. Bold cells keep their asterisks, and so do published ones.
Row = dict[str, str]
ESCAPED = re.compile(r"\\(.)")
BETWEEN = re.compile(r"(?<!\\)\|")


def rows_of(markdown: str) -> list[Row]:
    """The rows of the first pipe table in a text, without backslashes; none if there is no table.

    A first cell that is empty has the text of the one above, which `table_text.markdown` does not repeat.
    """
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    if len(lines) < 2:
        return []
    header, _, *body = (_cells(line) for line in lines)
    rows: list[Row] = []
    for cells in body:
        if not cells[0] and rows:
            cells[0] = rows[-1][header[0]]
        rows.append(dict(zip(header, cells, strict=True)))
    return rows


def _cells(line: str) -> list[str]:
    return [ESCAPED.sub(r"\1", cell).strip() for cell in BETWEEN.split(line)[1:-1]]
