"""What a process pays before its first result."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HEAVY = {"numpy", "numba", "scipy", "pandas", "sklearn", "matplotlib", "pyarrow", "joblib", "distributed"}
SOURCES = Path(__file__).parents[1] / "src" / "keydyn"


def printed(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
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
      sum(sum(loop.stats.cache_hits.values()) for loop in loops))
"""


def test_a_second_process_compiles_nothing():
    """Every loop that ran here, or in a process before, comes from disk."""
    exec(COMPILE, {})
    missed, hit = map(int, printed(COMPILE).split())
    assert missed == 0
    assert hit > 0
