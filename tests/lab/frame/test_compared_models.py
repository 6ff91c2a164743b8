"""The models that are compared."""

from __future__ import annotations

import pytest

from keydyn import HMM, POHMM
from keydyn.lab.frame.compared_models import pattern


def test_patterns():
    assert pattern("hmm", "published").density_floor == 1e-5
    assert type(pattern("hmm", "recommended")) is HMM
    assert type(pattern("pohmm", "recommended", n_states=3)) is POHMM
    assert pattern("pohmm", "recommended", n_states=3).n_states == 3
    with pytest.raises(ValueError, match="models are hmm, pohmm"):
        pattern("svm", "published")
