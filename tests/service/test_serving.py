"""A process that answers requests loads only what they need, without the code of commands and studies."""

from __future__ import annotations

import subprocess
import sys

from tests.waiting import PATIENCE

LEFT_OUT = ("alembic", "matplotlib", "pandas", "pyarrow", "sklearn")
WORKER = f"""
import sys
from keydyn.service import serving
from keydyn.service.http import app
serving.warm()
print(*(name for name in {LEFT_OUT} if name in sys.modules))
"""


def test_no_memory_goes_to_libraries_that_requests_do_not_use():
    found = subprocess.run(
        [sys.executable, "-c", WORKER], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert found.stdout.split() == []
