"""The entry point of the program, also for `python -m keydyn`."""

from __future__ import annotations

import gc
import signal
import sys


def main() -> None:
    """Run the command line; an interrupt ends it quietly, even while it is still being imported."""
    try:
        from keydyn.cli import app

        app()
    except KeyboardInterrupt:
        print("keydyn: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        # All that remains is to shut down the interpreter, which need not collect garbage for that.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        gc.freeze()


if __name__ == "__main__":
    main()
