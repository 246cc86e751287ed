"""What the name of a parameter says of its value: whom or where, what is written, a command."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from toolmem.guard.word_lists import words
from toolmem.late import late_pattern

_WORDS = late_pattern(r"[a-z]+|[^\W\d_a-z]+")
_TARGET, _CONTENT, _COMMAND, _FILES = (
    words(name) for name in ("target_words", "content_words", "command_words", "file_words")
)
_SAYS_WHOM = late_pattern(r"\b(?:recipient|email address|who(?:m|se)?|destination|url|path|branch|account)\b")


def target_names(arguments: Mapping[str, Any], declared: Mapping[str, Any]) -> frozenset[str]:
    """The parameters whose name, format or description says whom or where."""
    return frozenset(name for name in {*arguments, *declared} if _is_target(name, declared.get(name)))


def names_target(name: str) -> bool:
    """Does a parameter's name say that it holds whom or where?"""
    named = _words_of(name)
    return bool(named & _TARGET) and not named & _CONTENT


def names_content(name: str) -> bool:
    """Does it say that it holds what is written or asked, and no command?"""
    named = _words_of(name)
    return bool(named & _CONTENT) and not named & _COMMAND


def names_command(name: str) -> bool:
    """Does it say that it holds a command line?"""
    return bool(_words_of(name) & _COMMAND)


def names_file(name: str) -> bool:
    """Does it say that it holds a file or a folder?"""
    return bool(_words_of(name) & _FILES)


def _is_target(name: str, schema: Any) -> bool:
    named = _words_of(name)
    if named & _CONTENT:
        return False
    if named & _TARGET:
        return True
    if not isinstance(schema, Mapping):
        return False
    described = str(schema.get("description", ""))[:300].lower()
    return schema.get("format") in {"email", "uri", "hostname", "idn-email"} or _SAYS_WHOM.search(described) is not None


def _words_of(name: str) -> frozenset[str]:
    return _words(name[:200])


@functools.lru_cache(maxsize=2000)  # each value of a list has its parameter's name
def _words(name: str) -> frozenset[str]:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return frozenset(_WORDS.findall(apart.lower()))
