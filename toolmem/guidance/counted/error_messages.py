"""What went wrong, in the tool's own words.

The telling line of an output, and groups of failures whose lines differ in names, numbers and quotations only.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from toolmem.models import ToolCallResult

HEAD = 4000  # characters of an output that are looked at, and as many of its end
MAX_MESSAGE = 2000  # characters of a telling line
MAX_LINE = 160  # characters of a message that are kept for showing
MAX_COMPARED = 50  # different messages of a group that are compared word for word
MAX_WORDS = 100  # of a message that is compared with others word by word
MAX_NAME = 40  # characters of a name in a message; longer ones are masked even where all messages share them
MASK = "…"

_ERROR_KEYS = (
    "error",
    "errors",
    "error_message",
    "error_description",
    "message",
    "msg",
    "detail",
    "details",
    "reason",
    "description",
)
_FIELD_KEYS = ("field", "param", "parameter", "loc")
_STATUS_NAMES = frozenset(status.phrase.lower() for status in HTTPStatus)
_KEYED = re.compile(
    r"""\\?["'](?:error|errors|error_message|message|msg|detail|reason)\\?["']\s*:\s*\\?(["'])(?!\\?\1)(.{3,400}?)\\?\1\s*[,}\]]"""
)
_TELLING = re.compile(
    r"error|exception|fail|cannot|can't|could not|couldn't|unable|invalid|not found|no such|denied|missing|required|"
    r"unknown|unexpected|refused|timed? ?out|forbidden|unauthorized|does not|doesn't|not allowed|must |exceed|illegal|"
    r"malformed|unavailable|fatal|panic|abort|killed|segmentation|错误|失败|无法|不存在|缺少|超时",
    re.IGNORECASE,
)
_RAISED = re.compile(r"^(?:[\w.]+(?:Error|Exception|Warning|Interrupt|Exit))\b")
_PREFIX = re.compile(
    r"^(?:\s*+(?:fatal\s++)?error(?:\s++(?:executing|running|calling)\s++\w++)?\s*+[:\-]\s*+)+", re.IGNORECASE
)
_NAMING = frozenset({"title", "name", "subject", "label", "text", "content", "query", "url", "path"})  # data, no news
_TAG = re.compile(r"<[^<>]{1,200}>")
_GNU_QUOTED = re.compile(r"`[^`'\n]{0,200}'")
_BARE = re.compile(r"^\W*+(?:error|errors|fatal|failed|exception|traceback.*+)?\W*+$", re.IGNORECASE)
_LISTING = re.compile(r"^\d+ (?:validation )?errors?\b", re.IGNORECASE)
_STATUS = re.compile(r"(?i)(?:status|code|http\S{0,100}|error)[\s_:=/.-]{0,20}[45]\d\d\b")
# Letters, digits and .:/-_ , but no Chinese, Japanese or Korean: 不能超过50 is a text with a number at its end.
_IN_ID = r"[^\s\0!-,;-@\[-^`{-~\u2010-\u206f\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]"
_MASKED = re.compile(
    r"(?<=near )'.{0,1500}'(?= at line)|"  # MySQL quotes the rest of the statement, quotes and all
    r"(?<![\w'])'[^'\n]{0,1500}'(?!\w)|\"[^\"\n]{0,1500}\"|`[^`'\n]{0,200}'(?!\w)|`[^`\n]{0,1500}`"  # quoted
    r"|\b[a-z][a-z0-9+.-]{0,40}://\S+|(?<![^\s@'\"])[^\s@'\"]++@[^\s@'\"]+\.\w+"  # URLs, addresses
    r"|(?<![\w.])(?:~|\.{0,2})/[\w./*@+-]+"  # paths
    r"|\[[^\[\]\n]{0,200}\]|\{[^{}\n]{0,200}\}"  # lists and objects
    rf"|#?(?<!{_IN_ID}){_IN_ID}*\d(?:{_IN_ID}*(?![.:/-]){_IN_ID})?"  # numbers, dates, ids
)


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Failures that say the same but for the names in it."""

    label: str  # the message, with what varies masked; "" where there was no output
    error_class: str  # the judge's, where most of them carry one and the same; else ""
    example: str  # the most frequent message as it came
    varying: tuple[str, ...]  # where one thing varies: what stands there, most frequent first
    positions: tuple[int, ...]  # of the failed calls


def telling_line(output: str) -> str:
    """The line of a failed call's output that says what went wrong; at most MAX_MESSAGE characters, "" for none."""
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


def error_groups(calls: Sequence[ToolCallResult], lines: Mapping[int, str]) -> list[ErrorGroup]:
    """Failures grouped by message; largest group first, then in order of appearance.

    `lines`: the telling line of each failed call, by position.
    """
    groups: dict[str, list[int]] = {}
    for position, line in lines.items():
        groups.setdefault(mask(line), []).append(position)
    merged = _merged(groups)
    made = [_group(calls, [lines[i] for i in positions], positions, label) for label, positions in merged.items()]
    return sorted(made, key=lambda group: -len(group.positions))


def _merged(groups: dict[str, list[int]]) -> dict[str, list[int]]:
    """Groups whose masked messages differ in one unquoted word (not among the first two) become one."""
    blanks: dict[tuple[str, ...], list[str]] = {}
    for label in groups:
        words = label.split()
        for i in range(2, len(words) if len(words) <= MAX_WORDS else 0):
            if _STATUS.search(words[i]):
                continue
            blanks.setdefault((*words[:i], "\0", *words[i + 1 :]), []).append(label)
    merged = dict(groups)
    for blank, labels in sorted(blanks.items(), key=lambda item: -len(item[1])):
        left = [label for label in labels if label in merged]
        if len(left) > 1:
            shared = " ".join(MASK if word == "\0" else word for word in blank)
            members = sorted(position for label in left for position in merged.pop(label))
            merged[shared] = sorted([*merged.get(shared, []), *members])
    return merged


def mask(line: str) -> str:
    """The message without the names, numbers and quotations that differ from call to call."""
    hidden, kept = _hide_status(line)
    masked = re.sub(rf"{MASK}(?:[\s,]*{MASK})+", MASK, _MASKED.sub(MASK, hidden))
    return _restore(masked, kept)


def _group(calls: Sequence[ToolCallResult], lines: Sequence[str], positions: Sequence[int], merged: str) -> ErrorGroup:
    classes = Counter(calls[i].error_class for i in positions)
    (common, count) = classes.most_common(1)[0]
    counted = Counter(lines)
    example = min(counted, key=lambda line: (-counted[line], len(line), line))
    label, varying = _shared(list(counted)[:MAX_COMPARED], merged)
    often: Counter[str] = Counter()
    for thing, line in zip(varying, counted, strict=False):
        often[thing] += counted[line]
    return ErrorGroup(
        label=label[:MAX_LINE],
        error_class=common if count * 2 > len(positions) else "",
        example=example[:MAX_LINE],
        varying=tuple(sorted(often, key=lambda thing: (-often[thing], thing))),
        positions=tuple(positions),
    )


def _shared(lines: Sequence[str], merged: str) -> tuple[str, list[str]]:
    """The mask of `lines`, with those names put back that all of them share; `merged` where their words differ.

    With it what varies, line by line, where that is a single thing.
    """
    if any(mask(line) != merged for line in lines):
        return _shared_words(lines) or (merged, [])
    hidden, kept = _hide_status(lines[0])
    pieces = _MASKED.split(hidden)
    names = [_MASKED.findall(_hide_status(line)[0]) for line in lines]
    if any(len(found) != len(pieces) - 1 for found in names):
        return mask(lines[0]), []
    out, differing = [pieces[0]], []
    for i, piece in enumerate(pieces[1:]):
        same = len(names[0][i]) <= MAX_NAME and all(found[i] == names[0][i] for found in names)
        out += [names[0][i] if same else _quoted_mask(names[0][i]), piece]
        differing += [] if same else [i]
    varying = [found[differing[0]] for found in names] if len(differing) == 1 else []
    return _restore("".join(out), kept), varying


def _shared_words(lines: Sequence[str]) -> tuple[str, list[str]] | None:
    """The words that all of `lines` have in the same place, and what varies; None where they differ in length."""
    split = [line.split() for line in lines]
    if any(len(words) != len(split[0]) for words in split):
        return None
    places = list(zip(*split, strict=True))
    differing = [words for words in places if len(set(words)) > 1]
    label = " ".join(words[0] if len(set(words)) == 1 else MASK for words in places)
    return label, list(differing[0]) if len(differing) == 1 else []


def _hide_status(line: str) -> tuple[str, list[str]]:
    """HTTP status and exit codes tell classes apart, so the mask must not see them."""
    bare = line.replace("\0", "")
    return _STATUS.sub("\0", bare), [found.group() for found in _STATUS.finditer(bare)]


def _restore(text: str, kept: Sequence[str]) -> str:
    left = iter(kept)
    return re.sub("\0", lambda _: next(left, ""), text)


def _quoted_mask(name: str) -> str:
    first = name[:1]
    return f"{first}{MASK}{first}" if first in "'\"`" else MASK


# ---------------------------------------------------------------- finding the line


def _from_json(output: str) -> str:
    if len(output) <= 20_000:
        try:
            read = json.loads(output)
        except (ValueError, RecursionError):
            read = None
        for text in _messages(read, 0):
            return text
        if isinstance(read, dict) and (told := _told_by(read)):
            return told
    found = [each.group(2) for each in _KEYED.finditer(output[:HEAD]) if not _BARE.match(each.group(2))]
    said = next((each for each in found if not _is_code(each)), "")
    if said and found[0] != said and _is_code(found[0]):
        return f"{found[0]}: {said}"
    return found[0] if found else ""


def _told_by(read: Mapping[str, Any]) -> str:
    """An answer without a message, as what its fields say: `status: conflict, conflicts_with: id, start`."""
    said = []
    for key, value in read.items():
        if isinstance(value, Mapping) and value:
            inside = [f"{name}: {text}" for name, text in value.items() if isinstance(text, str | int)]
            told = inside if str(key).lower() in _ERROR_KEYS else []
            said.append(", ".join(told) or f"{key}: {', '.join(map(str, value))}")
        elif isinstance(value, list) and value:
            said.append(str(key))
        elif value not in (None, "", [], {}):
            said.append(f"{key}: {value}")
    return ", ".join(said)


def _unfolded(line: str) -> str:
    """`HTTP 400: {"error": "E_FORMAT", "message": "..."}` with the message instead of the object."""
    before, brace, rest = line.partition("{")
    said = _from_json(brace + rest) if brace and before.strip() and _KEYED.search(rest) else ""
    return f"{before.rstrip()} {said}" if said else line


def _messages(read: Any, depth: int) -> Iterator[str]:
    """Texts under keys that name an error, outermost first; texts that hold an object are looked into.

    A code or the name of a status is told with the message that stands beside it: `E_FORMAT: phone must be digits`.
    """
    if depth > 4:
        return
    if isinstance(read, dict):
        lowered = {str(key).lower(): value for key, value in read.items()}
        yield from _explained(lowered, depth)
        for key in _ERROR_KEYS:
            value = lowered.get(key)
            if isinstance(value, str) and value.strip():
                yield _inner(value)
            elif isinstance(value, (dict, list)) and value:
                yield from _messages(value, depth + 1)
        others = [(key, value) for key, value in lowered.items() if key not in _ERROR_KEYS and key not in _NAMING]
        for _, value in others:
            if isinstance(value, str) and len(value) <= MAX_MESSAGE and _TELLING.search(value) and "{" not in value:
                yield _without_tags(value)
        for _, value in others:
            if isinstance(value, str) and _KEYED.search(value[:HEAD]):
                yield _inner(value)
            elif isinstance(value, (dict, list)):
                yield from _messages(value, depth + 1)
    elif isinstance(read, list):
        for value in read[:5]:
            if isinstance(value, str) and depth and value.strip():
                yield value
            else:
                yield from _messages(value, depth + 1)


def _explained(lowered: Mapping[str, Any], depth: int) -> Iterator[str]:
    """A code with what it means, a problem with the field that it is about."""
    told = [_inner(value) for key in _ERROR_KEYS if isinstance(value := lowered.get(key), str) and value.strip()]
    named = next((text for key in _FIELD_KEYS if (text := _field(lowered.get(key)))), "")
    said = next((text for text in told if not _is_code(text)), "")
    code = next((text for text in told if _is_code(text) and not _BARE.match(text)), "")
    if code and not said:
        inside = [lowered[key] for key in _ERROR_KEYS if isinstance(lowered.get(key), dict | list)]
        said = next((text for value in inside for text in _messages(value, depth + 1) if not _is_code(text)), "")
    if said and named and named not in said:
        yield f"{named}: {said}"
    elif said and code and code not in said:
        yield f"{code}: {said}"


def _field(value: Any) -> str:
    """The name of a field; of a path like ["body", "phone"] its end."""
    parts = value if isinstance(value, list) else [value]
    last = parts[-1] if parts else None
    return last if isinstance(last, str) and len(last) <= MAX_NAME and last.isprintable() else ""


def _is_code(text: str) -> bool:
    """One word (E_FORMAT, not_found), or the name of an HTTP status: it says nothing of this call."""
    words = text.split()
    return text.strip().lower() in _STATUS_NAMES or (len(words) == 1 and words[0].isascii())


def _inner(text: str) -> str:
    """The message inside of a text that holds an object, else the text."""
    found = [each.group(2) for each in _KEYED.finditer(text[:HEAD])]
    return next((each for each in found if not _is_code(each)), found[0] if found else text)


def _without_tags(text: str) -> str:
    """The text of a page without what its title and its headings repeat."""
    said: list[str] = []
    for part in _TAG.split(text):
        words = " ".join(part.split())
        if words and not (said and words in said[-1]):
            said.append(words)
    return " ".join(said)


def _from_lines(head: str) -> str:
    lines = [line.strip() for line in head.splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):
        raised = [line for line in lines if _RAISED.match(line)]
        if raised:
            return raised[-1]
    for position, line in enumerate(lines):
        rest = _PREFIX.sub("", line)
        if _LISTING.match(rest):
            return ": ".join([rest, " ".join(lines[position + 1 : position + 3])])
        if _TELLING.search(line) and not _BARE.match(line):
            return _closed(line, lines[position + 1 : position + 12])
    for position, line in enumerate(lines):
        if not _BARE.match(line):
            return _closed(line, lines[position + 1 : position + 12])
    return lines[0] if lines else ""


def _closed(line: str, following: Sequence[str]) -> str:
    """The line, and what follows until a quotation in backticks that began in it is closed."""
    if _GNU_QUOTED.sub("", line).count("`") % 2 == 0:
        return line
    for i, more in enumerate(following):
        if more.count("`") % 2:
            return " ".join([line, *following[: i + 1]])
    return line
