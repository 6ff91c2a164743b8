"""Makes docs/_static/scores-report.html: runs the first two blocks of how-to/evaluate-other-scores.md.

It is the report of `keydyn evaluate --scores`, with smaller pictures and without links to files beside it.
"""

from __future__ import annotations

import base64
import io
import os
import re
import shlex
import tempfile
from pathlib import Path

from PIL import Image
from typer.testing import CliRunner

from keydyn.cli import app

DOCS = Path(__file__).parent
PAGE = DOCS / "how-to" / "evaluate-other-scores.md"
REPORT = DOCS / "_static" / "scores-report.html"
# Lines and letters of a figure need few colours, and the page few pixels.
COLOURS, SHARE = 128, 0.8
# What differs from one run to the next.
CHANGING = re.compile(
    r'<dt>libraries</dt><dd><dl class="facts">.*?</dl></dd>\n|<dt>(?:time|python)</dt><dd>.*?</dd>\n',
    re.DOTALL,
)


def made() -> str:
    """The report's page."""
    text = PAGE.read_text(encoding="utf-8")
    program, command = (
        re.search(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) for kind in ("python", "sh")
    )
    assert program is not None
    assert command is not None
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            exec(program[1], {})
            result = CliRunner().invoke(app, shlex.split(command[1])[1:])
            assert result.exit_code == 0, result.output
            page = Path("scores/report.html").read_text(encoding="utf-8")
        finally:
            os.chdir(before)
    page = re.sub(r'<p class="links">.*?</p>\n', "", page)
    return re.sub(r'(?<=base64,)[^"]+', lambda match: smaller(match[0]), CHANGING.sub("", page))


def smaller(encoded: str) -> str:
    """A picture with fewer pixels and colours."""
    picture = Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGB")
    size = (round(SHARE * picture.width), round(SHARE * picture.height))
    out = io.BytesIO()
    picture.resize(size, Image.Resampling.LANCZOS).quantize(COLOURS).save(out, "PNG", optimize=True)
    return base64.b64encode(out.getvalue()).decode("ascii")


if __name__ == "__main__":
    REPORT.write_text(made(), encoding="utf-8")
    print(f"{REPORT.name}: {REPORT.stat().st_size / 1000:.0f} kB")
