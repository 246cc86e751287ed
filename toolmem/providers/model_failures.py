"""One error tree out of all the ways in which a model's service fails.

What counts is what happened on the wire (`Exchange`), not what an SDK raised over it: the same answer is the same error
through every adapter. Codes are those of DashScope ("InvalidApiKey", "Throttling.RateQuota", help.aliyun.com/en/
model-studio/error-code) and of OpenAI ("invalid_api_key", "rate_limit_exceeded"), compared without case and signs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from toolmem.config.hidden_values import masked
from toolmem.errors import (
    ContentFiltered,
    ModelDenied,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelUnreachable,
    ReplyBroken,
)
from toolmem.providers.exchange import AnswerTooLargeError, Exchange, RedirectedError, SentTwiceError

MAX_RETRY_AFTER = 300.0  # seconds; a server that wants a longer pause is asked again after this one
_SHOWN = 300  # characters of a server's message
_ECHO = 24  # so many characters of the prompt in a row are an echo of it

# The first part of a code, up to a full stop, in lower case and without signs.
_DENIED = {
    *("invalidapikey", "accessdenied", "unauthorized", "permissiondenied", "workspace", "model", "modelnotfound"),
    *("modelnotsupported", "arrearage", "insufficientquota", "allocationquota", "prepaidbilloverdue"),
    *("postpaidbilloverdue", "commoditynotpurchased", "billinghardlimitreached", "accountdeactivated"),
}
_FILTERED = {"datainspectionfailed", "contentfilter", "contentpolicyviolation", "responsibleaipolicyviolation"}
_OVERLOADED = {
    *("throttling", "ratelimitexceeded", "limitrequests", "limitburstrate", "toomanyrequests", "internalerror"),
    *("internalservererror", "servererror", "serviceunavailable", "systemerror", "modelservingerror", "requesttimeout"),
    *("modelunavailable", "responsetimeout", "overloaded", "engineoverloaded"),
}
_NO_SUCH_MODEL = re.compile(
    r"\bmodel\b.{0,80}?(does\s*n.t exist|does not exist|not exist|not found|not supported)", re.I
)
_KEY_LIKE = re.compile(r"\b(sk-[\w*-]{6,}|Bearer\s+\S+)")


@dataclass(frozen=True, slots=True)
class ServerMessage:
    """What the body of an answer says went wrong; empty where it says nothing."""

    code: str = ""
    message: str = ""
    request_id: str = ""

    def __bool__(self) -> bool:
        return bool(self.code or self.message)


def failure(
    exchange: Exchange, error: Exception | None, *, name: str, timeout: float, secret: str, prompt: str
) -> ModelError | None:
    """The typed error of a failed attempt; None where it did not fail on the wire (a defect of ours, then).

    `name` begins the message. `secret` and what echoes the `prompt` are taken out of what the server said.
    """
    import aiohttp

    if exchange.status is None:
        return _no_answer(exchange, error, name, timeout, secret)
    if isinstance(error, AnswerTooLargeError):
        return ReplyBroken(f"{name}: HTTP {exchange.status}, but {error}", temporary=False)
    said = _read(exchange.body)
    told = _told(said, secret, prompt)
    if exchange.status != 200:
        return _by_status(exchange, said, f"{name}: HTTP {exchange.status}{told}", name)
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ClientConnectionError | OSError):
        return ModelUnreachable(f"{name}: the answer was cut off ({type(error).__name__})")
    if said:
        by_code = _by_code(said, f"{name}: HTTP 200 with an error{told}", _retry_after(exchange.headers))
        return by_code or ReplyBroken(f"{name}: HTTP 200 with an error in place of a reply{told}")
    return ReplyBroken(f"{name}: HTTP 200, but what came is no reply ({_shape(exchange.body)})")


def _no_answer(
    exchange: Exchange, error: Exception | None, name: str, timeout: float, secret: str
) -> ModelError | None:
    import aiohttp

    seen: BaseException | None = exchange.error if isinstance(error, SentTwiceError) else error
    seen = seen or exchange.error or error
    if isinstance(seen, RedirectedError):
        return ModelDenied(f"{name}: the address redirects to {masked(str(seen))!r}; set base_url to where it leads")
    if isinstance(seen, TimeoutError):
        return ModelUnreachable(f"{name}: no answer within {timeout:g} s")
    detail = f"{type(seen).__name__}: {_clean(str(seen), secret, '')}"
    if isinstance(seen, aiohttp.ClientConnectorCertificateError | aiohttp.InvalidURL):
        return ModelUnreachable(f"{name}: {detail}", temporary=False, fatal=True)
    if isinstance(seen, aiohttp.ClientError | OSError):
        happened = "the connection was cut before an answer" if exchange.sent else "no connection"
        return ModelUnreachable(f"{name}: {happened} ({detail})")
    return None


def _by_status(exchange: Exchange, said: ServerMessage, message: str, name: str) -> ModelError:
    status = exchange.status or 0
    retry_after = _retry_after(exchange.headers)
    by_code = _by_code(said, message, retry_after)
    if isinstance(by_code, ModelDenied):
        return ModelDenied(f"{message}{_ADVICE.get(status, '')}")
    if by_code is not None:
        return by_code
    if status in (408, 425, 429) or status >= 500:
        return ModelOverloaded(message, retry_after=retry_after)
    if status < 400 or status in (401, 402, 403, 404, 405, 407, 410):
        return ModelDenied(f"{message}{_ADVICE.get(status, '')}")
    return ModelRefused(message)


_ADVICE = {401: " (is the key right?)", 404: " (are model_name and base_url right?)"}


def _by_code(said: ServerMessage, message: str, retry_after: float | None) -> ModelError | None:
    head = re.sub(r"[^a-z]", "", said.code.partition(".")[0].lower())
    if head in _FILTERED:
        return ContentFiltered(message)
    if head in _OVERLOADED:
        return ModelOverloaded(message, retry_after=retry_after)
    if head in _DENIED or _NO_SUCH_MODEL.search(said.message):
        return ModelDenied(message)
    return None


def _read(body: bytes) -> ServerMessage:
    """`{"code", "message", "request_id"}` (DashScope), `{"error": {"code", "message"}}` (OpenAI), or `{"detail"}`."""
    try:
        found = json.loads(body)
    except ValueError:
        return ServerMessage()
    if not isinstance(found, dict):
        return ServerMessage()
    request_id = _text(found.get("request_id"))
    inner = found.get("error")
    if isinstance(inner, Mapping):
        code = _text(inner.get("code")) or _text(inner.get("type"))
        return ServerMessage(code, _text(inner.get("message")), request_id)
    message = _text(found.get("message")) or _text(inner) or _text(found.get("detail"))
    return ServerMessage(_text(found.get("code")), message, request_id)


def _text(value: Any) -> str:
    if isinstance(value, list):  # FastAPI's validation errors, which echo the input in other fields
        return "; ".join(str(item.get("msg", "")) for item in value if isinstance(item, Mapping))
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _told(said: ServerMessage, secret: str, prompt: str) -> str:
    parts = [said.code, _clean(said.message, secret, prompt)]
    told = ": ".join(part for part in parts if part)
    return (f" {told}" if told else "") + (f" (request {said.request_id})" if said.request_id else "")


def _clean(text: str, secret: str, prompt: str) -> str:
    """Without the key, without the prompt, on one line, not too long."""
    if secret:
        text = text.replace(secret, "***")
    text = _KEY_LIKE.sub("***", text)
    for start in range(len(text) - _ECHO + 1) if prompt else ():
        if text[start : start + _ECHO] in prompt:
            text = text[:start] + "[... as in the prompt ...]"
            break
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _shape(body: bytes) -> str:
    """What kind of thing came, without showing it: it may echo the prompt."""
    if not body.strip():
        return "an empty body"
    try:
        found = json.loads(body)
    except ValueError:
        return f"{len(body):,} bytes that are not JSON"
    if not isinstance(found, dict):
        return f"JSON of another shape: {type(found).__name__}"
    return f"JSON with {', '.join(sorted(map(str, found))[:8]) or 'nothing in it'}"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from `Retry-After` (seconds or a date) or `retry-after-ms`; at most MAX_RETRY_AFTER."""
    milliseconds, said = headers.get("retry-after-ms"), headers.get("Retry-After")
    seconds: float | None = None
    try:
        if milliseconds is not None:
            seconds = float(milliseconds) / 1000
        elif said is not None:
            seconds = float(said)
    except ValueError:
        seconds = _until(said or "")
    if seconds is None or seconds != seconds:
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)


def _until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime.now(UTC)).total_seconds()
