"""Files of the package for browsers: the recorder and its declarations."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response

router = APIRouter(include_in_schema=False)
# Nothing in these files is secret: any page may load them. Browsers ask each time for a newer one.
HEADERS = {
    "access-control-allow-origin": "*",
    "cache-control": "public, no-cache",
    "cross-origin-resource-policy": "cross-origin",
}


@router.get("/recorder.js")
def recorder(request: Request) -> Response:
    """The recorder, an ES module."""
    return _file(request, "recorder.js", "text/javascript")


@router.get("/recorder.d.ts")
def declarations(request: Request) -> Response:
    """Its declarations for TypeScript."""
    return _file(request, "recorder.d.ts", "application/typescript")


def _file(request: Request, name: str, media_type: str) -> Response:
    contents, tag = _contents(name)
    headers = {**HEADERS, "etag": tag}
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if tag in known:
        return Response(status_code=304, headers=headers)
    return Response(contents, media_type=f"{media_type}; charset=utf-8", headers=headers)


@cache
def _contents(name: str) -> tuple[bytes, str]:
    """A file, and the tag by which browsers know it."""
    contents = (files("keydyn.service") / "pages" / name).read_bytes()
    return contents, f'"{hashlib.sha256(contents).hexdigest()[:32]}"'
