"""The file of prompts: the texts to type, their repetitions and order, and the words for participants."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec

from keydyn.regular_files import read_regular
from keydyn.service.wire.both_ways import about

LARGEST = 1 << 20
MOST_SAMPLES = 100_000
# The least share of a copied prompt's characters that must be typed; mistakes may make a text shorter.
ENOUGH = 0.8
LEAST_FREE = 100
WEEK = 7 * 24 * 3600

INSTRUCTIONS = """You will be shown one text after another. Type each as you usually type, at your usual \
speed.

Use a physical keyboard, and do not paste. You can close this page at any time: you will continue where you \
stopped."""
CONSENT = """While you type in the field on this page, the page records which keys you press, and when you \
press and release each of them. Nothing outside the field is recorded. In password fields, the position of \
each keystroke is recorded instead of the key.

The recording is kept in a file on this computer, under the name of the participant. Typing rhythm can \
identify people. You can stop at any time."""

Kind = Literal["copy", "fixed", "password", "free"]
Order = Literal["fixed", "shuffled"]
CHOICES = {"kind": get_args(Kind), "order": get_args(Order)}
# Text for the page, without control characters except line breaks.
Words = Annotated[str, about(min_length=1, max_length=20_000, pattern=r"^[^\x00-\x09\x0b-\x1f\x7f]+$")]
Seconds = Annotated[int, about(ge=0, le=WEEK)]
Times = Annotated[int, about(ge=1, le=1000)]


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text to type, or a question to answer in the participant's own words."""

    text: Words
    kind: Kind = "copy"
    repetitions: Times | None = None
    keystrokes: Annotated[int, about(ge=1, le=5000)] | None = None

    def __post_init__(self) -> None:
        if self.kind in ("fixed", "password") and "\n" in self.text:
            raise ValueError(f"a {self.kind} text must have only one line")
        if self.kind != "free" and self.keystrokes is not None:
            raise ValueError('keystrokes applies only to prompts of the kind "free"')

    @property
    def least(self) -> int:
        """The least number of keystrokes that is accepted as a sample."""
        if self.kind == "free":
            return self.keystrokes or LEAST_FREE
        whole = self.kind in ("fixed", "password")
        return max(1, int(len(self.text) * (1 if whole else ENOUGH)))


class Study(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The contents of a file of prompts."""

    title: Words = "Typing study"
    instructions: Words = INSTRUCTIONS
    consent: Words = CONSENT
    sittings: Times = 1
    repetitions: Times = 1
    order: Order = "fixed"
    seed: Annotated[int, about(ge=0)] = 0
    exact: bool = False
    break_between_prompts: Seconds = 0
    break_between_sittings: Seconds = 0
    prompts: Annotated[tuple[Prompt, ...], about(min_length=1, max_length=1000)]

    def __post_init__(self) -> None:
        samples = self.sittings * len(list(self._sitting(1)))
        if samples > MOST_SAMPLES:
            raise ValueError(
                f"it asks each participant for {samples:,} samples; at most {MOST_SAMPLES:,} are allowed"
            )

    @property
    def consent_sha256(self) -> str:
        """The SHA-256 of the text that participants consent to."""
        return sha256(self.consent.encode()).hexdigest()

    def course(self, user: str) -> list[Task]:
        """List all samples that a participant types, in an order that is always the same for them."""
        found: list[Task] = []
        for sitting in range(1, self.sittings + 1):
            tasks = list(self._sitting(sitting))
            if self.order == "shuffled":
                random.Random(f"{self.seed}/{sitting}/{user}").shuffle(tasks)
            found += tasks
        return found

    def _sitting(self, sitting: int) -> Iterator[Task]:
        """Go through all prompts in turn, then again through those with further repetitions, and so on."""
        often = [prompt.repetitions or self.repetitions for prompt in self.prompts]
        for repetition in range(1, max(often) + 1):
            for number, times in enumerate(often, 1):
                if repetition <= times:
                    yield Task(sitting, number, repetition)


class Task(NamedTuple):
    """A sample to be typed; all numbers count from 1, and repetitions within a sitting."""

    sitting: int
    prompt: int
    repetition: int


def read_study(path: Path) -> tuple[Study, str]:
    r"""Read a file of prompts, and return it with its SHA-256: plain text, or TOML if its suffix is .toml.

    In plain text, paragraphs are separated by blank lines; without any, every line is a prompt.

    Examples
    --------
    >>> from pathlib import Path
    >>> from keydyn.recording.prompts import read_study
    >>> _ = Path("prompts.txt").write_text("The cat sat on the mat.\n\nA dog barked at the moon.\n")
    >>> study, sha256 = read_study(Path("prompts.txt"))
    >>> [prompt.text for prompt in study.prompts]
    ['The cat sat on the mat.', 'A dog barked at the moon.']
    >>> course = study.course("ann")
    >>> course[0].prompt in (1, 2), len(course), len(sha256)
    (True, 2, 64)
    """
    try:
        contents = read_regular(path, LARGEST)
        text = contents.decode("utf-8-sig")
        found = tomllib.loads(text) if path.suffix.lower() == ".toml" else {"prompts": _plain(text)}
        return msgspec.convert(_stripped(found), Study), sha256(contents).hexdigest()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: it is not UTF-8 text") from None
    except msgspec.ValidationError as error:
        raise ValueError(f"{path}: {_worded(str(error))}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _plain(text: str) -> list[dict[str, str]]:
    paragraphs = re.split(r"\n\s*\n", text.replace("\r\n", "\n").strip())
    parts = paragraphs if len(paragraphs) > 1 else paragraphs[0].split("\n")
    prompts = [" ".join(part.split()) for part in parts]
    if not prompts[0]:
        raise ValueError("there are no prompts in it")
    return [{"text": prompt} for prompt in prompts]


def _stripped(found: Any) -> Any:
    """Remove white space around all texts."""
    if isinstance(found, dict):
        return {name: _stripped(value) for name, value in found.items()}
    if isinstance(found, list):
        return [_stripped(value) for value in found]
    return found.strip() if isinstance(found, str) else found


def _worded(message: str) -> str:
    """Rewrite a validation error with its place first; prompts are counted from 1."""
    what, _, where = message.partition(" - at `$")
    place = re.sub(r"\[(\d+)\]", lambda number: f".{int(number[1]) + 1}", where.rstrip("`"))
    name = place.rpartition(".")[2]
    if name in CHOICES:
        what += f"; it is one of {', '.join(CHOICES[name])}"
    return f"{place.lstrip('.')}: {what}" if place else what
