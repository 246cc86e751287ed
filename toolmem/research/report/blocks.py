"""Pieces of the page as HTML: tables, cards, facts, notes, folded parts. Every text from outside is escaped here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

from toolmem.readers.plain_text import escaped, name_shown


@dataclass(frozen=True, slots=True)
class Html:
    """A piece of HTML that notebooks show as it is. `plain`: what a console shows instead."""

    text: str
    plain: str = "HTML"

    def _repr_html_(self) -> str:
        return self.text

    def __html__(self) -> str:  # what a template puts in as it is
        return self.text

    def __repr__(self) -> str:
        return self.plain

    def __add__(self, other: Html) -> Html:
        return Html(self.text + other.text, f"{self.plain}\n{other.plain}")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. `write` turns a value into text, `html` into HTML that is trusted (it escapes itself)."""

    title: str
    write: Callable[[Any], str] = str
    numeric: bool = False
    html: Callable[[Any], str] | None = None
    group: str = ""  # a heading over neighbouring columns of the same group
    style: str = ""  # CSS classes: "name" (of a tool: bold), "run" (bold, one line), "line" (one line), "text", "code"


def table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, Column]) -> Html:
    """A table of `rows`; the keys of `columns` pick the values. Columns of figures are aligned right."""
    head = "".join(f"<th{_css(column)}>{html_text(column.title)}</th>" for column in columns.values())
    body = "".join(f"<tr>{_cells(row, columns)}</tr>\n" for row in rows)
    top = f"<thead>{_groups(columns)}<tr>{head}</tr></thead>"
    return Html(f'<div class="table"><table>{top}\n<tbody>{body}</tbody></table></div>', "table")


def _groups(columns: Mapping[str, Column]) -> str:
    """A line of headings over the columns, where any column has one."""
    runs = [(name, len(list(members))) for name, members in groupby(column.group for column in columns.values())]
    if not any(name for name, _ in runs):
        return ""
    cells = [
        f'<th colspan="{width}" class="group">{html_text(name)}</th>' if name else f'<td colspan="{width}"></td>'
        for name, width in runs
    ]
    return f'<tr class="groups">{"".join(cells)}</tr>'


def _cells(row: Mapping[str, Any], columns: Mapping[str, Column]) -> str:
    cells = []
    for key, column in columns.items():
        text = column.html(row[key]) if column.html else _cell(column, column.write(row[key]))
        if column.style == "name":
            text = re.sub(r"([_./:,-])", r"\1<wbr>", text)  # where a long name may go on in the next line
        cells.append(f"<td{_css(column)}>{text}</td>")
    return "".join(cells)


def _cell(column: Column, text: str) -> str:
    return html_text(name_shown(text) if column.style == "name" else text)


def html_text(text: str) -> str:
    """Escaped, on one line, with what cannot be seen as its code points."""
    return escape(" ".join(escaped(text).splitlines()))


def _css(column: Column) -> str:
    names = " ".join(filter(None, ["number" if column.numeric else "", column.style]))
    return f' class="{names}"' if names else ""


def cards(figures: Sequence[tuple[str, str, str]]) -> Html:
    """Headline figures: value, what it is, and a note below it."""
    boxes = "".join(
        f'<div class="card"><div class="value">{html_text(value)}</div><div class="what">{html_text(what)}</div>'
        f'<div class="note">{html_text(note)}</div></div>'
        for value, what, note in figures
    )
    return Html(f'<div class="cards">{boxes}</div>', "; ".join(f"{what}: {value}" for value, what, _ in figures))


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Names and values, one pair a line; pairs without a value are left out."""
    shown = [(name, value) for name, value in pairs if value]
    lines = "".join(f"<dt>{html_text(name)}</dt><dd>{html_text(value)}</dd>" for name, value in shown)
    return Html(f'<dl class="facts">{lines}</dl>', "\n".join(f"{name}: {value}" for name, value in shown))


def note(text: str, kind: str = "") -> Html:
    """A paragraph; `code` between backticks is set as code. `kind`: "" or "attention"."""
    css = f' class="{html_text(kind)}"' if kind else ""
    return Html(f"<p{css}>{marked(text)}</p>", text)


def marked(text: str) -> str:
    """Escaped HTML of a line; what stands between two backticks is set as code."""
    pieces = html_text(text).split("`")
    if len(pieces) % 2 == 0:  # the last backtick has no partner: it stays what it is
        pieces[-2:] = ["`".join(pieces[-2:])]
    return "".join(f"<code>{piece}</code>" if i % 2 else piece for i, piece in enumerate(pieces))


def scope(what: str, text: str) -> Html:
    """What a section counts: "recorded" (all recorded calls), "window" (what the store kept) or "runs"."""
    names = {"recorded": "All recorded calls", "window": "Window", "runs": "Summary runs"}
    plain = f"{names[what]}: {text}"
    return Html(f'<p class="scope {what}"><b>{names[what]}</b> {html_text(text)}</p>', plain)


def folded(title: str, body: Html, note: str = "", opened: bool = False) -> Html:
    """A part that opens on demand, or is open at first."""
    aside = f' <span class="aside">{html_text(note)}</span>' if note else ""
    return Html(
        f"<details{' open' if opened else ''}><summary>{html_text(title)}{aside}</summary>{body.text}</details>",
        f"{title} {note}".strip(),
    )


def clip(text: str, characters: int) -> str:
    """The text on one line; longer than `characters`, its middle is cut out and counted."""
    line = " ".join(text.split())
    if len(line) <= characters:
        return line
    tail = characters // 4
    head = characters - tail
    return f"{line[:head]} […{len(line) - characters:,} characters…] {line[-tail:]}"
