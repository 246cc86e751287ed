"""Show untrusted text as one safe line."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, tzinfo

from toolmem.text.forms import INVISIBLE
from toolmem.text.patterns import late_pattern

_HIDDEN = late_pattern(
    f"[{INVISIBLE}\x00-\x1f\x7f-\x9f\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u2028\u2029\u2800"
    "\ud800-\udfff\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U00016fe4"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a]+"
)
_OPENS = late_pattern(
    r"[#＃﹟>]|[-*+•‣◦·∙⁃‐‑‒–—―−](?:\s|$)|[-=_*]{2,}\s*$|`{3}|~{3}|<[A-Za-z/!?]|[*_]+\s*[\[［【〔]"
)
_MARKS = late_pattern(r"^[#＃﹟>\s]+")
_MAX_LINE = 2_000  # characters of one line of guidance or of a prompt


def shown(text: str) -> str:
    """Write a text on one line, without invisible characters."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip(" ")
    return " ".join(_HIDDEN.sub("", " ".join(text.split())).split())


def plain(text: str, limit: int = 500) -> str:
    """Write a text as `shown` does, cut to `limit` characters; "…" marks a cut."""
    text = shown(text)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def visible(text: str, limit: int = 500) -> str:
    """Write a text as `plain` does, but with escapes for line breaks and invisible characters."""
    return plain(_HIDDEN.sub(lambda run: run[0].encode("unicode_escape").decode(), text), limit)


def shown_name(name: str, limit: int = 200) -> str:
    """Write a name as `visible` does, with "'" for "`", so that backticks can be put around it."""
    return visible(name.replace("`", "'"), limit)


def counted(count: int, noun: str) -> str:
    """Write a number with its noun: 1 call, 1,200 calls, 2 memories."""
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def marked(text: str) -> str:
    """Replace each invisible character but line ends by its code point: `<U+200B>`."""
    return "\n".join(
        _HIDDEN.sub(lambda run: "".join(f"<U+{ord(c):04X}>" for c in run[0]), line)
        for line in text.expandtabs(4).splitlines()
    )


def shown_time(at: datetime, zone: tzinfo | None, now: datetime) -> str:
    """Write a time as "Fri 28 Nov 14:05", midnight as 24:00. A year other than now's is added."""
    local = at.astimezone(zone)
    is_midnight = (local.hour, local.minute) == (0, 0)
    day = local - timedelta(minutes=1) if is_midnight else local
    year = "" if day.year == now.astimezone(zone).year else f" {day.year}"
    return f"{day:%a} {day.day} {day:%b}{year} {'24:00' if is_midnight else f'{local:%H:%M}'}"


def zone_name(zone: tzinfo | None, at: datetime) -> str:
    """Return the name of a time zone at a time. If `zone` is None, it is the machine's zone."""
    found = str(getattr(zone, "key", ""))
    if zone is None:
        path = os.environ.get("TZ", "").lstrip(":") or os.path.realpath("/etc/localtime")
        name = path.partition("zoneinfo/")[2] or path
        found = name if name.replace("/", "").replace("_", "").isalpha() and name[0] != "/" else ""
    return found or at.astimezone(zone).tzname() or "UTC"


def bounded(text: str, limit: int) -> str:
    """Cut a text to about `limit` characters: its beginning, a note on the cut, its end."""
    if len(text) <= limit:
        return text
    half = limit // 2
    left_out = f"\n[{len(text) - 2 * half:,} characters left out by toolmem]\n"
    return text[:half] + left_out + text[-half:]


def plain_line(text: str) -> str:
    """Write a text on one line, with a backslash before a heading, bullet, quote or fence."""
    text = shown(text)
    return plain("\\" + text if _OPENS.match(text) else text, _MAX_LINE)


def plain_lines(text: str, limit: int) -> str:
    """Write lines for a prompt. They begin no Markdown heading, quote or fence; bullets stay.

    `limit`: how many characters of `text` are read.
    """
    lines = []
    for line in text[:limit].splitlines():
        bare = _MARKS.sub("", shown(line))
        is_bullet = bare[:2] in ("- ", "* ")
        lines.append(f"- {plain_line(bare[2:])}" if is_bullet else plain_line(bare))
    return "\n".join(filter(None, lines))
