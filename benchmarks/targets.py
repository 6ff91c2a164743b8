"""The project's targets, in ns per observation, relative to other libraries in the same run if possible."""

from __future__ import annotations

from collections.abc import Callable

# ns of other libraries on the same workload, by name, and our own ns in earlier rows.
Known = dict[str, float]

SCALING, DYNAMAX = "hmmlearn (scaling)", "dynamax (by hand)"
TARGETS: dict[str, Callable[[Known], float]] = {
    "a": lambda known: known[SCALING] / 3.5,
    "b": lambda known: min(known[SCALING] / 80.0, known[DYNAMAX] / 4.0),
    "c": lambda known: known[DYNAMAX] / 3.0,
    "d": lambda known: known[DYNAMAX] / 3.0,
    "e": lambda known: 15.0,
    # A thousand times faster than the figure reported for pohmm 0.5.
    "f": lambda known: 120.0,
    "family gamma": lambda known: 3.0 * known["a"],
    # Time must not grow with the square of the number of types.
    "growth 20000": lambda known: 3.0 * known["growth 50"],
    "online": lambda known: 2_000.0,
    "decide import": lambda known: 0.7e9,
    "decide first use": lambda known: 8e9,
    "decide command": lambda known: 1e9,
    "decide verify frame": lambda known: 0.5e6,
    "decide verify samples": lambda known: 0.25e6,
    "decide enrol frame": lambda known: 2e6,
    "decide enrol samples": lambda known: 0.7e6,
    "decide identify 1000": lambda known: 4e6,
    "decide identify 10000": lambda known: 40e6,
    "decide watch": lambda known: 20e3,
    # Two seconds per million keystrokes.
    **dict.fromkeys(
        ("read keystrokes", "read latencies", "read pairs", "read log", "read tables"), lambda known: 2_000.0
    ),
    **dict.fromkeys(("online codes", "online texts", "online list", "online objects"), lambda known: 60.0),
}


def target_of(name: str, known: Known) -> float | None:
    """The target of a workload; None if it has none, or if what it refers to was not measured."""
    try:
        return TARGETS[name](known)
    except KeyError:
        return None
