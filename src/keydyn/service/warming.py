"""Compiled code is loaded, or compiled once per installation, before the first request needs it."""

from __future__ import annotations

import numpy as np

from keydyn.datasets import make_typists
from keydyn.decisions import Verifier


def warm() -> None:
    """Take every way that a request takes, with simulated typing."""
    typed = make_typists(n_users=1, n_samples=4)
    session = typed["session"]
    verifier = Verifier.shipped()
    enrolled = typed[session < 3]
    verifier.enrol("somebody", enrolled)
    sample = typed[session == np.max(session)]
    verifier.update("somebody", sample)
    verifier.identify(sample)
    verifier.watch("somebody").update(sample)
