"""What a process pays before its first result."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

HEAVY = {"numpy", "numba", "scipy", "pandas", "sklearn", "matplotlib", "pyarrow", "joblib", "distributed"}
SOURCES = Path(__file__).parents[1] / "src" / "keydyn"


def printed(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_and_a_bare_import_leave_the_numerical_stack_alone():
    """Not only the import of the command line: the whole run of --help."""
    imported = "print(sorted({name.split('.')[0] for name in sys.modules}))"
    for work in (
        "import keydyn; keydyn.__version__; dir(keydyn)",
        "from keydyn.cli import app; app(['--help'], standalone_mode=False)",
        "from keydyn.cli import app; app(['fit', '--help'], standalone_mode=False)",
    ):
        loaded = set(re.findall(r"'([^']*)'", printed(f"import sys; {work}; {imported}").splitlines()[-1]))
        assert "keydyn" in loaded
        assert not loaded & HEAVY


DECIDE = """
from keydyn.decisions import Verifier
from keydyn.keystrokes import Samples, one_sample
verifier, keys = Verifier.shipped(), list("thequickbrownfox")
typed = [one_sample(keys, range(0, 2400, 150), range(90, 2490, 150), "ann", n) for n in range(3)]
verifier.enrol("ann", Samples.joined(typed[:2]))
verifier.verify("ann", typed[2])
verifier.identify(typed[2])
verifier.watch("ann").update_values([[None, 90.0], [150.0, 90.0]], ["t", "h"])
"""


def test_decisions_from_arrays_load_neither_data_frames_nor_what_only_learning_needs():
    """The import of the verifier, and all that it is asked of plain arrays."""
    imported = "import sys; print(sorted(sys.modules))"
    for work in ("from keydyn.decisions import Verifier", DECIDE):
        loaded = set(re.findall(r"'([^']*)'", printed(f"{work}\n{imported}").splitlines()[-1]))
        assert "keydyn.decisions.verifier" in loaded
        unwanted = {
            "pandas",
            "sklearn",
            "scipy.optimize",
            "scipy.stats",
            "scipy.special",
            "keydyn.model.pohmm",
        }
        assert not loaded & unwanted


@pytest.mark.parametrize(
    "package", ["", ".decisions", ".detectors", ".evaluation", ".keystrokes", ".model", ".datasets"]
)
def test_names_on_demand_are_those_that_a_package_lists(package):
    module = import_module(f"keydyn{package}")
    assert set(dir(module)) | {"__version__", "one_sample"} >= set(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = module.nothing


def test_there_is_one_way_to_compile():
    """`arrays.compiled` keeps results on disk; nothing else calls Numba's compiler."""
    direct = re.compile(r"numba\.\w*jit|from numba import|@(n?jit|vectorize|guvectorize)")
    found = [path.name for path in SOURCES.rglob("*.py") if direct.search(path.read_text(encoding="utf-8"))]
    assert found == ["arrays.py"]


COMPILE = """
import sys
import numpy as np
from keydyn import HMM
model = HMM.from_parameters([0.5, 0.5], np.full((2, 2), 0.5), [("normal", [0.0, 1.0], [1.0, 1.0])])
model.score([[0.0], [1.0]])
model.online().update([0.0])
loops = [loop for name, module in list(sys.modules.items()) if name.startswith("keydyn")
         for loop in vars(module).values() if type(loop).__name__ == "CPUDispatcher"]
print(sum(sum(loop.stats.cache_misses.values()) for loop in loops),
      sum(sum(loop.stats.cache_hits.values()) for loop in loops),
      int("numba.np.linalg" in sys.modules))
"""


def test_a_second_process_compiles_nothing_and_leaves_the_compiler_alone():
    """Every loop that ran here, or in a process before, comes from disk."""
    exec(COMPILE, {})
    missed, hit, compiler = map(int, printed(COMPILE).split())
    assert missed == 0
    assert hit > 0
    assert compiler == 0
