"""Forged typing: keystrokes that an attacker's machine sends in a victim's name.

Every attack keeps the keys of a text and makes up its times. `FORGERS` holds all attacks by name; each has a
`family`, which it shares with similar attacks, and lists the `knowledge` of the victim that it can use.

Examples
--------
>>> import numpy as np
>>> from keydyn.datasets import make_typists
>>> from keydyn.keystrokes import Samples
>>> from keydyn.lab.forgeries import FORGERS
>>> samples = Samples.of(make_typists(1, 8))
>>> forged = FORGERS["histograms by pair"].forge(samples[:6], samples[6:], np.random.default_rng(0))
>>> len(forged)
2
"""

from keydyn.lab.forgeries.bursts import InBursts
from keydyn.lab.forgeries.by_context import ByContext
from keydyn.lab.forgeries.by_name import FORGERS, METHODS, forgers
from keydyn.lab.forgeries.draws import (
    averages,
    histograms,
    normal,
    recent_histograms,
    resampled,
    uniform,
)
from keydyn.lab.forgeries.forger import (
    ENROLLED,
    KNOWLEDGE,
    NOTHING,
    RECORDINGS,
    STOLEN,
    TEMPLATE,
    Forger,
    stolen,
)
from keydyn.lab.forgeries.from_population import FromPopulation
from keydyn.lab.forgeries.joining import first_keys_of_each, joined
from keydyn.lab.forgeries.replays import CutTogether, replayed
from keydyn.lab.forgeries.robots import BrowserRobot, Robot

__all__ = [
    "ENROLLED",
    "FORGERS",
    "KNOWLEDGE",
    "METHODS",
    "NOTHING",
    "RECORDINGS",
    "STOLEN",
    "TEMPLATE",
    "BrowserRobot",
    "ByContext",
    "CutTogether",
    "Forger",
    "FromPopulation",
    "InBursts",
    "Robot",
    "averages",
    "first_keys_of_each",
    "forgers",
    "histograms",
    "joined",
    "normal",
    "recent_histograms",
    "replayed",
    "resampled",
    "stolen",
    "uniform",
]
