"""Warming up: code is compiled, or loaded if it was before, before the first request needs it."""

from __future__ import annotations

import numpy as np

from keydyn.datasets import make_typists
from keydyn.decisions import Verifier


def warm() -> None:
    """Run everything that requests run, on simulated typing."""
    typed = make_typists(n_users=1, n_samples=4)
    session = typed["session"]
    verifier = Verifier.shipped()
    enrolled = typed[session < 3]
    verifier.enrol("a person", enrolled)
    sample = typed[session == np.max(session)]
    verifier.update("a person", sample)
    verifier.identify(sample)
    verifier.watch("a person").update(sample)
