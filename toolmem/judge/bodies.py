"""The outer object of a structured answer: an envelope that says how the call went, or a record that is data.

Keys are compared without case and separators: `errorMessage`, `error_message` and `Error Message` are one key.
"""

from __future__ import annotations

import re
from typing import Any

from toolmem.judge import literals
from toolmem.readers import words

_SEPARATORS = re.compile(r"[\s_\-.]")
_DEPTH = 4


ERROR_KEYS = words(
    "error errors err errs exception errormessage errormsg errmsg errormessages errordescription errordetail "
    "errordetails fault failurereason traceback stacktrace failure faultstring 错误 错误信息"
)
SUCCESS_FLAGS = words("success successful succeeded ok issuccess issuccessful successflag isok")
FAILURE_FLAGS = words("iserror haserror haserrors isfailure failed isfailed errorflag")
DONE_FLAGS = words(
    "created updated deleted saved sent booked added removed completed done written executed scheduled uploaded "
    "inserted registered cancelled canceled applied processed authenticated submitted accepted replaced moved"
)
HTTP_KEYS = words("statuscode httpstatus httpcode httpstatuscode responsecode responsestatus")
STATUS_KEYS = words("status code cod state result response responsestatus kind type outcome msgcode ret")
ERROR_CODE_KEYS = words("errcode errorcode errno retcode errorno errornumber resultcode")
EXIT_KEYS = words("exitcode exitstatus returncode exit rc returnvalue")
TOLD_KEYS = words(
    "message messages msg detail details reason cause information note info 消息 信息 提示"
)  # about the call itself
MESSAGE_KEYS = TOLD_KEYS | words("description title errormessage text")
WRAPPERS = words(
    "response result results data body output content payload answer return value responsebody structuredcontent "
    "observation contents"
)
# what an envelope is made of: an object with other keys is a record, and a record's fields are data
_ENVELOPE = (
    ERROR_KEYS
    | SUCCESS_FLAGS
    | FAILURE_FLAGS
    | HTTP_KEYS
    | STATUS_KEYS
    | ERROR_CODE_KEYS
    | MESSAGE_KEYS
    | WRAPPERS
    | words(
        "timestamp time ts path instance requestid traceid correlationid jsonrpc id documentationurl docurl help "
        "moreinfo extensions errortype apiversion metadata meta statustext statusmessage method url uri version "
        "headers hint retryafter retryable severity field param parameter location locations hostid resource took "
        "elapsed duration locale lang tool toolname action name command subcode infocode reasonphrase"
    )
)
_IDENTITY = words("id uuid guid key name number sku symbol title slug ticketid orderid userid jobid")

_GOOD_STATUS = re.compile(
    r"\s*(?:ok|okay|success\w*|succeeded|done|completed?|created|accepted|passed|成功)\s*", re.IGNORECASE
)
_NO_ERROR = re.compile(
    r"\s*(?:|0|none|null|nil|no|false|ok|success\w*|no[ _]?errors?\.?|n/?a|-|无|成功|\{\}|\[\])\s*", re.IGNORECASE
)


def plain(key: Any) -> str:
    return _SEPARATORS.sub("", str(key)).lower()


class Body:
    """An object, its keys in plain form, and what they say together."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value
        self.keys: dict[str, str] = {}  # plain -> as written
        for key in value:
            self.keys.setdefault(plain(key), key)
        strangers = sum(1 for key in self.keys if key not in _ENVELOPE)
        self.is_envelope = strangers == 0 or (strangers == 1 and len(self.keys) >= 3)
        # what identifies itself and has fields of its own is a record of something, not an answer about the call
        self.is_record = strangers >= 2 and bool(self.keys.keys() & _IDENTITY) and "jsonrpc" not in self.keys
        self.says_fine = self._says_fine()

    def get(self, name: str) -> Any:
        return self.value.get(self.keys[name]) if name in self.keys else None

    def having(self, names: frozenset[str]) -> list[tuple[str, Any]]:
        """(key as written, value) of each of `names` that is here, in the order of the object."""
        return [(key, self.value[key]) for name, key in self.keys.items() if name in names]

    def _says_fine(self) -> bool:
        if any(is_true(value) for _, value in self.having(SUCCESS_FLAGS)):
            return True
        if any(is_false(value) for _, value in self.having(FAILURE_FLAGS)):
            return True
        for _, value in self.having(STATUS_KEYS | HTTP_KEYS):
            if isinstance(value, str) and _GOOD_STATUS.fullmatch(value[:40]):
                return True
            number = integer(value)
            if number is not None and 200 <= number < 300:
                return True
        return integer(self.get("code")) == 0 or integer(self.get("errcode")) == 0 or self.get("error") is False

    @property
    def has_message(self) -> bool:
        found = self.having(MESSAGE_KEYS | ERROR_KEYS)
        return any(isinstance(value, (str, list, dict)) and value for _, value in found)

    @property
    def has_answer(self) -> bool:
        """A wrapper that holds something: rows, an object, a number."""
        return any(value not in (None, "", [], {}) for _, value in self.having(WRAPPERS))

    @property
    def http_failure(self) -> tuple[str, int] | None:
        """(key as written, HTTP status of 400 or above), where one is stated."""
        stated = self.is_envelope and self.has_message
        names = HTTP_KEYS | {"status", "code", "cod"} if stated else HTTP_KEYS
        for key, value in self.having(names):
            code = integer(value)
            if code is not None and 400 <= code <= 599:
                return key, code
        return None


def names_no_error(text: str) -> bool:
    """The value of an error key that says that there is none: "", "none", "OK", "no error"."""
    return len(text) <= 40 and _NO_ERROR.fullmatch(text) is not None


def is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() in ("true", "yes"))


def is_false(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() == "false"
    return value is False or (isinstance(value, int) and value == 0)


def integer(value: Any) -> int | None:
    """A whole number, also where it is written as a short string; None for everything else, booleans among it."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and len(value) <= 6 and value.isascii() and value.removeprefix("-").isdecimal():
        return int(value)
    return None


def is_empty_answer(value: Any, depth: int = 0) -> bool:
    """Nothing in it: `[]`, `{}`, null, or an envelope whose lists and wrapped answers are all empty."""
    if value in (None, "", [], {}):
        return True
    if isinstance(value, str):
        reading = literals.read(value)
        return reading.found and reading.complete and depth < _DEPTH and is_empty_answer(reading.value, depth + 1)
    if not isinstance(value, dict) or depth >= _DEPTH:
        return False
    body = Body(value)
    if body.keys.keys() & _IDENTITY:
        return False
    held = [
        value[key]
        for name, key in body.keys.items()
        if name not in ERROR_KEYS and (name in WRAPPERS or isinstance(value[key], (list, dict)))
    ]
    return bool(held) and all(is_empty_answer(item, depth + 1) for item in held)
