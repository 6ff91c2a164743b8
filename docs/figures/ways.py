"""Print the files through which a fit, a verification, a watched session, a request and a study pass.

python docs/figures/ways.py [fit] [verification] [watching] [request] [study]

Loops are not compiled, so that their files count too; a study takes a minute or two. Only what is called
while the work is done is counted, not what is imported or made before.
"""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"

import keydyn
from keydyn import POHMM
from keydyn.datasets import make_typists
from keydyn.decisions import Verifier

SOURCE = f"{Path(keydyn.__file__).parent}{os.sep}"
# What every command passes, whatever it does.
FRAME = ("cli.py", "commands/", "exit_codes.py", "terminal.py", "progress.py", "arrays.py")


@contextmanager
def watched() -> Iterator[dict[str, None]]:
    """The files of keydyn whose functions are called meanwhile, in any thread, in order."""
    passed: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        # Modules and classes that are made meanwhile are not optimised code.
        if event == "call" and name.startswith(SOURCE) and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            passed.setdefault(name.removeprefix(SOURCE))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield passed
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def fit() -> dict[str, None]:
    """POHMM.fit."""
    X, keys = [[120.0], [150.0], [700.0], [110.0]] * 10, list("the ") * 10
    model = POHMM(max_iter=3)
    with watched() as passed:
        model.fit(X, events=keys)
    return passed


def enrolled() -> tuple[Verifier, Any]:
    """A verifier that knows ada, and a later sample of hers."""
    typing = make_typists(1, 6, text="free", n_keys=30, random_state=1)
    verifier = Verifier.shipped()
    verifier.enrol("ada", typing[typing["session"] < 5])
    return verifier, typing[typing["session"] == 5]


def verification() -> dict[str, None]:
    """Verifier.verify."""
    verifier, sample = enrolled()
    with watched() as passed:
        verifier.verify("ada", sample)
    return passed


def watching() -> dict[str, None]:
    """Verifier.watch, one update."""
    verifier, sample = enrolled()
    watch = verifier.watch("ada")
    with watched() as passed:
        watch.update(sample)
    return passed


def request() -> dict[str, None]:
    """POST /v1/users/{id}/verify, without what Verifier.verify passes."""
    from starlette.testclient import TestClient

    from keydyn.service.http.app import create_app
    from keydyn.service.serving import first_key, prepare
    from keydyn.service.settings import Deployment
    from keydyn.service.storage.database import Database
    from keydyn.service.storage.master_keys import open_master_keys

    typing = make_typists(1, 6, text="free", n_keys=60, random_state=1)
    columns = ["keyname", "timepress", "timerelease"]
    samples = [{"keystrokes": rows[columns].to_dict("records")} for _, rows in typing.groupby("session")]
    with tempfile.TemporaryDirectory() as folder:
        deployment = Deployment(database=f"sqlite:///{folder}/service.db")
        prepare(deployment)
        database = Database(deployment.database)
        keys = open_master_keys(database)
        headers = {"authorization": f"Bearer {first_key(deployment)}"}
        app = create_app(deployment, database, keys)
        with watched() as passed, TestClient(app, "http://127.0.0.1", headers=headers) as client:
            client.post("/v1/users", json={"id": "ada"}).raise_for_status()
            for sample in samples[:5]:
                client.post("/v1/users/ada/samples", json=sample).raise_for_status()
            passed.clear()
            client.post("/v1/users/ada/verify", json=samples[5]).raise_for_status()
            found = dict(passed)
        database.close()
    # Jobs and live sessions go on in threads of their own.
    beside = ("service/jobs/runner.py", "service/live/")
    return {name: None for name in found if name.startswith("service/") and not name.startswith(beside)}


def study() -> dict[str, None]:
    """keydyn study recognition, with simulated typists and one detector."""
    from typer.testing import CliRunner

    from keydyn.cli import app

    with tempfile.TemporaryDirectory() as folder, watched() as passed:
        words = ["study", "recognition", "--dataset", "simulated", "--detector", "manhattan"]
        done = CliRunner().invoke(app, [*words, "--out", folder], env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    return {name: None for name in passed if not name.startswith(FRAME)}


WAYS: dict[str, Callable[[], dict[str, None]]] = {
    way.__name__: way for way in (fit, verification, watching, request, study)
}


def main() -> None:
    """Print the files of each way that is named, or of all."""
    for name in sys.argv[1:] or WAYS:
        passed = WAYS[name]()
        print(f"{name}: {WAYS[name].__doc__} {len(passed)} files")
        print("".join(f"    {file}\n" for file in passed))


if __name__ == "__main__":
    main()
