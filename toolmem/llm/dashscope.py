"""DashScope: Alibaba's Qwen models and text embeddings, through the `dashscope` SDK."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import cache
from typing import Any

from toolmem.config.environment import is_local
from toolmem.errors import ConfigError
from toolmem.llm.client import Endpoint, NoAnswer
from toolmem.llm.failures import Answer
from toolmem.text.forms import as_object

_is_ours: ContextVar[bool] = ContextVar("is_ours", default=False)  # the request under way


class DashScopeService:
    """Implements `Service`. The SDK is imported at the first request (0.3 to 0.9 s)."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

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
        """In a session of its own: a connection that was kept may be cut at its next request."""
        import aiohttp

        sent: list[bool] = []

        async def note_sent(*_: Any) -> None:
            sent.append(True)

        async def refuse_second(*_: Any) -> None:
            if sent:
                raise _SentTwice

        trace = aiohttp.TraceConfig()
        trace.on_request_start.append(refuse_second)
        trace.on_request_headers_sent.append(note_sent)
        place = self._endpoint
        trusts = not is_local(place.base_url)
        token = _is_ours.set(True)
        try:
            async with aiohttp.ClientSession(trust_env=trusts, trace_configs=[trace]) as session:
                got = await call(
                    model=place.model,
                    api_key=place.key,
                    base_address=place.base_url,
                    request_timeout=place.timeout,
                    session=session,
                    **request,
                )
        except TimeoutError:
            raise
        except (aiohttp.ClientError, OSError, _SentTwice) as error:
            told = "the connection was cut" if sent else f"no connection ({error})"
            raise NoAnswer(told, was_sent=bool(sent)) from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # what the SDK makes of a body that is no JSON, or of JSON in another shape
            detail = f"the SDK cannot read the answer ({type(error).__name__})"
            raise NoAnswer(detail, was_sent=bool(sent)) from None
        finally:
            _is_ours.reset(token)
        return _in_openai_shape(got)


class _SentTwice(Exception):
    """The SDK sends a request again in silence when its connection was cut; each attempt of ours
    takes its turn and its row in the ledger."""


def _in_openai_shape(got: Any) -> Answer:
    output = as_object(got.get("output"))
    usage = as_object(got.get("usage"))
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
    headers = {str(key).lower(): str(value) for key, value in (got.headers or {}).items()}
    return Answer(got.status_code, body, headers)


@cache
def _sdk() -> Any:
    try:
        import dashscope
    except ImportError:
        problem = "llm.backend=dashscope: the package dashscope is missing"
        raise ConfigError([f"{problem}; install toolmem[dashscope]"]) from None
    logging.getLogger("dashscope").addFilter(lambda record: not _is_ours.get())  # shows prompts
    return dashscope
