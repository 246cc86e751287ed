"""What makes two tools, two sentences or two rules the same; names, ids and limits.

Ids that nobody gave are made from what they stand for (RFC 9562, version 5), so that writers in several processes who
put the same rule at the same moment meet in one record.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from toolmem.config.nearest_names import nearest
from toolmem.errors import RequestError
from toolmem.late import late_pattern
from toolmem.readers.normal_form import normal_form
from toolmem.readers.plain_text import shown

UNSCOPED = "__unscoped__"  # the tool of a rule that was said when there was no tool
TOOL_PREFIX = "tool-"  # namespaces of tools
RULE_PREFIX = "rule/"  # keys of rules inside them
ASKED = ("guard-asked", "tests")  # namespace and key of the tests of earlier calls that rules ask for

MAX_RULE = 2000  # characters
MAX_TOOL_NAME = 256
MAX_ID = 128
MAX_TAGS = 32
MAX_TAG = 100

_OWN = "6f7b7a4e-52b1-5c1c-9d5e-3f4a8f0c2d11"  # whose version-5 ids these are
_FINAL = " .!?,;:…。！？，；：、"
_SURROGATE = late_pattern("[\ud800-\udfff]")


def folded_name(tool_name: str) -> str:
    """The same for every casing of a tool's name. The Kelvin sign is no way to write a k."""
    name = tool_name.strip()
    return name.lower() if name.isascii() else "\u212a".join(part.lower() for part in name.split("\u212a"))


def namespace_of(tool_name: str) -> str:
    """The namespace of a tool, the same for every casing of its name."""
    return TOOL_PREFIX + folded_name(tool_name)


def tool_of(namespace: str) -> str:
    """The tool's name in lower case."""
    return namespace.removeprefix(TOOL_PREFIX)


def rule_key(rule_id: str) -> str:
    """The key of the rule inside the namespace of its tool."""
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


def read_choice(given: Any, field: str, allowed: tuple[str, ...]) -> Any:
    """One of `allowed`, or None. Raises RequestError with the nearest name."""
    if given is None or (isinstance(given, str) and given in allowed):
        return given
    meant = nearest(given, allowed) if isinstance(given, str) else None
    near = "" if meant is None else f" (did you mean {meant!r}?)"
    raise RequestError(f"{field}: expected one of {', '.join(allowed)}; got {given!r}{near}"[:300], field=field)


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
