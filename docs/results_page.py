"""Writes docs/results.md from the folders that `keydyn study …` left: nothing in it is typed by hand.

python docs/results_page.py out
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
FIGURES = HERE / "figures" / "results"

INTRODUCTION = """# Results

Measured by `keydyn study …` on the paper's five datasets; `make results` runs the studies and writes this
page anew from the tables that they leave. Figures of the paper are labelled as published, everything else was
measured here. Each study's own folder has more: error rates in ISO's vocabulary with confidence intervals,
every score, and a report. Times are by the clock on two cores, compiling (once a machine) not included; other
work may have run beside. A study that went on after an interruption tells the time since then, as
calibration and model choice do here.

The example of continuous verification is the first sample of the first essay user: impostors are found after
81 keys on average, as in the paper's own example.
"""

# Study → title, command, what is shown: tables and figures with their captions.
SHOWN: dict[str, tuple[str, list[str], dict[str, str]]] = {
    "recognition": (
        "Identification and verification",
        ["identification", "verification", "recommended", "open_set"],
        {
            "roc": "ROC curves, mean over users with 95 % bands",
            "open_set": "Equal error rates, closed and open set",
            "marginal_density": "Densities of the hidden states",
        },
    ),
    "continuous": (
        "Continuous verification",
        ["continuous", "watching"],
        {"penalty": "The rank penalty, key by key", "rejection": "Rejection times"},
    ),
    "recommended": ("What is recommended, and how it was chosen", ["choices", "candidates"], {}),
    "simulation": (
        "Simulation study",
        ["simulation", "accuracy"],
        {
            "simulation": "Residuals of every parameter over the number of events",
            "errors": "Root mean square errors",
            "states": "Hidden states found",
        },
    ),
    "simulation-truths": (
        "Simulation study with other true models",
        ["simulation"],
        {"truths": "Root mean square errors for each true model"},
    ),
    "goodness-of-fit": (
        "Goodness of fit",
        ["goodness_of_fit", "p_values", "marginals", "residuals"],
        {"p_values": "p-values of all users", "residuals": "Residuals of one user of each dataset"},
    ),
    "calibration": (
        "How far the test can be trusted",
        ["calibration", "power"],
        {"calibration": "p-values where the hypothesis is true", "power": "Wrong hypotheses rejected"},
    ),
    "model-choice": (
        "Model choice",
        ["model_choice"],
        {"model_choice": "BIC and held-out likelihood by states, family and smoothing"},
    ),
    "relatives": (
        "The relatives",
        ["relatives"],
        {"lost_context": "What lost contexts cost each model"},
    ),
}


def there(paths: Iterable[Path]) -> Iterator[Path]:
    """Those that a study left: not every table is made with every option."""
    for path in paths:
        if path.exists():
            yield path
        else:
            print(f"left out: no {path}", file=sys.stderr)


def page(out: Path) -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for study, (title, tables, figures) in SHOWN.items():
        folder = out / study
        if not (folder / "run.json").exists():
            print(f"left out: no finished study in {folder}", file=sys.stderr)
            continue
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        told = f"`keydyn study {run['study']}`, version {run['version']}: {run['seconds']:.0f} s."
        parts.append(f"## {title}\n\n{told}\n")
        if (folder / "words.md").exists():
            parts.append((folder / "words.md").read_text(encoding="utf-8"))
        written = there(folder / "tables" / f"{name}.md" for name in tables)
        parts += [path.read_text(encoding="utf-8") for path in written]
        for path in there(folder / "figures" / f"{name}.png" for name in figures):
            FIGURES.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, FIGURES / path.name)
            parts.append(f"![{figures[path.stem]}](figures/results/{path.name})\n")
    return "\n".join(parts)


if __name__ == "__main__":
    (HERE / "results.md").write_text(page(Path(sys.argv[1])), encoding="utf-8")
