"""The files of keydyn that one piece of work passes through, as a list in JSON; house.py runs it.

A file counts if one of its functions is entered while the work is done; what runs before, to make a model or
to enrol a user, and what only runs when a module is imported does not. For a verification and a request,
compiled functions run as plain Python, so that they count like all others. A fit would take another way then,
and the study too long: there, the files of the compiled functions that were used are added, and those of all
compiled functions that these call.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

WORK = sys.argv[1] if __name__ == "__main__" else ""
if WORK in ("verify", "request"):
    os.environ["NUMBA_DISABLE_JIT"] = "1"

entered: set[str] = set()
watching = False


def notice(frame: FrameType, event: str, _: Any) -> None:
    """Note the file of a function that is called."""
    if watching and event == "call" and frame.f_code.co_filename not in entered and not importing(frame):
        entered.add(frame.f_code.co_filename)


def importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported: the bodies of its classes and its decorators are calls too."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


@contextmanager
def watched() -> Iterator[None]:
    """Functions that any thread calls within the block are noted."""
    global watching
    watching = True
    try:
        yield
    finally:
        watching = False


def fit() -> None:
    """Two hidden states, two features, four sequences."""
    import numpy as np

    from keydyn import POHMM

    times = np.random.default_rng(0).lognormal(5.0, 0.5, (40, 2))
    data = {"events": list("abab" * 10), "lengths": [10, 10, 10, 10]}
    # The first fit also compiles, or reads what was compiled.
    POHMM(tol=1.0).fit(times, **data)
    with watched():
        POHMM(tol=1.0).fit(times, **data)


def verify() -> None:
    """One sample of one user, with the population and the calibration that come with keydyn."""
    from keydyn.datasets import make_typists
    from keydyn.decisions import Verifier

    typed = make_typists(1, 3, text="copied", n_keys=30)
    verifier = Verifier.of(_shipped_background())
    verifier.enrol("ann", typed[typed["session"] < 2])
    sample = typed[typed["session"] == 2].reset_index(drop=True)
    with watched():
        verifier.verify("ann", sample)


def _shipped_background() -> Any:
    """What comes with keydyn, from where the revision has it."""
    try:
        found = import_module("keydyn.decisions.calibration.background")
    except ImportError:
        found = import_module("keydyn.decisions.shipped")
    return found.shipped_background()


def request() -> None:
    """A verification over HTTP, as the tree's own tests make it: the service's side."""
    from tests.service.conftest import opened
    from tests.service.running import running
    from tests.service.typists import enrol, keystrokes_of

    with tempfile.TemporaryDirectory() as folder:
        address = f"sqlite:///{Path(folder) / 'service.db'}"
        for database in opened(address):
            database.close()
        with running(address) as service:
            client = service.client()
            enrol(client, "ann", 0)
            # The first one reads the template, and jobs that enrolment has left are done beside it.
            client.post("/v1/users/ann/verify", json={"keystrokes": keystrokes_of(0, 6)})
            while any(client.get("/v1/standing").json()["jobs"].values()):
                time.sleep(0.05)
            body = {"keystrokes": keystrokes_of(0, 7)}
            with watched():
                answer = client.post("/v1/users/ann/verify", json=body)
            assert answer.status_code == 200, answer.text


def study() -> None:
    """The whole study of verification on simulated typists."""
    from typer.testing import CliRunner

    from keydyn.cli import app

    with tempfile.TemporaryDirectory() as folder, watched():
        options = ["--dataset", "simulated", "--out", folder, "--jobs", "1"]
        done = CliRunner().invoke(app, ["study", "verification", *options])
    assert done.exit_code == 0, done.output


def compiled_files() -> Iterator[str]:
    """The files of the compiled functions that were used, and of those that they call."""
    from numba.core.dispatcher import Dispatcher

    waiting = [
        value
        for name, module in list(sys.modules.items())
        if name.startswith("keydyn")
        for value in vars(module).values()
        if isinstance(value, Dispatcher) and value.overloads
    ]
    seen: set[int] = set()
    while waiting:
        function = waiting.pop().py_func
        if id(function) not in seen:
            seen.add(id(function))
            yield function.__code__.co_filename
            named = (function.__globals__.get(name) for name in function.__code__.co_names)
            waiting += [value for value in named if isinstance(value, Dispatcher)]


def main() -> None:
    """Do the work and print the files."""
    threading.setprofile(notice)
    sys.setprofile(notice)
    {"fit": fit, "verify": verify, "request": request, "study": study}[WORK]()
    sys.setprofile(None)
    if WORK in ("fit", "study"):
        entered.update(compiled_files())
    import keydyn

    root = Path(keydyn.__file__).resolve().parent
    paths = {Path(name).resolve() for name in entered}
    print(json.dumps(sorted(str(p.relative_to(root)) for p in paths if p.is_relative_to(root))))


if __name__ == "__main__":
    main()
