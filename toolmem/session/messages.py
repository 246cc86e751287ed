"""Read and count the messages of a turn, in OpenAI's format; the default compressor."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from toolmem.errors import wrong
from toolmem.formats.chat import read_arguments, read_chat, typed_text
from toolmem.guard.repeats import call_identity
from toolmem.judge.check import check
from toolmem.models.calls import ToolCallResult
from toolmem.models.decisions import Decision
from toolmem.rules.identity import folded_name
from toolmem.rules.turn import ToolUse

MAX_OUTPUT = 2_000  # characters of an output that the capture of rules reads

Message = dict[str, Any]  # role, content, tool_calls, tool_call_id
CountTokens = Callable[[str], int]
Compressor = Callable[[list[Message], int, CountTokens], Sequence[Message]]

PER_MESSAGE = 4  # tokens that a chat template adds around a message, roughly
# Keys that a host may add to a `tool` message; APIs of models refuse them.
HOST_KEYS = ("success", "time_cost", "token_cost", "create_time")


class CheckedCall(Struct):
    """A call that the host runs itself, after `check`."""

    key: str
    decision: Decision
    given: dict[str, Any]
    has_ended: bool = False
    success: bool | None = None  # as the host reported it; None = unknown


def message_tokens(message: Message, count: CountTokens) -> int:
    """Tokens of one message: its text, and its tool calls as JSON."""
    content = message.get("content")
    calls = message.get("tool_calls")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    extra = count(json.dumps(calls, ensure_ascii=False)) if calls else 0
    return PER_MESSAGE + (count(text) if content else 0) + extra


def keep_newest(messages: list[Message], max_tokens: int, count: CountTokens) -> list[Message]:
    """The newest messages that fit into `max_tokens`, at least the last one.

    A tool's answer is never left without the assistant's call that it answers.
    """
    total = 0
    start = len(messages)
    for position in range(len(messages) - 1, -1, -1):
        total += message_tokens(messages[position], count)
        if total > max_tokens and start < len(messages):
            break
        start = position
    while start < len(messages) - 1 and messages[start].get("role") in ("tool", "function"):
        start += 1
    return messages[start:]


def without_host_keys(message: Message) -> Message:
    """The message without keys such as `success`, which a model's API would refuse."""
    return {key: value for key, value in message.items() if key not in HOST_KEYS}


def records_of_turn(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """The answered tool calls of a turn, as records for `ToolMem.add`. Raises RequestError."""
    chat = read_chat(list(messages))
    if chat.problems:
        raise wrong("turn", chat.problems[0])
    host_fields = {
        str(m.get("tool_call_id")): {key: m[key] for key in HOST_KEYS if m.get(key) is not None}
        for m in messages
        if m.get("role") in ("tool", "function")
    }
    return [
        {
            "tool_name": call.name,
            "input": read_arguments(call.arguments),
            "output": call.output,
            **host_fields.get(call.id, {}),
        }
        for call in chat.calls
        if call.output is not None
    ]


def user_message_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """The user's messages, joined by line ends, without tool results. Raises RequestError."""
    for position, each in enumerate(messages):
        if not (isinstance(each, Mapping) and (each.get("role") or each.get("type"))):
            raise wrong("turn", f"message {position + 1}: expected an object with a role")
    texts = [typed_text(m.get("content")) for m in messages if m.get("role") == "user"]
    return "\n".join(filter(None, texts))


def tool_use(call: ToolCallResult) -> ToolUse:
    """A call as the capture of rules reads it. An unknown `success` is read from the output."""
    success = call.success
    if success is None:
        failed = check(call).execution_failed
        success = None if failed is None else not failed
    return ToolUse(
        name=call.tool_name,
        arguments=call.input,
        success=success,
        output_summary=call.output[:MAX_OUTPUT],
        duration_ms=None if call.time_cost is None else 1_000 * call.time_cost,
    )


def read_object(arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """The arguments, or their JSON, as a dict. Another value such as `5` becomes `{"": 5}`."""
    value = read_arguments(arguments)
    return dict(value) if isinstance(value, Mapping) else {"": value}


def key_of(tool_name: str, given: Any) -> str:
    """A key that is equal for equal tools and arguments."""
    return call_identity(folded_name(tool_name), given, b"")


def is_same_call(recorded: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two records are of one call: the same tool, and the same input or output."""
    if recorded["tool_name"] != other.get("tool_name"):
        return False
    same_input = key_of("", recorded["input"]) == key_of("", other.get("input"))
    return same_input or (bool(other.get("output")) and recorded.get("output") == other["output"])
