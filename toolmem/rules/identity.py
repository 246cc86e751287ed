"""What makes two tools, two sentences or two rules the same; what names and texts may be.

Ids that nobody gave are made from what they stand for, so that two processes that put the same rule
at the same moment meet in one record.
"""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Iterable
from functools import lru_cache

from toolmem.errors import RequestError
from toolmem.text.display import shown
from toolmem.text.patterns import late_pattern

TOOL_PREFIX = "tool-"  # namespaces of tools
RULE_PREFIX = "rule/"  # keys of rules inside them
SESSION_RULES = ".session-rules"  # the namespace of rules that hold in one session

MAX_RULE = 2_000  # characters
MAX_TOOL_NAME = 256
MAX_ID = 128
MAX_TAGS = 32
MAX_TAG = 100

_OWN = uuid.UUID("6f7b7a4e-52b1-5c1c-9d5e-3f4a8f0c2d11")  # whose version-5 ids these are
_FINAL = " .!?,;:…。！？，；：、"
SURROGATE = late_pattern("[\ud800-\udfff]")


@lru_cache(maxsize=4_000)
def folded_name(tool_name: str) -> str:
    """The same for every casing of a tool's name. The Kelvin sign is no way to write a k."""
    name = tool_name.strip()
    if name.isascii():
        return name.lower()
    return "\u212a".join(part.lower() for part in name.split("\u212a"))


def namespace_of(tool_name: str) -> str:
    """The namespace of a tool."""
    return TOOL_PREFIX + folded_name(tool_name)


def rule_key(rule_id: str) -> str:
    """The key of a rule inside the namespace of its tool."""
    return RULE_PREFIX + rule_id


def same_text(text: str) -> str:
    """Equal for texts that differ in case, white space and final punctuation only."""
    folded = shown(unicodedata.normalize("NFC", text)).casefold()
    return folded.rstrip(_FINAL) or folded


def made_id(*parts: str) -> str:
    """The id of what these parts stand for."""
    return str(uuid.uuid5(_OWN, "\0".join(parts)))


def read_tool_name(given: str) -> str:
    """Trimmed. Raises RequestError."""
    return read_text(given, "tool_name", MAX_TOOL_NAME)


def read_text(given: str, field: str, limit: int = MAX_RULE) -> str:
    """Trimmed, never cut. Raises RequestError, which tells the limit."""
    text = SURROGATE.sub("\ufffd", given).strip()
    if len(text) > limit:
        problem = f"{len(text):,} characters; the limit is {limit:,}, and nothing is cut"
        raise RequestError(f"{field}: {problem}", field)
    if not shown(text):
        raise RequestError(f"{field} is required", field)
    return text


def read_id(given: str) -> str:
    """Trimmed; "" where it is to be made. Raises RequestError."""
    rule_id = SURROGATE.sub("\ufffd", given).strip()
    if rule_id != shown(rule_id) or len(rule_id) > MAX_ID:
        problem = f"expected at most {MAX_ID} characters that can be seen"
        raise RequestError(f"id: {problem}", "id")
    return rule_id


def read_tags(given: Iterable[str]) -> list[str]:
    """Trimmed, each once, in the order given. Raises RequestError."""
    trimmed = (SURROGATE.sub("\ufffd", each).strip() for each in given)
    tags = list(dict.fromkeys(filter(None, trimmed)))
    if len(tags) > MAX_TAGS or any(len(tag) > MAX_TAG for tag in tags):
        problem = f"expected at most {MAX_TAGS} of at most {MAX_TAG} characters"
        raise RequestError(f"tags: {problem}", "tags")
    return tags
