"""The command line, as a person uses it."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pytest

import keydyn
from keydyn.datasets import load_recordings


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
    """It identifies, verifies, watches, and leaves tables, figures, a model and the recordings."""
    out = tmp_path / "out"
    done = keydyn_command("demo", "--users", "3", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    shown = " ".join(done.stdout.split())
    for words in ("typed it", "equal error rate", "are found out, after", "of the states are those"):
        assert words in shown
    table = pd.read_csv(out / "recognition.csv")
    assert len(table) == 3
    assert table["acc"].between(0, 1).all()
    for figure in ("hidden_states.png", "watching.png"):
        assert (out / figure).read_bytes().startswith(b"\x89PNG")
    model = keydyn.load(out / "typist.keydyn")
    keystrokes = load_recordings(out / "typing.csv")
    assert set(model.event_types_) <= set(keystrokes["keyname"])
    # The command that it proposes works on what it left.
    assert keydyn_command("fit", str(out / "typing.csv"), "--out", str(out / "models")).returncode == 0
    assert (
        keydyn_command("identify", str(out / "unknown.csv"), "--models", str(out / "models")).returncode == 0
    )
    assert (out / "models" / "models.json").exists()


@pytest.mark.parametrize("arguments", [["demo", "--users", "1"], ["demo", "--nonsense"], ["dance"]])
def test_wrong_use_is_reported(arguments):
    done = keydyn_command(*arguments)
    assert done.returncode == 2
    assert "Usage" in done.stderr


def test_public_names():
    for name in keydyn.__all__:
        assert getattr(keydyn, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = keydyn.nothing


def test_a_demo_that_cannot_write_says_so(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = keydyn_command("demo", "--users", "2", "--out", str(tmp_path / "file" / "demo"))
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
