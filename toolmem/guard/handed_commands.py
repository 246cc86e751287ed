"""The command lines that a call hands over: whole, word by word, as a program and its arguments, or as steps."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from toolmem.guard.parameter_names import names_command, names_content, names_target
from toolmem.guard.tool_classes import scopes_of
from toolmem.guard.word_lists import split
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass
from toolmem.readers.shell import looks_like_command

MOST_NESTED = 200  # levels of the arguments that are looked into
_PROGRAMS = split("program executable binary exe file")  # hold one only where its arguments stand beside it
_ARGS = ("args", "arguments", "argv", "params", "parameters")
_STEPS = split("run exec execute")  # hold a line where they are one of several steps, or look like one
_RUNNING = split("run exec execute shell terminal console ssh cmd command commands process spawn sandbox container job")
_TYPED = split("chars keys text line lines stdin")  # what is typed into a shell that is open
_MEANT = split("command cmd commands bash script argv")  # with no other argument beside them
_WORD = late_pattern(r"[a-z]+")
_WRAPPED = late_pattern(r"(?:[A-Za-z_]\w*=\S*|sudo|doas)\s+\S")


@dataclass(frozen=True, slots=True)
class HandedLine:
    """One command line."""

    text: str  # as a shell would be told it
    named: bool  # its parameter says that it is one, or it stands alone; else it only looks like one
    run: bool  # nothing but a command can be meant


def handed_lines(tool_name: str, arguments: Any, parameters: Mapping[str, Any] | None = None) -> tuple[HandedLine, ...]:
    """The command lines among the arguments of a call; a tool of the class `@shell` is believed to run them.

    `parameters`: the JSON schema that the tool declares. Linear in the size of the arguments; what is nested deeper
    than 200 levels is not looked at.
    """
    return lines_handed(tool_name, arguments, shell="@shell" in scopes_of(tool_name, parameters, arguments))


def lines_handed(tool_name: str, arguments: Any, *, shell: bool) -> tuple[HandedLine, ...]:
    """As `handed_lines`, of a tool of which it is known whether it is of the class `@shell`."""
    if not isinstance(arguments, Mapping):
        return ()
    may_run = bool(_RUNNING & set(_WORD.findall(tool_name.lower())))
    found: list[HandedLine] = []
    waiting: list[tuple[Any, int]] = [(arguments, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, dict | Mapping) and (shell or may_run or depth == 0 or any(map(_may_hold, value))):
            found += _HandedReader(
                value, shell, may_run, nested=depth > 0, alone=depth == 0 and len(value) == 1
            ).lines()
        if depth < MOST_NESTED and isinstance(value, Mapping | list | tuple):
            inside = value.values() if isinstance(value, Mapping) else value
            waiting.extend((each, depth + 1) for each in inside if not isinstance(each, str | int | float | None))
    return tuple(found)


@functools.lru_cache(maxsize=1000)  # each object of a list has the same names
def _may_hold(key: Any) -> bool:
    return str(key).lower() in _STEPS | {"argv"} or _names_program(key)


def looks_run(text: str) -> bool:
    """Does it begin as a command line does: with a program that is known, `sudo`, or a variable that is set?"""
    start = text[:200]
    return looks_like_command(start) or _WRAPPED.match(start) is not None


class _HandedReader:
    """Reads one object of the arguments."""

    def __init__(self, given: Mapping[Any, Any], shell: bool, may_run: bool, *, nested: bool, alone: bool) -> None:
        self.given = given
        self.shell = shell
        self.guesses = alone or may_run  # nobody says so, but the value may be a command
        self.nested = nested
        self.alone = alone
        values = ((key, given[key]) for key in _ARGS if key in given)
        self.args = next((each for each in values if _is_words(each[1]) or isinstance(each[1], str)), None)

    def lines(self) -> Iterator[HandedLine]:
        for key, value in self.given.items():
            if isinstance(value, str | list | tuple) and value:
                yield from self._of(str(key), value)

    def _of(self, key: str, value: Any) -> Iterator[HandedLine]:
        name = key.lower()
        if self.args is not None and name == self.args[0]:
            if (name == "argv" or self.shell) and _is_words(value) and not any(map(_names_program, self.given)):
                yield self._line(shlex.join(value), name)
        elif self.args is not None and isinstance(value, str) and _names_program(key):
            args = self.args[1]
            yield self._line(f"{value} {args if isinstance(args, str) else shlex.join(args)}", name)
        elif names_command(key) or (self.shell and name in _TYPED) or name in _STEPS:
            yield from self._lines_in(name, value)
        elif self.guesses and not names_content(key) and not names_target(key):
            lines = [value] if isinstance(value, str) else value if _is_words(value) else ()
            yield from (HandedLine(each, self.alone, self.shell) for each in lines if looks_run(each))

    def _line(self, text: str, name: str) -> HandedLine:
        meant = self.shell or (self.alone and name in _MEANT) or looks_run(text)
        return HandedLine(text, name not in _STEPS or self.nested or meant, meant)

    def _lines_in(self, name: str, value: Any) -> Iterator[HandedLine]:
        """A line, the words of one, or several lines."""
        if isinstance(value, str):
            lines = [value]
        elif all(map(_is_words, value)):
            lines = [shlex.join(each) for each in value]
        elif not _is_words(value):
            lines = []
        else:
            several = name.endswith("s") or any(mark in value[0] for mark in " \t\n;|&")
            lines = list(value) if several else []
            if not any(" " in each for each in value) or not several:
                lines.append(shlex.join(value))
        told = (self._line(each, name) for each in lines if each)
        yield from (each for each in told if each.named)


def _names_program(key: Any) -> bool:
    return str(key).lower() in _PROGRAMS or names_command(str(key))


def _is_words(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(each, str) for each in value)
