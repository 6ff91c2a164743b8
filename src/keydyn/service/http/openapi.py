"""The OpenAPI document, and the reference at /docs: Swagger UI from a package, so that it works offline."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

from keydyn.service.http.idempotency import LONGEST_KEY
from keydyn.service.http.schemas import components

router = APIRouter(include_in_schema=False)
POLICY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'"
}
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>keydyn service: reference</title>
<link rel="stylesheet" href="/docs/assets/swagger-ui.css">
<style>.swagger-ui .scheme-container { display: none }</style>
</head>
<body>
<div id="reference"></div>
<script src="/docs/assets/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
# Nothing can be sent from the page: browsers never hold an API key.
START = """SwaggerUIBundle({
  url: "/openapi.json", dom_id: "#reference", deepLinking: true, supportedSubmitMethods: [],
  validatorUrl: null, defaultModelsExpandDepth: 0
});
"""


WRITES = ("post", "put", "delete")
# Where an Idempotency-Key means nothing: two change nothing that was there, one works once as it is.
WRITE_NOTHING_TWICE = ("/v1/identify", "/v1/error-rates/measure", "/v1/session")
KEY_PARAMETER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[ -~]+$"},
    "description": "A new one for each write: a write sent twice has the same answer and one effect.",
}


def add_reference(app: FastAPI) -> None:
    """Serve the reference, and complete the OpenAPI document: types, and what holds for all routes."""
    app.include_router(router)
    app.mount("/docs/assets", StaticFiles(packages=[("fastapi_offline", "static")]), name="reference")
    made = app.openapi

    @cache
    def openapi() -> dict[str, Any]:
        document = made()
        parts = document.setdefault("components", {})
        parts["schemas"] = components()
        parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "API key"}}
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                operation["summary"] = operation["description"].partition("\n")[0].rstrip(".")
                if not path.startswith("/v1/"):
                    continue
                operation["security"] = [{"key": []}]
                if method in WRITES and path not in WRITE_NOTHING_TWICE:
                    operation.setdefault("parameters", []).append(KEY_PARAMETER)
        return document

    app.openapi = openapi  # type: ignore[method-assign]


@router.get("/docs")
def reference() -> HTMLResponse:
    """The page of the reference."""
    return HTMLResponse(PAGE, headers=POLICY)


@router.get("/docs/start.js")
def start() -> Response:
    """The script that starts it."""
    return Response(START, media_type="text/javascript")
