"""Renders a table as Markdown, as LaTeX and for a terminal. Names are escaped, never read as markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from keydyn.lab.frame.tables import NONE, Table
from keydyn.terminal import column_widths, terminal_width

if TYPE_CHECKING:
    from rich.table import Table as RichTable

# A figure: a number, optionally preceded by a sign, a bound or a bracket.
FIGURE = re.compile(r"[-−+±<>≤≥~≈(\s]*[.\d]")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|~$&#^])")
LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # After \\ these two would be taken for its argument and its star.
    "[": "{[}",
    "*": "{*}",
    "]": "{]}",
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≈": r"$\approx$",
    "→": r"$\to$",
    "∞": r"$\infty$",
    "√": r"$\surd$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "α": r"$\alpha$",
    "ν": r"$\nu$",
    "τ": r"$\tau$",
    "\u00a0": "~",
    "\u202f": r"\,",
}


def markdown(table: Table) -> str:
    """A table as a Markdown pipe table, with its title above and its note below."""
    header = [_markdown(str(name)) for name in table.shown.columns]
    rule = ["---:" if right else "---" for right in right_aligned(table)]
    rows = [
        [
            _wrapped(_markdown(text), ("**" if bold else "*" if published else "",) * 2)
            for text, bold, published in row
        ]
        for row in lines(table)
    ]
    parts = [f"**{_markdown(table.title)}**", "\n".join(map(_pipes, [header, rule, *rows]))]
    if table.note:
        parts.append(_markdown(table.note))
    return "\n\n".join(parts) + "\n"


def latex(table: Table) -> str:
    """A table as a LaTeX float in booktabs style; published figures are in italics."""
    columns = "".join("r" if right else "l" for right in right_aligned(table))
    caption = f"{table.title.rstrip('.')}. {table.note}".strip()
    body = []
    for number, row in enumerate(lines(table)):
        if number and table.labels > 1 and row[0][0]:
            body.append(r"\addlinespace")
        texts = []
        for text, bold, published in row:
            command = r"\textbf{" if bold else r"\textit{" if published else ""
            texts.append(_wrapped(_latex(text), (command, "}" if command else "")))
        body.append(" & ".join(texts) + r" \\")
    return "\n".join(
        [
            "% Needs \\usepackage{booktabs}. Names beyond Latin letters need XeLaTeX or LuaLaTeX.",
            r"\begin{table}",
            rf"\caption{{{_latex(caption)}\label{{tab:{table.name.replace('_', '-')}}}}}",
            r"\centering",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(_latex(str(name)) for name in table.shown.columns) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def rich_table(table: Table) -> RichTable:
    """A table for a terminal; published figures are dimmed."""
    from rich.table import Table as RichTable
    from rich.text import Text

    caption = Text(table.note) if table.note else None
    drawn = RichTable(title=Text(table.title), title_justify="left", caption=caption, caption_justify="left")
    shown = table.shown
    columns = [[str(name), *shown.iloc[:, place].astype(str)] for place, name in enumerate(shown.columns)]
    widths = column_widths(columns, terminal_width())
    for (name, *_), right, width in zip(columns, right_aligned(table), widths, strict=True):
        drawn.add_column(Text(name), justify="right" if right else "left", width=width)
    for row in lines(table):
        # As Text, because rich would read a user called "[/b]" in a plain string as markup.
        cells = [Text(_one_line(text), "bold" if bold else "dim" if dim else "") for text, bold, dim in row]
        drawn.add_row(*cells)
    return drawn


def lines(table: Table) -> list[list[tuple[str, bool, bool]]]:
    """The cells of each row: text, whether bold, whether published.

    In a table with several columns of labels, the first label is left empty where it repeats the one above.
    """
    shown = table.shown.astype(str).to_numpy().tolist()
    rows, before = [], None
    for number, texts in enumerate(shown):
        repeated = table.labels > 1 and texts[0] == before
        before = texts[0] if texts else None
        rows.append(
            [
                (
                    "" if repeated and place == 0 else text,
                    table.bold is not None and bool(table.bold.iat[number, place]),
                    table.published is not None and bool(table.published.iat[number, place]),
                )
                for place, text in enumerate(texts)
            ]
        )
    return rows


def right_aligned(table: Table) -> list[bool]:
    """Whether each column is aligned to the right: columns of figures are, columns of labels never."""
    aligned = []
    for place in range(table.shown.shape[1]):
        texts = [text for text in table.shown.iloc[:, place].astype(str) if text not in ("", NONE)]
        aligned.append(place >= table.labels and all(FIGURE.match(text) for text in texts))
    return aligned


def _one_line(text: str) -> str:
    return CONTROL.sub(" ", text).strip()


def _markdown(text: str) -> str:
    return MARKDOWN.sub(r"\\\1", _one_line(text))


def _latex(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in _one_line(text))


def _pipes(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _wrapped(text: str, around: tuple[str, str]) -> str:
    """A text with emphasis markers around it; an empty text gets none."""
    return f"{around[0]}{text}{around[1]}" if text.strip() else text
