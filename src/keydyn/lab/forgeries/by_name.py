"""All attacks by name, ready to use."""

from __future__ import annotations

from keydyn.lab.forgeries.by_context import ByContext
from keydyn.lab.forgeries.draws import (
    Draw,
    averages,
    histograms,
    normal,
    recent_histograms,
    resampled,
    uniform,
)
from keydyn.lab.forgeries.forger import Forger
from keydyn.lab.forgeries.from_population import FromPopulation
from keydyn.lab.forgeries.replays import CutTogether
from keydyn.lab.forgeries.robots import BrowserRobot, Robot
from keydyn.population import PopulationModel

HISTOGRAMS = "histograms"
METHODS: dict[str, Draw] = {
    "averages": averages,
    "uniform": uniform,
    "normal": normal,
    "histograms": histograms,
    "recent histograms": recent_histograms,
}


def forgers(population: PopulationModel | None = None) -> dict[str, Forger]:
    """All attacks by name; those that draw from a population use this one, or the shipped one.

    Both kinds of histograms belong to one family, because their forgeries are alike.

    Examples
    --------
    >>> from keydyn.lab.forgeries import forgers
    >>> sorted({forger.family for forger in forgers().values()})
    ['averages', 'cut together', 'histograms', 'normal', 'robots', 'the model', 'uniform']
    """
    found: dict[str, Forger] = {}
    for name, draw in METHODS.items():
        family = HISTOGRAMS if name.endswith(HISTOGRAMS) else name
        found[f"{name} by key"] = ByContext(draw, family, longest=1)
        found[f"{name} by pair"] = ByContext(draw, family, longest=2)
        found[f"{name} by context"] = ByContext(draw, family)
        found[f"{name} by any context"] = ByContext(draw, family, least=1)
        found[f"{name} by context, release to press"] = ByContext(draw, family, release_to_press=True)
    found["recorded times by context"] = ByContext(resampled, HISTOGRAMS)
    return found | {
        "drawn from the model": FromPopulation(population),
        "expected by the model": FromPopulation(population, chance=False),
        "words cut together": CutTogether(),
        "runs of 4 keys cut together": CutTogether(run=4),
        "words cut together, jitter 5 ms": CutTogether(jitter=5.0),
        "robot": Robot(),
        "robot, jitter 10 ms": Robot(jitter=10.0),
        "robot, random delays": Robot(spread=0.5),
        "browser automation": BrowserRobot(),
        "browser automation, with waits": BrowserRobot(waits=True),
        "browser automation, random waits": BrowserRobot(waits=True, spread=0.5),
    }


FORGERS = forgers()
