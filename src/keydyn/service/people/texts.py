"""Kinds of text, which are never compared with each other."""

from __future__ import annotations

from dataclasses import dataclass

FREE, FIXED, POSITIONS = "free", "fixed", "positions"
KEYBOARD, PHONE = "keyboard", "phone"
# The vocabulary of texts of which the names of keys are sent.
KEYS = "keys"


@dataclass(frozen=True)
class Text:
    """What somebody types.

    `kind` is "free" for any text, "fixed" for the text called `name`, which is the same each time, and
    "positions" for such a text of which only the positions of keys are sent, not the keys.
    """

    kind: str = FREE
    name: str = ""

    @classmethod
    def stored(cls, text: str) -> Text:
        """From the form in which it is stored."""
        kind, _, name = text.partition(":")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind

    @property
    def vocabulary(self) -> str:
        """Which keys there are: positions of one text mean nothing in another."""
        return str(self) if self.kind == POSITIONS else KEYS
