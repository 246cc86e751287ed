"""One shape of a turn for everything that learns from it: capture, statistics, judging."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolmem.errors import RequestError
from toolmem.ops.turn_outcomes import outcome_reader
from toolmem.rules.turns import ToolUse, message_text

Message = dict[str, Any]  # OpenAI chat form: role, content, tool_calls, tool_call_id
Compressor = Callable[[list[Message], int, Callable[[str], int]], list[Message]]

PER_MESSAGE = 4  # tokens that a chat template adds around a message, about


def message_tokens(message: Message, count: Callable[[str], int]) -> int:
    """Tokens of one message: its text, and its tool calls as JSON."""
    content = message.get("content")
    text = content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False)
    calls = message.get("tool_calls")
    extra = count(json.dumps(calls, ensure_ascii=False)) if calls else 0
    return PER_MESSAGE + count(text) + extra


def keep_newest(messages: list[Message], max_tokens: int, count: Callable[[str], int]) -> list[Message]:
    """The default compressor: the newest messages that fit into `max_tokens`, at least the last one.

    A tool's answer is never left without the assistant's call that it answers.
    """
    total = 0
    start = len(messages)
    for position in range(len(messages) - 1, -1, -1):
        total += message_tokens(messages[position], count)
        if total > max_tokens and start < len(messages):
            break
        start = position
    return messages[_whole_from(messages, start) :]


def _whole_from(messages: Sequence[Message], start: int) -> int:
    """The first position from `start` on at which no answer lacks its call."""
    while start < len(messages) - 1 and messages[start].get("role") in ("tool", "function"):
        start += 1
    return start


_SUMMARY = 2000  # characters of an output that capture is shown
_OF_RESULT = ("success", "time_cost", "token_cost", "create_time")  # what a host may add to a `tool` message


def records_of_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The tool calls of a turn as records of `add_tool_call_result`; calls without an answer are left out.

    A `tool` message may carry `success`, `time_cost` (seconds), `token_cost` and `create_time` beside its content.
    """
    asked: dict[str, Mapping[str, Any]] = {}
    records: list[dict[str, Any]] = []
    for message in messages:
        if message.get("role") == "assistant":
            for call in message.get("tool_calls") or []:
                asked[str(call.get("id"))] = call.get("function") or call
        elif message.get("role") == "tool":
            body = asked.pop(str(message.get("tool_call_id")), None)
            if body is None:
                raise RequestError(
                    f"turn: a tool message answers {message.get('tool_call_id')!r}, which no assistant message called",
                    field="turn",
                )
            record = {
                "tool_name": body.get("name"),
                "input": _arguments(body.get("arguments")),
                "output": message_text(message.get("content")),
            }
            record.update({key: message[key] for key in _OF_RESULT if message.get(key) is not None})
            records.append(record)
    return records


def user_message_of(messages: Sequence[Message]) -> str:
    """All that the user said in these messages."""
    said = [message_text(message.get("content")) for message in messages if message.get("role") == "user"]
    return "\n".join(text for text in said if text)


def without_host_keys(message: Message) -> Message:
    """A message as a model's API takes it."""
    return {key: value for key, value in message.items() if key not in _OF_RESULT}


def uses_of(records: Sequence[Mapping[str, Any]]) -> tuple[ToolUse, ...]:
    """The same calls as capture and statistics see them; an outcome that is not given is read from the output."""
    outcome = outcome_reader()
    return tuple(_shortened(outcome(_use(record))) for record in records)


def _use(record: Mapping[str, Any]) -> ToolUse:
    output = record.get("output")
    return ToolUse(
        name=str(record["tool_name"]),
        arguments=record.get("input"),
        success=record.get("success"),
        output_summary="" if output is None else output if isinstance(output, str) else json.dumps(output, default=str),
        duration_ms=None if record.get("time_cost") is None else float(record["time_cost"]) * 1000,
    )


def _shortened(use: ToolUse) -> ToolUse:
    return replace(use, output_summary=use.output_summary[:_SUMMARY])


def _arguments(given: Any) -> Any:
    if isinstance(given, str):
        try:
            read = json.loads(given)
        except ValueError:
            return given
        return read if isinstance(read, dict | list) else given
    return {} if given is None else given
