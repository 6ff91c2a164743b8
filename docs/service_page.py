"""Puts what was measured of the service into the pages: `python docs/service_page.py out`.

`make bench-service` leaves JSON files in out/bench-service, fault runs in out/faults. Each is an object with
a `title`, the names of `columns`, and `rows`, lists of as many texts; a `note` goes below the table. The
tables of a folder go between the markers of the page, in the order of the files' names. A file sizing.json
goes into the deployment page as well.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# Pages, names of markers, and the files that go between them.
PASTED = (
    ("service.md", "load", "bench-service/*.json"),
    ("service.md", "faults", "faults/*.json"),
    ("performance-details.md", "parts", "bench-parts/*.json"),
    ("deployment.md", "sizing", "bench-service/sizing.json"),
)


def main() -> None:
    """Put in whatever is in the folder, and report what is not there."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
    for page, name, files in PASTED:
        found = sorted(out.glob(files))
        if not found:
            print(f"there is no {out / files}: {name} in {page} left as it is")
            continue
        results = [json.loads(file.read_text(encoding="utf-8")) for file in found]
        path = HERE / page
        text = pasted(path.read_text(encoding="utf-8"), name, "\n\n".join(map(table, results)))
        path.write_text(text, encoding="utf-8")
        print(f"{name} in {page}: {', '.join(file.stem for file in found)}")


def table(result: dict[str, Any]) -> str:
    """One result in Markdown."""
    columns = [str(column) for column in result["columns"]]
    rows = [[_cell(value) for value in row] for row in result["rows"]]
    wrong = [row for row in rows if len(row) != len(columns)]
    if wrong:
        raise ValueError(f"{result['title']}: {wrong[0]} has not {len(columns)} columns")
    rule = ["---", *["---:"] * (len(columns) - 1)]
    lines = ["| " + " | ".join(line) + " |" for line in (columns, rule, *rows)]
    parts = [f"**{result['title']}**", "\n".join(lines), str(result.get("note", ""))]
    return "\n\n".join(part for part in parts if part)


def pasted(page: str, name: str, text: str) -> str:
    """The page with this text between the markers of this name."""
    begin, end = f"<!-- measured {name}: begin -->", f"<!-- measured {name}: end -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"the page must have {begin} and {end} once each")
    head, rest = page.split(begin)
    return f"{head}{begin}\n{text}\n{end}{rest.split(end)[1]}"


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|")


if __name__ == "__main__":
    main()
