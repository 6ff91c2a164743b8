"""Short representations of values with arrays, so that they are readable in a notebook."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

LONGEST = 60  # characters of a tuple, a list or a dict
SMALL = 6  # numbers of an array that is printed whole


def short_repr(thing: Any) -> str:
    """Write a dataclass as `Name(field=value, …)`, with its values written by `short`.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.model import Emission, LogNormal
    >>> Emission(LogNormal(), {"loc": np.zeros((30, 2)), "scale": np.ones((30, 2))})
    Emission(distribution=LogNormal(), params={'loc': <30 × 2 ndarray>, 'scale': <30 × 2 ndarray>})
    """
    shown = [field.name for field in dataclasses.fields(thing) if field.repr]
    return named(type(thing).__name__, ((name, getattr(thing, name)) for name in shown))


def named(name: str, fields: Iterable[tuple[str, Any]]) -> str:
    """Write a type's name and its fields."""
    return f"{name}({', '.join(f'{field}={short(value)}' for field, value in fields)})"


def short(value: Any) -> str:
    """Write numbers with four digits, large arrays and frames as their shape, long tuples as far as fits."""
    if isinstance(value, float):
        return f"{float(value):.4g}"
    if isinstance(value, str) and len(value) > LONGEST and " " not in value:
        return f"{value[:12]!r}…"
    if shape := getattr(value, "shape", None):
        if hasattr(value, "tolist") and value.size <= SMALL:
            return f"array({short(value.tolist())})"
        return f"<{' × '.join(map(str, shape))} {type(value).__name__}>"
    if hasattr(value, "_asdict"):
        return named(type(value).__name__, value._asdict().items())
    if isinstance(value, dict):
        return f"{{{_listed([f'{key!r}: {short(each)}' for key, each in value.items()])}}}"
    if isinstance(value, list):
        return f"[{_listed([short(each) for each in value])}]"
    if isinstance(value, tuple):
        return f"({_listed([short(each) for each in value])}{',' if len(value) == 1 else ''})"
    return repr(value)


def _listed(texts: list[str]) -> str:
    """Join the first text, as many more as fit, and the number of those left out."""
    shown = 1
    while shown < len(texts) and len(", ".join(texts[: shown + 1])) <= LONGEST:
        shown += 1
    left = [f"… {len(texts) - shown} more"] if len(texts) > shown else []
    return ", ".join(texts[:shown] + left)
