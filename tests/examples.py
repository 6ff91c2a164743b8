"""How many examples property-based tests try: `make test` fewer of them than `make test-all`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

THOROUGH = 100
# A busy machine is no reason to fail.
settings.register_profile(
    "thorough", max_examples=THOROUGH, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# The same examples in every run: `make test` does not fail by chance.
settings.register_profile("short", settings.get_profile("thorough"), max_examples=30, derandomize=True)
settings.load_profile("thorough")


def examples(number: int) -> int:
    """As large a share of the number as the profile has of the usual one; five at least."""
    return max(5, number * settings().max_examples // THOROUGH)
