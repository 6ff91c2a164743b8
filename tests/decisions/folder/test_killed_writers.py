"""Nothing that was acknowledged is lost when writers are killed, and the folder always opens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from keydyn.decisions import Verifier
from tests.decisions.typed_samples import background, typed
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(os.name != "posix", reason="processes are forked and killed as in POSIX")
def test_writers_killed_at_random_moments_lose_nobody(tmp_path):
    verifier = Verifier.of(background())
    verifier.enrol("first", typed(users=("first",)))
    verifier.save(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.decisions.folder.killed_writers", str(tmp_path), "15", "1"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["killed"] == 30
    assert counts["acknowledged"] > 0
    assert counts["lost"] == 0
    assert counts["left over"] == 0
