"""Writes the example of a report by the standard, docs/_static/reports/fable.

python docs/standard_reports.py FOLDER     with fable.csv and essay.csv in FOLDER

Population and calibration are learnt from essay. The check for forged typing that comes with keydyn was
learnt from these people too, as the report says. Only figures over people are kept: no keystroke, no score.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from keydyn.cli import app

REPORT = Path(__file__).parent / "_static" / "reports" / "fable"
# Tables and figures are in the page; their files are left out.
LINKS = re.compile(r'<p class="links">.*?</p>\n')


def main(data: Path) -> None:
    """Run the commands and keep the page and its JSON."""
    with tempfile.TemporaryDirectory() as folder:
        population, out = Path(folder) / "essay.keydyn", Path(folder) / "out"
        app(
            ["population", "fit", str(data / "essay.csv"), "--out", str(population)],
            standalone_mode=False,
        )
        app(
            [
                *("evaluate", str(data / "fable.csv"), "--out", str(out), "--population", str(population)),
                *("--protocol", "chronological", "--detector", "population"),
                *("--detector", "pohmm-recommended"),
                *("--report", "standard", "--facts", str(REPORT / "facts.toml")),
            ],
            standalone_mode=False,
        )
        page = (out / "standard.html").read_text(encoding="utf-8")
        (REPORT / "standard.html").write_text(LINKS.sub("", page), encoding="utf-8")
        shutil.copyfile(out / "standard.json", REPORT / "standard.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
