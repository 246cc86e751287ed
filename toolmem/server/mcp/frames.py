"""What is posted to the MCP server, looked at before the SDK reads it: JSON of a bounded depth, with a proper id.

The SDK takes a request whose id is none (NaN, null, a list) for a notification, and who asked would wait for an answer.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from mcp_types import INVALID_REQUEST, PARSE_ERROR
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive

from toolmem.server.json_text import read_aside, read_json


async def read_frame(receive: Receive, most: int) -> tuple[Response | None, Receive]:
    """(the refusal of a frame that is none, what the SDK receives instead).

    A body of over `most` bytes is left to the SDK, which refuses it by its length.
    """
    taken: list[Message] = []
    size, more = 0, True
    while more and size <= most:
        message = await receive()
        taken.append(message)
        size += len(message.get("body", b""))
        more = message["type"] == "http.request" and message.get("more_body", False)
    body = b"".join(message.get("body", b"") for message in taken)
    gone = taken[-1]["type"] != "http.request"
    refusal = None if gone or size > most else await _refusal(body)
    return refusal, _again(taken, receive)


async def _refusal(body: bytes) -> Response | None:
    try:
        frame = await read_aside(body, functools.partial(read_json, body))
    except ValueError as error:
        return _error(PARSE_ERROR, f"Parse error: {error}")
    asks = isinstance(frame, dict) and "method" in frame and "id" in frame
    if asks and (isinstance(frame["id"], bool) or not isinstance(frame["id"], int | str)):
        return _error(INVALID_REQUEST, "Invalid Request: id: expected text or a whole number")
    return None


def _error(code: int, message: str) -> Response:
    said: dict[str, Any] = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return JSONResponse(said, 400)


def _again(taken: Iterable[Message], receive: Receive) -> Receive:
    """The messages that were taken, then whatever comes."""
    left = iter(taken)

    async def receive_again() -> Message:
        message = next(left, None)
        return await receive() if message is None else message

    return receive_again
