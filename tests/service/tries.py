"""How often strangers may try to be a person, counted one failure after the other as the service does."""

from __future__ import annotations

from keydyn.service.people.recognition.attempts import cost_of, fitting
from keydyn.service.wire.both_ways import Level
from keydyn.service.wire.requests import TenantSettings


def failures_allowed(settings: TenantSettings, asked: Level = "standard") -> dict[Level, int]:
    """The number of attempts that may fail in 30 days, by the level at which they are judged.

    All of them ask for the level `asked`.
    """
    spent, found = 0, dict[Level, int]()
    while (level := fitting(asked, settings, spent)) is not None:
        spent += cost_of(getattr(settings.levels, level))
        found[level] = found.get(level, 0) + 1
    return found
