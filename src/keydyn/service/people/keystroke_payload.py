"""The keystrokes of a sample in three forms: as clients send them, as stored, and as decisions take them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from msgspec import structs

from keydyn.keystrokes import Samples, one_sample
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.typing_keys import all_type, shortcuts_and_navigation
from keydyn.service.problems import Problem
from keydyn.service.wire.both_ways import POSITIONS, Device, Text
from keydyn.service.wire.requests import SampleBody

# The largest size in bytes that a stored sample may decompress to.
LARGEST_SAMPLE = 1 << 24


@dataclass(frozen=True)
class TypedKeys:
    """Keystrokes in order of press: key names, and times of press and release (None if not seen) in ms."""

    keys: tuple[str, ...]
    press: tuple[float, ...]
    release: tuple[float | None, ...]

    def __len__(self) -> int:
        return len(self.keys)

    def resolved(self) -> TypedKeys:
        """The keystrokes without intervals and holds of 0, which are too short for the clock to measure.

        This applies the cleaning rules `equal_presses` and `zero_durations`: of keys pressed at the same time
        the first is kept, and the release of a key that was held for no time counts as not seen.
        """
        rows = zip(self.keys, self.press, self.release, strict=True)
        kept = [
            (key, press, None if release == press else release)
            for n, (key, press, release) in enumerate(rows)
            if n == 0 or press != self.press[n - 1]
        ]
        keys, presses, releases = zip(*kept, strict=True)
        return TypedKeys(keys, presses, releases)

    def typing(self) -> TypedKeys:
        """The keystrokes without shortcuts and navigation, which `pair_events` leaves out of events."""
        if all_type(set(self.keys)):
            return self
        names, press = np.array(self.keys), np.array(self.press)
        release = np.array([np.nan if at is None else at for at in self.release])
        shortcut, moving = shortcuts_and_navigation(names, press, release, np.zeros(len(self), np.int64))
        kept = ~(shortcut | moving)
        return TypedKeys(
            tuple(compress(self.keys, kept)),
            tuple(compress(self.press, kept)),
            tuple(compress(self.release, kept)),
        )

    def first(self, n: int) -> TypedKeys:
        """The first n keystrokes."""
        return TypedKeys(self.keys[:n], self.press[:n], self.release[:n])

    def to_bytes(self) -> bytes:
        """Encode the keystrokes for storage; times count from the first press, so that no date is kept."""
        first = self.press[0]
        held = [None if r is None else r - first for r in self.release]
        parts = [list(self.keys), [p - first for p in self.press], held]
        return zlib.compress(json.dumps(parts, separators=(",", ":")).encode())

    @classmethod
    def from_bytes(cls, contents: bytes) -> TypedKeys:
        """Decode what `to_bytes` encoded."""
        keys, press, release = json.loads(zlib.decompressobj().decompress(contents, LARGEST_SAMPLE))
        return cls(tuple(keys), tuple(press), tuple(release))

    def rows(self) -> list[dict[str, Any]]:
        """The keystrokes for export, one row per keystroke with the columns of keydyn's recordings."""
        return [
            {"keyname": key, "timepress": press, "timerelease": release}
            for key, press, release in zip(self.keys, self.press, self.release, strict=True)
        ]


@dataclass(frozen=True)
class TypedSample:
    """A sample that a client sent: its keystrokes, their text and their device."""

    typed: TypedKeys
    text: Text
    device: Device

    @classmethod
    def received(cls, body: SampleBody, text: Text, device: Device) -> TypedSample:
        """Read the body of a request, for this text and device; raise a `Problem` if it cannot be used."""
        rows = body.keystrokes
        if rows is None:
            typed = paired([structs.asdict(event) for event in body.events or []])
        else:
            typed = TypedKeys(
                tuple([row.keyname for row in rows]),
                tuple([row.timepress for row in rows]),
                tuple([row.timerelease for row in rows]),
            ).typing()
        if not typed:
            raise unusable("they are all shortcuts or navigation: none of them writes text")
        return cls(typed.resolved(), text, device)


def paired(events: Sequence[dict[str, Any]]) -> TypedKeys:
    """Pair raw press and release events into keystrokes; raise a `Problem` if they cannot be used."""
    # Imported only when raw events arrive, because data frames take a third of a process's memory.
    import pandas as pd

    from keydyn.keystrokes import pair_events

    try:
        keystrokes, _ = pair_events(pd.DataFrame.from_records(list(events)))
    except ValueError as error:
        raise unusable(str(error)) from None
    if len(set(keystrokes["session"])) > 1:
        raise unusable("the clock was set back, or there was more than one sample")
    release = [None if pd.isna(r) else float(r) for r in keystrokes["timerelease"]]
    return TypedKeys(tuple(keystrokes["keyname"]), tuple(keystrokes["timepress"].tolist()), tuple(release))


def samples_of(typed: Sequence[TypedKeys], text: Text, users: Sequence[str] | None = None) -> Samples:
    """Convert samples of one person, or of these `users`, for decisions; raise a `Problem` if unusable."""
    for one in typed:
        if text.kind == POSITIONS and not all(key.isdecimal() and len(key) < 6 for key in one.keys):
            raise unusable("only positions are sent for this text: each keyname must be a whole number")
    try:
        found = [
            recorded_samples(one_sample(list(each.keys), each.press, each.release, user, session))
            for session, (each, user) in enumerate(zip(typed, users or [""] * len(typed), strict=True))
        ]
    except ValueError as error:
        raise unusable(str(error)) from None
    return found[0] if len(found) == 1 else Samples.joined(found)


def samples_of_people(typed: Mapping[str, Sequence[TypedKeys]], text: Text) -> Samples:
    """Convert samples of several people, given by their ids, for decisions."""
    users = [user for user, each in typed.items() for _ in each]
    return samples_of([one for each in typed.values() for one in each], text, users)


def unusable(detail: str) -> Problem:
    """The problem that reports keystrokes of which no sample can be made."""
    return Problem(422, "unusable-keystrokes", "These keystrokes cannot be used", detail)
