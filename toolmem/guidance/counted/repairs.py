"""What repaired a failure: how the next success of the same tool differed from the call that failed.

A failure is recovered where one of the three calls of the tool that follow it in its conversation succeeded and was
about the same thing: it shares a value with the failed call, or differs from it in one parameter. The first such
success is compared with the failed call. After a failure that no input is to blame for only the same call once more
counts. What is counted is what happened, not what caused it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from toolmem.guidance.counted import values
from toolmem.guidance.counted.conditions import Observation
from toolmem.readers import shell, sql

WITHIN = 3  # calls of the tool after the failure
RESTLESS_PAIRS, RESTLESS_SHARE = 5, 0.9  # calls that worked and were followed by another one; share with a change


class Repair(NamedTuple):
    """One difference between a failed call and the success that followed it.

    `kind`: statement, program or action (`before` -> `after`); added, dropped, changed (parameter `path`), renamed (the
    value of parameter `before` now stands at `path`); tables and
    names (the same kind of statement with other tables, or other columns and aliases), clause_added and
    clause_dropped; rewritten (neither); flag_added and flag_dropped, arguments (the same program with other
    arguments); repeated (the same call again).
    """

    kind: str
    path: str
    before: str = ""
    after: str = ""


_REPEATED = Repair("repeated", "")
BY_RESULT = frozenset({"statement", "program", "action"})  # what it was changed into counts, whatever it was before


def by_result(repair: Repair) -> Repair:
    """Without what a statement, a program or an action was before."""
    return repair._replace(before="") if repair.kind in BY_RESULT else repair


@dataclass(frozen=True, slots=True)
class Recovery:
    """A failure and the success that followed it, by position."""

    failure: int
    success: int
    repairs: frozenset[Repair]


def recoveries(
    outcomes: Sequence[bool | None],
    groups: Sequence[Sequence[int]],
    seen: Sequence[Observation],
    blameless: Collection[int] = (),
) -> list[Recovery]:
    """Every recovered failure.

    `outcomes`: True = the call did not fail; `groups`: positions per conversation; `blameless`: failures that no input
    is to blame for.
    """
    found: list[Recovery] = []
    for group in groups:
        for place, failure in enumerate(group):
            if outcomes[failure] is not False:
                continue
            for success in group[place + 1 : place + 1 + WITHIN]:
                if not outcomes[success]:
                    continue
                made = frozenset(differences(seen[failure], seen[success]))
                close = failure not in blameless and about_the_same(seen[failure], seen[success], made)
                if close or _REPEATED in made:
                    found.append(Recovery(failure, success, made))
                    break
    return found


def about_the_same(before: Observation, after: Observation, made: Collection[Repair]) -> bool:
    """Whether a value stands in two calls that are not alike, or a single parameter tells them apart.

    What only chooses the action, and true, false and nothing, tell no thing.
    """
    told_apart = {repair.path.partition(".")[0] for repair in made}
    if len(told_apart) == 1 or any(one.kind == "renamed" for one in made):
        return True
    return not _things(before).isdisjoint(_things(after))


def _things(seen: Observation) -> set[tuple[str, str]]:
    """The values of a call by path; of SQL and shell commands the names and arguments."""
    chooser = seen.action.path if seen.action is not None else None
    found = {
        (path, values.canonical(value) if isinstance(value, str | dict | list) else repr(value))
        for path, value in values.leaves(seen.params)
        if path != chooser and path not in seen.texts and not isinstance(value, bool) and value not in (None, "", [])
    }
    for path, text in seen.texts.items():
        names = text.names if isinstance(text, sql.Statement) else text.arguments
        found |= {(path, name) for name in names}
    return found


def restless(
    outcomes: Sequence[bool | None], groups: Sequence[Sequence[int]], seen: Sequence[Observation]
) -> frozenset[str]:
    """Parameters that change from nearly every call that worked to the next one: that they changed repairs nothing.

    Nothing where calls give a single parameter: it always is what changes.
    """
    pairs: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    for group in groups:
        for first, second in pairwise(group):
            if not outcomes[first]:
                continue
            a, b = seen[first].params, seen[second].params
            for name in a.keys() & b.keys():
                pairs[str(name)] += 1
                changed[str(name)] += a[name] != b[name]
    several = len({str(name) for one in seen for name in one.params}) > 1
    return frozenset(
        name for name, n in pairs.items() if several and n >= RESTLESS_PAIRS and changed[name] >= RESTLESS_SHARE * n
    )


def differences(before: Observation, after: Observation) -> Iterable[Repair]:
    """How the input of one call differs from that of another."""
    if before.params == after.params:
        return [_REPEATED]
    if before.action and after.action and before.action.kind == "value" and before.action != after.action:
        # Another action takes other parameters; that they come and go says nothing of its own.
        path = before.action.path
        return [Repair("action", path, before.action.detail.strip("'"), after.action.detail.strip("'"))]
    return list(_between("", before.params, after.params, before, after, values.MAX_DEPTH))


def _between(
    prefix: str, old: dict[str, Any], new: dict[str, Any], before: Observation, after: Observation, depth: int
) -> Iterator[Repair]:
    """Differences of two objects; those of objects inside them by the path of the field."""
    gone = {name: old[name] for name in sorted(old.keys() - new.keys(), key=str)}
    for name in sorted(new.keys() - old.keys(), key=str):
        was = next((other for other, value in gone.items() if value == new[name]), None)
        if was is None:
            yield Repair("added", f"{prefix}{name}")
        else:
            del gone[was]
            yield Repair("renamed", f"{prefix}{name}", f"{prefix}{was}")
    yield from (Repair("dropped", f"{prefix}{name}") for name in gone)
    for name in sorted(old.keys() & new.keys(), key=str):
        path, a, b = f"{prefix}{name}", old[name], new[name]
        if isinstance(a, dict) and isinstance(b, dict) and depth > 1:
            yield from _between(f"{path}.", a, b, before, after, depth - 1)
        elif a != b:
            yield from _changed(path, before, after, a, b)


def _changed(path: str, before: Observation, after: Observation, old: Any, new: Any) -> list[Repair]:
    a, b = before.texts.get(path), after.texts.get(path)
    if isinstance(a, sql.Statement) and isinstance(b, sql.Statement):
        return _statement_changed(path, a, b)
    if isinstance(a, shell.Command) and isinstance(b, shell.Command):
        return _command_changed(path, a, b)
    return [Repair("changed", path, *_shapes(old, new))]


def _shapes(old: Any, new: Any) -> tuple[str, str]:
    """The shapes of two values where they tell them apart, else nothing."""
    first, second = _shape(old), _shape(new)
    return (first, second) if first != second else ("", "")


def _shape(value: Any) -> str:
    if isinstance(value, str):
        shape = values.text_shape(value[: values.MAX_TEXT])
        return "" if shape.startswith("like:") or shape in {"word", "words", "lines"} else shape
    return values.type_name(value)


def _statement_changed(path: str, a: sql.Statement, b: sql.Statement) -> list[Repair]:
    if a.form != b.form:  # SHOW COLUMNS and SHOW TABLES are two actions of one kind
        return [Repair("statement", path, a.kind, b.kind)]
    found = [Repair("clause_added", path, a.kind, clause) for clause in sorted(b.clauses - a.clauses)]
    found += [Repair("clause_dropped", path, a.kind, clause) for clause in sorted(a.clauses - b.clauses)]
    if a.names != b.names:
        found.append(Repair("tables" if a.tables != b.tables else "names", path, a.kind, b.kind))
    return found or [Repair("rewritten", path, a.kind)]


def _command_changed(path: str, a: shell.Command, b: shell.Command) -> list[Repair]:
    if a.program != b.program:
        return [Repair("program", path, a.program, b.program)]
    gone = [program for program in a.programs if program not in b.programs]
    new = [program for program in b.programs if program not in a.programs]
    if gone and new:  # further along the pipe
        return [Repair("program", path, gone[0], new[0])]
    found = [Repair("flag_added", path, a.program, flag) for flag in sorted(b.flags - a.flags)]
    found += [Repair("flag_dropped", path, a.program, flag) for flag in sorted(a.flags - b.flags)]
    if a.arguments != b.arguments:
        found.append(Repair("arguments", path, a.program, b.program))
    return found or [Repair("changed", path)]
