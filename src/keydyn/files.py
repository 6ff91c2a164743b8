"""Kinds of files, each declared once with its fields and arrays, their types and their bounds.

A file is in the safetensors format: arrays by name, and a header in JSON with the fields, the name of the
kind and the SHA-256 of the whole (docs/file-format.md). Nothing in a file can run code. Files may come from
anywhere: a file that does not match the declaration is refused, naming the file and the field.

The checks of fields (`text`, `whole`, `many`, `record`, …) serve other stored values too, such as manifests,
cursors and the states of sessions.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from reprlib import repr as shown
from typing import Any, Generic, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from keydyn.atomic import write_bytes
from keydyn.regular_files import UnusableFileError, read_regular

FORMAT, VERSION = "keydyn-model", 1
# The safetensors metadata entry that has the header.
HEADER = "keydyn"
# The largest file that is read, in bytes; the largest model measured has a tenth of this.
LARGEST_FILE = 1 << 30
# Counts up to this number are exact as floats.
MOST_COUNTED = 2**53
# The largest deviation from 1 of a sum of probabilities.
SUM_TOLERANCE = 1e-6

Path_ = str | PathLike[str]
Values = dict[str, Any]
Tensors = dict[str, NDArray[Any]]
# Returns the value of a field, possibly converted; a `ValueError` gives the field's name and what is wrong.
Field = Callable[[str, Any], Any]
# Raises a `ValueError` with the array's name unless its values are right.
Bounds = Callable[[str, NDArray[Any]], None]
Stored = TypeVar("Stored")


class ModelFileError(ValueError):
    """Raised when a file is damaged or not of the expected kind.

    Examples
    --------
    >>> from pathlib import Path
    >>> from keydyn import load
    >>> from keydyn.model import ModelFileError
    >>> _ = Path("model.keydyn").write_bytes(b"no model at all")
    >>> try:
    ...     load("model.keydyn")
    ... except ModelFileError as error:
    ...     print("model.keydyn" in str(error))
    True
    """


def wrong(name: str, value: Any, what: str) -> ValueError:
    """Make the error for a field whose value is not `what` it should be."""
    return ValueError(f"{name} is {shown(value)}, not {what}")


def anything(name: str, value: Any) -> Any:
    """Accept any value, because it is checked where it is used."""
    return value


def text(name: str, value: Any) -> str:
    """Non-empty text that can be printed; JSON can hold half of a surrogate pair, which cannot."""
    printable = isinstance(value, str) and value.encode("utf-8", "replace").decode("utf-8") == value
    if not printable or not value:
        raise wrong(name, value, "text")
    return str(value)


def matching(pattern: str, what: str) -> Field:
    """Text that matches a regular expression from beginning to end."""

    def check(name: str, value: Any) -> str:
        if not re.fullmatch(pattern, text(name, value)):
            raise wrong(name, value, what)
        return str(value)

    return check


sha256 = matching("[0-9a-f]{64}", "64 hexadecimal digits")


def or_empty(field: Field) -> Field:
    """Either this field or empty text."""
    return lambda name, value: "" if value == "" else field(name, value)


def one_of(*values: str) -> Field:
    """One of these words."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in values:
            raise wrong(name, value, f"one of {', '.join(values)}")
        return value

    return check


def truth(name: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise wrong(name, value, "true or false")
    return value


def number(name: str, value: Any) -> float:
    """A finite float; whole numbers without a fraction are refused, since JSON writes floats with one."""
    if not isinstance(value, float) or not math.isfinite(value):
        raise wrong(name, value, "a finite number")
    return value


def whole(least: int = 0, most: int = MOST_COUNTED) -> Field:
    """A whole number within bounds."""
    what = f"a whole number of {least} or more" if most == MOST_COUNTED else f"from {least} to {most}"

    def check(name: str, value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise wrong(name, value, what)
        return value

    return check


def many(field: Field) -> Field:
    """A list with entries of one kind; errors give the position, counted from 0."""

    def check(name: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise wrong(name, value, "a list")
        return [field(f"{name}[{n}]", entry) for n, entry in enumerate(value)]

    return check


def mapping(name: str, value: Any) -> Values:
    """An object whose fields are checked where it is used."""
    if not isinstance(value, dict):
        raise wrong(name, value, "an object")
    return value


def record(fields: Mapping[str, Field], *, complete: bool = True) -> Field:
    """An object with these fields and no others; if `complete`, none may be missing."""

    def check(name: str, value: Any) -> Values:
        mapping(name or "it", value)
        absent, unknown = fields.keys() - value.keys(), value.keys() - fields.keys()
        if absent and complete:
            raise ValueError(f"{name or 'it'} has no {', '.join(sorted(absent))}")
        if unknown:
            raise ValueError(f"{name or 'it'} has fields that are not known: {shown(sorted(unknown))}")
        prefix = f"{name}." if name else ""
        return {key: fields[key](prefix + key, entry) for key, entry in value.items()}

    return check


def unbounded(name: str, values: NDArray[Any]) -> None:
    """Accept all values of the array's type."""


def finite(name: str, values: NDArray[Any]) -> None:
    """Check that no value is NaN or infinite."""
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has values that are not finite")


def within(least: float, most: float) -> Bounds:
    """Make a check that values are from `least` to `most`, both included, and not NaN."""

    def check(name: str, values: NDArray[Any]) -> None:
        if not ((values >= least) & (values <= most)).all():
            raise ValueError(f"{name} has values that are not between {least:g} and {most:g}")

    return check


def probabilities(name: str, values: NDArray[Any]) -> None:
    """Check that values are probabilities that add up to one along the last axis."""
    bad = ~(np.isfinite(values) & (values >= 0.0))
    if bad.any():
        place = tuple(np.argwhere(bad)[0].tolist())
        raise ValueError(f"{name}{list(place)} is {values[place]}; a probability is between 0 and 1")
    total = values.sum(axis=-1)
    off = np.abs(total - 1.0) > SUM_TOLERANCE
    if off.any():
        place = tuple(np.argwhere(off)[0].tolist())
        raise ValueError(f"{name}{list(place) or ''} adds up to {total[place]}, not 1")


@dataclass(frozen=True)
class Tensor:
    """The declaration of an array in a file.

    Attributes
    ----------
    shape : numbers, or symbols such as "M", which stand for one number throughout a file, or None for any
    bounds : the check of its values
    dtype : the type of its values
    group : a file has all arrays of a group or none; an array without a group is required
    """

    shape: tuple[int | str | None, ...]
    bounds: Bounds = finite
    dtype: type[np.generic] = np.float64
    group: str | None = None

    def check(self, name: str, values: NDArray[Any], sizes: dict[str, int]) -> None:
        """Check an array against the declaration; new symbols are added to `sizes`, the known ones."""
        if values.dtype != self.dtype:
            raise ValueError(f"{name} has values of type {values.dtype}, not {np.dtype(self.dtype)}")
        if values.ndim == len(self.shape):
            for size, symbol in zip(values.shape, self.shape, strict=True):
                if isinstance(symbol, str):
                    sizes.setdefault(symbol, size)
        wanted = [sizes.get(size, size) if isinstance(size, str) else size for size in self.shape]
        fits = values.ndim == len(wanted)
        if not fits or any(
            want is not None and have != want for have, want in zip(values.shape, wanted, strict=True)
        ):
            words = ", ".join("any" if size is None else str(size) for size in wanted)
            raise ValueError(f"{name} must have shape ({words}), not {values.shape}")
        self.bounds(name, values)


def check_tensors(tensors: Tensors, declared: Mapping[str, Tensor]) -> None:
    """Check arrays against their declarations; a `ValueError` names the first that is wrong."""
    unknown = tensors.keys() - declared.keys()
    if unknown:
        raise ValueError(f"it has arrays that are not known: {', '.join(sorted(unknown))}")
    groups = {declared[name].group for name in tensors} - {None}
    sizes: dict[str, int] = {}
    for name, one in declared.items():
        if name in tensors:
            one.check(name, tensors[name], sizes)
        elif one.group is None or one.group in groups:
            raise ValueError(f"it has no {name}")


@dataclass(frozen=True)
class Kind(Generic[Stored]):
    """The declaration of a kind of file.

    Attributes
    ----------
    name : the value of "class" in the header
    fields : the fields of the header, besides those that every file has
    tensors : declares the arrays of a file, given the values of its header; None if `build` checks them
    build : makes the stored object from the values and arrays, all checked
    """

    name: str
    fields: Mapping[str, Field]
    tensors: Callable[[Values], Mapping[str, Tensor]] | None
    build: Callable[[Values, Tensors], Stored]

    def header(self, values: Values) -> Values:
        """The header of a file, without the digest; `values` may name another class of the same kind."""
        return {"format": FORMAT, "version": VERSION, "class": self.name, **values}

    def packed(self, values: Values, tensors: Tensors) -> bytes:
        """The contents of a file."""
        return packed(self.header(values), tensors)

    def digest(self, values: Values, tensors: Tensors) -> str:
        """SHA-256 of the contents that a file would have."""
        return digest(self.header(values), tensors)

    def parsed(self, contents: bytes, path: Path_) -> Stored:
        """Build the object from the result of `packed`; a `ModelFileError` if it is of another kind."""
        header, tensors = _unpacked(contents, path)
        name = str(header.get("class"))
        if KINDS.get(name) is not self:
            raise ModelFileError(f"{path} holds a {name[:40]}, not a {self.name}")
        return _built(self, header, tensors, path)

    def restored(self, header: Values, tensors: Tensors) -> Stored:
        """Build the object from a header and arrays; a `ValueError` says what is wrong with them."""
        own = {name: value for name, value in header.items() if name not in _OF_EVERY_FILE}
        values = record(self.fields)("", own) | {"class": header.get("class")}
        if self.tensors is not None:
            check_tensors(tensors, self.tensors(values))
        return self.build(values, tensors)


_OF_EVERY_FILE = ("format", "version", "class", "sha256")
#: Every kind of file, by the name in its header.
KINDS: dict[str, Kind[Any]] = {}


def declared(kind: Kind[Stored]) -> Kind[Stored]:
    """Add a kind of file to those that `load` reads."""
    KINDS[kind.name] = kind
    return kind


def read(path: Path_) -> bytes:
    """Read the contents of a file, to be parsed."""
    try:
        return read_regular(Path(path), LARGEST_FILE)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except (UnusableFileError, OSError) as error:
        raise ModelFileError(f"{path} is not a keydyn model: {error}") from None


def parsed(contents: bytes, path: Path_) -> Any:
    """Build the object from the contents of a file of any kind; `path` is its name in messages."""
    header, tensors = _unpacked(contents, path)
    name = header.get("class")
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ModelFileError(f"{path} is not valid: class {shown(name)} is not known")
    return _built(kind, header, tensors, path)


def write(path: Path_, contents: bytes) -> None:
    """Write a file, in full or not at all; a `FileNotFoundError` if its folder does not exist."""
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"there is no folder {Path(path).parent}")
    write_bytes(Path(path), contents)


def packed(header: Values, tensors: Tensors) -> bytes:
    """The contents of a file with these arrays and this header, to which the digest is added."""
    header = header | {"sha256": digest(header, tensors)}
    return to_bytes(
        {name: np.ascontiguousarray(values) for name, values in tensors.items()}, {HEADER: _text(header)}
    )


def digest(header: Values, tensors: Tensors) -> str:
    """SHA-256 of the header without its own digest, then of each array's name, type, shape and bytes."""
    plain = {name: value for name, value in header.items() if name != "sha256"}
    digest = hashlib.sha256(_text(plain).encode())
    for name in sorted(tensors):
        values = tensors[name]
        digest.update(f"\n{name} {values.dtype.str} {values.shape}\n".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def marked(mark: bytes, payload: bytes) -> bytes:
    """Prefix bytes too small for a file with a mark that identifies them, and their CRC-32."""
    return mark + crc32(payload).to_bytes(4, "little") + payload


def unmarked(mark: bytes, contents: bytes, what: str) -> bytes:
    """Check and remove the prefix that `marked` added; `what` describes the bytes in error messages."""
    begin = len(mark) + 4
    if contents[: len(mark)] != mark or len(contents) < begin:
        raise ValueError(f"these bytes are not {what}, or they are cut short")
    if crc32(contents[begin:]) != int.from_bytes(contents[len(mark) : begin], "little"):
        raise ValueError(f"the bytes of {what} are damaged: they do not match their checksum")
    return contents[begin:]


def _built(kind: Kind[Stored], header: Values, tensors: Tensors, path: Path_) -> Stored:
    """Build the object of a file; all errors that even a hostile file can cause name the file."""
    try:
        return kind.restored(header, tensors)
    except KeyError as error:
        raise ModelFileError(f"{path} is not a valid {header['class']}: it has no {error}") from None
    except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a valid {header['class']}: {error}") from None


def _unpacked(contents: bytes, path: Path_) -> tuple[Values, Tensors]:
    """Read the header and arrays of a file, and verify its digest."""
    try:
        tensors = {name: np.array(values) for name, values in from_bytes(contents).items()}
        # The line above has checked the beginning: the length of the header, then the header in JSON.
        described = json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])
        header = _parse_header(path, described.get("__metadata__", {}).get(HEADER))
    except (SafetensorError, AttributeError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} is not a keydyn model, or it is cut short: {error}") from None
    if header.get("sha256") != digest(header, tensors):
        raise ModelFileError(f"{path} is damaged: its contents do not match its SHA-256")
    return header, tensors


def _parse_header(path: Path_, text: str | None) -> Values:
    if text is None:
        raise ModelFileError(f"{path} is a safetensors file, but not a keydyn model")
    try:
        header = json.loads(text)
        unchanged = _text(header) == text
    except (ValueError, RecursionError):
        raise ModelFileError(f"{path} is damaged: its header cannot be read") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a keydyn model")
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise ModelFileError(f"{path} is damaged: format version {version!r}")
    if version > VERSION:
        raise ModelFileError(
            f"{path} was written by a newer keydyn (format version {version}); this one reads up to {VERSION}"
        )
    if not unchanged:
        raise ModelFileError(f"{path} is damaged: its header was changed")
    return header


def _text(header: Values) -> str:
    """Write a header, always in the same form; NumPy's numbers become plain ones."""
    return json.dumps(header, sort_keys=True, default=lambda value: value.item())
