"""What the adapters of remote chat models share: one prompt in, one text out, every attempt booked."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from typing import Any

from toolmem.config.settings import LLMSettings
from toolmem.errors import ContentFiltered, ModelRefused, ReplyBroken, ReplyEmpty, ReplyTruncated
from toolmem.protocols import Completion, Purpose
from toolmem.providers.exchange import Exchange
from toolmem.providers.pacing import PacingGate
from toolmem.providers.remote_model import RemoteModel
from toolmem.readers.json_values import without_surrogates

logger = logging.getLogger("toolmem.llm")

_JSON_MODE = ("response_format", "json_object", "json mode", "json_mode", "structured output")


class RemoteLLM(RemoteModel[LLMSettings]):
    """Implements `protocols.LLM`. One instance serves all flows of a process, on any event loop.

    It asks unpaced; an op that is paced asks through `for_op`. Arguments and errors: those of `RemoteModel`.
    """

    section = "llm"

    @property
    def backend(self) -> str:
        return self._endpoint.backend

    @property
    def model(self) -> str:
        return self._endpoint.model

    def for_op(self, gate: PacingGate | None = None, *, max_retries: int | None = None) -> RemoteLLM:
        """The model as one op asks it: each attempt takes a turn at `gate`; `max_retries` goes before the model's."""
        as_asked = copy.copy(self)  # the same service, the same requests in flight
        as_asked._queue = self._attempts.queue(gate, max_retries)
        return as_asked

    async def complete(self, prompt: str, purpose: Purpose, *, json_reply: bool = False) -> Completion:
        """Raises ModelError. `json_reply`: the service is asked for a JSON object, where it knows how to give one."""
        prompt = without_surrogates(prompt)
        logger.debug("%s: prompt for %s of %s: %s", self._endpoint.name, purpose.op, purpose.tool, prompt)
        structured = json_reply and self._service.json_mode
        try:
            return await self._complete(prompt, purpose, structured)
        except ModelRefused as error:
            if not structured or not any(word in str(error).lower() for word in _JSON_MODE):
                raise
            logger.warning("%s has no structured replies, asking without: %s", self._endpoint.name, error)
            self._service.json_mode = False
        return await self._complete(prompt, purpose, False)

    async def _complete(self, prompt: str, purpose: Purpose, structured: bool) -> Completion:
        async def send(exchange: Exchange) -> str:
            return self._text(await self._service.chat(exchange, prompt, self._parameters(structured)), exchange)

        text, exchange = await self._attempts.make(send, prompt, purpose, self._queue)
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

    def _text(self, choices: Any, exchange: Exchange) -> str:
        """The first choice's text. Raises ReplyTruncated, ReplyEmpty, ContentFiltered, ReplyBroken."""
        name = self._endpoint.name
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            raise ReplyBroken(f"{name}: an answer without choices")
        reason, message = choice.get("finish_reason"), choice.get("message")
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


def _content(content: Any) -> str | None:
    """A text, or the texts of a list of parts (multimodal models)."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return "" if content is None else content if isinstance(content, str) else None
