"""Paths and programs that are known not to exist in a context, as the errors of a shell told.

Paths count where they are absolute: any other one hangs on a working folder that a call does not tell. A command that
may have written anything wipes all of it, and one that worked with a name contradicts the error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from toolmem.guard.effects import reads_only
from toolmem.guard.shell_commands import Argv, simple_commands
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, field

_LONGEST = 20_000  # characters of a command line, and of an output
_LONGEST_NAME = 256
_MOST_ERRORS = 20  # that one output tells
_NO_PATH = (
    late_pattern(r"['‘`\"]?(/[^'’\n\":]{1,256}?)['’\"]?: No such file or directory"),
    late_pattern(r"No such file or directory: '(/[^'\n]{1,256})'"),
)
_NO_PROGRAM = (
    late_pattern(r"(?:^|[:\s])([\w.+-]{1,64}): (?:command )?not found\s*$", re.MULTILINE),
    late_pattern(r"command not found: ([\w.+-]{1,64})"),
)
# A line that asks first whether something is there, or goes on where it is not.
_LOOKS_FIRST = late_pattern(r"(?:^|[\s;&|(])(?:\[{1,2}|test|if|while|command -v|which|type)\s|\|\|")


@dataclass(slots=True)
class ShellNames:
    """What is known not to be there."""

    no_path: Counter[str] = field(default_factory=Counter)
    no_program: Counter[str] = field(default_factory=Counter)

    def learn(self, line: str, output: str, *, failed: bool) -> None:
        """What a command line and its answer tell."""
        commands = _run(line)
        programs = {each.words[0] for each in commands if each.words}
        told = output[:_LONGEST] if failed else ""
        absent = [name for pattern in _NO_PROGRAM for name in pattern.findall(told)[:_MOST_ERRORS]]
        ran = [each for each in commands if each.words and each.words[0] not in absent]
        if any(each.hides or not reads_only(each) for each in ran):
            self.no_path.clear()
            self.no_program.clear()
        elif not failed:
            for path in _paths(commands):
                self.no_path.pop(path, None)
            for program in programs:
                self.no_program.pop(program, None)
        named = _paths(commands)
        for pattern in _NO_PATH:
            self.no_path.update(path for path in pattern.findall(told)[:_MOST_ERRORS] if path.rstrip("/") in named)
        self.no_program.update(name for name in absent if name in programs)

    def against(self, line: str) -> list[tuple[str, str, int]]:
        """(kind, name, how many errors said so) of what a line names that is known not to exist."""
        commands = _run(line)
        if any(each.hides for each in commands) or not (self.no_path or self.no_program) or _LOOKS_FIRST.search(line):
            return []
        first = next((each.words[0] for each in commands if each.words), "")
        found = [("program", first, self.no_program[first])] if first in self.no_program else []
        if all(reads_only(each) for each in commands):
            found += [("path", path, self.no_path[path]) for path in sorted(_paths(commands)) if path in self.no_path]
        return found

    def bound(self, most: int) -> None:
        """Forget the oldest beyond the most that is kept."""
        for held in (self.no_path, self.no_program):
            for name in list(held)[: max(0, len(held) - most)]:
                del held[name]

    def as_json(self) -> dict[str, Any]:
        return {"no_path": dict(self.no_path), "no_program": dict(self.no_program)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ShellNames:
        """Raises KeyError, TypeError or ValueError where it is none."""
        return cls(*(Counter({str(k): int(n) for k, n in value[name].items()}) for name in ("no_path", "no_program")))


def _run(line: str) -> list[Argv]:
    """What a line runs, without what only wraps it."""
    return [each for each in simple_commands(line[:_LONGEST]) if each.kind == "runs"]


def _paths(commands: list[Argv]) -> set[str]:
    """The absolute paths that commands name as words of their own."""
    words = {word.rstrip("/") for each in commands for word in each.words[1:] if word.startswith("/")}
    return {word for word in words if word and len(word) <= _LONGEST_NAME and not set(word) & set("*?[{$")}
