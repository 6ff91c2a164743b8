"""keydyn as a program; `python -m keydyn` too."""

from __future__ import annotations

import gc
import signal
import sys


def main() -> None:
    """Run the command line. An interrupt while it is still being imported ends it quietly too."""
    try:
        from keydyn.cli import app

        app()
    except KeyboardInterrupt:
        print("keydyn: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        # Only the interpreter is still to be shut down, which need not look through all that was imported.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        gc.freeze()


if __name__ == "__main__":
    main()
