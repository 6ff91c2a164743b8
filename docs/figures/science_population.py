"""Draw how estimates of a simulated person lean on everybody: science_shrinkage.png.

Run from the project's root: python docs/figures/science_population.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from keydyn.arrays import Floats, Integers
from keydyn.datasets import make_typists
from keydyn.figures.style import COLOURS, GREY, drawing, label_log_axis
from keydyn.keystrokes import Samples, one_sample
from keydyn.population import PopulationModel
from keydyn.population.shared_parameters import Template

KEYS, NUMBERS, SHOWN, PEOPLE = 60, (1, 2, 3, 5, 10, 20), (1, 3, 10), 20
INTERVAL = 0


def typing(people: PopulationModel, person: Template, seed: int) -> Samples:
    """Samples of different sentences, each 60 keys, as this person would type them."""
    frame = make_typists(1, max(NUMBERS), "free", n_keys=KEYS, mistakes=0.0, random_state=seed)
    random = np.random.default_rng(seed)
    samples = []
    for session, typed in frame.groupby("session"):
        keys = typed["keyname"].tolist()
        interval, hold = people.typed_by([person], keys, random)[0].T
        press = np.cumsum(np.concatenate([[0.0], interval[1:]]))
        samples.append(one_sample(keys, press, press + hold, session=session))
    return Samples.joined(samples)


def own_medians(people: PopulationModel, samples: Samples) -> tuple[Integers, Floats]:
    """The pairs of keys that were typed, and the median of their intervals, in deviations of the pair."""
    ready = people.ready_for(samples)
    intervals = pd.Series(ready.typing.y[:, INTERVAL]).groupby(ready.cell[:, INTERVAL]).median().dropna()
    return intervals.index.to_numpy(), intervals.to_numpy()


def draw_one(axes: Axes, people: PopulationModel, person: Template, samples: Samples) -> None:
    """Each pair that was typed: its plain median, and where the template has it, over the truth."""
    cells, plain = own_medians(people, samples)
    truth, template = person.mean[cells], people.enrol(samples).mean[cells]
    axes.vlines(truth, plain, template, color=GREY, linewidth=0.4)
    axes.scatter(truth, plain, s=9, color=COLOURS[1], label="median of the person's own")
    axes.scatter(truth, template, s=9, color=COLOURS[0], label="template", zorder=3)
    axes.plot([-3, 3], [-3, 3], ":", color="black", linewidth=0.8, label="right")
    axes.axhline(0.0, color=GREY, linewidth=0.6, label="everybody")
    number = f"{len(samples)} sample{'s' if len(samples) > 1 else ''}"
    axes.set(xlim=(-2.2, 2.2), ylim=(-3, 3), title=f"{number}: {len(cells)} pairs of keys", xlabel="truth")


def errors(people: PopulationModel) -> dict[str, Floats]:
    """Root mean square errors of the pairs typed, by the number of samples, over people."""
    names = ("everybody", "median of the person's own", "template")
    found = {name: np.zeros(len(NUMBERS)) for name in names}
    for seed, person in enumerate(people.draw(PEOPLE, random_state=7)):
        samples = typing(people, person, 100 + seed)
        for place, n in enumerate(NUMBERS):
            cells, plain = own_medians(people, samples[:n])
            truth, template = person.mean[cells], people.enrol(samples[:n]).mean[cells]
            for name, estimate in zip(names, (0.0, plain, template), strict=True):
                found[name][place] += np.mean((estimate - truth) ** 2) / PEOPLE
    return {name: np.sqrt(squares) for name, squares in found.items()}


def main(folder: Path = Path(__file__).parent) -> None:
    """One simulated person after 1, 3 and 10 samples, and the error over twenty."""
    people = PopulationModel.shipped()
    person = people.draw(1, random_state=3)[0]
    samples = typing(people, person, 5)
    with drawing(6.4, 5.8, folder / "science_shrinkage.png") as figure:
        axes = figure.subplots(2, 2).ravel()
        for one, n in zip(axes, SHOWN, strict=False):
            draw_one(one, people, person, samples[:n])
        axes[0].set_ylabel("estimate")
        axes[2].set_ylabel("estimate")
        colours = (GREY, COLOURS[1], COLOURS[0])
        for (name, values), colour in zip(errors(people).items(), colours, strict=True):
            axes[3].plot(NUMBERS, values, "o-", color=colour, markersize=3, label=name)
        axes[3].set_xscale("log")
        label_log_axis(axes[3].xaxis)
        axes[3].set(title=f"Error, {PEOPLE} people", xlabel=f"samples of {KEYS} keys", ylim=(0, None))
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


if __name__ == "__main__":
    main()
