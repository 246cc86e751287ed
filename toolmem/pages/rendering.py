"""A page, or a part of one, from a template. What is put in is escaped, on one line, and shows what cannot be seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import unescape
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from toolmem.pages import numbers
from toolmem.pages.self_contained import POLICY
from toolmem.readers.plain_text import counted, escaped, name_shown, noun

_TAGS = re.compile(r"<[^>]*>")


@dataclass(frozen=True, slots=True)
class Html:
    """A piece of HTML that notebooks show as it is, and a console without its tags."""

    text: str

    def _repr_html_(self) -> str:
        return self.text

    def __html__(self) -> str:  # what a template puts in as it is
        return self.text

    def __repr__(self) -> str:
        return " ".join(unescape(_TAGS.sub(" ", self.text)).split())

    def __add__(self, other: Html) -> Html:
        return Html(self.text + other.text)


def rendered(template: str, **values: Any) -> str:
    """A whole page."""
    return _environment().get_template(template).render(**values)


def part(template: str, macro: str, *values: Any, **named: Any) -> Html:
    """What one macro of a template makes of these values."""
    return Html(str(getattr(_environment().get_template(template).module, macro)(*values, **named)).strip())


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("toolmem.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    written = (numbers.count, numbers.percent, numbers.score, numbers.seconds, numbers.interval)
    made.filters |= {each.__name__: each for each in (*written, cell, clip, counted, headings, marked, noun, style_of)}
    made.globals |= {"policy": Markup(POLICY)}
    return made


def _shown(value: Any) -> Any:
    """A text on one line, with what cannot be seen as its code points; HTML and other values as they are."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return " ".join(escaped(value).splitlines())


def marked(text: str) -> Markup:
    """Escaped HTML of a line; what stands between two backticks is set as code."""
    pieces = str(escape(_shown(text))).split("`")
    if len(pieces) % 2 == 0:  # the last backtick has no partner: it stays what it is
        pieces[-2:] = ["`".join(pieces[-2:])]
    return Markup("".join(f"<code>{piece}</code>" if i % 2 else piece for i, piece in enumerate(pieces)))


def clip(text: str, characters: int) -> str:
    """The text on one line; longer than `characters`, its middle is cut out and counted."""
    line = " ".join(text.split())
    if len(line) <= characters:
        return line
    tail = characters // 4
    head = characters - tail
    return f"{line[:head]} […{len(line) - characters:,} characters…] {line[-tail:]}"


# ---------------------------------------------------------------- columns of a table: [key, title, how, group]

_FIGURES: Mapping[str, Callable[[Any], str]] = {
    "count": numbers.count,
    "percent": numbers.percent,
    "score": numbers.score,
    "seconds": numbers.seconds,
    "row": str,
}


def cell(value: Any, how: str) -> Any:
    """A value as the cell of a column: one of _FIGURES, "name" of a tool, or the text itself."""
    if how in _FIGURES:
        return _FIGURES[how](value)
    if how != "name":
        return value
    return Markup(re.sub(r"([_./:,-])", r"\1<wbr>", str(escape(_shown(name_shown(value))))))


def style_of(how: str) -> str:
    """The CSS class of a column: figures are aligned right."""
    return "number" if how in _FIGURES else how


def headings(columns: Sequence[Sequence[str]]) -> list[tuple[str, int]]:
    """(heading over neighbouring columns, how many they are); none where no column has a heading."""
    groups = [column[3] if len(column) > 3 else "" for column in columns]
    return [(name, len([*run])) for name, run in groupby(groups)] if any(groups) else []
