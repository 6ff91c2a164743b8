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
LINK = re.compile(r'href="((?:tables|figures)/[^"]+)"')


def main(data: Path) -> None:
    """Run the commands and keep the page, its JSON, and the files that the page links."""
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
        for part in ("tables", "figures"):
            shutil.rmtree(REPORT / part, ignore_errors=True)
        links = set(LINK.findall((out / "standard.html").read_text(encoding="utf-8")))
        for name in ("standard.html", "standard.json", *sorted(links)):
            (REPORT / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(out / name, REPORT / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
