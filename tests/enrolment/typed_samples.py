"""Recordings of a few people, and manifests to change by hand."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from keydyn.keystrokes.schema import check_keystrokes


def typed(seed=0, users=("ann", "bob", "eve"), n_samples=6, n_keys=8, tempos=None):
    """People who type the same eight keys at tempos of their own."""
    rng = np.random.default_rng(seed)
    rows = []
    for u, user in enumerate(users):
        tempo = u if tempos is None else tempos[u]
        for session in range(n_samples):
            press = np.cumsum(rng.lognormal(4.8 + 0.5 * tempo, 0.15, n_keys)).round(3)
            hold = rng.lognormal(4.2 + 0.2 * tempo, 0.15, n_keys).round(3)
            rows += [(user, session, "abcdefgh"[k], press[k], press[k] + hold[k]) for k in range(n_keys)]
    return check_keystrokes(
        pd.DataFrame(rows, columns=["user", "session", "keyname", "timepress", "timerelease"])
    )


def manifest_of(folder):
    return json.loads((folder / "models.json").read_text())


def write_manifest(folder, manifest):
    (folder / "models.json").write_text(manifest if isinstance(manifest, str) else json.dumps(manifest))


def as_version_1(folder):
    """Turn a folder into one of the version before, byte for byte as that was written."""
    manifest = manifest_of(folder)
    for n, entry in enumerate(manifest["users"]):
        (folder / f"{entry['sha256']}.keydyn").rename(folder / f"user-{n:06d}.keydyn")
    manifest["version"] = 1
    manifest.pop("next_number")
    manifest["users"] = [
        {"user": entry["user"], "file": f"user-{n:06d}.keydyn"}
        | {name: entry[name] for name in ("samples", "threshold", "penalty")}
        for n, entry in enumerate(manifest["users"])
    ]
    (folder / "models.json").write_text(json.dumps(manifest, indent=1))
