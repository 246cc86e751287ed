"""What stands in a call, as agents of other conversations see it: one line, bounded, free text and addresses by form.

And of two values, whether the second may be told as what worked instead of the first, or is another entity's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from toolmem.guidance.counted import values
from toolmem.guidance.counted.user_values import named_as_own, same_in_another_form
from toolmem.models import ToolCallResult
from toolmem.readers.error_messages import STATUS, telling_line
from toolmem.readers.plain_text import plain

MAX_SHOWN = 160  # characters of what is shown of one call: its arguments, its error or its output
MAX_VALUE = 60  # of one value
MAX_READ = 2_000  # of a text that is looked at
MAX_ITEMS = 6  # of a list, and names of an object inside of the arguments
MAX_DEPTH = 3
PROSE_WORDS = 10  # in a row, of a value that is text for people
_FREE = frozenset({"body", "content", "prompt", "message", "html", "instructions", "description", "comment", "text"})
_PLACES = frozenset({"address", "street", "zip", "zipcode", "postcode", "surname", "firstname", "lastname"})
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_PHONE = re.compile(r"\+\d[\d ()/-]{6,18}\d")
_WORDS = re.compile(r"[A-Za-z]+")
_RUN = re.compile(r"[^\W\d_]+|\d+")
_AGAIN = re.compile(r"(Aa|A|a|#)(?: \1)+")
# Tools whose answers are written by anybody: pages, searches of the web, mail.
_PAGES = frozenset({"browse", "browser", "browsing", "crawl", "scrape", "web", "webpage", "website", "fetch", "url"})
_MAIL = frozenset({"mail", "mails", "email", "emails", "gmail", "inbox"})
_READING = frozenset({"read", "get", "list", "search", "find", "fetch", "open", "check"})


def reads_strangers(call: ToolCallResult) -> bool:
    """Whether the tool fetches pages, reads mail or searches the web: what it answers, nobody vouches for."""
    words = {word.lower() for word in _WORDS.findall(values.spaced(call.tool_name))}
    return bool(words & _PAGES) or (bool(words & _MAIL) and bool(words & _READING | words & {"inbox"}))


def message_of(call: ToolCallResult) -> str:
    """What a failed call answered, as it was: its telling line. Of strangers' text a structured one, or a status."""
    if not reads_strangers(call) or call.output.lstrip()[:1] in {"{", "["}:
        return one_line(telling_line(call.output))
    status = STATUS.search(call.output[:MAX_READ])
    return ": ".join(part for part in (call.error_class, one_line(status.group()) if status else "") if part)


def output_of(call: ToolCallResult, limit: int = MAX_SHOWN) -> str:
    return "" if reads_strangers(call) else one_line(call.output[:MAX_READ], limit)


def one_line(text: str, limit: int = MAX_SHOWN) -> str:
    """A text in one line, without people's addresses."""
    return plain(_without_addresses(" ".join(text[:MAX_READ].split())), limit)


def arguments(given: Mapping[str, Any], limit: int = MAX_SHOWN) -> str:
    """Arguments as JSON; where they are too long, the longest values are cut first."""
    for each in (MAX_VALUE, MAX_VALUE // 2, MAX_VALUE // 5):
        found = {plain(str(name), MAX_VALUE // 2): value_shown(str(name), value, each) for name, value in given.items()}
        text = json.dumps(found, ensure_ascii=False)
        if len(text) <= limit:
            break
    return plain(text, limit)


def value_shown(name: str, value: Any, limit: int = MAX_VALUE, depth: int = MAX_DEPTH) -> Any:
    """A value as it may be shown: free text and people's addresses by form, long ones cut."""
    if isinstance(value, dict):
        items = list(value.items())[:MAX_ITEMS] if depth else []
        return {plain(str(key), 40): value_shown(str(key), each, limit, depth - 1) for key, each in items}
    if isinstance(value, list):
        return [value_shown(name, each, limit, depth - 1) for each in value[:MAX_ITEMS]] if depth else []
    if isinstance(value, str):
        return _text_shown(name, value, limit)
    return value if value is None or isinstance(value, bool) or len(str(value)) <= limit else str(value)[:limit]


def _text_shown(name: str, text: str, limit: int) -> str:
    words = {word.lower() for word in _WORDS.findall(values.spaced(name.rpartition(".")[2]))}
    several = text[:MAX_READ].split(maxsplit=PROSE_WORDS)
    if words & _PLACES and text:
        return "<address>"
    prose = len(several) > PROSE_WORDS and sum(map(str.isalpha, several[:PROSE_WORDS])) >= PROSE_WORDS - 2
    if (words & _FREE and len(several) > 2) or (prose and text[:1].isupper()):
        return f"<text, {len(text):,} characters>"
    return one_line(text, limit)


def _without_addresses(text: str) -> str:
    if "@" in text:
        text = _ADDRESS.sub("<e-mail>", text)
    return _PHONE.sub("<phone>", text) if "+" in text else text


# ---------------------------------------------------------------- whose value is it


def may_be_told(path: str, before: Any, after: Any, message: str) -> bool:
    """Whether `after` is `before` set right, and no other entity in its place.

    It is where both say the same in another form, where the error names the new one, or where the form differs;
    free words must share one of theirs.
    """
    if isinstance(before, str) and isinstance(after, str) and value_shown(path, before) == value_shown(path, after):
        return False  # as they may be shown they are alike
    if isinstance(before, bool | None) or isinstance(after, bool | None) or same_in_another_form(before, after):
        return True
    if isinstance(after, str | int | float) and values.is_written_in(message, str(after)[:MAX_VALUE]):
        return True
    a, b = values.number_of(before), values.number_of(after)
    if a is not None and b is not None:
        return _digits(a) == _digits(b) or int(a) == b
    first, second = (text_of(side) for side in (before, after))
    if form_of(first) == form_of(second):
        return False
    if any(" " in side.strip() for side in (first, second)) or isinstance(after, dict | list):
        return not _tokens(first).isdisjoint(_tokens(second))
    return True


def may_be_added(path: str, after: Any, message: str) -> bool:
    """Whether the value of a parameter that was added may be told: not the user's own."""
    return not named_as_own(path) or values.is_written_in(message, str(after)[:MAX_VALUE])


def text_of(value: Any) -> str:
    return (value if isinstance(value, str) else values.canonical({"": value})[5:-1])[:MAX_READ]


def form_of(text: str) -> str:
    """How a text is written: `SKU-2001` and `SKU-77` are both `A-#`. Words behind one another count as one."""
    return _AGAIN.sub(r"\1", _RUN.sub(_kind_of_run, text[:400]))


def _kind_of_run(found: re.Match[str]) -> str:
    run = found.group()
    if run.isdigit():
        return "#"
    return "A" if run.isupper() else "a" if run.islower() else "Aa"


def _tokens(text: str) -> set[str]:
    return {run.lower() for run in _RUN.findall(text[:400]) if len(run) > 1}


def _digits(number: float) -> str:
    return f"{number:.10g}".replace(".", "").lstrip("-0").rstrip("0")
