"""How commands open a folder of enrolled people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelsOption = Annotated[Path, typer.Option("--models", help="Folder that `keydyn fit` wrote.")]
KeyFileOption = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        help="File with the secret key that authenticates the folder's list of users.",
        show_default=False,
    ),
]


def key_of(key_file: Path | None) -> bytes | None:
    """The key in a file, if one is named."""
    from keydyn.decisions.folder.authentication import read_key

    return None if key_file is None else read_key(key_file)
