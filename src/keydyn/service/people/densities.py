"""How the keys that a user types most differ from everybody's."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Literal

import numpy as np

from keydyn.detectors import PopulationDetector
from keydyn.population.densities import Time, densities
from keydyn.population.features import HOLD, INTERVAL
from keydyn.service.accounts import Tenant
from keydyn.service.people.context import Context
from keydyn.service.people.templates import stored_samples
from keydyn.service.people.verification import subject_of
from keydyn.service.problems import Problem
from keydyn.service.wire.answers import CurveAnswer, DensitiesAnswer
from keydyn.service.wire.both_ways import Device, Text

# Curves per feature, and the times in milliseconds at which they are drawn.
CURVES = 4
TIMES = {INTERVAL: np.linspace(10.0, 600.0, 119), HOLD: np.linspace(10.0, 300.0, 117)}
# Pairs of keys that everybody types, for users whose samples have expired.
USUAL = (("e", "space"), ("t", "h"), ("h", "e"), ("i", "n"))


def densities_of(context: Context, tenant: Tenant, name: str, device: Device) -> DensitiesAnswer:
    """The densities of the keys that a user typed most in samples of free text."""
    subject = subject_of(context, tenant, name, Text(), device)
    template = subject.enrolled.template
    if not isinstance(template, PopulationDetector):
        detail = f"Templates of {template.name} have none."
        raise Problem(409, "no-densities", "There are no densities", detail)
    with context.database.reading() as connection:
        kept = stored_samples(connection, subject.person, subject.profile)
    typed = Counter(pair for one in kept for pair in pairwise(one.keys))
    usual = list(dict.fromkeys([*(pair for pair, _ in typed.most_common(CURVES)), *USUAL]))[:CURVES]
    model = subject.background.population
    found: list[CurveAnswer] = []
    for feature, at in TIMES.items():
        for first, second in usual:
            time = Time(feature, first, second)
            own, everybody = densities(model, template.template_, time, at).T
            named: Literal["interval", "hold"] = "interval" if feature == INTERVAL else "hold"
            curve = (tuple(values.tolist()) for values in (at, own, everybody))
            found.append(CurveAnswer(named, (first, second), *curve))
    return DensitiesAnswer(tuple(found))
