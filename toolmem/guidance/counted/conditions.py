"""What is known of a call before it is made: its parameters, the statement or command in them, what it does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from toolmem.guidance.counted import values
from toolmem.guidance.counted.values import MAX_TEXT
from toolmem.models import ToolCallResult
from toolmem.readers import shell, sql

TextKind = Literal["sql", "shell"]

MAX_VALUE = 60  # characters of a value that may stand for itself, as in cabin='economy'
_SHELL_NAMES = frozenset({"command", "cmd", "commands", "shell", "bash", "script", "shell_command", "bash_command"})
_CHOOSERS = frozenset({"action", "command", "cmd", "operation", "op", "method", "verb", "mode", "task"})
_ACTION = re.compile(r"[A-Za-z][A-Za-z_-]{1,30}")
_SHARE = 0.5  # of a parameter's values that must look like SQL or a command (agents put prose there as well)


class Condition(NamedTuple):
    """One thing that holds of a call or does not.

    `kind`: present, value, type, shape, uppercase; statement (SQL) and program (shell) of what a call does.
    """

    kind: str
    path: str
    detail: str = ""


@dataclass(slots=True)
class Observation:
    """What is known of one call before it is made."""

    params: dict[str, Any]
    texts: dict[str, sql.Statement | shell.Command] = field(default_factory=dict)  # parsed free texts, by path
    action: Condition | None = None  # what the call does: statement kind, program, value of the action parameter


def text_kinds(tool_name: str, inputs: Sequence[Mapping[str, Any]]) -> dict[str, TextKind]:
    """Which top-level parameters hold SQL or shell commands, by what most of their values look like."""
    given: dict[str, list[str]] = {}
    for params in inputs:
        for name, value in params.items():
            if isinstance(value, str) and value.strip():
                given.setdefault(str(name), []).append(value[:400])
    kinds = {name: _text_kind(tool_name, name, texts) for name, texts in given.items()}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _text_kind(tool_name: str, name: str, texts: Sequence[str]) -> TextKind | None:
    if sum(map(sql.looks_like_sql, texts)) >= _SHARE * len(texts):
        return "sql"
    named = name.lower() in _SHELL_NAMES or any(word in tool_name.lower() for word in ("bash", "shell", "terminal"))
    commands = named and any(" " in text.strip() for text in texts) and sum(map(shell.looks_like_command, texts))
    return "shell" if commands and commands >= _SHARE * len(texts) else None


def observe(call: ToolCallResult, kinds: Mapping[str, TextKind]) -> Observation:
    """Everything that is known of `call` from its input alone."""
    seen = Observation(values.parameters(call.input))
    for name, kind in kinds.items():
        if isinstance(text := seen.params.get(name), str):
            seen.texts[name] = _read(text[:MAX_TEXT], kind)
    return seen


def _read(text: str, kind: TextKind) -> sql.Statement | shell.Command:
    if kind == "sql":
        return sql.read_statement(text)
    return shell.read_command("" if reads_like_prose(text) else text)


def conditions_of(seen: Observation) -> set[Condition]:
    """What holds of the values of a call: that they are there, how they are written, and short ones themselves."""
    found: set[Condition] = set()
    for path, value in values.leaves(seen.params):
        found.add(Condition("present", path))
        if path in seen.texts:
            continue
        found.add(Condition("type", path, values.type_name(value)))
        if isinstance(value, str):
            found.add(Condition("shape", path, values.text_shape(value[:MAX_TEXT])))
            if value[:MAX_TEXT].lower() != value[:MAX_TEXT]:
                found.add(Condition("uppercase", path))
    return found


def reads_like_prose(text: str) -> bool:
    """Several plain words, the first with a capital: a sentence where a value was due."""
    words = text[:200].split()
    return (
        len(words) >= 5
        and words[0][:1].isupper()
        and words[0].isascii()
        and sum(word.strip(".,!?'\"").replace("'", "").isalpha() for word in words) >= 0.8 * len(words)
        and not words[0].isupper()
    )


def action_parameter(seen: Sequence[Observation]) -> str | None:
    """The parameter that chooses what the tool does (`command='view'`), or None.

    Given in nearly every call, always one short word, 2 to 8 different ones, each several times; and either its name
    says so, or calls with different words take different parameters (`units='metric'` chooses nothing). Where two
    parameters fit, the one with more words, then the first by name.
    """
    choices: dict[str, Counter[str]] = {}
    for one in seen:
        for name, value in one.params.items():
            if isinstance(value, str) and name not in one.texts:
                choices.setdefault(str(name), Counter())[value] += 1
    fitting = [
        (-len(words), name)
        for name, words in choices.items()
        if 2 <= len(words) <= 8
        and words.total() >= 0.9 * len(seen)
        and words.total() >= 3 * len(words)
        and all(_ACTION.fullmatch(word) for word in words)
        and (name.lower() in _CHOOSERS or _chooses(seen, name, words))
    ]
    return min(fitting)[1] if fitting else None


def _chooses(seen: Sequence[Observation], name: str, words: Counter[str]) -> bool:
    """Whether calls with different words at `name` usually give different parameters."""
    usual: set[frozenset[str]] = set()
    for word in words:
        given = [one.params.keys() for one in seen if one.params.get(name) == word]
        counts = Counter(str(parameter) for names in given for parameter in names)
        usual.add(frozenset(parameter for parameter, count in counts.items() if 2 * count > len(given)))
    return len(usual) > 1


def action_of(seen: Observation, chooser: str | None) -> Condition | None:
    """What a call does: its statement kind, its program, or the value of the action parameter."""
    for path, text in seen.texts.items():
        if isinstance(text, sql.Statement):
            return Condition("statement", path, text.kind) if text.kind else None
        return Condition("program", path, text.program) if text.program else None
    if chooser is not None and isinstance(word := seen.params.get(chooser), str):
        return Condition("value", chooser, repr(word))
    return None


def observe_all(calls: Sequence[ToolCallResult], kinds: Mapping[str, TextKind]) -> list[Observation]:
    """Observations of `calls` of one tool, each with what it does."""
    seen = [observe(call, kinds) for call in calls]
    chooser = action_parameter(seen)
    for one in seen:
        one.action = action_of(one, chooser)
    return seen
