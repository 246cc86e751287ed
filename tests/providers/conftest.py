"""Remote chat models against the loopback server: the real adapters, the real SDK, real sockets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from toolmem.config.settings import LLMParams, LLMSettings
from toolmem.flow.runner import SystemClock
from toolmem.protocols import LedgerEntry, Purpose
from toolmem.providers.dashscope import DashScopeLLM
from toolmem.providers.openai_compatible import OpenAICompatibleLLM
from toolmem.providers.remote_llm import RemoteLLM
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.testing.model_server import ModelServer

KEY = "sk-0123456789abcdef-secret"
ADAPTERS: dict[str, Callable[..., RemoteLLM]] = {
    "dashscope": DashScopeLLM,
    "openai_compatible": OpenAICompatibleLLM,
}
MakeLLM = Callable[..., RemoteLLM]


class Book:
    """A meter that keeps what it books."""

    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []

    def book(self, entry: LedgerEntry) -> None:
        self.entries.append(entry)

    @property
    def outcomes(self) -> list[str]:
        return [entry.outcome for entry in self.entries]

    def purpose(self, op: str = "op", tool: str = "search") -> Purpose:
        return Purpose("w", "add_tool_call_result", op, tool, self)


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture(params=list(ADAPTERS))
def backend(request: pytest.FixtureRequest) -> str:
    """Each test of it runs with both protocols."""
    return str(request.param)


@pytest.fixture
def make_llm(backend: str) -> MakeLLM:
    """An adapter on a server (or an address); pauses between attempts are short. Further keywords are LLMParams."""

    def make(
        server: ModelServer | str, *, key: str = KEY, price: Any = None, budget: Any = None, **params: Any
    ) -> RemoteLLM:
        if isinstance(server, ModelServer):
            server = server.dashscope_url if backend == "dashscope" else server.openai_url
        return ADAPTERS[backend](
            LLMSettings(
                backend=backend,
                model_name="qwen-plus",
                params=LLMParams(base_url=server, api_key=SecretStr(key), **params),
            ),
            tokenizer=QwenTokenizer(),
            clock=SystemClock(),
            price=price,
            budget=budget,
            first_pause=0.01,
        )

    return make
