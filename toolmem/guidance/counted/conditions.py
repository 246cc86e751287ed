"""What can be said of a call before it is made: conditions on its parameters, and on what came earlier."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
OF_TEXTS = frozenset({"statement", "clause", "table", "program", "flag", "part"})  # kinds that only a free text has
SIZES = frozenset({"number", "items"})  # measures that a value has or has not
_SHARE = 0.5  # of a parameter's values that must look like SQL or a command (agents put prose there as well)


class Condition(NamedTuple):
    """One thing that holds of a call or does not.

    `kind`: present, absent, value, type, shape, unlike (another shape), uppercase, prose; statement, clause, table
    (SQL); program, flag, part (shell); earlier (a call of that kind worked before in the conversation); at_least and
    below, above and under (beyond what ever worked) for a measure (`detail`: number, items, characters, tables)
    against `bound`.
    """

    kind: str
    path: str
    detail: str = ""
    bound: float = 0.0


@dataclass(slots=True)
class Observation:
    """What is known of one call before it is made."""

    params: dict[str, Any]
    conditions: set[Condition]
    measures: dict[tuple[str, str], float]  # (measure, path) -> its value; measure: number, items, characters
    texts: dict[str, sql.Statement | shell.Command]  # parsed free texts, by path
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
    seen = Observation(values.parameters(call.input), set(), {}, {})
    for path, value in values.leaves(seen.params):
        seen.conditions.add(Condition("present", path))
        _observe_value(seen, path, value, kinds.get(path))
    for name, value in seen.params.items():
        if isinstance(value, dict):
            seen.conditions.add(Condition("present", str(name)))
    return seen


def holds(seen: Observation, condition: Condition) -> bool:
    """Whether `condition` holds of a call, its kind being any that `Condition` names."""
    kind, path = condition.kind, condition.path
    if kind in {"at_least", "below", "above", "under"}:
        value = seen.measures.get((condition.detail, path))
        if value is None:  # a text too short to be measured has few characters, but what is no number has no size
            return kind == "below" and condition.detail not in SIZES
        if kind in {"at_least", "below"}:
            return (value >= condition.bound) is (kind == "at_least")
        return value > condition.bound if kind == "above" else value < condition.bound
    if kind == "absent":
        return Condition("present", path) not in seen.conditions
    if kind == "unlike":
        return any(c.kind == "shape" and c.path == path and c.detail != condition.detail for c in seen.conditions)
    return condition in seen.conditions


def _observe_value(seen: Observation, path: str, value: Any, kind: TextKind | None) -> None:
    add = seen.conditions.add
    add(Condition("type", path, values.type_name(value)))
    if isinstance(value, str) and kind is not None:
        _observe_text(seen, path, value[:MAX_TEXT], kind)
        return
    if isinstance(value, str):
        _observe_string(seen, path, value)
    elif not isinstance(value, list):
        add(Condition("value", path, _spelled(value)))
    for measure, number in (("number", values.number_of(value)), ("items", values.item_count(value))):
        if number is not None:
            seen.measures[measure, path] = max(number, seen.measures.get((measure, path), number))


def _observe_string(seen: Observation, path: str, value: str) -> None:
    add = seen.conditions.add
    add(Condition("shape", path, values.text_shape(value[:MAX_TEXT])))
    if len(value) <= MAX_VALUE:
        add(Condition("value", path, _spelled(value)))
    else:
        seen.measures["characters", path] = float(len(value))
    if value[:MAX_TEXT].lower() != value[:MAX_TEXT]:
        add(Condition("uppercase", path))
    if reads_like_prose(value):
        add(Condition("prose", path))


def _observe_text(seen: Observation, path: str, text: str, kind: TextKind) -> None:
    add = seen.conditions.add
    if not text.strip():
        add(Condition("shape", path, "empty"))
    if kind == "sql":
        seen.texts[path] = statement = sql.read_statement(text)
        add(Condition("statement", path, statement.kind))
        seen.conditions |= {Condition("clause", path, clause) for clause in statement.clauses}
        seen.conditions |= {Condition("table", path, table) for table in statement.tables}
        if statement.kind:
            seen.measures["tables", path] = float(len(statement.tables))
        return
    if prose := reads_like_prose(text):
        add(Condition("prose", path))
    seen.texts[path] = command = shell.read_command("" if prose else text)
    seen.conditions |= {Condition("program", path, program) for program in command.programs}
    seen.conditions |= {Condition("flag", path, flag) for flag in command.flags}
    seen.conditions |= {Condition("part", path, part) for part in command.parts}
    if not command.program:
        add(Condition("program", path, ""))
    if not command.balanced:
        add(Condition("part", path, "an open quote"))


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


def observe_all(
    calls: Sequence[ToolCallResult],
    outcomes: Sequence[bool | None],
    groups: Sequence[Sequence[int]],
    kinds: Mapping[str, TextKind],
) -> list[Observation]:
    """Observations of `calls`, with the actions that worked (`outcomes`: True) earlier in the same one of `groups`."""
    seen = [observe(call, kinds) for call in calls]
    chooser = action_parameter(seen)
    for one in seen:
        one.action = action_of(one, chooser)
    for group in groups:
        done: set[Condition] = set()
        for position in group:
            one = seen[position]
            one.conditions |= done
            if one.action is not None and outcomes[position]:
                done.add(Condition("earlier", one.action.path, one.action.detail))
    return seen


def _spelled(value: Any) -> str:
    if isinstance(value, str):
        return repr(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)[:MAX_VALUE]
