"""What the adapters of remote chat models share: one prompt in, one text out, every attempt booked."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from toolmem.config.prompts import without_surrogates
from toolmem.config.settings import LLMSettings
from toolmem.errors import ContentFiltered, ModelRefused, ReplyBroken, ReplyEmpty, ReplyTruncated
from toolmem.flow.pacing import PacingGate
from toolmem.protocols import Completion, Purpose
from toolmem.providers.exchange import Exchange
from toolmem.providers.remote_model import RemoteModel
from toolmem.providers.request_queue import RequestQueue

logger = logging.getLogger("toolmem.llm")

_JSON_MODE = ("response_format", "json_object", "json mode", "json_mode", "structured output")


class RemoteLLM(RemoteModel[LLMSettings]):
    """Implements `ports.LLM`. One instance serves all flows of a process, on any event loop.

    It asks unpaced; an op that is paced asks through `for_op`. Arguments and errors: those of `RemoteModel`.
    """

    section = "llm"

    _json_mode = True  # until the service says that it has none

    @property
    def backend(self) -> str:
        return self._endpoint.backend

    @property
    def model(self) -> str:
        return self._endpoint.model

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._endpoint.name})"

    def for_op(self, gate: PacingGate | None = None, *, max_retries: int | None = None) -> LLMForOp:
        """The model as one op asks it: each attempt takes a turn at `gate`; `max_retries` goes before the model's."""
        return LLMForOp(self, self._attempts.queue(gate, max_retries))

    async def complete(self, prompt: str, purpose: Purpose, *, json_reply: bool = False) -> Completion:
        """Raises ModelError. `json_reply`: the service is asked for a JSON object, where it knows how to give one."""
        return await self.complete_in(self._queue, prompt, purpose, json_reply)

    async def complete_in(self, queue: RequestQueue, prompt: str, purpose: Purpose, json_reply: bool) -> Completion:
        prompt = without_surrogates(prompt)
        logger.debug("%s: prompt for %s of %s: %s", self._endpoint.name, purpose.op, purpose.tool, prompt)
        structured = json_reply and self._json_mode
        try:
            return await self._complete(queue, prompt, purpose, structured)
        except ModelRefused as error:
            if not structured or not any(word in str(error).lower() for word in _JSON_MODE):
                raise
            logger.warning("%s has no structured replies, asking without: %s", self._endpoint.name, error)
            self._json_mode = False
        return await self._complete(queue, prompt, purpose, False)

    async def _complete(self, queue: RequestQueue, prompt: str, purpose: Purpose, structured: bool) -> Completion:
        async def send(exchange: Exchange) -> str:
            return self._text(await self._ask(exchange, prompt, structured), exchange)

        text, exchange = await self._attempts.make(send, prompt, purpose, queue)
        logger.debug("%s: reply: %s", self._endpoint.name, text)
        return Completion(
            text,
            exchange.prompt_tokens or 0,
            exchange.completion_tokens or 0,
            exchange.cached_tokens,
            estimated=exchange.estimated,
        )

    def _parameters(self, structured: bool) -> dict[str, Any]:
        """What both protocols call alike; what is not configured is left to the service."""
        params = self._settings.params
        given = {name: getattr(params, name) for name in ("top_p", "seed", "max_tokens", "enable_thinking")}
        asked = {"temperature": params.temperature, **{k: v for k, v in given.items() if v is not None}}
        return {**asked, "response_format": {"type": "json_object"}} if structured else asked

    @abstractmethod
    async def _ask(self, exchange: Exchange, prompt: str, structured: bool) -> Mapping[str, Any]:
        """One request; answers the first choice, `{"finish_reason", "message": {"content"}}`, and notes the usage."""

    def _text(self, choice: Mapping[str, Any], exchange: Exchange) -> str:
        """The reply's text. Raises ReplyTruncated, ReplyEmpty, ContentFiltered, ReplyBroken."""
        name, reason = self._endpoint.name, choice.get("finish_reason")
        message = choice.get("message")
        text = _content(message.get("content")) if isinstance(message, Mapping) else None
        if exchange.completion_tokens is None:
            exchange.completion_tokens = self._tokenizer.count(text or "")
            exchange.estimated = True
        if reason == "length":
            limit = self._settings.params.max_tokens
            cause = "the service's own limit" if limit is None else f"max_tokens={limit}, which is too small"
            raise ReplyTruncated(f"{name}: the reply was cut off by {cause}", temporary=limit is None)
        if reason == "content_filter":
            raise ContentFiltered(f"{name}: the content filter stopped the reply")
        if text is None:
            raise ReplyBroken(f"{name}: a choice without a message")
        if not text.strip():
            raise ReplyEmpty(f"{name}: the reply is empty (finish_reason {reason!r})")
        return text

    def _first_choice(self, choices: Any) -> Mapping[str, Any]:
        if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
            return choices[0]
        raise ReplyBroken(f"{self._endpoint.name}: an answer without choices")


class LLMForOp:
    """A remote model as one op asks it; implements `ports.LLM`. Made by `RemoteLLM.for_op`."""

    def __init__(self, llm: RemoteLLM, queue: RequestQueue) -> None:
        self._llm = llm
        self._queue = queue

    @property
    def backend(self) -> str:
        return self._llm.backend

    @property
    def model(self) -> str:
        return self._llm.model

    def __repr__(self) -> str:
        return f"{self._llm!r} at one request per {self._queue.gate.interval:g} s"

    async def complete(self, prompt: str, purpose: Purpose, *, json_reply: bool = False) -> Completion:
        return await self._llm.complete_in(self._queue, prompt, purpose, json_reply)

    async def close(self) -> None:
        await self._llm.close()


def _content(content: Any) -> str | None:
    """A text, or the texts of a list of parts (multimodal models)."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return "" if content is None else content if isinstance(content, str) else None
