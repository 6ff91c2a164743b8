"""Answers of the service, parsed as the types that it has itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from msgspec import DecodeError

from keydyn.service.wire.encoding import decoded

Result = TypeVar("Result")


@dataclass(frozen=True)
class Trust:
    """What the service thinks of the typist after one keystroke of a watched session.

    Attributes
    ----------
    keystroke : its number in the session, from 1
    trust : None where there is nothing to judge by
    suspicion : how strongly the last keystrokes speak for another person
    """

    keystroke: int
    trust: float | None
    suspicion: float


class UnexpectedAnswerError(ValueError):
    """The service answered with something that this client does not understand.

    Examples
    --------
    >>> from keydyn.client import UnexpectedAnswerError, User
    >>> from keydyn.client.answers import read
    >>> try:
    ...     read(User, b'{"id": 7}')  # as a client reads an answer
    ... except UnexpectedAnswerError as error:
    ...     print(error)
    the service's answer is not a User
    """


def read(kind: type[Result], contents: bytes) -> Result:
    """An answer as a type; an `UnexpectedAnswerError` if it does not fit."""
    try:
        return decoded(kind, contents)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnexpectedAnswerError(f"the service's answer is not a {kind.__name__}") from error
