"""Units of time, and exact milliseconds from them."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats

# Units in a millisecond. Dividing by a whole number rounds once, so that 149100 µs are exactly 149.1 ms.
PER_MILLISECOND = {"ms": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ns": 1_000_000}
UNITS = ("s", *PER_MILLISECOND)


def check_unit(unit: str) -> None:
    """Raise a `ValueError` if this is not a unit."""
    if unit not in UNITS:
        raise ValueError(f"the unit must be s, ms, us or ns, not {unit!r}")


def milliseconds(times: Floats, unit: str) -> Floats:
    """Times in some unit, converted to milliseconds and rounded once."""
    if unit == "s":
        scaled = times * 1000.0
        # A decimal times 1000 has a rounding error, which can be removed where whole microseconds were meant.
        snapped = np.round(scaled, 3)
        return np.where(np.abs(scaled - snapped) <= 4 * np.spacing(np.abs(scaled)), snapped, scaled)
    check_unit(unit)
    return times / PER_MILLISECOND[unit]


# The median time between two presses is between these, in milliseconds, for people who type.
QUICKEST, SLOWEST = 20.0, 5000.0


def likelier_unit(median: float, unit: str) -> str | None:
    """The unit in which a median interval, in milliseconds by `unit`, would be a person's; None if it is."""
    if not median > 0 or QUICKEST <= median <= SLOWEST:
        return None
    own = median / float(milliseconds(np.ones(1), unit)[0])
    by_unit = {other: float(milliseconds(np.array([own]), other)[0]) for other in ("s", "ms", "us", "ns")}
    return next((other for other, time in by_unit.items() if QUICKEST <= time <= SLOWEST), None)
