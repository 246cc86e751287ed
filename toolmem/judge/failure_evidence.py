"""One piece of evidence that a call failed, and the place in the output that holds it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from toolmem.judge import literals

EXCERPT_LENGTH = 120  # characters of the excerpt that an evaluation quotes
MESSAGE_LENGTH = 600  # characters of a message that are kept for its class and its masked form

_SPACE = re.compile(r"\s+")

Path = tuple[str | int, ...]
QUOTED = -1  # a step of a path: into the text that a JSON string stands for


@dataclass(frozen=True, slots=True)
class Evidence:
    """What gives a failure away.

    `path` leads through the decoded output (keys and list positions; a text on the way that is itself JSON is
    decoded); within the value it leads to, or within the whole output where it is empty, the evidence stands at
    the characters `start` to `end`.
    """

    kind: str  # what it is, in words: "error message", "HTTP status", "exit code", ...
    message: str  # the text at the place, at most MESSAGE_LENGTH characters
    path: Path = ()
    start: int = 0
    end: int = 0
    line: int | None = None  # from 1, where the evidence is in a text of several lines
    error_class: str = ""  # where the kind alone tells it (an HTTP status), else read from the message

    @property
    def excerpt(self) -> str:
        """The beginning of the message, as it stands in the output."""
        return self.message[:EXCERPT_LENGTH]

    @property
    def place(self) -> str:
        where = []
        name = path_name(self.path)
        if name:
            where.append(f'output key "{name}"')
        elif self.path:
            where.append("the quoted text")
        if self.line is not None and self.line > 1:
            where.append(f"line {self.line}")
        elif not name:
            where.append(f"characters {self.start}-{self.start + len(self.excerpt)}")
        return ", ".join(where)

    def inside(self, *path: str | int) -> Evidence:
        """The same evidence, seen from outside of the value at `path`."""
        return replace(self, path=(*path, *self.path))

    def quoted(self) -> str:
        """One line for the evaluation: kind, place and excerpt."""
        excerpt = _SPACE.sub(" ", self.excerpt).strip()
        cut = "..." if len(self.message) > EXCERPT_LENGTH else ""
        return f"{self.kind} at {self.place}: '{excerpt}{cut}'"


def in_text(kind: str, text: str, start: int, end: int, error_class: str = "") -> Evidence:
    """Evidence at `text[start:end]`."""
    end = max(start, min(end, start + MESSAGE_LENGTH))
    line = text.count("\n", 0, start) + 1 if start <= 200_000 else None  # counting lines stays cheap
    return Evidence(kind, text[start:end], start=start, end=end, line=line, error_class=error_class)


def of_value(kind: str, value: Any, *path: str | int, error_class: str = "") -> Evidence:
    """Evidence that is the whole value at `path`."""
    text = value_text(value)[:MESSAGE_LENGTH]
    return Evidence(kind, text, path=path, end=len(text), error_class=error_class)


def value_text(value: Any) -> str:
    """A decoded value as text: a string as it is, everything else as compact JSON."""
    return value if isinstance(value, str) else literals.written(value)


def path_name(path: Path) -> str:
    return ".".join(str(step) for step in path if step != QUOTED)


def text_at(output: str, evidence: Evidence) -> str:
    """What stands in `output` at the place of `evidence`. Raises LookupError where there is no such place."""
    value: Any = output
    for step in evidence.path:
        if isinstance(value, str):
            value = literals.read(value).value
        if step != QUOTED:
            value = value[step]
    return value_text(value)[evidence.start : evidence.end]


WINDOW = 6_000  # characters at the beginning and at the end of a long text that are read


def windows(text: str) -> list[tuple[int, str]]:
    """The whole of a text, or of a long one its beginning and its end (from a line's start), each with its offset."""
    if len(text) <= 2 * WINDOW:
        return [(0, text)]
    cut = len(text) - WINDOW
    line = text.find("\n", cut, cut + 2_000)
    tail = cut if line == -1 else line + 1
    return [(0, text[:WINDOW]), (tail, text[tail:])]


def line_end(text: str, start: int) -> int:
    """Where the line of `start` ends (without the line break)."""
    end = text.find("\n", start)
    return len(text.rstrip()) if end == -1 else end
