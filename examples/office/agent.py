"""One agent: a chat model behind OpenAI's protocol that calls tools until it says that it is done."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from toolmem.errors import ReplyBroken
from toolmem.providers.exchange import Exchange
from toolmem.providers.openai_compatible import OpenAICompatibleLLM

Call = dict[str, Any]  # a record as `toolmem evaluate --input` reads it


@dataclass
class Usage:
    """Of requests to a model. `estimated`: some of the counts are not the service's own."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False

    def add(self, exchange: Exchange) -> None:
        self.requests += 1
        self.prompt_tokens += exchange.prompt_tokens or 0
        self.completion_tokens += exchange.completion_tokens or 0
        self.estimated = self.estimated or exchange.estimated


class ToolCallingModel(OpenAICompatibleLLM):
    """toolmem's own adapter (keys, retries, requests in flight, budget), asked with a conversation and tools."""

    async def turn(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], usage: Usage
    ) -> Mapping[str, Any]:
        """The model's next message, `content` and `tool_calls`; what it cost is added to `usage`. Raises ModelError."""
        asked = {"messages": messages, "tools": [{"type": "function", "function": tool} for tool in tools]}

        async def send(exchange: Exchange) -> Mapping[str, Any]:
            choices = await self._service.chat(exchange, "", {**self._parameters(False), **asked})
            message = choices[0].get("message") if isinstance(choices, list) and choices else None
            if not isinstance(message, Mapping):
                raise ReplyBroken(f"{self.backend}/{self.model}: an answer without a message")
            if exchange.completion_tokens is None:
                exchange.completion_tokens = self._tokenizer.count(json.dumps(message, ensure_ascii=False))
                exchange.estimated = True
            return message

        message, exchange = await self._attempts.make(send, json.dumps(asked, ensure_ascii=False), None, self._queue)
        usage.add(exchange)
        return message


@dataclass
class Conversation:
    """What one agent did: each call, and its last words."""

    name: str
    task: str
    usage: Usage = field(default_factory=Usage)
    calls: list[Call] = field(default_factory=list)
    said: str = ""  # "": it was still calling when it had made `most` calls


async def converse(
    model: ToolCallingModel,
    system: str,
    conversation: Conversation,
    tools: Sequence[Mapping[str, Any]],
    run: Callable[[str, Any], tuple[str, bool]],
    *,
    most: int,
    keep: Callable[[Call], None],
) -> None:
    """Have a fresh agent do `conversation.task`: its calls are run, kept and answered, `most` of them.

    `run`: (output, whether it worked) of a call. Raises ModelError; what was done until then stands in `conversation`.
    """
    messages: list[Mapping[str, Any]] = [
        {"role": "system", "content": system},
        {"role": "user", "content": conversation.task},
    ]
    while len(conversation.calls) < most:
        reply = await model.turn(messages, tools, conversation.usage)
        asked = [each for each in reply.get("tool_calls") or () if isinstance(each, Mapping)]
        said = reply.get("content")
        if not asked:
            conversation.said = said if isinstance(said, str) else ""
            return
        messages.append({"role": "assistant", "content": said, "tool_calls": asked})
        for each in asked[: most - len(conversation.calls)]:
            call = _made(each, conversation, run)
            conversation.calls.append(call)
            keep(call)
            messages.append({"role": "tool", "tool_call_id": each.get("id"), "content": call["output"]})


def _made(asked: Mapping[str, Any], conversation: Conversation, run: Callable[[str, Any], tuple[str, bool]]) -> Call:
    function = asked.get("function")
    function = function if isinstance(function, Mapping) else {}
    name, text = str(function.get("name") or "unnamed"), function.get("arguments")
    try:
        arguments = json.loads(text) if text else {}
    except (TypeError, ValueError):
        arguments = str(text)
    began, started = datetime.now(UTC), time.perf_counter()
    output, success = run(name, arguments)
    return {
        "id": f"{conversation.name}-{len(conversation.calls):02d}",
        "conversation_id": conversation.name,
        "tool_name": name,
        "input": arguments if isinstance(arguments, dict | list | str) else str(arguments),
        "output": output,
        "success": success,
        "create_time": began.isoformat(),
        "time_cost": round(time.perf_counter() - started, 6),
        "context": conversation.task,
    }
