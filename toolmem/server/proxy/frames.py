"""JSON-RPC messages as they came: what is changed in one is put between its other bytes.

A message that is parsed and written anew loses what the writer does not know: the form of a number, the order and the
doubles of members. So a change names a span of the text, and everything around it stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

MAX_FRAME = 64 * 1024 * 1024  # bytes of one message that is read
_DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"[ \t\n\r]*")
_HEAD = 400  # characters in which the id of an unreadable request is looked for
_ID = re.compile(r'"id"\s*:\s*(-?\d{1,18}|"[^"\\\x00-\x1f]{0,200}")')

Span = tuple[int, int]
Edit = tuple[int, int, str]


class UnreadableFrame(ValueError):
    """No JSON, or nested too deeply."""


class Frame:
    """One message, and what it says."""

    __slots__ = ("raw", "text", "value")

    def __init__(self, raw: bytes) -> None:
        """Raises UnreadableFrame."""
        self.raw = raw
        self.text = raw.decode("utf-8", "surrogateescape")  # bytes that are no UTF-8 stay what they are
        try:
            self.value: Any = _DECODER.decode(self.text)
        except (ValueError, RecursionError) as error:
            raise UnreadableFrame(str(error)[:200]) from None

    def span(self, *path: str) -> Span | None:
        """Where the value stands that these names lead to."""
        return span_in(self.text, _after_space(self.text, 0), *path)

    def edited(self, edits: list[Edit]) -> bytes:
        """The message with these spans replaced."""
        parts, at = [], 0
        for start, end, new in sorted(edits):
            parts += [self.text[at:start], new]
            at = end
        return _encoded("".join([*parts, self.text[at:]]))

    def without(self, within: str, *names: str) -> bytes:
        """The message without these members of the object `within`."""
        span = self.span(within)
        if span is None:
            return self.raw
        kept = [
            f"{json.dumps(name)}:{self.text[start:end]}"
            for name, (start, end) in members(self.text, span[0]).items()
            if name not in names
        ]
        return self.edited([(*span, "{" + ",".join(kept) + "}")])


def span_in(text: str, at: int, *path: str) -> Span | None:
    """Where, in the object that begins `at`, the value stands that these names lead to."""
    span: Span | None = (at, len(text))
    for name in path:
        if span is None or text[span[0] : span[0] + 1] != "{":
            return None
        span = members(text, span[0]).get(name)
    return span


def members(text: str, at: int) -> dict[str, Span]:
    """The values of an object that begins at `at`, by name; of doubles the last, as parsers take them."""
    found: dict[str, Span] = {}
    at = _after_space(text, at + 1)
    while text[at] != "}":
        name, at = scanstring(text, at + 1, False)
        start = _after_space(text, _after_space(text, at) + 1)
        found[name] = (start, end := _DECODER.raw_decode(text, start)[1])
        at = _next(text, end)
    return found


def items(text: str, at: int) -> Iterator[Span]:
    """The values of a list that begins at `at`."""
    at = _after_space(text, at + 1)
    while text[at] != "]":
        end = _DECODER.raw_decode(text, at)[1]
        yield at, end
        at = _next(text, end)


def _next(text: str, at: int) -> int:
    at = _after_space(text, at)
    return _after_space(text, at + 1) if text[at] == "," else at


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def written(message: dict[str, Any]) -> bytes:
    """A message of the proxy's own."""
    return json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=True, separators=(",", ":")).encode()


def id_at_head(raw: bytes) -> Any:
    """The id of a request that cannot be read, where it stands at its beginning; else None."""
    head = raw[:_HEAD].decode("utf-8", "replace").partition('"params"')[0]
    found = _ID.search(head)
    return json.loads(found[1]) if found is not None else None


class FrameLines:
    """Lines out of bytes as they arrive. Of one that is longer than `most`, the pieces are given as they come."""

    def __init__(self, most: int = MAX_FRAME) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._flowing = False  # inside a line that was too long

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, bool]]:
        """Lines without their end and True; pieces of a line that is too long (with its end) and False."""
        at = 0
        while (end := chunk.find(b"\n", at)) >= 0:
            yield self._line(chunk[at:end])
            at = end + 1
        rest = chunk[at:]
        if self._flowing:
            if rest:
                yield rest, False
        elif rest:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size > self._most:
                self._flowing = True
                yield self._taken(), False

    def rest(self) -> bytes:
        """What stands behind the last end of a line."""
        return self._taken()

    def _line(self, last: bytes) -> tuple[bytes, bool]:
        if self._flowing:
            self._flowing = False
            return last + b"\n", False
        self._parts.append(last)
        return self._taken(), True

    def _taken(self) -> bytes:
        whole = b"".join(self._parts)
        self._parts, self._size = [], 0
        return whole
