"""A `tools/call` and how it ended, read from the messages that tell of it."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from toolmem.text.display import bounded

_META = "io.modelcontextprotocol/"
_CALL_ID = "claudecode/toolUseId"  # by which Claude Code tells a server the id of the model's call
_MAX_ID = 200
MAX_OUTPUT = 100_000  # characters that are kept


class ToolCall(Struct, kw_only=True):
    """One call on its way to the server."""

    tool: str
    arguments: Any
    params: Mapping[str, Any]
    meta: Mapping[str, Any]
    record_id: str
    began: float = field(default_factory=time.perf_counter)

    @classmethod
    def read(cls, message: Mapping[str, Any]) -> ToolCall | None:
        """None where no tool is named: the server says what is wrong with the message."""
        params = an_object(message.get("params"))
        name, meta = params.get("name"), an_object(params.get("_meta"))
        if not isinstance(name, str) or not name:
            return None
        known = meta.get(_CALL_ID)
        own = known if isinstance(known, str) and 0 < len(known) <= _MAX_ID else uuid.uuid4().hex
        arguments = params.get("arguments", {})
        return cls(tool=name, arguments=arguments, params=params, meta=meta, record_id=own)

    @property
    def is_stateless(self) -> bool:
        """Of the protocol since 2026-07-28, in which each request says who asks."""
        return f"{_META}protocolVersion" in self.meta

    @property
    def capabilities(self) -> Any:
        """Of the client, where each request tells them."""
        return self.meta.get(f"{_META}clientCapabilities")

    def digest(self) -> str:
        """The same for the same tool with the same arguments, however they are written."""
        text = json.dumps([self.tool, self.arguments], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


class CallOutcome(Struct, frozen=True):
    """How a call ended. `success` None: unknown."""

    ending: str  # answered, tool_error, protocol_error, cancelled or no_answer
    success: bool | None = None
    output: str = ""

    @classmethod
    def read(cls, response: Mapping[str, Any]) -> CallOutcome | None:
        """None where it goes on: the user is asked first, or a task begins."""
        if "error" in response:
            error = an_object(response["error"])
            told = f"error {error.get('code')}: {error.get('message', '')}"
            return cls("protocol_error", False, bounded(told, MAX_OUTPUT))
        result = an_object(response.get("result"))
        kind = result.get("resultType", "complete")
        if kind != "complete" or ("task" in result and "content" not in result):
            return None
        failed = result.get("isError") is True
        output = bounded(_text_of(result), MAX_OUTPUT)
        return cls("tool_error" if failed else "answered", not failed, output)


CANCELLED = CallOutcome("cancelled")
NO_ANSWER = CallOutcome("no_answer")


def structured_text(result: Mapping[str, Any]) -> str:
    """The structured content as JSON, where no text stands beside it; else ""."""
    if result.get("content") or "structuredContent" not in result:
        return ""
    return json.dumps(result["structuredContent"], ensure_ascii=False)


def _text_of(result: Mapping[str, Any]) -> str:
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    return "\n".join(map(_block, map(an_object, blocks))) or structured_text(result)


def _block(block: Mapping[str, Any]) -> str:
    resource = an_object(block.get("resource"))
    for text in (block.get("text"), resource.get("text")):
        if isinstance(text, str):
            return text
    kinds = (block.get("mimeType"), resource.get("mimeType"), block.get("uri"), resource.get("uri"))
    what = next((each for each in kinds if isinstance(each, str)), "")
    return f"[{str(block.get('type'))[:40]} {what[:200]}]".replace(" ]", "]")


def can_elicit(capabilities: Any) -> bool:
    """Whether a client with these capabilities shows its user a form."""
    told = an_object(capabilities).get("elicitation")
    return isinstance(told, Mapping) and (not told or "form" in told)


def an_object(value: Any) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}
