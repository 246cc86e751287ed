"""The project's own recording of tool calls, and the schemas of its tools; `examples/recording` made it.

What is real: every output, every success flag, every `time_cost`. What is scripted: the users' sentences, the
agents' decisions and the times of day (`create_time`). `metadata.expected_failure` and `metadata.useful` are the
truth about a call, for measuring a judge; a judge must not read them.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

RECORDING = "recording.calls.jsonl.gz"
CONVERSATIONS = "recording.conversations.jsonl.gz"
TOOLS = "tools.json"
ABOUT = "recording.json"

__all__ = [
    "about",
    "conversations_path",
    "load_conversations",
    "load_records",
    "load_tools",
    "sample_path",
    "tools_path",
]


def _path(name: str) -> Path:
    return Path(__file__).with_name("data") / name


def sample_path() -> Path:
    """The recorded calls: JSON Lines, gzip, one call per line, in order of `create_time`."""
    return _path(RECORDING)


def conversations_path() -> Path:
    """The same calls as OpenAI chat conversations: JSON Lines, gzip, one conversation per line."""
    return _path(CONVERSATIONS)


def tools_path() -> Path:
    """The tools' schemas: a JSON list in OpenAI function form."""
    return _path(TOOLS)


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def load_records() -> list[dict[str, Any]]:
    """The recorded calls as plain objects, ready to be a request's `tool_call_results`."""
    return _lines(sample_path())


def load_conversations() -> list[dict[str, Any]]:
    """The conversations: `id`, `messages`; a call's `metadata.conversation_id` is the conversation's `id`."""
    return _lines(conversations_path())


def load_tools() -> list[dict[str, Any]]:
    """The schemas of all recorded tools, ready to be a request's `tools`."""
    tools: list[dict[str, Any]] = json.loads(tools_path().read_text(encoding="utf-8"))
    return tools


def about() -> dict[str, Any]:
    """How the recording was made: seed, versions, span of time, counts per tool, and what in it is scripted."""
    facts: dict[str, Any] = json.loads(_path(ABOUT).read_text(encoding="utf-8"))
    return facts
