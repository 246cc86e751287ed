"""Classify errors of requests to models, in the same way for every service.

The codes are those of DashScope (`InvalidApiKey`, `Throttling.RateQuota`; help.aliyun.com/en/
model-studio/error-code) and OpenAI (`invalid_api_key`), without signs and suffix: `invalidapikey`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from toolmem.errors import ModelError
from toolmem.text.forms import word_set

MAX_RETRY_AFTER = 300.0  # seconds; a longer Retry-After is cut to this
_MAX_MESSAGE = 300  # characters of a service's message
_MIN_ECHO = 24  # a message repeats the prompt if it shares so long a text with it

_DENIED = word_set(
    "invalidapikey accessdenied unauthorized permissiondenied modelnotfound modelnotsupported "
    "arrearage insufficientquota allocationquota prepaidbilloverdue postpaidbilloverdue "
    "billinghardlimitreached accountdeactivated"
)
_OVERLOADED = word_set(
    "throttling ratelimitexceeded limitrequests limitburstrate toomanyrequests internalerror "
    "internalservererror servererror serviceunavailable systemerror modelservingerror "
    "requesttimeout modelunavailable responsetimeout overloaded"
)
_FILTERED = word_set("datainspectionfailed contentfilter contentpolicyviolation")
_ADVICE = {401: " (is the key right?)", 404: " (are model_name and base_url right?)"}
_NO_SUCH_MODEL = re.compile(r"\bmodel\b.{0,80}?(does not exist|not found|not supported)", re.I)
_KEY_LIKE = re.compile(r"\b(sk-[\w*-]{6,}|Bearer\s+\S+)")
_PARAMETER = re.compile(
    r"\b(temperature|top_p|seed|max_tokens|enable_thinking|response_format|stream_options"
    r"|encoding_format)\b"
)
_JSON_MODE = re.compile(r"json[ _](object|mode|schema)|structured output", re.I)


class PassingError(ModelError):
    """A failure that may be temporary. `retry_after`: seconds to wait, if the service says so."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ContentFiltered(ModelError):
    """The service refuses this prompt because of its content, and may accept other prompts."""


class ParameterRefused(ModelError):
    """The service refuses a parameter of the request."""

    def __init__(self, message: str, parameter: str) -> None:
        super().__init__(message)
        self.parameter = parameter


class Answer(msgspec.Struct, frozen=True):
    """The HTTP answer of a service."""

    status: int
    body: Any = None  # the decoded JSON; None where the body is no JSON
    headers: Mapping[str, str] = {}  # names in lower case


def error_of(answer: Answer, who: str, *, secret: str, prompt: str) -> ModelError:
    """Return the error for an answer of `who` that is no reply. It hides `secret` and `prompt`."""
    code, message = _code_and_message(answer.body)
    text = ": ".join(filter(None, (code, _clean(message, secret, prompt))))
    text = f"{who}: HTTP {answer.status}" + (f" {text}" if text else "")
    head = re.sub(r"[^a-z]", "", code.partition(".")[0].lower())
    status = answer.status
    if head in _DENIED or _NO_SUCH_MODEL.search(message):
        return ModelError(text + _ADVICE.get(status, ""), fatal=True)
    if status in (408, 425, 429) or status >= 500 or head in _OVERLOADED:
        return PassingError(text, retry_after=_retry_after(answer.headers))
    if head in _FILTERED:
        return ContentFiltered(text)
    if status == 200:
        if code or message:
            return ModelError(f"{text} in place of a reply")
        kind = type(answer.body).__name__  # not its text, which may echo the prompt
        shape = "no JSON" if answer.body is None else f"JSON of another shape: {kind}"
        return PassingError(f"{who}: HTTP 200, but no reply ({shape})")
    if status < 400 or status in (401, 402, 403, 404, 405, 407, 410):
        return ModelError(text + _ADVICE.get(status, ""), fatal=True)
    named = _PARAMETER.search(message)
    if named or _JSON_MODE.search(message):
        return ParameterRefused(text, named[1] if named else "response_format")
    return ModelError(text)


def _code_and_message(body: Any) -> tuple[str, str]:
    """Code and message in `{"code", "message"}` or `{"error": {"code", "message"}}`."""
    if not isinstance(body, Mapping):
        return "", ""
    inner = body.get("error")
    if isinstance(inner, Mapping):
        return _text(inner.get("code")) or _text(inner.get("type")), _text(inner.get("message"))
    message = _text(body.get("message")) or _text(inner) or _text(body.get("detail"))
    return _text(body.get("code")), message


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _clean(text: str, secret: str, prompt: str) -> str:
    """The text without the key and the prompt, on one line, cut to _MAX_MESSAGE."""
    if secret:
        text = text.replace(secret, "***")
    text = _KEY_LIKE.sub("***", text[:20_000])
    for start in range(len(text) - _MIN_ECHO + 1):
        if text[start : start + _MIN_ECHO] in prompt:
            text = text[:start] + "[... as in the prompt ...]"
            break
    text = " ".join(text.split())
    return text if len(text) <= _MAX_MESSAGE else text[:_MAX_MESSAGE] + "..."


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Read the seconds to wait from `Retry-After` or `retry-after-ms`; None without either."""
    value = headers.get("retry-after", "")
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        elif value.strip().replace(".", "", 1).isdigit():
            seconds = float(value)
        else:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
    except ValueError:
        return None
    return min(max(0.0, seconds), MAX_RETRY_AFTER)
