"""How many examples property-based tests try: `make test` fewer of them than `make test-all`."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

THOROUGH = 100
# A busy machine is no reason to fail. What a fixture of a single test gives, its examples share.
IGNORED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("thorough", max_examples=THOROUGH, deadline=None, suppress_health_check=IGNORED)
# The same examples in every run: `make test` does not fail by chance.
settings.register_profile("short", settings.get_profile("thorough"), max_examples=30, derandomize=True)
# Without looking for the smallest example that fails: whether one fails is all that `make mutation` asks.
settings.register_profile(
    "unshrunk", settings.get_profile("short"), phases=[Phase.explicit, Phase.generate], print_blob=False
)
settings.load_profile("thorough")


def examples(number: int) -> int:
    """As large a share of the number as the profile has of the usual one; five at least."""
    return max(5, number * settings().max_examples // THOROUGH)
