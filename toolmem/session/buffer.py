"""The conversation of a session, the only part of it that a compressor may rewrite."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

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
