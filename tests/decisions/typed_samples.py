"""Recordings of a few people, and manifests to change by hand."""

from __future__ import annotations

import json
import zlib
from functools import cache

import numpy as np
import pandas as pd

from keydyn.decisions.calibration.background import Background
from keydyn.detectors import make_detector
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.schema import check_keystrokes

KEYS = "theradionset"
OTHERS = tuple(f"other{n}" for n in range(10))


def typed(seed=0, users=("ann", "bob", "eve"), n_samples=6, n_keys=12):
    """People who type the same keys, each in a rhythm that follows from the name."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in users:
        own = np.random.default_rng(zlib.crc32(str(user).encode())).normal(0.0, 0.5, (2, n_keys))
        for session in range(n_samples):
            press = np.cumsum(rng.lognormal(5.0 + own[0], 0.15)).round(3)
            release = (press + rng.lognormal(4.4 + 0.6 * own[1], 0.15)).round(3)
            keys = [KEYS[k % len(KEYS)] for k in range(n_keys)]
            rows += [(user, session, *each) for each in zip(keys, press, release, strict=True)]
    return check_keystrokes(
        pd.DataFrame(rows, columns=["user", "session", "keyname", "timepress", "timerelease"])
    )


@cache
def background(detector="pohmm"):
    """Calibrated on ten others, who are the cohort."""
    return Background.calibrated(
        make_detector(detector), recorded_samples(typed(99, OTHERS, n_samples=4)), n_jobs=2
    )


def manifest_of(folder):
    return json.loads((folder / "models.json").read_text())


def write_manifest(folder, manifest):
    (folder / "models.json").write_text(manifest if isinstance(manifest, str) else json.dumps(manifest))
