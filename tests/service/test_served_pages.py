"""Documentation pages about the service: their Python blocks and commands run, in order, with a real one.

Commands are the blocks marked `sh`. The service has a database of its own and a free port, which replaces the
default one on the page.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from keydyn.client import Client
from keydyn.service.wall_clock import wall_clock
from tests.documents import PAGES, ROOT, needs_service
from tests.service.running import running

SERVED = [page for page in PAGES if needs_service(page)]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DEFAULT = "http://127.0.0.1:8421"


class Served:
    """A service, and a shell whose variables and functions last from block to block."""

    def __init__(self, address: str, folder: Path, environment: dict[str, str]) -> None:
        self.address, self.folder, self._environment = address, folder, environment
        self._kept = folder / "kept.sh"
        self._kept.touch()

    def shell(self, code: str) -> str:
        """Run the commands, which must all succeed, and return their output."""
        keep = f"declare -p | grep -v '^declare -[a-zA-Z]*r' > '{self._kept}'; declare -f >> '{self._kept}'"
        script = f"source '{self._kept}' 2>/dev/null\nset -euo pipefail\n{code}\n{keep}\n"
        done = subprocess.run(
            ["bash", "-c", script],
            env=self._environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def variable(self, name: str) -> str:
        """The value of a variable of the shell."""
        return self.shell(f'printf %s "${name}"')


@pytest.fixture
def served(sqlite_url: str, tmp_path: Path) -> Iterator[Served]:
    """A service with an empty database, which commands find in the same way as that of `keydyn serve`."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "KEYDYN_DATABASE": sqlite_url,
        "KEYDYN_MASTER_KEY": base64.b64encode(b"k" * 32).decode(),
    }
    with running(sqlite_url, wall_clock) as service:
        yield Served(service.url, tmp_path, environment | {"KEY": service.key()})


# In `make test` the one that newcomers read first.
FIRST = ("service.md",)
CASES = [
    pytest.param(page, id=str(page.relative_to(ROOT)), marks=[] if page.name in FIRST else pytest.mark.slow)
    for page in SERVED
]


@pytest.mark.parametrize("page", CASES)
def test_page(page: Path, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(served.folder)
    # A busy machine is no reason to send anything again.
    for name, seconds in {"timeout_s": 120.0, "patience_s": 600.0}.items():
        monkeypatch.setitem(Client.__init__.__kwdefaults__, name, seconds)
    text = page.read_text(encoding="utf-8").replace(DEFAULT, served.address)
    namespace: dict[str, object] = {"__name__": "__documentation__"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for match in BLOCK.finditer(text):
            language, code = match.groups()
            if language == "sh":
                served.shell(code)
                continue
            monkeypatch.setenv("KEY", served.variable("KEY"))
            # Blank lines before the code give errors the page's own line numbers.
            line = text.count("\n", 0, match.start(2))
            exec(compile("\n" * line + code, str(page), "exec"), namespace)
