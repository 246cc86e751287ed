"""Reads a request's body: sent as JSON, of a bounded size, in a bounded time, nested to a bounded depth."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive, Scope

from toolmem.config.settings import HttpSettings
from toolmem.server.http.access import header
from toolmem.server.http.responses import JsonAnswer, refusal
from toolmem.server.json_text import read_aside, read_json

_DRAINED = 8  # so many times the limit is read and thrown away, so that the sender gets to read the answer


class Unreadable(Exception):
    """The body cannot be had; `answer` says so."""

    def __init__(self, answer: JsonAnswer) -> None:
        self.answer = answer
        super().__init__(answer.status_code)


class Gone(Exception):
    """The client went away before its request had arrived."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may take."""

    body: int  # bytes
    items: int  # of a list in a request
    seconds: float  # for the body to arrive

    @classmethod
    def of(cls, settings: HttpSettings) -> Limits:
        return cls(settings.max_body_bytes, settings.max_batch, settings.read_timeout)

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body. Raises Unreadable, or Gone."""
        self._check_type(scope)
        self._check_announced(scope)
        return await self.body_of(receive)

    async def body_of(self, receive: Receive) -> bytes:
        """The whole body, whatever it is sent as. Raises Unreadable, or Gone."""
        try:
            async with asyncio.timeout(self.seconds):
                return await self._read(receive)
        except TimeoutError:
            message = f"the body did not arrive within {self.seconds:g} s (http.read_timeout)"
            raise Unreadable(refusal(408, message, headers={"Connection": "close"})) from None

    def _check_type(self, scope: Scope) -> None:
        """Only JSON: a web page cannot send that to another site without the site's leave."""
        media, _, rest = header(scope["headers"], b"content-type").partition(";")
        media = media.strip().lower()
        charset = rest.lower().partition("charset=")[2].partition(";")[0].strip().strip('"')
        if not (media.startswith("application/") and (media[12:] in ("json", "json-rpc") or media.endswith("+json"))):
            got = f"got {media[:60]!r}" if media else "there is none"
            message = f"Content-Type: expected application/json, {got}"
        elif charset not in ("", "utf-8", "utf8"):
            message = f"Content-Type: expected UTF-8, got the charset {charset[:30]!r}"
        elif header(scope["headers"], b"content-encoding").lower() not in ("", "identity"):
            message = "Content-Encoding: expected the body as it is, not compressed"
        else:
            return
        error = {"type": "RequestError", "message": message, "field": message.partition(":")[0]}
        raise Unreadable(refusal(415, message, [error]))

    def _check_announced(self, scope: Scope) -> None:
        announced = header(scope["headers"], b"content-length")
        # Who asks first (Expect: 100-continue), or announces far too much, is told before sending it.
        drained = 1 if header(scope["headers"], b"expect") else _DRAINED
        if announced.isdigit() and int(announced[:20]) > self.body * drained:
            raise Unreadable(self._too_large({"Connection": "close"}))

    async def _read(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            part = message.get("body", b"")
            size += len(part)
            if size <= self.body:
                parts.append(part)
            else:
                parts.clear()
            if size > self.body * _DRAINED:
                raise Unreadable(self._too_large({"Connection": "close"}))
            if not message.get("more_body", False):
                break
        if size > self.body:
            raise Unreadable(self._too_large())
        return b"".join(parts)

    def _too_large(self, headers: dict[str, str] | None = None) -> JsonAnswer:
        message = f"the body is larger than {self.body} bytes (http.max_body_bytes); send it in parts"
        return refusal(413, message, headers=headers, limit=self.body)

    async def request_of(self, body: bytes) -> dict[str, Any]:
        """The flow's request that a body holds. Raises Unreadable."""
        try:
            value = await read_aside(body, functools.partial(read_json, body))
        except ValueError as error:
            raise Unreadable(_not_json(f"the body is not JSON: {error}")) from None
        if not isinstance(value, dict):
            raise Unreadable(_not_json(f"the body: expected a JSON object, got {_kind(value)}"))
        for name, given in value.items():
            if isinstance(given, list) and len(given) > self.items:
                message = f"{name[:100]}: {len(given)} items; at most {self.items} in one request (http.max_batch)"
                problem = {"type": "RequestError", "message": message, "field": name[:100]}
                raise Unreadable(refusal(413, message, [problem], limit=self.items))
        return value


def _not_json(message: str) -> JsonAnswer:
    return refusal(422, message, [{"type": "RequestError", "message": message, "field": "body"}])


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
