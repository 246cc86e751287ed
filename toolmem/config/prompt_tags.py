"""The tags around the values of a prompt, with digits that no value holds: no value can end its own tag."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable
from functools import cache

_TAG = re.compile(r"(</?)([A-Za-z_][\w.:-]{0,60})((?:\s[^<>\0]{0,200})?>)")
_DIGITS = 3  # each costs a token, twice for each value


@cache
def tags_around_values(lines: tuple[tuple[str, ...], ...]) -> frozenset[str]:
    """Names of the tags of a template between whose opening and closing a placeholder stands."""
    text = "\n".join("\0".join(line[::2]) for line in lines)
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for tag in _TAG.finditer(text):
        if tag[1] == "<":
            first.setdefault(tag[2], tag.end())
        else:
            last[tag[2]] = tag.start()
    return frozenset(name for name in first.keys() & last.keys() if "\0" in text[first[name] : last[name]])


class Tags:
    """The tags of one prompt: `<output>` of the template is `<output482>` in it, wherever it stands.

    The first digits are those of the template, so that prompts go on to begin alike and a prefix cache serves them.
    Where a value holds a tag with them, others are drawn from a hash of the values, more and more of them: the same
    prompt is the same text.
    """

    def __init__(self, names: frozenset[str], values: Iterable[str]) -> None:
        self._names = names
        self._digits = _drawn(names, "\0".join(values).casefold()) if names else ""

    def numbered(self, literal: str) -> str:
        """Literal text of the template with its tags as the prompt has them."""
        return _TAG.sub(self._with_digits, literal)

    def _with_digits(self, tag: re.Match[str]) -> str:
        return f"{tag[1]}{tag[2]}{self._digits}{tag[3]}" if tag[2] in self._names else tag[0]


def _drawn(names: frozenset[str], values: str) -> str:
    digest = hashlib.sha256("\0".join(sorted(names)).encode())
    for length in itertools.count(_DIGITS):
        digits = str(int(digest.hexdigest(), 16))[-length:]
        digest.update(b"\0" + values.encode("utf-8", "surrogatepass"))
        if not any(f"{name}{digits}".casefold() in values for name in names):
            return digits
    raise AssertionError("a text holds finitely many numbers")
