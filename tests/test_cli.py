"""The command line, as a person uses it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import keydyn
from keydyn.cli import app
from keydyn.demo import KEYS, simulated_typist


def keydyn_command(*arguments):
    return subprocess.run(
        [sys.executable, "-c", "from keydyn.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_help_and_version():
    shown = keydyn_command("--help")
    assert shown.returncode == 0
    assert "demo" in shown.stdout
    assert keydyn_command("--version").stdout.strip() == f"keydyn {keydyn.__version__}"
    assert keydyn_command("demo", "--help").stdout.count("--users")


def test_help_does_not_import_the_numerical_stack():
    """Asking for help must not cost seconds."""
    code = (
        "import sys; from keydyn.cli import app; "
        "heavy = {'numpy', 'numba', 'scipy', 'pandas', 'sklearn', 'matplotlib'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_demo(tmp_path):
    """It identifies, shows states, and leaves a table, a figure and a model that can be loaded."""
    done = keydyn_command("demo", "--users", "3", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "typed it" in done.stdout
    table = pd.read_csv(tmp_path / "out" / "identification.csv")
    assert len(table) == 3
    scores = table.filter(like="log-likelihood").to_numpy()
    # The rank in the table is the true user's place among the scores of that row.
    assert table["rank of true user"].tolist() == [
        1 + int((row > row[u]).sum()) for u, row in enumerate(scores)
    ]
    assert (tmp_path / "out" / "hidden_states.png").read_bytes().startswith(b"\x89PNG")
    model = keydyn.load(tmp_path / "out" / "typist.keydyn")
    assert model.event_types_.tolist() == sorted(set(KEYS))


@pytest.mark.parametrize("arguments", [["demo", "--users", "1"], ["demo", "--nonsense"], ["dance"]])
def test_wrong_use_is_told(arguments):
    done = keydyn_command(*arguments)
    assert done.returncode == 2
    assert "Usage" in done.stderr


def test_the_demo_is_reproducible():
    a, b = (simulated_typist(np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(a.transmat_, b.transmat_)
    assert app.info.name == "keydyn"


def test_public_names():
    for name in keydyn.__all__:
        assert getattr(keydyn, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = keydyn.nothing
