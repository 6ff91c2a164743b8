"""Compile what many tests use: `python -m tests.compiled`, before several processes run them."""

from __future__ import annotations

from keydyn.service.serving import warm
from tests.fuzz.targets import makers


def main() -> None:
    """Take the ways of a request, and make models of all families and relatives."""
    warm()
    for maker in makers():
        maker()


if __name__ == "__main__":
    main()
