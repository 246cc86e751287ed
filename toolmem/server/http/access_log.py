"""One line of JSON on stderr for each request and each message. No payloads, no query strings, never the token."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolmem.server.http.limits import Gone
from toolmem.server.http.responses import failed, refusal

NOTES = "toolmem.log"  # in the scope: what a route adds to its request's line
GONE = 499  # the status that is logged where the client went away before it had an answer
_SHOWN = 200  # characters of a path

requests = logging.getLogger("toolmem.service.access")


def log_to_stderr() -> None:
    """Everything that toolmem and the server under it have to say, from INFO up for requests, else from WARNING."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("toolmem", "uvicorn", "asyncio", "mcp"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.WARNING)
    requests.setLevel(logging.INFO)


class JsonLines(logging.Formatter):
    """`{"time", "level", ...}`: with the fields of a request where the record carries them, else with a message."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
        }
        fields = getattr(record, "fields", None)
        if fields is not None:
            told.update(fields)
        else:
            told.update(logger=record.name, message=record.getMessage())
            if record.exc_info and record.exc_info[1] is not None:
                told["exception"] = type(record.exc_info[1]).__name__
        return json.dumps(told)


def note_workspaces(scope: Scope, workspaces: Iterable[str]) -> None:
    """Whose memories a request asked for."""
    named = sorted(workspaces)
    if named:
        scope[NOTES]["workspace"] = named[0] if len(named) == 1 else named[:10]


class AccessLog:
    """The outermost layer: logs each request, and answers where the layers below raised."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        begun, status, bytes_in, bytes_out = time.perf_counter(), 0, 0, 0
        scope[NOTES] = {}

        async def counted_receive() -> Message:
            nonlocal bytes_in
            message = await receive()
            bytes_in += len(message.get("body", b""))
            return message

        async def counted_send(message: Message) -> None:
            nonlocal status, bytes_out
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                bytes_out += len(message.get("body", b""))
            await send(message)

        try:
            await self._inner(scope, counted_receive, counted_send)
        except Gone:
            pass
        except asyncio.CancelledError:
            # Only the end of the process cancels a request; its task ends here, with an answer.
            if not status:
                answer = refusal(503, "the service is stopping; the request was not finished", kind="Stopping")
                await answer(scope, counted_receive, counted_send)
        except Exception as error:
            if not status:
                await failed(error)(scope, counted_receive, counted_send)
        finally:
            fields = {
                "method": scope["method"],
                "path": scope["path"][:_SHOWN],
                "status": status or GONE,
                "ms": round((time.perf_counter() - begun) * 1000, 2),
                "workspace": None,
                "bytes_in": bytes_in,
                "bytes_out": bytes_out,
                **scope[NOTES],
            }
            requests.info("request", extra={"fields": fields})
