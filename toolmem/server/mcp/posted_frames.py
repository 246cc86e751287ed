"""What is posted to the MCP server, looked at before the SDK reads it: JSON of a bounded size and depth that arrives in
time, with a proper id.

The SDK takes a request whose id is none (NaN, null, a list) for a notification, and who asked would wait for an answer.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from mcp_types import INVALID_REQUEST, PARSE_ERROR
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive

from toolmem.server.http.limits import Limits, Unreadable
from toolmem.server.json_text import read_aside, read_json


async def read_frame(receive: Receive, limits: Limits) -> tuple[Response | None, Receive]:
    """(the refusal of a frame that is none, what the SDK receives instead). Raises Gone."""
    try:
        body = await limits.body_of(receive)
    except Unreadable as unreadable:
        return unreadable.answer, receive
    whole: Iterator[Message] = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive_again() -> Message:
        message = next(whole, None)
        return await receive() if message is None else message

    return await _refusal(body), receive_again


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
