"""Failures told by the structure of an output: error keys, success flags, status fields, exit codes.

Only the outer object, and the objects that wrap an answer (`response`, `result`, `data`, `body`, ...), are looked
at. What stands in rows and records is data, whatever it is called. Where two signs disagree, the one that says
more about the call wins: an error key over a status field, either over the wording of a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from toolmem.judge.bodies import (
    DONE_FLAGS,
    ERROR_CODE_KEYS,
    ERROR_KEYS,
    EXIT_KEYS,
    FAILURE_FLAGS,
    MESSAGE_KEYS,
    STATUS_KEYS,
    SUCCESS_FLAGS,
    TOLD_KEYS,
    WRAPPERS,
    Body,
    integer,
    is_false,
    names_no_error,
    plain,
)
from toolmem.judge.failure_evidence import Evidence, of_value
from toolmem.readers.error_classes import class_of_status, error_class_of

# (text, is_message) -> the failure that it tells, if it tells one; `is_message`: it stands where a body keeps what it
# has to say about the call, so it is no data
TextCheck = Callable[[str, bool], Evidence | None]

_DEPTH = 4
_BAD_STATUS = re.compile(
    r"\s*(?:error(?:ed)?|fail(?:ed|ure)?|exception|fault|unauthori[sz]ed|forbidden|denied|rejected|refused|declined|bounced|undeliver\w+|aborted|crashed|conflict|duplicate|blocked|expired|"
    r"\w*(?:_denied|_error|_failed|_limit|_exceeded)|invalid\w*|not[_ ]?found|time[d_]?\s?out|ko|nok|bad[_ ]request|"
    r"失败|错误|异常)\s*",
    re.IGNORECASE,
)
_BAD_CODE = re.compile(
    r"invalid|error|not_?found|denied|exceed|unauth|forbidden|missing|limit|throttl|fail|time_?d?_?out|conflict|"
    r"unsupported|expired|unavailable|no_?such|illegal|^(?-i:E[A-Z]{4,})$|bad_?request|abort|exhausted|not_?allowed|"
    r"nonexist|incorrect|unknown|refused|reject|malformed|insufficient|duplicate|already_?exist",
    re.IGNORECASE,
)
_CODE_KEYS = frozenset({"code", "ret"})
_REASONS = ("message", "msg", "errormessage", "errormsg", "errmsg", "errordescription", "detail", "reason", "cause")
_INNER_REASONS = ("message", "msg", "detail", "description", "reason", "errormessage", "text", "code", "type", "error")


def find(value: Any, check_text: TextCheck, changes: bool = False, depth: int = 0) -> Evidence | None:
    """The evidence of failure in a decoded output, if there is any.

    `changes`: the call was to change something, so that a status is about the call and not about what it looked up.
    """
    if isinstance(value, str):
        return check_text(value, False)
    if depth > _DEPTH:
        return None
    if isinstance(value, list):
        return _in_list(value, check_text, changes, depth)
    if not isinstance(value, dict) or not value:
        return None
    body = Body(value)
    return (
        _exit_code(body, check_text)
        or _failure_flag(body)
        or _error_key(body, depth)
        or _success_flag(body)
        or _http_status(body)
        or _error_code(body)
        or _status_word(body, changes)
        or _wrapped(body, check_text, changes, depth)
        or _message(body, check_text)
    )


def _in_list(value: list[Any], check_text: TextCheck, changes: bool, depth: int) -> Evidence | None:
    """A list is data, but for a list of content blocks (MCP, chat models) and one that holds a single envelope."""
    first = value[0] if value else None
    if not isinstance(first, dict):
        return None
    if first.get("type") == "text" and isinstance(first.get("text"), str):
        found = check_text(first["text"], False)
        return found.inside(0, "text") if found else None
    if len(value) == 1 and Body(first).is_envelope:
        found = find(first, check_text, changes, depth + 1)
        return found.inside(0) if found else None
    return None


def _exit_code(body: Body, check_text: TextCheck) -> Evidence | None:
    """A non-zero exit code, told by what the program wrote; without a code, what it wrote to stderr alone."""
    codes = [(key, code) for key, value in body.having(EXIT_KEYS) if (code := integer(value)) is not None]
    if codes and codes[0][1] == 0:
        return None
    if not codes and "stdout" not in body.keys:
        return None
    for stream in ("stderr", "stdout", "output") if codes else ("stderr",):
        text = body.get(stream)
        found = check_text(text, False) if isinstance(text, str) and text.strip() else None
        if found is not None:
            return found.inside(body.keys[stream])
    if not codes:
        return None
    key, code = codes[0]
    return of_value("exit code", code, key, error_class="timeout" if code == 124 else "error")


def _failure_flag(body: Body) -> Evidence | None:
    for key, value in body.having(FAILURE_FLAGS):
        if value is True and not body.is_record:
            return _reason(body) or of_value("failure flag", value, key)
    return None


def _error_key(body: Body, depth: int) -> Evidence | None:
    """A key that is named for errors and holds one."""
    if depth > 0 and not body.is_envelope:
        return None
    if body.keys.keys() & {"valid", "warnings"} or (body.is_record and body.http_failure is None):
        return None  # the findings of a checker, or a field of a record
    for key, value in body.having(ERROR_KEYS):
        if isinstance(value, str):
            if not names_no_error(value):
                return _precise(body, key, value)
        elif value is True:
            return _reason(body) or of_value("error flag", value, key)
        elif isinstance(value, int):
            # a count, unless the body explains it: {"error": 1, "message": "..."}
            explained = bool(body.having(MESSAGE_KEYS)) or 400 <= value <= 599
            if value != 0 and explained and body.is_envelope and not body.says_fine:
                return _reason(body) or of_value("error code", value, key)
        elif isinstance(value, (dict, list)) and value and not (body.says_fine and body.has_answer):
            return _nested_error(key, value, body)
    return None


def _precise(body: Body, key: str, value: str) -> Evidence:
    """Of `"error": "Bad Request"` beside a message, the message says more."""
    told = _reason(body) if len(value) < 40 and len(value.split()) <= 2 else None
    return told or of_value("error key", value, key)


def _nested_error(key: str, value: Any, body: Body) -> Evidence | None:
    """The error object or the list of errors at `key`. Counts per kind of error are no error."""
    if isinstance(value, list):
        first = value[0]
        if isinstance(first, dict):
            found = _nested_error(key, first, body)
            return replace(found, path=(key, 0, *found.path[1:])) if found else None
        return of_value("error key", first, key, 0) if isinstance(first, str) and first.strip() else None
    inner = Body(value)
    for name in _INNER_REASONS:
        told = inner.get(name)
        if isinstance(told, str) and told.strip():
            return of_value("error key", told, key, inner.keys[name], error_class=_class_beside(told, inner, body))
    if all(isinstance(item, (int, float)) or item in (None, "", [], {}) for item in value.values()):
        return None
    return of_value("error key", value, key)


def _success_flag(body: Body) -> Evidence | None:
    for key, value in body.having(SUCCESS_FLAGS):
        if is_false(value) and (body.is_envelope or not body.is_record):
            return _reason(body) or of_value("success flag", value, key)
    for _, value in body.having(DONE_FLAGS):
        if value is False and (told := _reason(body)) is not None:
            return told
    response = body.get("response")
    if isinstance(response, str) and is_false(response) and body.has_message:
        return _reason(body)
    return None


def _http_status(body: Body) -> Evidence | None:
    stated = body.http_failure
    if stated is None:
        return None
    key, code = stated
    told = _reason(body)
    if told is None:
        return of_value("HTTP status", body.value[key], key, error_class=class_of_status(code))
    return of_value(f"HTTP status {code}", told.message, *told.path, error_class=class_of_status(code))


def _error_code(body: Body) -> Evidence | None:
    """`errcode: 40001`, `error_code: "invalid_grant"`, `code: -1`, `code: "InvalidParameter"`."""
    told = body.is_envelope or body.has_message
    for key, value in body.having(ERROR_CODE_KEYS):
        number = integer(value)
        bad = number not in (0, 200) if number is not None else isinstance(value, str) and not names_no_error(value)
        if bad and told:
            return _reason(body) or of_value("error code", value, key)
    if not body.is_envelope or not body.has_message or body.has_answer:
        return None
    for key, value in body.having(_CODE_KEYS):
        number = integer(value)
        spelled = isinstance(value, str) and number is None and _is_bad_name(value)
        if spelled or (number is not None and number < 0):
            return _reason(body) or of_value("error code", value, key)
    return None


def _is_bad_name(text: str) -> bool:
    """`INVALID_USER_KEY`, `NotFound`, `ECONNREFUSED`: one word that names an error."""
    return len(text) <= 80 and " " not in text.strip() and _BAD_CODE.search(text) is not None


def _status_word(body: Body, changes: bool) -> Evidence | None:
    if body.says_fine or not (body.is_envelope or changes):
        return None
    for key, value in body.having(STATUS_KEYS):
        if not isinstance(value, str) or not _BAD_STATUS.fullmatch(value[:60]):
            continue
        if body.has_message or plain(key) not in ("type", "kind", "result", "response"):
            return _reason(body) or of_value("status", value, key)
    return None


def _wrapped(body: Body, check_text: TextCheck, changes: bool, depth: int) -> Evidence | None:
    """Look into what an envelope wraps."""
    if not body.is_envelope and len(body.keys) > 2:
        return None
    wrappers = body.having(WRAPPERS)
    if len(body.keys) == 1 and not wrappers:  # {"quoteResponse": {...}}
        wrappers = [(key, value) for key, value in body.value.items() if isinstance(value, dict)]
    for key, value in wrappers:
        if isinstance(value, (dict, str)) or (isinstance(value, list) and plain(key) in ("content", "contents")):
            found = find(value, check_text, changes, depth + 1)
            if found is not None:
                return found.inside(key)
    return None


def _message(body: Body, check_text: TextCheck) -> Evidence | None:
    """The wording of a message, in an envelope that has neither an answer nor a sign that all is well."""
    if not body.is_envelope or body.says_fine or body.has_answer:
        return None
    for key, value in body.having(TOLD_KEYS):
        if isinstance(value, str) and value.strip():
            found = of_value("message", value) if _is_bad_name(value) else check_text(value, True)
            if found is not None:
                return found.inside(key)
        if (told := _validation_error(key, value)) is not None:
            return told
    return None


def _validation_error(key: str, value: Any) -> Evidence | None:
    """FastAPI's `{"detail": [{"loc": [...], "msg": "field required", "type": "missing"}]}`."""
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, dict) and isinstance(first.get("msg"), str) and {"loc", "type"} & first.keys():
        return of_value("validation error", first["msg"], key, 0, "msg")
    return None


def _reason(body: Body) -> Evidence | None:
    """The text by which a body that has failed says why."""
    others = [name for name in body.keys if name in ERROR_KEYS and name not in _REASONS]
    for name in [*_REASONS, *others, "title", "description", "info"]:
        value, key = body.get(name), body.keys.get(name, "")
        if isinstance(value, str) and value.strip():
            return of_value("error message", value, key, error_class=_class_beside(value, body))
        if isinstance(value, dict) and value and (name in ERROR_KEYS or name == "detail"):
            return _nested_error(key, value, body)
        if (told := _validation_error(key, value)) is not None:
            return told
    content = body.get("content")
    first = content[0] if isinstance(content, list) and content else None
    if isinstance(first, dict) and isinstance(first.get("text"), str):
        return of_value("error message", first["text"], body.keys["content"], 0, "text")
    return None


def _class_beside(message: str, *bodies: Body) -> str:
    """The class where the message does not tell it: from a code beside it ("NOT_FOUND"), or from an HTTP status."""
    if error_class_of(message) != "error":
        return ""
    for body in bodies:
        for name in ("code", "type", "status", "error", "errorcode"):
            code = body.get(name)
            if isinstance(code, str) and len(code) <= 60 and code != message:
                spelled = error_class_of(re.sub(r"[_-]|(?<=[a-z])(?=[A-Z])", " ", code))
                if spelled not in ("error", "exception"):
                    return spelled
        if body.http_failure is not None:
            return class_of_status(body.http_failure[1])
    return ""
