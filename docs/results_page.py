"""Writes docs/results.md and docs/results/ from the folders that `keydyn study …` left.

python docs/results_page.py out          the pages alone
python docs/results_page.py out --run    the studies first

Nothing on these pages is typed by hand: questions, and sentences on how to read a table, are in `report.py`
of the study, where the answers are computed from values of tables; docs/results/tables/ keeps these.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
from pathlib import Path

from keydyn.cli import app
from keydyn.lab.frame.outputs import read_values
from keydyn.lab.frame.study import LabStudy, PageRun, ResultsPage
from keydyn.lab.run_study import STUDIES

DOCS = Path(__file__).parent
# Tables with more rows than this stand at the end of a page.
LONG = 24
# Tables with more rows than this are a CSV file, to which the page links.
LONGEST = 80

OVERVIEW = """# Results

What was measured with keydyn: one row and one page per study. The first row says how far stated error rates
hold for people and places that nothing was learnt from, which is what keydyn is judged by. The answers are
computed from the tables of the studies. Unless a page says otherwise, the data are the five public datasets
of the paper; Mobile is shown without and with the phone's sensors (Mobile+). Figures from the paper are
labelled as published, and everything else was measured here.

"""

CLOSING = """
Words such as *equal error rate* and *open set* are explained in the {doc}`glossary`.

## Measure it yourself

`make results` runs all studies and writes these pages again. To run a single study, use the command at the
end of its page, where FOLDER has the recordings; {doc}`guide/datasets` says where to get them. Each study
leaves a folder with a report, all tables as CSV, Markdown and LaTeX, figures as PDF, and every score
({doc}`guide/studies`). The times on these pages are by the clock, on a machine with two cores on which
other work may have run, without the compiling that each installation does once.

```{toctree}
:hidden:

"""


def finished(out: Path, study: LabStudy, run: PageRun) -> Path | None:
    """The folder of a run, if it is there and complete."""
    folder = out / (run.folder or study.name)
    if (folder / "run.json").exists():
        return folder
    print(f"left out: no finished study in {folder}", file=sys.stderr)
    return None


def keep(folder: Path, name: str) -> None:
    """Copy the values of a table to docs/results/tables/, if the run left that table."""
    path = folder / "tables" / f"{name}.csv"
    if path.exists():
        target = DOCS / "results" / "tables" / folder.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def answered(folder: Path, page: ResultsPage) -> str:
    """The answer of a run; the values that it is computed from are copied to docs/results/tables/."""
    for name in page.values:
        keep(folder, name)
    return page.answer(read_values(folder / "tables", page.values))


def page_of(out: Path, study: LabStudy, page: ResultsPage) -> str:
    """A study's page; empty if the study is not finished."""
    found = [(run, folder) for run in page.runs if (folder := finished(out, study, run)) is not None]
    if not found or found[0][0] is not page.runs[0]:
        return ""
    parts = [f"# {page.title}", f"**{page.question}**", answered(found[0][1], page)]
    short: list[str] = []
    long: list[str] = []
    for run, folder in found:
        first = run is page.runs[0]
        top, *figures = figures_of(folder, run) or [""]
        few, many = tables_of(folder, run)
        words = folder / "words.md"
        if first:
            parts.append(top)
            said = words.read_text(encoding="utf-8").strip() if words.exists() else ""
            parts += ["## In more detail", said] if said else []
            short += few
        else:
            short += [f"## {run.title}", answered(folder, page), top]
            short += [text.replace("## ", "### ", 1) for text in few]
        if figures:
            short += [f"## {'More figures' if first else run.title + ': figures'}", *figures]
        long += many
    if long and any(text.startswith("## ") and "<!-- table" in text for text in short):
        long = ["## Long tables", *(text.replace("## ", "### ", 1) for text in long)]
    how = ["## How this was measured", *(made_by(study, run, folder) for run, folder in found)]
    return "\n\n".join(part for part in [*parts, *short, *long, *how] if part) + "\n"


def tables_of(folder: Path, run: PageRun) -> tuple[list[str], list[str]]:
    """Each table under a heading, after a sentence on how to read it; short ones, then long ones."""
    short, long = [], []
    for name, reading in run.tables.items():
        path = folder / "tables" / f"{name}.md"
        if not path.exists():
            # With some options, not every table is made.
            print(f"left out: no {path}", file=sys.stderr)
            continue
        text = path.read_text(encoding="utf-8").strip()
        title, _, rest = text.partition("\n\n")
        rows = rest.count("\n|") - 1
        if rows > LONGEST:
            keep(folder, name)
            _, _, note = rest.partition("\n\n")
            file = f"tables/{folder.name}/{name}.csv"
            rest = f"This table has {rows} lines: [download it as a CSV file]({file})\n\n{note}"
        body = f"## {title.strip('*')}\n\n{reading}\n\n<!-- table: {name} -->\n{rest}"
        (long if rows > LONG else short).append(body)
    return short, long


def figures_of(folder: Path, run: PageRun) -> list[str]:
    """Each figure with its caption; the files are copied."""
    shown = []
    for name, caption in run.figures.items():
        path = folder / "figures" / f"{name}.png"
        if not path.exists():
            print(f"left out: no {path}", file=sys.stderr)
            continue
        target = DOCS / "figures" / "results" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        alt = caption.partition(":")[0].partition(";")[0].rstrip(".")
        shown.append(f"![{alt}](../figures/results/{path.name})\n\n*{caption}*")
    return shown


def made_by(study: LabStudy, run: PageRun, folder: Path) -> str:
    """The command, the version, the day and how long it took."""
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    data = ["--data", "FOLDER"] if "data" in study.options else []
    command = shlex.join(["keydyn", "study", study.name, *run.arguments, *data])
    day = f" on {facts['time'][:10]}" if "time" in facts else ""
    rest = " after it was resumed; an earlier part is not counted" if facts.get("resumed") else ""
    return (
        f"```sh\n{command}\n```\n\nVersion {facts['version']}{day}; it took {facts['seconds']:.0f} s{rest}."
    )


def overview(out: Path, pages: dict[str, ResultsPage]) -> str:
    """The page of all studies: one row each; of a study without a folder, from the values that were kept."""
    rows = ["| Question | Answer |", "| --- | --- |"]
    for name, page in pages.items():
        study = STUDIES[name]
        folder = out / (page.runs[0].folder or study.name)
        kept = DOCS / "results" / "tables" / folder.name
        there = (folder / "run.json").exists()
        answer = answered(folder, page) if there else page.answer(read_values(kept, page.values))
        rows.append(f"| [{page.question}](results/{name}.md) | {answer} |")
    names = "\n".join(f"results/{name}" for name in pages)
    return OVERVIEW + "\n".join(rows) + "\n" + CLOSING + names + "\n```\n"


def run_studies(out: Path) -> None:
    """Run every study that has a page; each resumes where it was stopped."""
    for study in STUDIES.values():
        for run in study.page.runs if study.page else ():
            folder = out / (run.folder or study.name)
            command = ["study", study.name, *run.arguments, "--out", str(folder)]
            # Without standalone mode a command that failed returns its exit code.
            if exit_code := app(command, standalone_mode=False):
                sys.exit(exit_code)


def main() -> None:
    """Read the arguments, run the studies if asked to, and write the pages."""
    parser = argparse.ArgumentParser(description="Write docs/results.md and docs/results/.")
    parser.add_argument("out", type=Path, help="folder that holds a folder for each study")
    parser.add_argument("--run", action="store_true", help="run the studies first")
    arguments = parser.parse_args()
    if arguments.run:
        run_studies(arguments.out)
    (DOCS / "results").mkdir(exist_ok=True)
    written = {}
    for study in STUDIES.values():
        if study.page is None:
            continue
        path = DOCS / "results" / f"{study.name}.md"
        if text := page_of(arguments.out, study, study.page):
            path.write_text(text, encoding="utf-8")
        # The page of a study that was not run again stays as it is.
        if path.exists():
            written[study.name] = study.page
    (DOCS / "results.md").write_text(overview(arguments.out, written), encoding="utf-8")


if __name__ == "__main__":
    main()
