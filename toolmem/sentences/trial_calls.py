"""Plain calls that a demand forbids, to try its condition on: what is said to be stopped is stopped there at least."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from toolmem.guard.call_conditions import Condition, holds
from toolmem.guard.view import view_of
from toolmem.sentences.declared_tools import DeclaredTool, words_of_name
from toolmem.sentences.said_literals import Demand, LiteralValue
from toolmem.sentences.said_words import SENDING

_ON_PATHS = {  # what is done, and how a shell would do it to a path
    "read": ("cat {}",),
    "delete": ("rm -rf {}", "cd {up} && rm -r ./{name}"),
    "write": ("echo x > {in}",),
    "commit": ("git add {}",),
}
_ON_NOTHING = {"install": "pip install x", "commit": "git commit", "merge": "git merge x", "rebase": "git rebase x"}
_STATEMENTS = {
    "delete": "DROP TABLE {}",
    "change": "ALTER TABLE {} ADD x int",
    "add": "INSERT INTO {} VALUES (1)",
    **dict.fromkeys(("read", "search", "fetch"), "SELECT * FROM {}"),
    "create": "CREATE TABLE {} (x int)",
}
_ELSEWHERE = {"email": "x@elsewhere.example", "host": "elsewhere.example"}
_UNDECLARED = {"path": "path", "host": "url", "channel": "channel"}  # what a parameter is called that nobody declared
_LONGEST = 100  # characters of a call in words


class Trial(NamedTuple):
    """Calls in words, "" where there is none: one that was stopped, and one that was not although it is forbidden."""

    stopped: str
    passed: str


def trial_of(demand: Demand, tool: DeclaredTool, when: Condition) -> Trial:
    """What a condition of the tool does to calls that are derived from the demand alone."""
    stopped = ""
    for arguments, sure in _calls(demand, tool):
        if holds(when, view_of(tool.name, arguments, tool.declared).fields):
            stopped = stopped or _in_words(tool, arguments)
        elif sure:
            return Trial(stopped, _in_words(tool, arguments))
    return Trial(stopped, "")


def _in_words(tool: DeclaredTool, arguments: Mapping[str, Any]) -> str:
    if tool.shell or tool.sql:
        shown = next(iter(arguments.values()), "")
    else:
        given = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
        shown = f"{tool.name.removeprefix('@')}({', '.join(given)})"
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def _calls(demand: Demand, tool: DeclaredTool) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Each with whether the sentence is sure to forbid it."""
    if tool.shell:
        name = next((each for each in tool.parameters if set(words_of_name(each)) & {"command", "cmd"}), "command")
        yield from (({name: command}, sure) for command, sure in _commands(demand))
    elif tool.sql:
        name = next(
            (each for each in tool.parameters if set(words_of_name(each)) & {"sql", "statement", "query"}), "sql"
        )
        table = next((each.text for each in demand.literals), "t")
        ways = [way.format(table) for family, way in _STATEMENTS.items() if family in demand.families]
        ways += [f"DELETE FROM {table}", f"TRUNCATE TABLE {table}"] if "delete" in demand.families else []
        yield from (({name: way}, False) for way in ways or ["SELECT 1"])
    else:
        amounts = dict.fromkeys(tool.amounts[:1], _more_than(demand.bound[1])) if demand.bound else {}
        found = demand.literals[:1] if demand.only else demand.literals
        # With several literals one of a kind is enough; who is meant besides an amount, nobody can tell
        yield amounts | _arguments(demand, tool, found), bool(amounts) and len(tool.amounts) == 1 and not found
        if {each.kind for each in found} == {"path"} and tool.files:
            yield from ((_arguments(demand, tool, [each]), True) for each in found)


def _more_than(amount: float) -> float:
    return int(amount) + 1 if amount == int(amount) else amount + 1


def _arguments(demand: Demand, tool: DeclaredTool, literals: list[LiteralValue]) -> dict[str, Any]:
    """Parameters that would hold what is named: of whom and where, or of what is written."""
    given: dict[str, Any] = dict.fromkeys(tool.forces[:1], True) if demand.force else {}
    if demand.currency and tool.currency:
        given |= {name: demand.currency[0] for name in tool.parameters if "currency" in words_of_name(name)}
    for each in literals:
        fitting = [name for name in tool.parameters if (name in tool.targets) != each.content and name not in given]
        if not tool.knows:
            fitting = ["text" if each.content else _UNDECLARED.get(each.kind, "to")]
        if fitting:
            text = _ELSEWHERE.get(each.kind, "elsewhere") if demand.only else each.text
            mailed = each.kind == "host" and not tool.takes_address and (demand.only or demand.families & SENDING)
            given[fitting[0]] = f"x@{text}" if mailed else text
    return given


def _commands(demand: Demand) -> Iterator[tuple[str, bool]]:
    families, literals = demand.families, demand.literals
    paths = [each.text.rstrip("/") for each in literals if each.kind == "path"]
    for path in paths:
        up, _, name = path.rpartition("/")
        inside = path if "." in name.lstrip(".") else f"{path}/x"
        for family, ways in _ON_PATHS.items():
            for way in ways if family in families else ():
                if up or "{up}" not in way:
                    yield (
                        way.replace("{up}", up).replace("{name}", name).replace("{in}", inside).replace("{}", path),
                        True,
                    )
    for each in literals:
        if each.kind == "program":
            yield from ((f"{before}{each.text} x", True) for before in ("", "time "))
        elif each.kind == "host":
            yield f"curl https://{each.text}/", False
    if "push" in families:
        branch = next((each.text for each in literals), "main")
        yield f"git push {'--force ' if demand.force else ''}origin {branch}", False
    elif not literals:
        yield from ((command, False) for family, command in _ON_NOTHING.items() if family in families)
        if "delete" in families:
            yield "rm x", False
        elif "run" in families:
            yield "ls", False
