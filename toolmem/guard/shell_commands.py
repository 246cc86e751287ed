"""The simple commands of a shell text, each as its words: wrappers, pipes and substitutions opened.

Not a shell: what it cannot take apart is said (`Argv.hides`, `ReadCommands.unread`), never guessed. Linear in the
length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from toolmem.guard.git_commands import GitReader
from toolmem.guard.shell_files import led, listed_by, whole_path, with_home, written
from toolmem.guard.shell_output import output_of
from toolmem.guard.shell_words import UNKNOWN as UNKNOWN
from toolmem.guard.shell_words import Segment, Several, segments
from toolmem.guard.shell_wrappers import (
    filled,
    handed_on,
    looked_through,
    program_of,
    quoted,
    run_as_text,
    with_parameters,
    wrapped,
)
from toolmem.guard.word_lists import split
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass

MOST = 100_000  # characters of a command that are read
_DEEPEST = 8  # `sh -c` within `sh -c`
_MOST_WRAPPERS = 16  # around one command
_DEEPEST_OUTPUT = 3  # substitutions within each other whose output is worked out
_LONGEST_OUTPUT = 2_000  # characters of such a substitution
_LONGEST_PATH = 1_000  # characters of a folder that is gone to
_MOST_LISTED = 20_000  # characters of paths that one command hands to the next
_TOO_LONG = f"longer than {MOST:,} characters"
TOO_DEEP = "too deeply nested"  # what is not read, and why
_READS_COMMANDS = split("ssh at batch")  # what they read, they run
_SHELLS = split("sh bash zsh dash ksh ash fish")
_GLOB = late_pattern(r"[*?]|\[.")

Kind = Literal["runs", "wraps", "fed", "leads"]


@dataclass(frozen=True, slots=True)
class Argv:
    """One simple command.

    `kind`: "wraps" one that only runs another, which stands for itself; "fed" a command with the words that it reads;
    "leads" a command with its paths as they lead from the folder that it runs in. These two stand beside the command.
    """

    words: tuple[str, ...]  # the program as its basename, then its arguments
    hides: bool = False  # it runs text that cannot be read here
    place: str = ""  # the folder that `cd` led to before it
    kind: Kind = "runs"


@dataclass(slots=True)
class ReadCommands:
    """What a shell text runs, and why not all of it was read."""

    commands: list[Argv]
    unread: str = ""


def simple_commands(text: str, directory: Path | None = None) -> list[Argv]:
    """Each simple command of a shell text that is run in `directory`."""
    return read_commands(text, directory).commands


def read_commands(text: str, directory: Path | None = None) -> ReadCommands:
    """Each simple command of a shell text that is run in `directory`, and whether that is all of it."""
    reader = _ShellReader(directory)
    commands = list(reader.commands(text[:MOST]))
    return ReadCommands(commands, _TOO_LONG if len(text) > MOST else reader.unread)


def read_in_steps(text: str, directory: Path | None = None) -> tuple[list[Segment], list[tuple[int, Argv]]]:
    """The segments of a shell text, and each simple command with the number of the segment that it stands in."""
    reader = _ShellReader(directory)
    commands = [(len(reader.steps) - 1, each) for each in reader.commands(text[:MOST])]
    return reader.steps, commands


class _ShellReader:
    """What one shell text says, and what it sets on its way: variables, aliases, files, the working directory."""

    def __init__(self, directory: Path | None) -> None:
        self.git = GitReader()
        self.directory = directory
        self.moved: Path | None = None  # where `cd` has led, against `directory` unless it is absolute
        self.left: list[Path | None] = []  # by `pushd`
        self.variables: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        self.files: dict[str, str] = {}  # what the text itself has written into a file
        self.room = 4 * MOST  # characters that may be read a second time
        self.led_room = 10 * MOST  # characters of paths as they lead
        self.outputs = 0  # substitutions whose output is being worked out
        self.feeds = False  # a command with the words that it reads is being read
        self.unread = ""  # why some of it was not read
        self.steps: list[Segment] = []  # of the text itself, not of those that it runs

    def commands(self, text: str, depth: int = 0) -> Iterator[Argv]:
        if depth > _DEEPEST or len(text) > self.room:
            self.unread = self.unread or (TOO_DEEP if depth > _DEEPEST else _TOO_LONG)
            return
        self.room -= len(text) if depth else 0
        folders: list[Path | None] = []
        given = _Incoming()
        for segment in segments(text, self.variables, self.printed):
            if depth == 0:
                self.steps.append(segment)
            if segment.ends == "(":
                folders.append(self.moved)
            elif segment.ends == ")":
                self.moved = folders.pop() if folders else self.moved
            else:
                given = self._incoming(segment, given)
                for inner in segment.nested:
                    yield from self.commands(inner, depth + 1)
                yield from self._opened(segment.words, depth, given)
                for path in segment.written:
                    yield Argv((">", self._placed(path)))
                self._learn(segment, given)
                given = self._passed_on(segment, given) if segment.ends == "|" else _Incoming()

    def _incoming(self, segment: Segment, given: _Incoming) -> _Incoming:
        text = self._input(segment, given.text)
        told = text is not None and (segment.fed is not None or bool(segment.read))
        listed = self._bounded((text or "").split()) if told else given.listed
        return _Incoming(given.piped, text, listed, segment)

    def _passed_on(self, segment: Segment, given: _Incoming) -> _Incoming:
        """What a command of a pipe hands to the next one."""
        output = output_of(segment.words, given.text)
        listed = output.replace("\0", " ").split() if output is not None else listed_by(segment.words, given.listed)
        return _Incoming(True, output, self._bounded(listed))

    def _bounded(self, listed: Sequence[str]) -> Sequence[str]:
        if sum(map(len, listed)) <= _MOST_LISTED:
            return listed
        self.unread = self.unread or _TOO_LONG
        return ()

    def printed(self, text: str) -> str | None:
        """What a substitution prints, where its text says it: one pipe of commands whose output is known."""
        if len(text) > _LONGEST_OUTPUT or self.outputs >= _DEEPEST_OUTPUT:
            return None
        self.outputs += 1
        try:
            given, ended = None, False
            for segment in segments(text, dict(self.variables), self.printed):
                if ended or segment.ends in "()" or segment.written:
                    return None
                given = output_of(segment.words, self._input(segment, given))
                ended = segment.ends != "|"
            return given
        finally:
            self.outputs -= 1

    def _input(self, segment: Segment, given: str | None) -> str | None:
        if segment.fed is not None:
            return segment.fed
        return self.files.get(segment.read[-1]) if segment.read else given

    def _learn(self, segment: Segment, given: _Incoming) -> None:
        words = segment.words
        if words[:1] in (["cd"], ["pushd"]) and len(words) > 1 and not words[-1].startswith("-"):
            self.left += [self.moved] if words[0] == "pushd" else []
            self._enter(words[-1])
        elif words == ["popd"] and self.left:
            self.moved = self.left.pop()
        elif words[:1] == ["alias"]:
            self.aliases |= dict(word.split("=", 1) for word in words[1:] if "=" in word)
        elif "read" in words[:3] and (given.text or given.listed):
            self._read(words, given)
        if segment.written or "tee" in words[:1]:
            output = output_of(words, given.text)
            for path in [*segment.written, *words[1:]] if output is not None else ():
                self.files[path.removeprefix("./")] = output or ""

    def _read(self, words: Sequence[str], given: _Incoming) -> None:
        """`while read x`: it holds each line that comes in."""
        listed = (given.text or "").replace("\0", " ").split() or given.listed
        text = Several(" ".join(listed))
        for name in words[list(words).index("read") + 1 :]:
            if name.isidentifier() and len(text) <= _LONGEST_OUTPUT:
                self.variables[name] = text

    def _enter(self, folder: str) -> None:
        folder = with_home(folder)
        if UNKNOWN in folder or "$" in folder:
            return
        moved = Path(folder) if self.moved is None or folder.startswith("~") else self.moved / folder
        if len(str(moved)) <= _LONGEST_PATH:
            self.moved = moved

    @property
    def _place(self) -> str:
        return "" if self.moved is None else str(self.moved)

    @property
    def _folder(self) -> str:
        """Where the text has come to; "" where that is not known."""
        place = self._place
        return whole_path(place or ".", str(self.directory)) if self.directory is not None else place

    def _placed(self, path: str) -> str:
        """A path against the folder that the text has gone to."""
        path = with_home(path)
        if path.startswith(("$", UNKNOWN)) or len(path) > _LONGEST_PATH or not path:
            return path
        return whole_path(path, self._folder or None)

    # -- one command

    def _opened(self, words: Sequence[str], depth: int, given: _Incoming) -> Iterator[Argv]:
        """A command with what wraps it; where it runs a text as a command, those of the text too."""
        at, levels, fed = 0, 0, None
        while at < len(words) and (around := wrapped(words, at)) is not None:
            if around.keeps and levels < _MOST_WRAPPERS:
                yield Argv((program_of(words[at]), *words[at + 1 :]), place=self._place, kind="wraps")
            levels += around.keeps
            if around.folder:
                self._enter(around.folder)
            fed = around if around.reads else fed
            at = around.at
        if levels > _MOST_WRAPPERS:
            self.unread = self.unread or TOO_DEEP
        words = words[at:]
        if not words or depth > _DEEPEST:
            self.unread = self.unread or (TOO_DEEP if words else "")
            return
        if fed is not None and (full := filled(words, fed.place, given.listed)) != list(words):
            yield from self._fed(full, depth)
            words = words[: list(words).index(":::")] if ":::" in words else words
        yield from self._one(words, depth, given)

    def _fed(self, words: Sequence[str], depth: int) -> Iterator[Argv]:
        """A command with the words that it reads; what it feeds in turn is not followed."""
        if self.feeds or depth > _DEEPEST:
            return
        self.feeds = True
        for each in self._one(words, depth, _Incoming()) if words else ():
            yield Argv(each.words, each.hides, each.place, "fed")
        self.feeds = False

    def _one(self, words: Sequence[str], depth: int, given: _Incoming) -> Iterator[Argv]:
        program, rest = program_of(words[0]), words[1:]
        if program in self.aliases and depth < _DEEPEST:
            meant = self.aliases.pop(program)  # an alias does not mean itself
            yield from self.commands(" ".join([meant, *map(quoted, rest)]), depth + 1)
            self.aliases[program] = meant
        elif program in _SHELLS:
            yield from self._shell(program, rest, depth, given)
        elif program == "git":
            yield from self._git(rest, depth)
        elif (text := run_as_text(program, rest)) is not None and not (program == "ssh" and given.text is not None):
            hides = "$" in text or "`" in text or UNKNOWN in text
            yield Argv((program, *rest), hides and program == "eval")
            yield from self.commands(text, depth + 1)
        elif program in {".", "source"} or words[0].removeprefix("./") in self.files:
            yield Argv((program, *rest))
            yield from self._script(rest[0] if program in {".", "source"} and rest else words[0], depth, given)
        elif " " in words[0] and not words[0].startswith(("/", ".")):  # `parallel 'rm {}'`
            yield from self.commands(" ".join(words), depth + 1)
        else:
            yield from self._plain(program, rest, given.segment.read)
            for handed in handed_on(program, rest):
                yield from self._handed(program, rest, handed, depth, given)
            if program in _READS_COMMANDS and given.text is not None:
                yield from self.commands(given.text, depth + 1)

    def _handed(
        self, program: str, rest: Sequence[str], handed: Sequence[str], depth: int, given: _Incoming
    ) -> Iterator[Argv]:
        """What a program runs; `find` on each file below where it begins."""
        if not handed:
            return
        if program in {"find", "fd"}:
            start = looked_through(program, rest)
            full = filled(handed, "", start if sum(map(len, start)) <= _MOST_LISTED else ())
            yield from self._fed(full, depth + 1)
        yield from self._opened(handed, depth + 1, given)

    def _plain(self, program: str, rest: Sequence[str], read: Sequence[str]) -> Iterator[Argv]:
        """`read`: the files that its input comes from."""
        hides = program.startswith(("$", "`")) or UNKNOWN in program or is_glob(program)
        yield Argv((program, *rest), hides, self._place)
        yield from self._led(program, [*rest, *read], self._folder, always=bool(read))
        for path in written(program, rest):
            yield Argv((">", self._placed(path)))

    def _led(self, program: str, rest: Sequence[str], folder: str, *, always: bool = False) -> Iterator[Argv]:
        """The command as its paths lead."""
        if self.led_room <= 0:
            self.unread = self.unread or _TOO_LONG
            return
        placed = led(program, rest, folder, moved=self.moved is not None) or (list(rest) if always else None)
        if placed is not None:
            self.led_room -= sum(map(len, placed))
            yield Argv((program, *placed), kind="leads")

    def _git(self, rest: Sequence[str], depth: int) -> Iterator[Argv]:
        directory = self.directory
        if self.moved is not None:
            directory = self.moved if self.directory is None else self.directory / self.moved
        words, text = self.git.read(rest, directory)
        yield Argv(("git", *words), place=self._place)
        yield from self._led("git", words, str(self.git.directory or ""))
        if text:
            yield from self.commands(text, depth + 1)

    def _shell(self, program: str, rest: Sequence[str], depth: int, given: _Incoming) -> Iterator[Argv]:
        """`sh -c TEXT` runs the text; without one, a file, or what comes in."""
        at = next((i for i, word in enumerate(rest[:-1]) if re.fullmatch(r"-[a-z]*c[a-z]*", word)), None)
        text = None if at is None else with_parameters(rest[at + 1], rest[at + 3 :])
        if text is not None:
            hides = "$" in text or "`" in text or UNKNOWN in text
            yield Argv((program, *rest), hides, kind="runs" if hides else "wraps")
            yield from self.commands(text, depth + 1)
            return
        file = next((word for word in rest if not word.startswith(("-", "+"))), None)
        if file is not None:
            yield Argv((program, *rest))
            yield from self._script(file, depth, given)
            return
        yield Argv((program, *rest), hides=given.piped and given.text is None)
        if given.text is not None:
            yield from self.commands(given.text, depth + 1)

    def _script(self, file: str, depth: int, given: _Incoming) -> Iterator[Argv]:
        """A file that is run: one that the text itself has written, or a substitution."""
        text = self.files.get(file.removeprefix("./"))
        if file == UNKNOWN and given.segment.nested:
            text = self.printed(given.segment.nested[-1])
        if text is not None:
            yield from self.commands(text, depth + 1)


_NOTHING = Segment()


@dataclass(frozen=True, slots=True)
class _Incoming:
    """What a command reads."""

    piped: bool = False  # from a command before it
    text: str | None = None  # where that is known
    listed: Sequence[str] = ()  # the words that `xargs` makes of it
    segment: Segment = _NOTHING


def is_glob(program: str) -> bool:
    """Is it a pattern that only the files at hand complete?"""
    return _GLOB.search(program) is not None
