"""Find the line of an output that says what went wrong, generalize it and classify it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain, filterfalse
from pathlib import Path
from typing import Any

from toolmem.text.forms import word_set, word_tuple
from toolmem.text.patterns import late_pattern, read_patterns

HEAD = 4000  # characters of an output that are read at its beginning, and as many at its end
MAX_MESSAGE = 2000  # characters of an error line
_MAX_FIELD = 40  # characters of a field's name that is put before the message
BLANK = "…"  # replaces what differs from call to call

_ERROR_KEYS = word_tuple(
    "error errors error_message error_description message msg detail details reason description"
)
_FIELD_KEYS = ("field", "param", "parameter", "loc")
_KEYED = late_pattern(
    r"""\\?["'](?:error|errors|error_message|message|msg|detail|reason)\\?["']\s*:\s*"""
    r"""\\?(["'])(?!\\?\1)(.{3,400}?)\\?\1\s*[,}\]]"""
)
_TELLING = late_pattern(
    r"error|exception|fail|cannot|can't|could not|couldn't|unable|invalid|not found|no such|denied"
    r"|missing|required|unknown|unexpected|refused|timed? ?out|forbidden|unauthorized|does not"
    r"|doesn't|not allowed|must |exceed|illegal|malformed|unavailable|fatal|panic|abort|killed"
    r"|segmentation|错误|失败|无法|不存在|缺少|超时|不[能得可应许]|不允许|必须|超[过出]|最[多少]"
    r"|至[多少]|[不须需应]大于|[不须需应]小于|[大小]于或?等于|上限|下限",
    re.IGNORECASE,
)
_RAISED = late_pattern(r"^(?:[\w.]+(?:Error|Exception|Warning|Interrupt|Exit))\b")
_PREFIX = late_pattern(
    r"^(?:\s*+(?:fatal\s++)?error(?:\s++(?:executing|running|calling)\s++\w++)?\s*+[:\-]\s*+"
    r"|\s*+错误\s*+[:：]\s*+)+",
    re.IGNORECASE,
)
# Fields that hold data, whose words say nothing about the failure.
_DATA_KEYS = word_set("title name subject label text content query url path")
_TAG = late_pattern(r"<[^<>]{1,200}>")
_GNU_QUOTED = late_pattern(r"`[^`'\n]{0,200}'")
_BARE = late_pattern(
    r"^\W*+(?:error|errors|fatal|failed|exception|traceback.*+)?\W*+$", re.IGNORECASE
)
_LISTING = late_pattern(r"^\d+ (?:validation )?errors?\b", re.IGNORECASE)
STATUS = late_pattern(r"(?i)(?:status|code|http\S{0,100}|error)[\s_:=/.-]{0,20}[45]\d\d\b")
# Letters, digits and .:/-_ but no Chinese, Japanese or Korean: 不能超过50 ends with a number.
_IN_ID = r"[^\s\0!-,;-@\[-^`{-~\u2010-\u206f\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]"
# Chinese and Japanese have no space between words: limit不能超过7 holds `limit` as a word.
_PART = late_pattern(r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|-")
_PARTICULARS = late_pattern(
    r"(?<=near )'.{0,1500}'(?= at line)|"  # MySQL quotes the rest of the statement, quotes and all
    # other quotations
    r"(?<![\w'])'[^'\n]{0,1500}'(?!\w)|\"[^\"\n]{0,1500}\""
    r"|`[^`'\n]{0,200}'(?!\w)|`[^`\n]{0,1500}`"
    r"|\b[a-z][a-z0-9+.-]{0,40}://\S+|(?<![^\s@'\"])[^\s@'\"]++@[^\s@'\"]+\.\w+"  # URLs, addresses
    r"|(?<![\w.])(?:~|\.{0,2})/[\w./*@+-]+"  # paths
    r"|\[[^\[\]\n]{0,200}\]|\{[^{}\n]{0,200}\}"  # lists and objects
    rf"|#?(?<!{_IN_ID}){_IN_ID}*\d(?:{_IN_ID}*(?![.:/-]){_IN_ID})?"  # numbers, dates, ids
)


def error_line(output: str) -> str:
    """Find the line of a failed call's output that says what went wrong; "" if there is none."""
    head = output[:HEAD]
    if len(output) > HEAD:
        head += "\n" + output[-HEAD:]
    if not head.strip():
        return ""
    line = _from_json(output) if head.lstrip()[:1] in "{[" else ""
    line = line or _unfolded(_from_lines(head))
    line = _without_tags(line) if head.lstrip()[:1] == "<" else line
    line = " ".join(_PREFIX.sub("", line).split())
    if len(line) > 2 and line[0] == line[-1] == '"' and line.count('"') == 2:
        line = line[1:-1].strip()
    return line[:MAX_MESSAGE]


def generalize(line: str) -> str:
    """Replace names, numbers and quotations by BLANK: `no file "a.txt"` becomes `no file …`."""
    bare = line.replace("\0", "")
    # HTTP status and exit codes stay: they tell classes of errors apart.
    codes = iter(STATUS.findall(bare))
    hidden = _PARTICULARS.sub(BLANK, STATUS.sub("\0", bare))
    masked = re.sub(rf"{BLANK}(?:[\s,]*{BLANK})+", BLANK, hidden)
    return re.sub("\0", lambda _: next(codes, ""), masked)


def is_named(message: str, name: str) -> bool:
    """Whether a message contains a name as a whole word."""
    if not name or name not in message:
        return False
    # No pattern for each name: one with such a class is slow to compile, and there are many names.
    start = message.find(name)
    while start >= 0:
        end = start + len(name)
        beside = message[max(start - 1, 0) : start], message[end : end + 1]
        if not any(map(_PART.search, beside)):
            return True
        start = message.find(name, start + 1)
    return False


def _from_json(output: str) -> str:
    if len(output) <= 20_000:
        try:
            read = json.loads(output)
        except (ValueError, RecursionError):
            read = None
        for text in _messages(read, 0):
            return text
        if isinstance(read, dict) and (fields := _fields_shown(read)):
            return fields
    found = [each[2] for each in _KEYED.finditer(output[:HEAD]) if not _BARE.match(each[2])]
    message = next(filterfalse(_is_code, found), "")
    if message and found[0] != message:  # the first one is a code
        return f"{found[0]}: {message}"
    return found[0] if found else ""


def _fields_shown(read: Mapping[str, Any]) -> str:
    """Write an answer without a message on one line: `status: conflict, with: a, b`."""
    parts = []
    for key, value in read.items():
        if isinstance(value, Mapping) and value:
            fields = value.items() if str(key).lower() in _ERROR_KEYS else ()
            inside = [f"{name}: {text}" for name, text in fields if isinstance(text, str | int)]
            parts.append(", ".join(inside) or f"{key}: {', '.join(map(str, value))}")
        elif isinstance(value, list) and value:
            parts.append(str(key))
        elif value not in (None, "", [], {}):
            parts.append(f"{key}: {value}")
    return ", ".join(parts)


def _unfolded(line: str) -> str:
    """Put the message in place of its object into a line: `HTTP 400: {"message": "..."}`."""
    before, brace, rest = line.partition("{")
    has_message = before.strip() and _KEYED.search(rest)
    message = _from_json(brace + rest) if has_message else ""
    return f"{before.rstrip()} {message}" if message else line


def _messages(read: Any, depth: int) -> Iterator[str]:
    """Yield texts under keys that name an error, outermost first, also from JSON inside texts.

    A code comes with the message beside it: `E_FORMAT: phone must be digits`.
    """
    if depth > 4:
        return
    if isinstance(read, dict):
        lowered = {str(key).lower(): value for key, value in read.items()}
        yield from _explained(lowered, depth)
        for key in _ERROR_KEYS:
            value = lowered.get(key, "")
            is_message = isinstance(value, str) and value.strip()
            yield from [_inner(value)] if is_message else _messages(value, depth + 1)
        others = [each for key, each in lowered.items() if key not in (*_ERROR_KEYS, *_DATA_KEYS)]
        for value in others:
            is_short = isinstance(value, str) and len(value) <= MAX_MESSAGE and "{" not in value
            if is_short and _TELLING.search(value):
                yield _without_tags(value)
        for value in others:
            holds_message = isinstance(value, str) and _KEYED.search(value[:HEAD])
            yield from [_inner(value)] if holds_message else _messages(value, depth + 1)
    elif isinstance(read, list):
        for value in read[:5]:
            is_text = depth > 0 and isinstance(value, str) and value.strip()
            yield from [value] if is_text else _messages(value, depth + 1)


def _explained(lowered: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield an object's message, with the field or the code that stands beside it."""
    values = map(lowered.get, _ERROR_KEYS)
    texts = [_inner(value) for value in values if isinstance(value, str) and value.strip()]
    field = next(filter(None, (_field_name(lowered.get(key)) for key in _FIELD_KEYS)), "")
    message = next(filterfalse(_is_code, texts), "")
    code = next((text for text in texts if _is_code(text) and not _BARE.match(text)), "")
    if code and not message:
        inside = (_messages(lowered.get(key), depth + 1) for key in _ERROR_KEYS)
        message = next(filterfalse(_is_code, chain.from_iterable(inside)), "")
    if message and field and field not in message:
        yield f"{field}: {message}"
    elif message and code and code not in message:
        yield f"{code}: {message}"


def _field_name(value: Any) -> str:
    """Return the name of a field, or the end of a path such as ["body", "phone"]; else ""."""
    parts = value if isinstance(value, list) else [value]
    last = parts[-1] if parts else None
    return last if isinstance(last, str) and len(last) <= _MAX_FIELD and last.isprintable() else ""


def _is_code(text: str) -> bool:
    """Whether a text is one word (E_FORMAT, not_found) or the phrase of an HTTP status."""
    from http import HTTPStatus

    words = text.split()
    name = text.strip().lower()
    is_word = len(words) == 1 and words[0].isascii()
    return is_word or any(name == status.phrase.lower() for status in HTTPStatus)


def _inner(text: str) -> str:
    """Return the message inside a text that holds an object; return any other text as it is."""
    found = [each[2] for each in _KEYED.finditer(text[:HEAD])]
    return next(filterfalse(_is_code, found), found[0] if found else text)


def _without_tags(text: str) -> str:
    """Return the text of a page, without parts that the part before already holds."""
    parts: list[str] = []
    for part in _TAG.split(text):
        words = " ".join(part.split())
        if words and not (parts and words in parts[-1]):
            parts.append(words)
    return " ".join(parts)


def _from_lines(head: str) -> str:
    lines = [line.strip() for line in head.splitlines() if line.strip()]
    raised = [line for line in lines if _RAISED.match(line)]
    if raised and any(line.startswith("Traceback") for line in lines):
        return raised[-1]
    for position, line in enumerate(lines):
        rest = _PREFIX.sub("", line)
        if _LISTING.match(rest):
            return ": ".join([rest, " ".join(lines[position + 1 : position + 3])])
        if _TELLING.search(line) and not _BARE.match(line):
            break
    else:
        position = next((at for at, line in enumerate(lines) if not _BARE.match(line)), 0)
    return _closed(lines[position], lines[position + 1 : position + 12])


def _closed(line: str, following: Sequence[str]) -> str:
    """Continue a line until its quotation in backticks is closed."""
    if _GNU_QUOTED.sub("", line).count("`") % 2 == 0:
        return line
    for i, more in enumerate(following):
        if more.count("`") % 2:
            return " ".join([line, *following[: i + 1]])
    return line


_MAX_CLASSIFIED = 800  # characters of a message that decide on its class
_BY_STATUS = {
    **dict.fromkeys((400, 422), "invalid_value"),
    **dict.fromkeys((401, 403), "permission_denied"),
    **dict.fromkeys((404, 410), "not_found"),
    **dict.fromkeys((408, 504), "timeout"),
    **dict.fromkeys((409, 423), "conflict"),
    **{402: "insufficient_resources", 405: "unknown_tool", 429: "rate_limited"},
}
_PASSING = frozenset({"rate_limited", "connection_error", "server_error"})
_TOOK_TOO_LONG = late_pattern(
    r"\b(?:command|query|statement|script|program|cell|code|execution)\b"
    r".{0,60}\btim(?:ed|e)[ -]?out"
    r"|(?:命令|查询|脚本|执行)超时",
    re.IGNORECASE,
)
_LOCKED = late_pattern(
    r"\b(?:database|table|row|file|resource|device|repository|workspace|state)\b.{0,40}\b(?:is|are)"
    r" (?:currently )?(?:locked|busy|in use)\b"
    r"|could not (?:get|obtain|acquire)\b.{0,40}\block\b|lock wait|deadlock|resource busy"
    r"|\bE(?:AGAIN|BUSY)\b|another .{0,40}process|temporarily unavailable"
    r"|(?:try|retry) again (?:later|in (?:a |\d))|被锁定|稍后[再重]试",
    re.IGNORECASE,
)


@cache
def _by_message() -> list[tuple[str, re.Pattern[str]]]:
    """Return (class, pattern of its messages) for all classes, the most specific class first."""
    lists = read_patterns(Path(__file__).with_name("error_classes.yaml"))
    return [(name, re.compile(pattern, re.IGNORECASE)) for name, pattern in lists]


def error_class_of(message: str, otherwise: str = "error") -> str:
    """Return the class of an error message, such as "not_found"; `otherwise` if none fits."""
    return _error_class_of(message[:_MAX_CLASSIFIED]) or otherwise


@lru_cache(maxsize=1_000)
def _error_class_of(head: str) -> str:
    return next((name for name, pattern in _by_message() if pattern.search(head)), "")


def is_temporary(error_class: str, line: str) -> bool:
    """Whether the same call may work later, because a service, network or lock was in the way.

    A command or query that took too long is not temporary: it would take as long again.
    """
    head = line[:_MAX_CLASSIFIED]
    if error_class == "timeout":
        return _TOOK_TOO_LONG.search(head) is None
    return error_class in _PASSING or _LOCKED.search(head) is not None


def class_of_status(code: int) -> str:
    """Return the error class of an HTTP status code."""
    return _BY_STATUS.get(code, "server_error" if code >= 500 else "error")
