"""One agent: a chat model behind OpenAI's protocol that calls tools until it says it is done."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import httpx
from msgspec import Struct

from toolmem.errors import ModelError

Call = dict[str, Any]  # a record, as `toolmem evaluate --input` reads it
Run = Callable[[str, Any], tuple[str, bool]]


class Conversation(Struct):
    """What one agent did."""

    name: str
    task: str
    calls: list[Call] = []
    said: str = ""  # "": it was still calling when it had made its last call
    tokens: int = 0  # of prompts and replies, as the service counts them


class Model:
    """`base_url`: up to and with /v1. The key stands in OPENAI_API_KEY."""

    def __init__(self, base_url: str, name: str) -> None:
        key = os.environ.get("OPENAI_API_KEY", "")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(base_url=base_url, headers=headers, timeout=120)
        self.name = name

    def turn(self, messages: Sequence[Any], tools: Sequence[Any]) -> tuple[dict[str, Any], int]:
        """The model's next message, and the tokens of the request. Raises ModelError."""
        offered = [{"type": "function", "function": tool} for tool in tools]
        body = {"model": self.name, "messages": messages, "tools": offered}
        try:
            reply = self._http.post("chat/completions", json=body).raise_for_status().json()
            usage = reply.get("usage") or {}
            tokens = usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
            return reply["choices"][0]["message"], tokens
        except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
            raise ModelError(f"{self.name} at {self._http.base_url}: {error}") from error

    def converse(
        self, system: str, talk: Conversation, tools: Sequence[Any], run: Run, most: int
    ) -> None:
        """Have a fresh agent do the task: its calls are run and answered, `most` of them."""
        messages: list[Any] = [{"role": "system", "content": system}]
        messages.append({"role": "user", "content": talk.task})
        while len(talk.calls) < most:
            reply, tokens = self.turn(messages, tools)
            talk.tokens += tokens
            asked = reply.get("tool_calls") or []
            if not asked:
                talk.said = str(reply.get("content") or "")
                return
            messages.append({"role": "assistant", "content": None, "tool_calls": asked})
            for each in asked:
                call = _made(each, talk, run)
                talk.calls.append(call)
                answer = {"role": "tool", "tool_call_id": each.get("id"), "content": call["output"]}
                messages.append(answer)


def _made(asked: dict[str, Any], talk: Conversation, run: Run) -> Call:
    name, text = asked["function"]["name"], asked["function"].get("arguments") or "{}"
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = text
    output, success = run(name, arguments)
    return {
        "id": f"{talk.name}-{len(talk.calls)}",
        "conversation_id": talk.name,
        "tool_name": name,
        "input": arguments,
        "output": output,
        "success": success,
        "context": talk.task,
    }
