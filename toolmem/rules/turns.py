"""One turn of an agent: what the user said, and the tools that ran for it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolmem.config.nearest_names import nearest
from toolmem.errors import RequestError
from toolmem.late_dataclasses import dataclass
from toolmem.light_models import ToolSchema
from toolmem.rules.identity import folded_name, is_blank

Tools = Sequence[str | ToolSchema]  # names, or schemas


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool call of a turn."""

    name: str
    arguments: Any = None
    success: bool | None = None  # the tool reported no error; None = unknown
    output_summary: str = ""
    duration_ms: float | None = None  # wall clock; None = unknown
    error_class: str = ""  # of a failure, as a judge names it; "" = not classified


@dataclass(frozen=True, slots=True)
class Turn:
    """`tools` is the catalogue: all tools that the agent has, where it is known.

    `by_class`: a sentence that means a class of tools is kept for the class, whichever agent has them.
    """

    user_message: str = ""
    tool_calls: tuple[ToolUse, ...] = ()
    session_id: str = ""
    tools: tuple[str | ToolSchema, ...] = ()
    number: int | None = None  # of the turn in its session, from 1
    by_class: bool = False

    @property
    def ran(self) -> list[str]:
        """Names of the tools that ran, in order, each once whatever its casing."""
        return list({folded_name(use.name): use.name.strip() for use in reversed(self.tool_calls)}.values())[::-1]


_TURN_KEYS = ("user_message", "tool_calls", "session_id", "tools")


def read_turn(value: Any) -> Turn:
    """A turn from JSON: `user_message`, `tool_calls`, `session_id`, `tools`; other keys are passed over.

    Raises RequestError that names the part that is wrong.
    """
    if not isinstance(value, Mapping):
        raise RequestError(f"expected an object with {', '.join(_TURN_KEYS)}; got {type(value).__name__}", field="turn")
    if not any(key in value for key in ("user_message", "tool_calls")):
        near = next((f" (did you mean 'user_message' in place of {key!r}?)" for key in value if _like(key)), "")
        raise RequestError(f"user_message: missing, and so is tool_calls{near}", field="user_message")
    message = value.get("user_message")
    calls = value.get("tool_calls")
    calls = [] if calls is None else calls
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise RequestError(f"tool_calls: expected a list, got {type(calls).__name__}", field="tool_calls")
    return Turn(
        user_message=_text("" if message is None else message, "user_message"),
        tool_calls=tuple(read_tool_use(call, f"tool_calls[{i}]") for i, call in enumerate(calls)),
        session_id=str(value.get("session_id") or ""),
        tools=read_tools(value.get("tools")),
    )


def read_tool_use(value: Any, field: str) -> ToolUse:
    """`name`, `arguments`, `success`, `output_summary`, `duration_ms`. Raises RequestError.

    `tool_name`, `input` and `output` are read as well, as records of `add_tool_call_result` have them.
    """
    if not isinstance(value, Mapping):
        raise RequestError(f"{field}: expected an object with a 'name', got {type(value).__name__}", field=field)
    name = value.get("name", value.get("tool_name"))
    if not isinstance(name, str) or not name.strip():
        raise RequestError(f"{field}.name: expected the tool's name, got {name!r}"[:300], field=f"{field}.name")
    success, duration = value.get("success"), value.get("duration_ms")
    if success is not None and not isinstance(success, bool):
        raise RequestError(f"{field}.success: expected true, false or null; got {success!r}"[:300], field=field)
    if duration is not None and not _is_duration(duration):
        raise RequestError(f"{field}.duration_ms: expected milliseconds >= 0; got {duration!r}"[:300], field=field)
    summary = value.get("output_summary", value.get("output"))
    return ToolUse(
        name=name.strip(),
        arguments=value.get("arguments", value.get("input")),
        success=success,
        output_summary=_output(summary, f"{field}.output_summary", as_json="output_summary" not in value),
        duration_ms=None if duration is None else float(duration),
    )


def read_tools(value: Any, field: str = "tools") -> tuple[str | ToolSchema, ...]:
    """Names or schemas, in OpenAI or MCP form. Raises RequestError."""
    if value is None:
        return ()
    if not isinstance(value, Iterable) or isinstance(value, str | Mapping):
        raise RequestError(f"{field}: expected a list of names or schemas, got {type(value).__name__}", field=field)
    tools = [tool if isinstance(tool, str | ToolSchema) else ToolSchema.read(tool, field) for tool in value]
    if any(is_blank(name) for name in tool_names(tools)):
        raise RequestError(f"{field}: a blank name", field=field)
    return tuple(tools)


def tool_names(tools: Tools) -> list[str]:
    """Each once."""
    return list(dict.fromkeys(tool if isinstance(tool, str) else tool.name for tool in tools))


def _is_duration(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _like(key: Any) -> bool:
    return isinstance(key, str) and nearest(key, ["user_message", "message", "user"]) is not None


def _output(value: Any, field: str, *, as_json: bool) -> str:
    if as_json and value is not None and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, default=str)
    return _text("" if value is None else value, field)


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise RequestError(f"{field}: expected text, got {type(value).__name__}", field=field)
    return value


# ---------------------------------------------------------------- from chat messages


def turns_of_messages(messages: Sequence[Any], tools: Tools = (), session_id: str = "") -> list[Turn]:
    """Turns of an OpenAI conversation: each begins with a message of the user. `success` stays unknown.

    What is no message is passed over. Where `tools` is empty, the tools that the conversation calls are the catalogue.
    """
    from toolmem.readers.chat import read_chat, text_of  # a hook, which reads no conversation, does not load it

    chat = read_chat(messages)
    uses: list[list[ToolUse]] = [[] for _ in chat.said]
    for call in chat.calls:
        if isinstance(call.name, str) and call.name.strip():
            use = ToolUse(call.name.strip(), arguments=call.arguments, output_summary=call.output)
            uses[call.turn].append(use)
    catalogue = tuple(tools) or tuple(dict.fromkeys(use.name for turn in uses for use in turn))
    said = [text_of(content, own_words=True) for content in chat.said]
    return [Turn(words, tuple(ran), session_id, catalogue) for words, ran in zip(said, uses, strict=True)]
