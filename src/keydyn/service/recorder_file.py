"""The recorder as a file: its contents, its name, and the hash by which browsers verify it."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import NamedTuple


class RecorderFile(NamedTuple):
    """The recorder that comes with this package.

    Attributes
    ----------
    name : the name of the file, which changes whenever the contents do
    integrity : the hash, in the form of HTML's `integrity` attribute
    contents : the contents of the file
    """

    name: str
    integrity: str
    contents: bytes

    def tag(self, address: str) -> str:
        """The HTML element that loads the recorder from an address, and refuses any other contents."""
        place = f"{address.rstrip('/')}/{self.name}"
        return f'<script type="module" src="{place}" integrity="{self.integrity}" crossorigin></script>'


def recorder_file() -> RecorderFile:
    """The recorder, to be served by the service or by any other site."""
    contents = (files("keydyn.service") / "pages" / "recorder.js").read_bytes()
    integrity = f"sha384-{base64.b64encode(hashlib.sha384(contents).digest()).decode()}"
    return RecorderFile(f"recorder-{hashlib.sha256(contents).hexdigest()[:12]}.js", integrity, contents)
