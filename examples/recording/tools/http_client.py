"""`http_request` and `get_weather`: requests over a real socket to the API on loopback."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

from examples.recording.tools.tool import (
    Answer,
    Arguments,
    Tool,
    Wording,
    done,
    failure,
    object_schema,
    to_json,
)

_DEFAULT_TIMEOUT = 5000  # milliseconds


def _fetch(port: int, method: str, target: str, body: Any, client: str, timeout: float) -> tuple[int, Any]:
    """Status and body (JSON where it is JSON, else text). Raises OSError or HTTPException. `timeout`: seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        payload = None if body is None else json.dumps(body).encode()
        connection.request(method, target, body=payload, headers={"X-Client": client})
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    is_json = response.headers.get_content_type() == "application/json"
    return response.status, json.loads(text) if is_json else text


class HttpRequest(Tool):
    name = "http_request"
    description = (
        "Send a request to the shop's HTTP API. Lists need page_size (1 to 100). Returns status and body; "
        "at most 4 requests per minute."
    )
    parameters = object_schema(
        ("path",),
        method={"type": "string", "enum": ["GET", "POST", "PUT", "DELETE"], "default": "GET"},
        path={"type": "string", "description": "Begins with /v1/."},
        query={"type": "object", "description": "Query parameters."},
        body={"type": "object", "description": "JSON body."},
        timeout_ms={"type": "integer", "minimum": 10, "maximum": 30000, "default": _DEFAULT_TIMEOUT},
    )
    wording: ClassVar[Wording] = "python"

    def __init__(self, port: int, client: Callable[[], str]) -> None:
        self._port = port
        self._client = client

    def run(self, arguments: Arguments) -> Answer:
        path = arguments["path"]
        if not path.startswith("/"):
            return failure(f"ValueError: path must begin with '/', got {path!r}")
        target = quote(path) + ("?" + urlencode(arguments["query"]) if arguments.get("query") else "")
        milliseconds = int(arguments.get("timeout_ms", _DEFAULT_TIMEOUT))
        try:
            status, body = _fetch(
                self._port,
                arguments.get("method", "GET"),
                target,
                arguments.get("body"),
                self._client(),
                milliseconds / 1000,
            )
        except TimeoutError:
            return failure(f"ReadTimeout: no answer within {milliseconds} ms")
        except (OSError, http.client.HTTPException) as error:
            return failure(f"ConnectionError: {error}", fault="connection_dropped")
        text = to_json({"status": status, "body": body})
        if status >= 400:
            fault = {409: "out_of_stock", 429: "rate_limit", 503: "server_error"}.get(status)
            return failure(text, success=True, fault=fault)
        if isinstance(body, dict) and body.get("ok") is False:
            return failure(text, success=True)
        empty = isinstance(body, dict) and body.get("items") == []
        return done(text, useful=not empty)


class GetWeather(Tool):
    name = "get_weather"
    description = "Weather forecast for a city on one day, today or up to 10 days ahead."
    parameters = object_schema(
        ("city", "date"),
        city={"type": "string", "description": "English name of the city."},
        date={"type": "string", "description": "YYYY-MM-DD."},
        units={"type": "string", "description": "metric or imperial.", "default": "metric"},
    )
    wording: ClassVar[Wording] = "json"

    def __init__(self, port: int) -> None:
        self._port = port

    def run(self, arguments: Arguments) -> Answer:
        target = "/weather?" + urlencode(dict(arguments))
        _, body = _fetch(self._port, "GET", target, None, "weather", _DEFAULT_TIMEOUT / 1000)
        text = to_json(body)
        if body["cod"] == "200":
            return done(text)
        # The units were right until the service changed: nothing in the old documentation could have told.
        changed = "no longer supported" in body["message"]
        return failure(text, success=True, fault="api_change" if changed else None)
