"""Draw keydyn beside other libraries from what `make bench` measured: performance.png.

python docs/figures/performance.py out/bench
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from matplotlib.ticker import StrMethodFormatter

from keydyn.figures.style import COLOURS, drawing

HERE = Path(__file__).parent
WORKLOADS = {
    "A:": "fit one sequence\nof 100,000",
    "B:": "fit one model to\n5,000 sequences of 11",
    "C:": "fit 200 models to\n20 sequences of 11 each",
    "D:": "score 20,000\nsequences of 11",
}
LIBRARIES = ("keydyn", "dynamax (by hand)", "hmmlearn (scaling)", "hmmlearn (log)")


def main() -> None:
    """Read speed.csv and draw a group of points for each workload."""
    with (Path(sys.argv[1]) / "speed.csv").open(newline="", encoding="utf-8") as file:
        times = {(row["workload"][:2], row["library"]): float(row["ns"]) for row in csv.DictReader(file)}
    places = np.arange(len(WORKLOADS))[::-1]
    height = 0.8 / len(LIBRARIES)
    with drawing(7.0, 3.8, HERE / "performance.png") as figure:
        axes = figure.subplots()
        for n, library in enumerate(LIBRARIES):
            values = [times.get((workload, library), np.nan) for workload in WORKLOADS]
            at = places + (1.5 - n) * height
            axes.plot(values, at, "o", color=COLOURS[n], label=library)
            for value, place in zip(values, at, strict=True):
                axes.annotate(
                    f"{value:,.0f}", (value, place), (6, -3), textcoords="offset points", fontsize=7
                )
        axes.set_xscale("log")
        axes.set_xlim(10, 120_000)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.set_yticks(places, list(WORKLOADS.values()))
        axes.set(xlabel="nanoseconds per event (fits: and iteration), one thread; lower is better")
        axes.grid(axis="x", alpha=0.3, linewidth=0.6)
        axes.legend(loc="upper right", bbox_to_anchor=(1.0, 1.14), ncols=4, fontsize=7, frameon=False)


if __name__ == "__main__":
    main()
