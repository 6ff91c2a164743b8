"""The recorder as a file: its contents, its address, and the hash by which browsers recognise it."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import NamedTuple


class RecorderFile(NamedTuple):
    """The recorder that comes with this package.

    Attributes
    ----------
    name : of the file; it changes whenever the contents do
    integrity : the hash, as the attribute of that name has it
    contents : of the file
    """

    name: str
    integrity: str
    contents: bytes

    def tag(self, address: str) -> str:
        """The HTML that loads it from an address, and refuses anything else that is found there."""
        place = f"{address.rstrip('/')}/{self.name}"
        return f'<script type="module" src="{place}" integrity="{self.integrity}" crossorigin></script>'


def recorder_file() -> RecorderFile:
    """The recorder, for the service's own address or to be served by anyone else."""
    contents = (files("keydyn.service") / "pages" / "recorder.js").read_bytes()
    integrity = f"sha384-{base64.b64encode(hashlib.sha384(contents).digest()).decode()}"
    return RecorderFile(f"recorder-{hashlib.sha256(contents).hexdigest()[:12]}.js", integrity, contents)
