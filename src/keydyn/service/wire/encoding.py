"""JSON to and from the types of this package; decoding is strict and stops at the first error."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Self, TypeVar, cast

import msgspec

Message = TypeVar("Message")
_MILLISECOND = timedelta(milliseconds=1)


class Moment(datetime):
    """A date in UTC, sent as whole milliseconds since 1970."""

    @classmethod
    def at(cls, milliseconds: int) -> Self:
        """The moment this long after the start of 1970."""
        return cls.fromtimestamp(0, UTC) + milliseconds * _MILLISECOND

    @property
    def milliseconds(self) -> int:
        """Since the start of 1970."""
        since: timedelta = self - Moment.at(0)
        return since // _MILLISECOND


def encoded(message: Any) -> bytes:
    """A message as JSON."""
    return _ENCODER.encode(message)


def decoded(kind: type[Message], contents: bytes) -> Message:
    """A message of this type from JSON.

    Raises `msgspec.ValidationError`, which names the place, if the JSON is no such message, and
    `msgspec.DecodeError` if it is not JSON at all.
    """
    found: Message = _decoder(cast(Hashable, kind)).decode(contents)
    return found


def _sent(value: Any) -> int | float:
    if isinstance(value, Moment):
        return value.milliseconds
    if isinstance(value, float):
        # A NumPy number.
        return float(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be sent")


def _received(kind: type[Any], value: Any) -> Any:
    if kind is Moment and type(value) is int:
        try:
            return Moment.at(value)
        except OverflowError:
            raise ValueError("this date lies too far away") from None
    raise TypeError(f"Expected `int`, got `{type(value).__name__}`")


_ENCODER = msgspec.json.Encoder(enc_hook=_sent)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind, dec_hook=_received)
