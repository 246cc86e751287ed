"""DashScope: Alibaba's Qwen models and text embeddings, through the `dashscope` SDK."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

from toolmem.errors import ConfigError
from toolmem.llm.client import Endpoint, NoAnswer
from toolmem.llm.failures import Answer
from toolmem.llm.openai import is_loopback, mapping

if TYPE_CHECKING:
    import aiohttp

# Requests that the running attempt has sent: None outside of an attempt of ours.
_sent: ContextVar[list[bool] | None] = ContextVar("sent", default=None)


class DashScopeService:
    """Implements `Service`. The SDK is imported at the first request (0.3 to 0.9 s)."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._opened: tuple[asyncio.AbstractEventLoop, aiohttp.ClientSession] | None = None

    async def chat(self, prompt: str, parameters: dict[str, Any]) -> Answer:
        messages = [{"role": "user", "content": prompt}]
        call = _sdk().AioGeneration.call
        return await self._ask(call, messages=messages, result_format="message", **parameters)

    async def embed(self, texts: list[str], dimensions: int | None) -> Answer:
        """The SDK's `TextEmbedding` blocks; this is the base of its asynchronous calls."""
        sdk = _sdk()
        from dashscope.client.base_api import BaseAioApi

        given = {} if dimensions is None else {"dimension": dimensions}  # v1 and v2 refuse it
        return await self._ask(
            BaseAioApi.call,
            input={"texts": texts},
            task_group="embeddings",
            task=sdk.TextEmbedding.task,
            function="text-embedding",
            text_type="document",
            **given,
        )

    async def _ask(self, call: Callable[..., Awaitable[Any]], **request: Any) -> Answer:
        import aiohttp

        place, sent = self._endpoint, [False]
        token = _sent.set(sent)
        try:
            got = await call(
                model=place.model,
                api_key=place.key,
                base_address=place.base_url,
                request_timeout=place.timeout,
                session=self._session(),
                **request,
            )
        except TimeoutError:
            raise
        except (aiohttp.ClientError, OSError, _SentTwice) as error:
            told = "the connection was cut" if sent[0] else f"no connection ({error})"
            raise NoAnswer(told, was_sent=sent[0]) from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # what the SDK makes of a body that is no JSON, or of JSON in another shape
            detail = f"the SDK cannot read the answer ({type(error).__name__})"
            raise NoAnswer(detail, was_sent=sent[0]) from None
        finally:
            _sent.reset(token)
        headers = {str(key).lower(): str(value) for key, value in (got.headers or {}).items()}
        output, usage = mapping(got.get("output")), mapping(got.get("usage"))
        prompt_tokens = usage.get("input_tokens" if "choices" in output else "total_tokens")
        body = {
            "code": got.get("code"),
            "message": got.get("message"),
            "choices": output.get("choices"),
            "data": output.get("embeddings"),
            "usage": {
                "prompt_tokens": prompt_tokens or None,  # the SDK says 0 where none were told
                "completion_tokens": usage.get("output_tokens"),
                "prompt_tokens_details": usage.get("prompt_tokens_details"),
            },
        }
        return Answer(got.status_code, body, headers)

    def _session(self) -> aiohttp.ClientSession:
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._opened is None or self._opened[0] is not loop:
            trace = aiohttp.TraceConfig()
            trace.on_request_start.append(_refuse_second)
            trace.on_request_headers_sent.append(_note_sent)
            trusts = not is_loopback(self._endpoint.base_url)
            session = aiohttp.ClientSession(trust_env=trusts, trace_configs=[trace])
            weakref.finalize(self, _close, loop, session)
            self._opened = (loop, session)
        return self._opened[1]


def _close(loop: asyncio.AbstractEventLoop, session: aiohttp.ClientSession) -> None:
    """Where the service is no longer used, and at the end of the process."""
    if loop.is_running():
        closed = asyncio.run_coroutine_threadsafe(session.close(), loop)
        with suppress(RuntimeError, TimeoutError):
            if asyncio._get_running_loop() is not loop:
                closed.result(1)


class _SentTwice(Exception):
    """The SDK sends a request again in silence when its connection was cut; each attempt of ours
    takes its turn and its row in the ledger."""


async def _refuse_second(*_: Any) -> None:
    if (sent := _sent.get()) is not None and sent[0]:
        raise _SentTwice


async def _note_sent(*_: Any) -> None:
    if (sent := _sent.get()) is not None:
        sent[0] = True


@cache
def _sdk() -> Any:
    try:
        import dashscope
    except ImportError:
        problem = "llm.backend=dashscope: the package dashscope is missing"
        raise ConfigError([f"{problem}; install toolmem[dashscope]"]) from None
    logging.getLogger("dashscope").addFilter(lambda record: _sent.get() is None)  # shows prompts
    return dashscope
