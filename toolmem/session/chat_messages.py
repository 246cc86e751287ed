"""The messages of a session: what a turn of them says and did, and the compressor that keeps them within tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from toolmem.errors import RequestError
from toolmem.models import ToolCallResult
from toolmem.ops.turn_outcomes import outcome_reader
from toolmem.readers.chat import Chat, text_of
from toolmem.readers.written_arguments import read_arguments
from toolmem.rules.turns import ToolUse

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


def records_of(chat: Chat) -> list[dict[str, Any]]:
    """The tool calls of a turn as records of `add_tool_call_result`; calls without an answer are left out.

    A `tool` message may carry `success`, `time_cost` (seconds), `token_cost` and `create_time` beside its content.
    """
    for _, problem in chat.problems:
        raise RequestError(f"turn: {problem}", field="turn")
    return [
        {"tool_name": call.name, "input": read_arguments(call.arguments), "output": call.output}
        | {key: call.answer[key] for key in _OF_RESULT if call.answer.get(key) is not None}
        for call in chat.calls
        if call.answer is not None
    ]


def user_message_of(chat: Chat) -> str:
    """All that the user said in these messages."""
    said = [text_of(content, own_words=True) for content in chat.said]
    return "\n".join(text for text in said if text)


def without_host_keys(message: Message) -> Message:
    """A message as a model's API takes it."""
    return {key: value for key, value in message.items() if key not in _OF_RESULT}


def uses_of(calls: Iterable[ToolCallResult]) -> tuple[ToolUse, ...]:
    """The same calls as capture and statistics see them; an outcome that is not given is read from the output."""
    outcome = outcome_reader()
    uses = [outcome(_use(call), call) for call in calls]
    return tuple(replace(use, output_summary=use.output_summary[:_SUMMARY]) for use in uses)


def _use(call: ToolCallResult) -> ToolUse:
    duration = None if call.time_cost is None else call.time_cost * 1000
    return ToolUse(call.tool_name, call.input, call.success, call.output, duration)
