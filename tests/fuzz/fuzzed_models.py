"""Model files: any bytes, and values of any kind under a digest that is right."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load as from_bytes

from keydyn import HMM, POHMM
from keydyn.files import HEADER, packed, parsed
from keydyn.model import Categorical, ModelFileError, Student
from tests.fuzz.changes import changed_bytes, changed_json, changed_numbers, pick
from tests.fuzz.questions import interrogate
from tests.fuzz.targets import Generator, Target

# Header and tensors of a file.
Parts = tuple[dict[str, Any], dict[str, np.ndarray]]


@cache
def models() -> list[Any]:
    """One of every kind, with every family."""
    generator = np.random.default_rng(0)
    X = np.exp(generator.normal(4.0, 0.4, (40, 2)))
    events = generator.choice(["a", "b", "c"], 40)
    symbols = np.c_[X[:, 0], generator.integers(0, 3, 40)]
    quick: dict[str, Any] = {"tol": 1.0}
    return [
        POHMM(emission=["lognormal", "gamma"], **quick).fit(X, events=events),
        POHMM(emission=["normal", Categorical(3)], **quick).fit(symbols, events=generator.integers(0, 4, 40)),
        POHMM.published(["exponential", Student(estimate_df=True)], tol=1.0).fit(X, events=events),
        HMM(n_states=3, emission="logstudent", **quick).fit(X),
    ]


@cache
def files() -> list[bytes]:
    """The models as files."""
    contents = []
    with tempfile.TemporaryDirectory() as folder:
        for model in models():
            model.save(Path(folder) / "model.keydyn")
            contents.append((Path(folder) / "model.keydyn").read_bytes())
    return contents


def raw_bytes() -> Target:
    """Files with bytes changed: the digest finds all of them."""

    def case(generator: Generator) -> bytes:
        return changed_bytes(generator, pick(generator, files()), files())

    def judge(contents: bytes, folder: Path) -> str:
        if contents in files():
            return "unchanged"
        return _read(contents, may_be_read=False)

    return Target("model files, bytes", case, judge)


def values() -> Target:
    """Files with a right digest: what is read answers every question without NaN."""
    parts = [unpacked(contents) for contents in files()]

    def is_free(name: str) -> bool:
        return "emission" in name

    def case(generator: Generator) -> bytes:
        return changed_file(generator, parts, is_free)

    return Target("model files, values", case, lambda contents, folder: _read(contents, may_be_read=True))


def changed_file(generator: Generator, parts: list[Parts], is_free: Callable[[str], bool]) -> bytes:
    """One of the files, header or numbers changed. Most often those are that `is_free` names.

    Where probabilities are changed, they hardly ever still add up to one.
    """
    header, tensors = pick(generator, parts)
    tensors = dict(tensors)
    for _ in range(int(generator.integers(1, 4))):
        if generator.random() < 0.3:
            header = changed_json(generator, header)
        else:
            free = [name for name in sorted(tensors) if is_free(name)]
            name = pick(generator, free if generator.random() < 0.7 else sorted(tensors))
            tensors[name] = changed_numbers(generator, tensors[name])
    try:
        return packed(header, tensors)
    except (TypeError, ValueError, AttributeError):
        # A header that is no header, or numbers that JSON cannot hold.
        return packed(parts[0][0], tensors)


def _read(contents: bytes, *, may_be_read: bool) -> str:
    try:
        model = parsed(contents, "case.keydyn")
    except ModelFileError:
        return "refused"
    assert may_be_read, "a changed file was read"
    return "read, some questions refused" if interrogate(model) else "read, every question answered"


def unpacked(contents: bytes) -> Parts:
    """Header and tensors."""
    described = json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])
    return json.loads(described["__metadata__"][HEADER]), from_bytes(contents)
