"""What makes two tools, two sentences or two rules the same; names, ids and limits.

Ids that nobody gave are made from what they stand for (RFC 9562, version 5), so that writers in several processes who
put the same rule at the same moment meet in one record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from toolmem.errors import RequestError
from toolmem.readers.normal_form import normal_form
from toolmem.readers.plain_text import shown

UNSCOPED = "__unscoped__"  # the tool of a rule that was said when there was no tool
TOOL_PREFIX = "tool-"  # namespaces of tools
RULE_PREFIX = "rule/"  # keys of rules inside them

MAX_RULE = 2000  # characters
MAX_TOOL_NAME = 256
MAX_ID = 128
MAX_TAGS = 32
MAX_TAG = 100
SHORTEST_ID = 4  # characters of the beginning of an id

_OWN = "6f7b7a4e-52b1-5c1c-9d5e-3f4a8f0c2d11"  # whose version-5 ids these are
_FINAL = " .!?,;:…。！？，；：、"
_BEGINNING = re.compile(r"[0-9a-f][0-9a-f-]{3,34}")
_MADE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SURROGATE = re.compile("[\ud800-\udfff]")


def folded_name(tool_name: str) -> str:
    """The same for every casing of a tool's name. The Kelvin sign is no way to write a k."""
    return "\u212a".join(part.lower() for part in tool_name.strip().split("\u212a"))


def namespace_of(tool_name: str) -> str:
    """The namespace of a tool, the same for every casing of its name."""
    return TOOL_PREFIX + folded_name(tool_name)


def tool_of(namespace: str) -> str:
    """The tool's name in lower case."""
    return namespace.removeprefix(TOOL_PREFIX)


def rule_key(rule_id: str) -> str:
    return f"{RULE_PREFIX}{rule_id}"


def is_blank(text: str) -> bool:
    """Nothing to be seen in it."""
    return not shown(text)


def same_text(text: str) -> str:
    """Equal for texts that differ in case, white space and final punctuation only."""
    folded = shown(normal_form("NFC", text)).casefold()
    return folded.rstrip(_FINAL) or folded


def text_id(workspace: str, namespace: str, text: str, attempt: int = 0) -> str:
    """The id of the rule, or memory, that says this text in this namespace. `attempt`: where the former was taken."""
    return _id("text", workspace, namespace, same_text(text), str(attempt))


def failure_id(workspace: str, namespace: str, failure_class: str) -> str:
    """The id of the rule on repeated failures of this class."""
    return _id("repeated-failure", workspace, namespace, failure_class)


def _id(*parts: str) -> str:
    import uuid  # late: to show rules nobody needs it

    return str(uuid.uuid5(uuid.UUID(_OWN), "\0".join(parts)))


# ---------------------------------------------------------------- what callers hand over


def read_tool_name(given: Any) -> str:
    """Trimmed. Raises RequestError."""
    name = _text(given, "tool_name").strip()
    if is_blank(name):
        raise RequestError("tool_name is required", field="tool_name")
    return _within(name, MAX_TOOL_NAME, "tool_name")


def read_text(given: Any, field: str = "rule", limit: int = MAX_RULE) -> str:
    """Trimmed, never cut. Raises RequestError, which tells the limit."""
    text = _text(given, field).strip()
    if len(text) <= limit and is_blank(text):
        raise RequestError(f"{field} is required", field=field)
    return _within(text, limit, field)


def read_id(given: Any) -> str:
    """Trimmed; "" where it is to be made. Raises RequestError."""
    rule_id = _text("" if given is None else given, "id").strip()
    if rule_id != shown(rule_id):
        raise RequestError("id: holds control or invisible characters", field="id")
    return _within(rule_id, MAX_ID, "id")


def read_tags(given: Any) -> list[str]:
    """Trimmed, each once, in the order given. Raises RequestError."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise RequestError(f"tags: expected a list of strings, got {type(given).__name__}", field="tags")
    tags = [_within(_text(tag, "tags").strip(), MAX_TAG, "tags") for tag in given]
    kept = list(dict.fromkeys(tag for tag in tags if tag))
    if len(kept) > MAX_TAGS:
        raise RequestError(f"tags: {len(kept)} tags; a rule has at most {MAX_TAGS}", field="tags")
    return kept


def id_meant(ids: Iterable[str], given: str) -> str | None:
    """The id that this is, or is the beginning of. Raises RequestError where several begin so."""
    known = set(ids)
    begin = [each for each in known if len(given) >= SHORTEST_ID and each.startswith(given)]
    if given not in known and len(begin) > 1:
        raise RequestError(f"id: {len(begin)} rules have an id that begins with {given!r}; give more of it", field="id")
    return given if given in known else next(iter(begin), None)


def may_begin_an_id(given: str) -> bool:
    """Whether it looks like the beginning of an id that was made here, and is not a whole one."""
    return bool(_BEGINNING.fullmatch(given))


def is_made_id(rule_id: str) -> bool:
    """Whether it has the form of the ids that are made here; callers' own may begin alike and be different rules."""
    return bool(_MADE.fullmatch(rule_id))


def read_time(given: Any, field: str) -> datetime | None:
    """With a zone. Raises RequestError."""
    if given is None:
        return None
    try:
        time = datetime.fromisoformat(given) if isinstance(given, str) else given
        if not isinstance(time, datetime) or time.tzinfo is None:
            raise ValueError
        return time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise RequestError(
            f"{field}: expected a time with a zone, e.g. 2026-01-31T12:00:00Z; got {given!r}"[:300], field=field
        ) from None


def _text(given: Any, field: str) -> str:
    if not isinstance(given, str):
        raise RequestError(f"{field}: expected text, got {type(given).__name__}", field=field)
    return given if given.isascii() else _SURROGATE.sub("\ufffd", given)


def _within(text: str, limit: int, field: str) -> str:
    if len(text) > limit:
        raise RequestError(
            f"{field}: {len(text):,} characters; the limit is {limit:,}, and nothing is cut", field=field
        )
    return text
