"""The main job with an installed keydyn, in an environment that has nothing else: make dist runs it.

The argument is the folder of that environment.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import keydyn


def run(*arguments: str) -> str:
    """A command of that environment, in an empty folder, with all its warnings shown."""
    program = Path(sys.argv[1]).resolve() / "bin" / "keydyn"
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0 or "Warning" in done.stderr:
        sys.exit(f"keydyn {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Simulate, enrol, identify, verify, and read the model that is left."""
    where = Path(keydyn.__file__).resolve()
    if Path(sys.argv[1]).resolve() not in where.parents:
        sys.exit(f"keydyn was imported from {where}, not from the environment that is tried")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "demo"
        told = json.loads(run("demo", "--users", "4", "--out", str(out), "--json"))
        user, models = told["unknown"]["user"], str(out / "models")
        best = json.loads(run("identify", str(out / "session.csv"), "--models", models, "--json"))[0]
        if best["candidates"][0]["user"] != user:
            sys.exit(f"user {user} was taken for user {best['candidates'][0]['user']}")
        # A program typed it, which keydyn notices.
        given = "--models", models, "--user", user, "--alarms", "0"
        run("verify", str(out / "session.csv"), *given)
        print(keydyn.load(out / "typist.keydyn").summary(3))
    print(f"keydyn {keydyn.__version__} works")


main()
