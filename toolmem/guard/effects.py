"""What a call may change, and whether it asks about the outside world: by its declaration, its text or its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolmem.guard.shell_commands import Argv, is_command, simple_commands
from toolmem.guard.word_lists import EFFECTS, words
from toolmem.late import late_pattern
from toolmem.readers.sql import looks_like_sql, read_statement

_STATEMENT_ENDS = late_pattern(r";\s*(?=\S)")
_IN_PLACE = late_pattern(r"-[a-zA-Z]*i|--in-place")
_READING_VERBS, _READING_STATEMENTS, _READING_PROGRAMS, _WRITING_GIT, _OUTSIDE_PROGRAMS = (
    words(name, EFFECTS)
    for name in ("reading_verbs", "reading_statements", "reading_programs", "writing_git", "outside_programs")
)
_IN_BACKGROUND = ("run_in_background", "is_background", "background", "isBackground")
_LEFT_RUNNING = late_pattern(
    r"(?<![&>|\\])&\s*(?:$|[\n;)])|\s&\s|\b(?:nohup|setsid|disown|daemonize)\b"
    r"|\b(?:run|up|start|exec)\b[^\n;|&]{0,200}\s(?:-d|--detach|--daemon)\b"
)
_NAME_WORD = late_pattern(r"[a-z]+|[A-Z][a-z]*")


def may_write(tool_name: str, arguments: Any, annotations: Mapping[str, Any] | None = None) -> bool:
    """Might this call have changed what a later call sees? An unknown tool might.

    `annotations`: those of MCP. `readOnlyHint: true` is believed of a tool whose text says nothing; a command or an SQL
    statement is read itself.
    """
    if statement := statement_in(arguments):
        return any(_writes_statement(each) for each in _STATEMENT_ENDS.split(statement[:20_000]))
    command = command_in(arguments)
    if command is not None:
        return any(_writes_command(each) for each in simple_commands(command))
    declared = (annotations or {}).get("readOnlyHint")
    if isinstance(declared, bool):
        return not declared
    if (annotations or {}).get("destructiveHint") is True:
        return True
    words = [word.lower() for word in _NAME_WORD.findall(tool_name.replace("_", " "))]
    if words and words[0] in _READING_VERBS:
        return False
    return not (isinstance(arguments, Mapping) and arguments.get("command") in ("view", "read", "list", "show"))


def asks_outside(tool_name: str, arguments: Any, annotations: Mapping[str, Any] | None = None) -> bool:
    """Does it ask about the state of the outside world: a network, processes, the time?"""
    if (annotations or {}).get("openWorldHint") is True:
        return True
    command = command_in(arguments)
    if command is None:
        return False
    return any(each.words[0] in _OUTSIDE_PROGRAMS for each in simple_commands(command) if each.words)


def starts_background(arguments: Any) -> bool:
    """Does it leave something running, whose work no later call tells?"""
    if isinstance(arguments, Mapping) and any(arguments.get(name) is True for name in _IN_BACKGROUND):
        return True
    command = command_in(arguments)
    return command is not None and _LEFT_RUNNING.search(command[:20_000]) is not None


def statement_in(arguments: Any) -> str:
    """The SQL statement among the arguments; empty where there is none."""
    return next((text for text in _texts(arguments) if looks_like_sql(text[:4000])), "")


def names_text(arguments: Any) -> str:
    """The text whose names may be known not to exist: an SQL statement, else a command line; empty where none is."""
    return statement_in(arguments) or command_in(arguments) or ""


def _texts(arguments: Any) -> list[str]:
    values = arguments.values() if isinstance(arguments, Mapping) else (arguments,)
    return [value for value in values if isinstance(value, str)]


def command_in(arguments: Any) -> str | None:
    """The command line among the arguments."""
    if not isinstance(arguments, Mapping):
        return None
    for name in ("command", "cmd", "commands", "bash", "script"):
        value = arguments.get(name)
        if isinstance(value, str) and (len(arguments) == 1 or is_command(value, False)):
            return value
    return None


def reads_only(command: Argv) -> bool:
    """Does a simple command only look?"""
    return not _writes_command(command)


def _writes_statement(text: str) -> bool:
    kind = read_statement(text).kind
    return bool(kind) and kind not in _READING_STATEMENTS


def _writes_command(command: Argv) -> bool:
    program, *rest = command.words or ("",)
    if program == ">":
        return rest != ["/dev/null"]
    if program not in _READING_PROGRAMS:
        return True
    if program == "git":
        return bool(rest) and rest[0] in _WRITING_GIT
    if program in {"sed", "perl"}:
        return any(_IN_PLACE.fullmatch(word) for word in rest)
    return (program == "find" and "-delete" in rest) or (program == "openssl" and "-out" in rest)
