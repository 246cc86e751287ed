"""Find the call that repaired a failure, among the next three of the tool in its conversation.

A call repairs a failure where it worked, did the same action, and was about the same thing: it
shares a value with the failed call, or differs from it in one parameter. An error that passes by
itself is repaired only by the same call, or by one that differs in what the error names. What is
counted is what happened, not what caused it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any, NamedTuple

from toolmem.guidance.differences import NOT_GIVEN, REPEATED, differences, differing
from toolmem.guidance.observations import Command, Observation, leaves
from toolmem.models.guidance import Repair
from toolmem.text.error_lines import error_class_of, is_named
from toolmem.text.sql import Statement

WITHIN = 3  # calls of the tool after a failure, of which one may be its recovery
MAX_NAMED = 200  # characters of a value that an error may name


class Recovery(NamedTuple):
    """A failed call and the one that worked after it, by position, and what differs."""

    failure: int
    success: int
    repairs: frozenset[Repair]


class Attempts(NamedTuple):
    """The calls of one tool, as recoveries are looked for among them."""

    worked: Sequence[bool | None]
    groups: Sequence[Sequence[int]]  # positions by conversation, in the order made
    observed: Sequence[Observation]
    messages: Mapping[int, str] = {}  # of each failure
    passing: Set[int] = frozenset()  # failures that the same call may not meet again
    destroys: Callable[[int], bool] = lambda position: False


def recoveries(attempts: Attempts) -> list[Recovery]:
    """Every recovered failure, with the first call that repaired it."""
    worked, observed = attempts.worked, attempts.observed
    found: list[Recovery] = []
    for group in attempts.groups:
        for place, failure in enumerate(group):
            later = group[place + 1 : place + 1 + WITHIN] if worked[failure] is False else ()
            for success in (position for position in later if worked[position]):
                repairs = differences(observed[failure], observed[success])
                if REPEATED in repairs or repairs_it(attempts, failure, success, repairs):
                    found.append(Recovery(failure, success, repairs))
                    break
    return found


def repairs_it(attempts: Attempts, failure: int, success: int, repairs: Collection[Repair]) -> bool:
    """Whether a call that is not the same one may have repaired a failure."""
    before, after = attempts.observed[failure], attempts.observed[success]
    message = attempts.messages.get(failure, "")
    if failure in attempts.passing:
        return _differs_as_named(message, before, after)
    if any(repair.kind == "action" for repair in repairs):
        return _asks_for_action(message, after)
    if attempts.destroys(success) and _targets(before).isdisjoint(_targets(after)):
        return False
    return are_related(before, after, repairs)


def are_related(before: Observation, after: Observation, repairs: Collection[Repair]) -> bool:
    """Whether two calls are about the same thing. Two commands share a program or a file.

    That they run on the same host, or in the same folder, does not make them alike.
    """
    for path, old in before.texts.items():
        new = after.texts.get(path)
        if isinstance(old, Command) and isinstance(new, Command):
            return old == new or not _names_in(old).isdisjoint(_names_in(new))
    parameters = {repair.path.partition(".")[0] for repair in repairs}
    if len(parameters) == 1 or any(repair.kind == "renamed" for repair in repairs):
        return True
    return not _subjects(before).isdisjoint(_subjects(after))


def _targets(observation: Observation) -> set[tuple[str, str]]:
    """What a call acts on: the arguments of its command, the names of its statement, else all."""
    texts = observation.texts
    return {each for each in _subjects(observation) if not texts or each[0] in texts}


def _names_in(command: Command) -> set[str]:
    """Programs, and files without their folders: `./run` and `chmod +x run` are about `run`."""
    words = (*command.programs, *command.arguments)
    return {name for word in words if (name := word.rstrip("/").rpartition("/")[2])}


def _asks_for_action(message: str, after: Observation) -> bool:
    """Whether an error says that the action is unknown, or names the one that came after it."""
    word = after.action[1].lower() if after.action else ""
    return error_class_of(message) == "unknown_tool" or is_named(message.lower(), word)


def _differs_as_named(message: str, before: Observation, after: Observation) -> bool:
    """Whether an error names all that differs: parameters, or the values that they had."""
    lowered = message.lower()
    for path, old, new in differing(before.arguments, after.arguments):
        if path in before.texts and path in after.texts:
            named = _differs_in_words(lowered, before.texts[path], after.texts[path], old, new)
        else:
            value = "" if old is NOT_GIVEN else str(old)[:MAX_NAMED].lower()
            name = path.rpartition(".")[2].lower()
            named = is_named(lowered, name) or is_named(lowered, value)
        if not named:
            return False
    return True


def _differs_in_words(message: str, old: Any, new: Any, before: str, after: str) -> bool:
    """Whether an error names the words that one command or statement has and the other has not."""
    kinds = [each.kind if isinstance(each, Statement) else each.program for each in (old, new)]
    if kinds[0] != kinds[1]:
        return False
    first, second = set(before.lower().split()), set(after.lower().split())
    gone, came = first - second, second - first
    if gone:
        return all(is_named(message, word[:MAX_NAMED]) for word in gone)
    return any(is_named(message, word[:MAX_NAMED]) for word in came)


def _subjects(observation: Observation) -> set[tuple[str, str]]:
    """(path, value) of what a call is about: names of SQL, words of commands, other values."""
    chooser = observation.action[0] if observation.action else None
    found = {
        (path, value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str))
        for path, value in leaves(observation.arguments)
        if path != chooser and path not in observation.texts
        if not isinstance(value, bool) and value not in (None, "", [])
    }
    for path, text in observation.texts.items():
        names = text.names if isinstance(text, Statement) else text.arguments
        found |= {(path, name) for name in names}
    return found
