"""What a proxy adds to the descriptions of tools: the same for as long as the server's list does not change."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from toolmem.errors import RequestError
from toolmem.light_models import ToolSchema
from toolmem.server.proxy.frames import Edit, Frame, items, span_in

log = logging.getLogger("toolmem.proxy")

_MARK = "[Added by toolmem, not by this tool's server]"
_MOST_TOOLS = 10_000


class KnownTools(Protocol):
    """Who knows something of tools."""

    async def known_of(self, tools: Sequence[ToolSchema]) -> Mapping[str, str]:
        """By name; those of which nothing is known are absent."""


class ToolDescriptions:
    """The tools that a server declared, and what is added to each. Caches of hosts and models stand on the text."""

    def __init__(self, memory: KnownTools) -> None:
        self._memory = memory
        self._declared: dict[str, ToolSchema] = {}
        self._added: dict[str, str] = {}  # "" where there was nothing to add when the tool was first listed

    def declared(self, tool: str) -> ToolSchema | None:
        return self._declared.get(tool)

    def list_changed(self) -> None:
        """The server's list is another one now."""
        self._added.clear()

    async def added_to(self, frame: Frame) -> bytes:
        """A response to tools/list with what is known of its tools."""
        result = frame.value.get("result")
        tools = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(tools, list):
            return frame.raw
        self._note(tools)
        names = [tool["name"] for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
        new = [name for name in dict.fromkeys(names) if name not in self._added][:_MOST_TOOLS]
        if new:
            known = await self._memory.known_of([self._declared[name] for name in new if name in self._declared])
            self._added |= {name: known.get(name, "") for name in new}
        if not any(self._added.get(name) for name in names):
            return frame.raw
        return frame.edited([*self._edits(frame, tools), *_private(frame, result)])

    def _note(self, tools: Sequence[Any]) -> None:
        for tool in tools[:_MOST_TOOLS]:
            try:
                schema = ToolSchema.read(tool)
                self._declared[schema.name] = schema
            except RequestError as error:
                log.debug("a tool of the server is passed on as it came: %s", error)

    def _edits(self, frame: Frame, tools: Sequence[Any]) -> list[Edit]:
        span = frame.span("result", "tools")
        assert span is not None
        edits: list[Edit] = []
        for tool, (start, _) in zip(tools, items(frame.text, span[0]), strict=True):
            added = self._added.get(tool.get("name", ""), "") if isinstance(tool, dict) else ""
            if not added:
                continue
            own = tool.get("description")
            text = json.dumps("\n\n".join([own] * bool(own) + [f"{_MARK}\n{added}"])) if _is_text(own) else ""
            there = span_in(frame.text, start, "description")
            if text and there is not None:
                edits.append((*there, text))
            elif text:
                edits.append((start + 1, start + 1, f'"description":{text},'))
        return edits


def _is_text(description: Any) -> bool:
    return description is None or isinstance(description, str)


def _private(frame: Frame, result: Mapping[str, Any]) -> list[Edit]:
    """A list that was fit for everybody's cache is this user's now."""
    if result.get("cacheScope") != "public":
        return []
    span = frame.span("result", "cacheScope")
    return [(*span, '"private"')] if span is not None else []
