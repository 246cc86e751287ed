"""The OpenAPI document for people: Swagger UI, whose files come from an installed package and not from the network."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources

from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

FILES = "/docs/files"


def files() -> StaticFiles:
    """What is served at `FILES`."""
    return StaticFiles(directory=str(resources.files("fastapi_offline").joinpath("static")))


def page(title: str) -> Response:
    """Addresses are relative, so that the page also works behind a proxy's prefix."""
    response = get_swagger_ui_html(
        openapi_url="openapi.json",
        title=title,
        swagger_js_url=f".{FILES}/swagger-ui-bundle.js",
        swagger_css_url=f".{FILES}/swagger-ui.css",
        swagger_favicon_url="data:,",
        swagger_ui_parameters={"validatorUrl": None},  # by default it asks a server on the network about the document
    )
    response.headers["Content-Security-Policy"] = _policy(bytes(response.body).decode())
    return response


def _policy(html: str) -> str:
    """The browser runs the page's own script, known by its digest, and loads from nobody but this service."""
    digests = [hashlib.sha256(script.encode()).digest() for script in re.findall(r"<script>(.*?)</script>", html, re.S)]
    scripts = " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in digests)
    return (
        f"default-src 'none'; script-src 'self' {scripts}; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
