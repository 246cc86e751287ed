"""Messages that begin with `always:`, `never:`, `remember:` or 记住：: kept, or refused aloud."""

from __future__ import annotations

import re

from toolmem.text.patterns import late_pattern

_BEGINS = late_pattern(r"\s*(always|never|remember|记住)\s*[:：]\s*(.*)", re.I | re.S)
_SAID_ALREADY = late_pattern(
    r"(?:always|never|do not|don['’]t|no|not|you|must|ask|only)\b|[\u3400-\u9fff]", re.I
)
_PARAGRAPH = late_pattern(r"\n[ \t]*\n")


def keep_aloud(message: str) -> tuple[str, str]:
    """What is to be kept, and the message without its mark; "" where the message has none.

    `never: push to main` says "Never push to main".
    """
    found = _BEGINS.match(message)
    if found is None:
        return "", message
    word, body = found[1].lower(), found[2].strip()
    if word in ("always", "never") and not _SAID_ALREADY.match(body):
        body = f"{word.capitalize()} {body[:1].lower()}{body[1:]}"
    first = " ".join(_PARAGRAPH.split(body, maxsplit=1)[0].split())
    return first or " ", body
