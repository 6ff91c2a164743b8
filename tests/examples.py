"""How many examples property-based tests try: `make test` fewer of them than `make test-all`."""

from __future__ import annotations

from hypothesis import settings

THOROUGH = 100
settings.register_profile("short", max_examples=30)


def examples(number: int) -> int:
    """As large a share of the number as the profile has of the usual one; five at least."""
    return max(5, number * settings().max_examples // THOROUGH)
