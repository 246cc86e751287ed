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

_is_ours: ContextVar[bool] = ContextVar("is_ours", default=False)  # in a request of toolmem


class DashScopeService:
    """Sends prompts and texts to embed to DashScope, the model service of Alibaba Cloud.

    The first request imports its SDK, which takes 0.3 to 0.9 s.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def chat(self, prompt: str, parameters: dict[str, Any]) -> Answer:
        messages = [{"role": "user", "content": prompt}]
        call = _sdk().AioGeneration.call
        return await self._ask(call, messages=messages, result_format="message", **parameters)

    async def embed(self, texts: list[str], dimensions: int | None) -> Answer:
        """Request vectors. The SDK's `TextEmbedding` is not used: it blocks the event loop."""
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
        """Send in a session of its own: a kept connection may be cut at the next request."""
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
            reason = "the connection was cut" if sent else f"no connection ({error})"
            raise NoAnswer(reason, was_sent=bool(sent)) from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # The SDK raises these for a body that is no JSON, or JSON of another shape.
            detail = f"the SDK cannot read the answer ({type(error).__name__})"
            raise NoAnswer(detail, was_sent=bool(sent)) from None
        finally:
            _is_ours.reset(token)
        return _in_openai_shape(got)


class _SentTwice(Exception):
    """Stops the SDK, which would silently send a request again after the connection broke."""


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
            "prompt_tokens": prompt_tokens or None,  # the SDK says 0 where the answer has none
            "completion_tokens": usage.get("output_tokens") or None,
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
    logging.getLogger("dashscope").addFilter(lambda record: not _is_ours.get())  # it logs prompts
    return dashscope
