"""keydyn as a program; `python -m keydyn` too."""

from __future__ import annotations

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
        # From here on only the interpreter is being shut down.
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
