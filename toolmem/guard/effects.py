"""What a call may change, and whether it asks about the outside world: by its declaration, its text or its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from toolmem.guard.handed_commands import lines_handed
from toolmem.guard.http_requests import request_writes
from toolmem.guard.shell_commands import Argv, simple_commands
from toolmem.guard.shell_files import written
from toolmem.guard.tool_classes import scopes_of
from toolmem.guard.word_lists import words
from toolmem.late import late_pattern
from toolmem.readers.sql import kind_of_statement, looks_like_sql

_STATEMENT_ENDS = late_pattern(r";\s*(?=\S)")
_IN_PLACE = late_pattern(r"-[a-zA-Z]*i|--in-place")
_READING_VERBS, _READING_STATEMENTS, _READING_PROGRAMS, _OUTSIDE_PROGRAMS = (
    words(name) for name in ("reading_verbs", "reading_statements", "reading_programs", "outside_programs")
)
_LOOKING_GIT, _LISTING_GIT, _LISTING_WORDS, _NETWORK_GIT = (
    words(name) for name in ("looking_git", "listing_git", "listing_words", "network_git")
)
_WAITING_PROGRAMS, _WAITING_WORDS, _MOVING_PROGRAMS, _FILE_READERS = (
    words(name) for name in ("waiting_programs", "waiting_words", "moving_programs", "file_readers")
)
_FIXES = late_pattern(r"--(?:[a-z]+-)?fix(?:-[a-z]+)*|--write|--in-place|--autofix")
_LOG = late_pattern(r"[^\s/\\]{1,200}\.log(?:\.\d{1,4})?|\S{0,400}/logs?/\S{1,400}")  # which somebody else writes
_OUTSIDE = frozenset(("@fetch", "@web"))
_IN_BACKGROUND = ("run_in_background", "is_background", "background", "isBackground")
_LEFT_MODES = ("async", "background", "detached")
_LEFT_RUNNING = late_pattern(
    r"(?<![&>|\\])&\s*(?:$|[\n;)'\"])|\s&\s|\b(?:nohup|setsid|disown|daemonize)\b"
    r"|\b(?:run|up|start|exec)\b[^\n;|&]{0,200}\s(?:-d|--detach|--daemon)\b"
)
_NAME_WORD = late_pattern(r"[a-z]+|[A-Z][a-z]*")


class CallEffects:
    """One call, whose arguments are read once for all that is asked of it, and only when something is.

    `hints`: the annotations of MCP. `readOnlyHint: true` is believed of a tool whose text says nothing; a command or an
    SQL statement is read itself.
    """

    def __init__(self, tool_name: str, arguments: Any, hints: Mapping[str, Any] | None = None) -> None:
        self.tool_name = tool_name
        self.arguments = arguments
        self._hints = hints or {}

    # -- its texts

    @cached_property
    def _scopes(self) -> tuple[str, ...]:
        return scopes_of(self.tool_name, None, self.arguments)

    @cached_property
    def _texts(self) -> list[str]:
        values = self.arguments.values() if isinstance(self.arguments, Mapping) else (self.arguments,)
        return [value for value in values if isinstance(value, str)]

    @cached_property
    def command(self) -> str | None:
        """The command lines among the arguments, as one text; a tool that runs commands is believed, whatever it sends
        beside them."""
        handed = lines_handed(self.tool_name, self.arguments, shell="@shell" in self._scopes)
        lines = [each.text for each in handed if each.run and each.named]
        return "\n".join(lines) if lines else None

    @cached_property
    def _read(self) -> Sequence[Argv]:
        return () if self.command is None else simple_commands(self.command)

    @cached_property
    def _commands(self) -> Sequence[Argv]:
        return [each for each in self._read if each.words]

    @cached_property
    def statement(self) -> str:
        """The SQL statement among the arguments; empty where there is none. What stands beside a shell's command is
        none: a description that begins with "update" says what the command is for."""
        if "@shell" in self._scopes:
            return ""
        return next((text for text in self._texts if looks_like_sql(text[:4000])), "")

    @cached_property
    def _name_words(self) -> list[str]:
        return [word.lower() for word in _NAME_WORD.findall(self.tool_name.replace("_", " "))]

    def names_text(self) -> str:
        """The text whose names may be known not to exist: an SQL statement, else a command line; empty where none
        is."""
        return self.statement or self.command or ""

    def programs(self) -> tuple[str, ...]:
        """The programs of its command, in order."""
        return tuple(each.words[0] for each in self._commands)

    # -- what it may change

    def may_write(self) -> bool:
        """Might it have changed what a later call sees? An unknown tool might."""
        if self.statement:
            return any(_writes_statement(each) for each in _STATEMENT_ENDS.split(self.statement[:20_000]))
        if self.command is not None:
            return any(map(_writes_command, self._read))
        declared = self._hints.get("readOnlyHint")
        if isinstance(declared, bool):
            return not declared
        if self._hints.get("destructiveHint") is True:
            return True
        if (writes := request_writes(self._name_words, self.arguments)) is not None:
            return writes
        if self._name_words and self._name_words[0] in _READING_VERBS:
            return False
        given = self.arguments
        return not (isinstance(given, Mapping) and given.get("command") in ("view", "read", "list", "show"))

    def may_write_in_part(self) -> bool:
        """May a command that failed have written something: by a part before its last, by a fixer, into a file?"""
        parts = [each for each in self._commands if each.words[0] != ">"]
        own = sum(len(written(each.words[0], each.words[1:])) for each in parts)
        into = [each for each in self._commands if each.words[0] == ">" and _writes_command(each)]
        if len(into) > own or any(map(_writes_command, parts[:-1])):
            return True
        return bool(parts) and any(_FIXES.fullmatch(word) for word in parts[-1].words[1:])

    def edits_files(self) -> bool:
        """Is it of an agent's own tool that writes files? What these may do depends on what the agent has read."""
        return "@write" in self._scopes

    def moves(self) -> bool:
        """Does it leave the shell in another folder, where that is one shell for all commands?"""
        return any(each.words[0] in _MOVING_PROGRAMS for each in self._commands)

    def starts_background(self) -> bool:
        """Does it leave something running, whose work no later call tells?"""
        given = self.arguments
        if isinstance(given, Mapping) and (
            any(given.get(name) is True for name in _IN_BACKGROUND) or given.get("mode") in _LEFT_MODES
        ):
            return True
        return self.command is not None and _LEFT_RUNNING.search(self.command[:20_000]) is not None

    # -- what it asks about

    def asks_outside(self) -> bool:
        """Does it ask about the state of the outside world: a network, processes, the time?"""
        if self._hints.get("openWorldHint") is True:
            return True
        if self.passes_time() or not _OUTSIDE.isdisjoint(self._scopes):
            return True
        return any(_asks_outside(each.words) for each in self._commands) or self._reads_log()

    def _reads_log(self) -> bool:
        """Does it look into a log? What is not there yet may be there a moment later."""
        if self._commands:
            return any(_is_log(word) for each in self._commands if not _writes_command(each) for word in each.words[1:])
        return self.shows_files() and any(map(_is_log, self._texts))

    def passes_time(self) -> bool:
        """Does it wait? What failed before may work when it has."""
        if self._commands or "@shell" in self._scopes:
            return any(each.words[0].lower() in _WAITING_PROGRAMS for each in self._commands)
        delay = self.arguments.get("delay") if isinstance(self.arguments, Mapping) else None
        return not _WAITING_WORDS.isdisjoint(self._name_words) or isinstance(delay, int | float)

    def shows_files(self) -> bool:
        """Does it show its agent what stands in a file?"""
        if self._commands:
            return any(each.words[0] in _FILE_READERS for each in self._commands)
        return "@read" in self._scopes


def may_write(tool_name: str, arguments: Any, annotations: Mapping[str, Any] | None = None) -> bool:
    """`CallEffects.may_write`, of a call of which nothing else is asked; so are those below."""
    return CallEffects(tool_name, arguments, annotations).may_write()


def asks_outside(tool_name: str, arguments: Any, annotations: Mapping[str, Any] | None = None) -> bool:
    return CallEffects(tool_name, arguments, annotations).asks_outside()


def starts_background(arguments: Any, tool_name: str = "") -> bool:
    return CallEffects(tool_name, arguments).starts_background()


def statement_in(arguments: Any, tool_name: str = "") -> str:
    return CallEffects(tool_name, arguments).statement


def names_text(arguments: Any, tool_name: str = "") -> str:
    return CallEffects(tool_name, arguments).names_text()


def command_in(arguments: Any, tool_name: str = "") -> str | None:
    return CallEffects(tool_name, arguments).command


def reads_only(command: Argv) -> bool:
    """Does a simple command only look?"""
    return not _writes_command(command)


def _is_log(path: str) -> bool:
    return _LOG.fullmatch(path.rpartition("/")[2][:300]) is not None or _LOG.fullmatch(path[:800]) is not None


def _asks_outside(words: Sequence[str]) -> bool:
    return words[0] in _OUTSIDE_PROGRAMS or (words[0] == "git" and words[1:2] != () and words[1] in _NETWORK_GIT)


def _writes_statement(text: str) -> bool:
    kind = kind_of_statement(text)
    return bool(kind) and kind not in _READING_STATEMENTS


def _writes_command(command: Argv) -> bool:
    program, *rest = command.words or ("",)
    if command.kind != "runs":
        return False  # what it runs stands for itself
    if program == ">":
        return rest != ["/dev/null"]
    if program not in _READING_PROGRAMS:
        return True
    if program == "git":
        return _writes_git(rest)
    if program in {"sed", "perl", "yq"}:
        return any(_IN_PLACE.fullmatch(word) for word in rest)
    return (program == "find" and "-delete" in rest) or (program == "openssl" and "-out" in rest)


def _writes_git(rest: Sequence[str]) -> bool:
    """What is not known to look only may write: `git remote add`, `git bisect good`."""
    command, *words = rest or ("",)
    if command in _LISTING_GIT:
        return not all(word in _LISTING_WORDS for word in words[:1]) if words else command in {"stash", "bisect"}
    return bool(command) and not command.startswith("-") and command not in _LOOKING_GIT
