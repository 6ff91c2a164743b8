"""The keystrokes of a sample: as a client sends them, as they are stored, and as decisions take them."""

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

# Bytes that a stored sample decompresses to at most.
LARGEST_SAMPLE = 1 << 24


@dataclass(frozen=True)
class Typed:
    """Keystrokes in order of press: names of keys, milliseconds of press and release (None if not seen)."""

    keys: tuple[str, ...]
    press: tuple[float, ...]
    release: tuple[float | None, ...]

    def __len__(self) -> int:
        return len(self.keys)

    def resolved(self) -> Typed:
        """The keystrokes without times of 0, which are shorter than the clock can tell.

        As the cleaning rules `equal_presses` and `zero_durations`: of keys pressed at the same time the first
        is kept, and the release of a key that was held for no time counts as not seen.
        """
        rows = zip(self.keys, self.press, self.release, strict=True)
        kept = [
            (key, press, None if release == press else release)
            for n, (key, press, release) in enumerate(rows)
            if n == 0 or press != self.press[n - 1]
        ]
        keys, presses, releases = zip(*kept, strict=True)
        return Typed(keys, presses, releases)

    def typing(self) -> Typed:
        """The keystrokes without shortcuts and navigation, which `pair_events` leaves out of events."""
        if all_type(set(self.keys)):
            return self
        names, press = np.array(self.keys), np.array(self.press)
        release = np.array([np.nan if at is None else at for at in self.release])
        shortcut, moving = shortcuts_and_navigation(names, press, release, np.zeros(len(self), np.int64))
        kept = ~(shortcut | moving)
        return Typed(
            tuple(compress(self.keys, kept)),
            tuple(compress(self.press, kept)),
            tuple(compress(self.release, kept)),
        )

    def first(self, n: int) -> Typed:
        """The first n keystrokes."""
        return Typed(self.keys[:n], self.press[:n], self.release[:n])

    def to_bytes(self) -> bytes:
        """The form that is sealed. Times count from the first press: when it was typed is not kept."""
        first = self.press[0]
        held = [None if r is None else r - first for r in self.release]
        parts = [list(self.keys), [p - first for p in self.press], held]
        return zlib.compress(json.dumps(parts, separators=(",", ":")).encode())

    @classmethod
    def from_bytes(cls, contents: bytes) -> Typed:
        """From what `to_bytes` made."""
        keys, press, release = json.loads(zlib.decompressobj().decompress(contents, LARGEST_SAMPLE))
        return cls(tuple(keys), tuple(press), tuple(release))

    def rows(self) -> list[dict[str, Any]]:
        """One row per keystroke, in the schema, for export."""
        return [
            {"keyname": key, "timepress": press, "timerelease": release}
            for key, press, release in zip(self.keys, self.press, self.release, strict=True)
        ]


@dataclass(frozen=True)
class TypedSample:
    """A sample that a client sent: its keystrokes, and what they were typed for and on."""

    typed: Typed
    text: Text
    device: Device

    @classmethod
    def received(cls, body: SampleBody, text: Text, device: Device) -> TypedSample:
        """From the body of a request, which is for this text and device; a `Problem` says what is wrong."""
        rows = body.keystrokes
        if rows is None:
            typed = paired([structs.asdict(event) for event in body.events or []])
        else:
            typed = Typed(
                tuple([row.keyname for row in rows]),
                tuple([row.timepress for row in rows]),
                tuple([row.timerelease for row in rows]),
            ).typing()
        if not typed:
            raise unusable("they are all shortcuts or navigation: none of them writes text")
        return cls(typed.resolved(), text, device)


def paired(events: Sequence[dict[str, Any]]) -> Typed:
    """Keystrokes from raw press and release events; a `Problem` says what is wrong with them."""
    # Imported by a process that gets such events: data frames take a third of its memory.
    import pandas as pd

    from keydyn.keystrokes import pair_events

    try:
        keystrokes, _ = pair_events(pd.DataFrame.from_records(list(events)))
    except ValueError as error:
        raise unusable(str(error)) from None
    if len(set(keystrokes["session"])) > 1:
        raise unusable("the clock was set back, or there was more than one sample")
    release = [None if pd.isna(r) else float(r) for r in keystrokes["timerelease"]]
    return Typed(tuple(keystrokes["keyname"]), tuple(keystrokes["timepress"].tolist()), tuple(release))


def samples_of(typed: Sequence[Typed], text: Text, users: Sequence[str] | None = None) -> Samples:
    """Samples as decisions take them, of one person or of these `users`; a `Problem` says what is wrong."""
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


def samples_of_people(typed: Mapping[str, Sequence[Typed]], text: Text) -> Samples:
    """Samples of several people, by their ids, as decisions take them."""
    users = [user for user, each in typed.items() for _ in each]
    return samples_of([one for each in typed.values() for one in each], text, users)


def unusable(detail: str) -> Problem:
    """The problem of keystrokes that make no sample."""
    return Problem(422, "unusable-keystrokes", "These keystrokes cannot be used", detail)
