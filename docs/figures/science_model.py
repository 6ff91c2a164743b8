"""Draw what a POHMM learns from simulated typing: densities, states, the way of a fit, and smoothing.

Run from the project's root: python docs/figures/science_model.py
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import lognorm
from sklearn.exceptions import ConvergenceWarning

from keydyn import HMM, POHMM, Sequences
from keydyn.figures.style import COLOURS, GREY, drawing, label_log_axis

KEYS = ("t", "h", "e", "space")
STATES = ("active", "passive")
LENGTH = 40
# How many samples are learnt from, and how often each number is tried.
NUMBERS, REPEATS = (1, 2, 4, 8, 16, 32, 64), 10
KINDS: dict[str, tuple[Callable[[], POHMM], str]] = {
    "POHMM, smoothed": (POHMM, COLOURS[0]),
    "POHMM, not smoothed": (partial(POHMM, smoothing=None), COLOURS[1]),
    "HMM, keys ignored": (HMM, GREY),
}


def typist() -> POHMM:
    """A simulated typist: pauses begin at the space bar, and last a few keys."""
    steps = np.tile([[0.95, 0.05], [0.6, 0.4]], (4, 4, 1, 1))
    steps[:, 3] = [[0.7, 0.3], [0.3, 0.7]]
    return POHMM.from_parameters(
        KEYS,
        [[0.8, 0.2]] * 4,
        steps,
        [("lognormal", [[4.8, 5.6], [4.6, 5.5], [4.9, 5.7], [5.1, 6.3]], [[0.20, 0.35]] * 4)],
        event_startprob=[0.6, 0.2, 0.2, 0.0],
        event_transmat=[
            [0.1, 0.6, 0.1, 0.2],
            [0.1, 0.0, 0.7, 0.2],
            [0.2, 0.2, 0.1, 0.5],
            [0.7, 0.1, 0.2, 0.0],
        ],
    )


def typed(n: int, seed: int) -> tuple[Sequences, np.ndarray]:
    """n samples and their hidden states."""
    X, events, states = typist().sample(lengths=[LENGTH] * n, random_state=seed)
    return Sequences.from_arrays(X, events, [LENGTH] * n), states


def quick(model: POHMM, data: Sequences) -> POHMM:
    """The model, fitted; that it might go on is no matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data)


def draw_densities(path: Path) -> None:
    """The density of each key's intervals in each state, true and estimated, over what was typed."""
    data, _ = typed(60, 1)
    truth, found = typist(), POHMM().fit(data)
    x = np.geomspace(50, 2000, 300)
    with drawing(6.4, 4.6, path) as figure:
        for axes, key in zip(figure.subplots(2, 2, sharex=True, sharey=True).flat, KEYS, strict=True):
            own = data.X[data.labels() == key, 0]
            axes.hist(np.log(own), 30, density=True, color="#dddddd")
            for model, line in ((truth, ":"), (found, "-")):
                w = list(model.event_types_).index(key)
                for j, share in enumerate(model.stationary_[w]):
                    emission = model.emission_[0]
                    density = lognorm.pdf(x, emission.scale[w, j], scale=np.exp(emission.loc[w, j]))
                    axes.plot(np.log(x), share * density * x, line, color=COLOURS[j])
            axes.set_title(f"{key}: {len(own)} intervals")
            axes.set_xticks(
                np.log([50, 100, 200, 500, 1000]), ["50", "100", "200", "500", "1000"], fontsize=7
            )
            axes.set_yticks([])
        for axes in figure.axes[2:]:
            axes.set_xlabel("interval, ms")
        for axes in figure.axes[::2]:
            axes.set_ylabel("density of ln interval")
        lines = [figure.axes[0].lines[k] for k in (2, 3, 0, 1)]
        names = [*STATES, "active, truth", "passive, truth"]
        figure.legend(lines, names, loc="outside lower center", ncols=4)


def draw_posterior(path: Path) -> None:
    """One sample: its intervals, and the probability of a pause given the past and given everything."""
    found = POHMM().fit(typed(60, 1)[0])
    sample, states = typed(1, 7)
    place = np.arange(LENGTH)
    with drawing(6.4, 3.8, path) as figure:
        top, bottom = figure.subplots(2, 1, sharex=True)
        top.plot(place, sample.X[:, 0], color=GREY, linewidth=0.5)
        for j, state in enumerate(STATES):
            here = states == j
            top.scatter(
                place[here], sample.X[here, 0], s=18, color=COLOURS[j], zorder=2, label=f"{state} (truth)"
            )
        top.set_yscale("log")
        label_log_axis(top.yaxis)
        top.set_ylabel("interval, ms")
        top.legend(ncols=2, loc="upper right")
        smoothed, filtered = found.predict_proba(sample)[:, 1], found.filter_proba(sample)[:, 1]
        bottom.bar(place, smoothed, color=COLOURS[1], alpha=0.45, label="given the whole sample")
        bottom.step(place, filtered, where="mid", color="black", linewidth=0.8, label="given the keys so far")
        bottom.set(ylabel="P(passive)", ylim=(0, 1.3), yticks=[0, 0.5, 1])
        bottom.legend(loc="upper left", ncols=2)
        names = ["␣" if key == "space" else key for key in sample.labels()]
        bottom.set_xticks(place, names, fontsize=7)
        bottom.margins(x=0.01)


def draw_learning(path: Path) -> None:
    """The log-likelihood over the iterations, from the second on: several starts, and then with smoothing."""
    data, _ = typed(2, 4)
    plain = POHMM(smoothing=None, n_init=6, random_state=4).fit(data)
    smoothed = np.array(POHMM().fit(data).history_)
    with drawing(6.4, 2.9, path) as figure:
        left, right = figure.subplots(1, 2)
        for number, result in enumerate(plain.init_results_):
            label = {0: "the default start", 1: "random starts"}.get(number)
            colour = COLOURS[0] if number == 0 else GREY
            left.plot(range(2, len(result.history) + 1), result.history[1:], color=colour, label=label)
        left.set_xscale("log")
        label_log_axis(left.xaxis)
        left.set(title="Without smoothing: never falls", xlabel="iteration", ylabel="log-likelihood")
        left.legend(loc="lower right")
        steps = np.arange(1, len(smoothed) + 1)
        right.plot(steps[1:], smoothed[1:], "o-", color=COLOURS[2], markersize=3)
        right.set(title="With smoothing: may fall, and stops", xlabel="iteration")
        inset = right.inset_axes((0.48, 0.1, 0.5, 0.42))
        inset.plot(steps[-4:], smoothed[-4:], "o-", color=COLOURS[2], markersize=3)
        inset.set_title("the last four", fontsize=8)
        inset.ticklabel_format(useOffset=False)
        inset.set_xticks(steps[-4:])
        inset.tick_params(labelsize=7)


def draw_few(axes: Axes, key: str = "h") -> None:
    """The density that one sample gives the intervals of a key that it holds a few times."""
    data, _ = typed(1, 5)
    own = data.X[data.labels() == key, 0]
    x = np.geomspace(40, 1500, 800)
    models = {"truth": (typist(), "black", ":")}
    for name, (model, colour) in KINDS.items():
        models[name] = (model().fit(data), colour, "-")
    for name, (model, colour, line) in models.items():
        found = list(model.event_types_)
        w = found.index(key) if key in found else 0
        emission, shares = model.emission_[0], model.stationary_[w]
        density = sum(
            share * lognorm.pdf(x, emission.scale[w, j], scale=np.exp(emission.loc[w, j]))
            for j, share in enumerate(shares)
        )
        axes.plot(x, np.asarray(density) * x, line, color=colour, label=name)
    axes.plot(own, np.full(len(own), 0.05), "k|", markersize=10)
    axes.set_xscale("log")
    label_log_axis(axes.xaxis)
    axes.set(ylim=(0, 6), xlabel="interval, ms", ylabel="density of ln interval")
    axes.set_title(f"“{key}”, typed {len(own)} times")


def draw_smoothing(path: Path) -> None:
    """What a few intervals of a key become, and what is left for new typing."""
    test, _ = typed(100, 99)
    scores = {name: np.empty((len(NUMBERS), REPEATS)) for name in KINDS}
    for (place, n), seed in product(enumerate(NUMBERS), range(REPEATS)):
        data, _ = typed(n, 1000 + REPEATS * n + seed)
        for name, (model, _) in KINDS.items():
            scores[name][place, seed] = quick(model(), data).score(test) / test.n_events
    with drawing(6.4, 3.1, path) as figure:
        left, right = figure.subplots(1, 2)
        draw_few(left)
        events = np.multiply(NUMBERS, LENGTH)
        for name, (_, colour) in KINDS.items():
            right.plot(events, np.median(scores[name], axis=1), "o-", color=colour, markersize=3)
        right.set_xscale("log")
        label_log_axis(right.xaxis)
        right.set(ylim=(-7.2, -5.1), xlabel="events to learn from", title="Log-likelihood per new event")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)


def main(folder: Path = Path(__file__).parent) -> None:
    """All four."""
    draw_densities(folder / "science_densities.png")
    draw_posterior(folder / "science_posterior.png")
    draw_learning(folder / "science_learning.png")
    draw_smoothing(folder / "science_smoothing.png")


if __name__ == "__main__":
    main()
