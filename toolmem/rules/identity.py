"""Identity and limits of tool names, rule texts, ids and tags.

An id that nobody gave is derived from the content, so that two processes that put the same rule at
the same moment write the same record.
"""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Iterable
from functools import lru_cache

from toolmem.config.names import hint
from toolmem.errors import RequestError, wrong
from toolmem.models.records import RULE_PREFIX, TOOL_PREFIX
from toolmem.models.rules import ToolMemoryRule
from toolmem.text.display import shown, shown_name
from toolmem.text.patterns import late_pattern
from toolmem.view.tool_classes import CLASSES

SESSION_PREFIX = "session/"  # of the keys of records on one session
MAX_RULE = 2_000  # characters
MAX_TOOL_NAME = 256
MAX_ID = 128
MIN_ID_LENGTH = 6  # characters by which replies name a rule; shorter ids are typed whole
MAX_TAGS = 32
MAX_TAG = 100

_UUID_NAMESPACE = uuid.UUID("6f7b7a4e-52b1-5c1c-9d5e-3f4a8f0c2d11")
_FINAL_MARKS = " .!?,;:…。！？，；：、"
SURROGATE = late_pattern("[\ud800-\udfff]")  # cannot be stored as UTF-8


@lru_cache(maxsize=4_000)
def folded_name(tool_name: str) -> str:
    """Return a tool's name in lower case, but keep the Kelvin sign, which lower() makes a k."""
    name = tool_name.strip()
    if name.isascii():
        return name.lower()
    return "\u212a".join(part.lower() for part in name.split("\u212a"))


def namespace_of(tool_name: str) -> str:
    return TOOL_PREFIX + folded_name(tool_name)


def code_of(rule: ToolMemoryRule) -> str:
    """Return the code of a rule, as in `lift CODE`."""
    return rule.id[:MIN_ID_LENGTH]


def rule_key(rule_id: str) -> str:
    return RULE_PREFIX + rule_id


def session_key(session: str) -> str:
    """Return the key under which a record on one session is stored."""
    return f"{SESSION_PREFIX}{session}"[:500]


def text_key(text: str) -> str:
    """Normalize a text for comparison: case, white space and final punctuation do not count."""
    folded = shown(unicodedata.normalize("NFC", text)).casefold()
    return folded.rstrip(_FINAL_MARKS) or folded


def derived_id(*parts: str) -> str:
    """Make a UUID that depends only on these parts."""
    return str(uuid.uuid5(_UUID_NAMESPACE, "\0".join(parts)))


def _trimmed(text: str) -> str:
    return SURROGATE.sub("\ufffd", text).strip()


def read_tool_name(given: str) -> str:
    """Trim a tool's name. Raises RequestError if it is empty or has over 256 characters."""
    return read_text(given, "tool_name", MAX_TOOL_NAME)


def read_scope(given: str) -> str:
    """Trim the name of a tool or class of tools. Raises RequestError if there is no such class."""
    name = read_tool_name(given)
    if name[0] == "@" and folded_name(name) not in (*CLASSES, "@edit", "@create"):
        raise wrong("tool_name", f"there is no class {shown_name(name)} ({hint(name, CLASSES)})")
    return name


def read_text(given: str, field: str, limit: int = MAX_RULE) -> str:
    """Trim a text. Raises RequestError if it is empty or has over `limit` characters."""
    text = _trimmed(given)
    if len(text) > limit:
        raise wrong(field, f"{len(text):,} characters; the limit is {limit:,}, and nothing is cut")
    if not shown(text):
        raise RequestError(f"{field} is required", field)
    return text


def read_id(given: str) -> str:
    """Trim an id; it may be "". Raises RequestError if over 128 characters or partly invisible."""
    rule_id = _trimmed(given)
    if rule_id != shown(rule_id) or len(rule_id) > MAX_ID:
        raise RequestError(f"id: expected at most {MAX_ID} characters that can be seen", "id")
    return rule_id


def read_tags(given: Iterable[str]) -> list[str]:
    """Trim tags; drop empty and repeated ones. Raises RequestError for too many or long ones."""
    tags = list(dict.fromkeys(filter(None, map(_trimmed, given))))
    if len(tags) > MAX_TAGS or any(len(tag) > MAX_TAG for tag in tags):
        raise wrong("tags", f"expected at most {MAX_TAGS} of at most {MAX_TAG} characters")
    return tags


def find_rule(rules: Iterable[ToolMemoryRule], start: str) -> ToolMemoryRule:
    """Find the rule whose id begins with `start`. Raises RequestError if none does, or several."""
    found = [rule for rule in rules if start and rule.id.startswith(start)]
    if len(found) == 1:
        return found[0]
    problem = f"{len(found)} rules begin so: give more of it" if found else "no rule begins so"
    raise RequestError(f"id: {start!r}: {problem} (`toolmem rules list`)", "id")
