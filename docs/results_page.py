"""Writes docs/results.md from the folders that `keydyn study …` left: nothing in it is typed by hand.

python docs/results_page.py out          the page alone
python docs/results_page.py out --run    the studies first
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from keydyn.cli import app
from keydyn.commands.run_study import STUDIES
from keydyn.commands.study import ResultsSection

HERE = Path(__file__).parent
FIGURES = HERE / "figures" / "results"

INTRODUCTION = """# Results

Measured by `keydyn study …` on the paper's five datasets; `make results` runs the studies and writes this
page anew from the tables that they leave. Figures of the paper are labelled as published, everything else was
measured here. Each study's own folder has more: error rates in ISO's vocabulary with confidence intervals,
every score, and a report. Times are by the clock on two cores, without the compiling that each machine does
once; other work may have run beside. For a study that was interrupted and resumed, the time is that since it
resumed, as for calibration and model choice here.

The example of continuous verification is the first sample of the first essay user: impostors are found after
81 keys on average, as in the paper's own example.
"""


def existing(paths: Iterable[Path]) -> Iterator[Path]:
    """Those that a study left: with some options, not every table is made."""
    for path in paths:
        if path.exists():
            yield path
        else:
            print(f"left out: no {path}", file=sys.stderr)


def run(out: Path) -> None:
    """Run every study that the page shows; each resumes where it was stopped."""
    for study in STUDIES.values():
        for section in study.results:
            folder = out / (section.folder or study.name)
            command = ["study", study.name, *section.arguments, "--out", str(folder)]
            # Without standalone mode a command that failed returns its exit code.
            if exit_code := app(command, standalone_mode=False):
                sys.exit(exit_code)


def page(out: Path) -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for study in STUDIES.values():
        for section in study.results:
            parts += section_parts(out / (section.folder or study.name), section)
    return "\n".join(parts)


def section_parts(folder: Path, section: ResultsSection) -> list[str]:
    """The paragraphs, tables and figures of a section; nothing where the study is not finished."""
    if not (folder / "run.json").exists():
        print(f"left out: no finished study in {folder}", file=sys.stderr)
        return []
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    how = f"`keydyn study {facts['study']}`, version {facts['version']}: {facts['seconds']:.0f} s."
    parts = [f"## {section.title}\n\n{how}\n"]
    if (folder / "words.md").exists():
        parts.append((folder / "words.md").read_text(encoding="utf-8"))
    tables = existing(folder / "tables" / f"{name}.md" for name in section.tables)
    parts += [path.read_text(encoding="utf-8") for path in tables]
    for path in existing(folder / "figures" / f"{name}.png" for name in section.figures):
        FIGURES.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, FIGURES / path.name)
        parts.append(f"![{section.figures[path.stem]}](figures/results/{path.name})\n")
    return parts


def main() -> None:
    """Read the arguments, run the studies if asked to, and write the page."""
    parser = argparse.ArgumentParser(description="Write docs/results.md.")
    parser.add_argument("out", type=Path, help="folder that holds a folder for each study")
    parser.add_argument("--run", action="store_true", help="run the studies first")
    arguments = parser.parse_args()
    if arguments.run:
        run(arguments.out)
    (HERE / "results.md").write_text(page(arguments.out), encoding="utf-8")


if __name__ == "__main__":
    main()
