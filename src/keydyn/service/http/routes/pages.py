"""Routes of the service's own pages and their sessions, and of the recorder, which any page may load."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, HTTPException, Request, Response

from keydyn.service.accounts import end_session, open_page
from keydyn.service.http.access import Rule, forbidden, own_page
from keydyn.service.http.routing import Call, Routes
from keydyn.service.problems import Problem
from keydyn.service.recorder_file import recorder_file
from keydyn.service.wire.answers import SessionAnswer
from keydyn.service.wire.both_ways import Moment
from keydyn.service.wire.requests import SessionBody

routes = Routes("/v1/session", "pages")
files_router = APIRouter(include_in_schema=False)
KINDS = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".ts": "application/typescript",
}
# The addresses of the pages, and of files that any site's pages may load. All other files are under /pages/.
PAGES = {"/": "index.html", "/admin": "admin.html"}
FOR_ANY_PAGE = {"/recorder.js": "recorder.js", "/recorder.d.ts": "recorder.d.ts"}
# Browsers check for a newer version each time, except for files whose address changes with their contents.
CACHE = {"cache-control": "no-cache"}
FOR_EVER = {"cache-control": "public, max-age=31536000, immutable"}
# No inline code and nothing from other origins; pages send data to the service only.
POLICY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
}
# Nothing in the recorder is secret.
SHARED = {"access-control-allow-origin": "*", "cross-origin-resource-policy": "cross-origin"}


@routes.route("POST", "", own_page, status=201)
def open_session(call: Call, body: SessionBody) -> SessionAnswer:
    """Open a session for one of the service's own pages, with a link that works once or with an API key."""
    context, request = call.context, call.request
    try:
        opened = open_page(context.database, context.keys, context.clock, link=body.link, key=body.key)
    except Problem as problem:
        request.app.state.door.note_refusal(body.link or body.key or "", problem)
        raise
    request.state.tenant_id = opened.tenant_id
    return SessionAnswer(opened.token, tuple(sorted(opened.scopes)), Moment.at(opened.expires_at))


@routes.route("DELETE", "", Rule(None), status=204)
def close_session(call: Call) -> None:
    """End the session that the request is sent with."""
    caller, context = call.caller, call.context
    if caller.kind != "session":
        raise forbidden("This is not the session of a page.")
    end_session(context.database, context.clock, caller.key_id, caller.tenant.id)


def _add(path: str, name: str, headers: dict[str, str]) -> None:
    def file(request: Request) -> Response:
        return answer(request, name, headers)

    files_router.add_api_route(path, file, methods=["GET"])


@files_router.get("/recorder-{version}.js")
def recorder(request: Request, version: str) -> Response:
    """Serve the recorder at an address that changes with its contents, so that browsers may keep it."""
    if f"recorder-{version}.js" != recorder_file().name:
        raise HTTPException(404)
    return answer(request, "recorder.js", {**SHARED, **FOR_EVER})


for _path, _name in PAGES.items():
    _add(_path, _name, POLICY)
for _path, _name in FOR_ANY_PAGE.items():
    _add(_path, _name, SHARED)


@files_router.get("/pages/{name}")
def part(request: Request, name: str) -> Response:
    """Serve a file that the pages load: a module, the stylesheet or a picture."""
    if name not in parts():
        raise HTTPException(404)
    return answer(request, name, POLICY)


def answer(request: Request, name: str, headers: dict[str, str]) -> Response:
    """Answer with a file, or with status 304 if the browser has it already."""
    contents, tag = _contents(name)
    headers = {**CACHE, **headers, "etag": tag}
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if tag in known:
        return Response(status_code=304, headers=headers)
    kind = KINDS[name[name.rindex(".") :]]
    return Response(contents, media_type=f"{kind}; charset=utf-8", headers=headers)


@cache
def parts() -> frozenset[str]:
    """The names of the files that are under /pages/."""
    found = {file.name for file in (files("keydyn.service") / "pages").iterdir()}
    return frozenset(name for name in found if name.endswith(tuple(KINDS)) and not name.endswith(".html"))


@cache
def _contents(name: str) -> tuple[bytes, str]:
    """A file and its entity tag."""
    contents = (files("keydyn.service") / "pages" / name).read_bytes()
    return contents, f'"{hashlib.sha256(contents).hexdigest()[:32]}"'
