"""Packages whose names are imported on first access, so that a process loads only what it uses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_demand(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the `__getattr__` and `__dir__` of a package; `names` lists its public names by module.

    Examples
    --------
    >>> from keydyn.on_demand import on_demand
    >>> names = {".shared_parameters": "Template", ".model": "PopulationModel"}
    >>> find, listed = on_demand("keydyn.population", names)
    >>> find("Template").__module__, listed()
    ('keydyn.population.shared_parameters', ['PopulationModel', 'Template'])
    """
    homes = {name: module for module, listed in names.items() for name in listed.split()}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name], package), name)
        # From now on it is found without this function.
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted(homes)
