"""A tools/call and how it ended, read from the messages that tell of it."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolmem.readers.long_values import shortened
from toolmem.readers.written_arguments import opened_arguments

Ending = Literal["answered", "tool_error", "protocol_error", "cancelled", "no_answer"]

_META = "io.modelcontextprotocol/"
_CALL_ID = "claudecode/toolUseId"  # as Claude Code tells a server which of the model's calls this is
_IN_SESSION = ("sessionId", "callId")  # as Codex does
_MOST_ID = 200


@dataclass(slots=True, kw_only=True)
class ProxiedCall:
    """One call of a tool on its way to the server."""

    tool: str
    arguments: Any
    meta: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""  # of its record
    session: str = ""  # of the host, where it tells it with the call
    key: str = ""  # what the host's hooks call it, where it tells that
    begun: float = field(default_factory=time.perf_counter)

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> ProxiedCall:
        """What is not as the protocol says is left empty: the server refuses it."""
        params = _object(message.get("params"))
        meta = _object(params.get("_meta"))
        name = params.get("name")
        session, key = _told_by_host(meta)
        return cls(
            tool=name.strip() if isinstance(name, str) else "",
            arguments=opened_arguments(params.get("arguments", {})),
            meta=meta,
            params=params,
            id=(f"{session}/{key}" if session else key) or uuid.uuid4().hex,
            session=session,
            key=key,
        )

    @property
    def is_stateless(self) -> bool:
        """Of the protocol since 2026-07-28, where each request says who asks and what they can?"""
        return f"{_META}protocolVersion" in self.meta

    @property
    def capabilities(self) -> Any:
        """What the client says that it can, where each request says so."""
        return self.meta.get(f"{_META}clientCapabilities")

    def digest(self) -> str:
        """The same for the same tool with the same arguments, however they are written."""
        text = json.dumps([self.tool, self.arguments], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnd:
    """How a call ended."""

    ending: Ending
    output: str = ""
    success: bool | None = None
    code: int | None = None  # of a JSON-RPC error

    @classmethod
    def of(cls, response: Mapping[str, Any]) -> CallEnd | None:
        """None where the response is not the end: the client is asked first, or a task goes on."""
        error = response.get("error")
        if error is not None:
            return cls._of_error(_object(error))
        result = _object(response.get("result"))
        if result.get("resultType") in {"input_required", "task"} or ("task" in result and "content" not in result):
            return None
        failed = result.get("isError") is True
        return cls(ending="tool_error" if failed else "answered", output=_output(result), success=not failed)

    @classmethod
    def _of_error(cls, error: Mapping[str, Any]) -> CallEnd:
        code = error.get("code")
        known = code if isinstance(code, int) else None
        told = f"error {known}: {error.get('message', '')}" if known is not None else str(error.get("message", ""))
        return cls(ending="protocol_error", output=shortened(told), success=False, code=known)


CANCELLED = CallEnd(ending="cancelled")
NO_ANSWER = CallEnd(ending="no_answer")


def can_elicit(capabilities: Any) -> bool:
    """May a client with these capabilities be asked to fill in a form?"""
    told = _object(capabilities).get("elicitation")
    return isinstance(told, Mapping) and (not told or "form" in told)


def _output(result: Mapping[str, Any]) -> str:
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    text = "\n".join(_block(_object(block)) for block in blocks)
    if not text.strip() and "structuredContent" in result:
        text = json.dumps(result["structuredContent"], ensure_ascii=False)
    return str(shortened(text))


def _block(block: Mapping[str, Any]) -> str:
    if isinstance(block.get("text"), str):
        return str(block["text"])
    kind, resource = block.get("type"), _object(block.get("resource"))
    if isinstance(resource.get("text"), str):
        return str(resource["text"])
    what = block.get("mimeType") or resource.get("mimeType") or block.get("uri") or resource.get("uri") or ""
    return f"[{str(kind)[:40]} {str(what)[:200]}]".replace(" ]", "]")


def _told_by_host(meta: Mapping[str, Any]) -> tuple[str, str]:
    """The session, and what the host's hooks call this call in it; "" where it does not tell."""
    own, session, call = (meta.get(name) for name in (_CALL_ID, *_IN_SESSION))
    if isinstance(own, str) and len(own) <= _MOST_ID:
        return "", own
    if isinstance(session, str) and isinstance(call, str) and session and len(session) + len(call) < _MOST_ID:
        return session, call
    return "", ""


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
