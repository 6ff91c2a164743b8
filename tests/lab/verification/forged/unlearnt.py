"""A defence whose detectors of forgeries call all samples forged, or none, and remember how many they saw."""

from __future__ import annotations

import numpy as np

from keydyn.decisions.calibration.background import shipped_background
from keydyn.decisions.decision import Typed
from keydyn.lab.forgeries import forgers
from keydyn.lab.verification.forged.attacked import PICKED, Defence

TRIED = ("averages by pair", "histograms by context", "robot, random delays", PICKED)


class Unlearnt:
    """Calls all samples forged, or none."""

    def __init__(self, alarmed):
        self.alarmed, self.seen = alarmed, 0

    def llr(self, samples, template):
        return np.arange(float(len(samples)))

    def judged(self, samples, template):
        self.seen += len(samples)
        return [Typed("no" if self.alarmed else "yes")] * len(samples)


def unlearnt():
    """Only the detector that has not met averages calls what it judges forged."""
    families = {forger.family for forger in forgers().values()}
    detectors = {family: Unlearnt(family == "averages") for family in families}
    return Defence(shipped_background(), Unlearnt(False), detectors)
