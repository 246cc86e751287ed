"""The conversations that the calls of a tool are from: other tools that did what a failed call
tried, and tools whose results held a value that worked.

Calls are known by their tool and id, so those of a log and those of a window are the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from toolmem.guidance.differences import LEAST_NAME, NOT_GIVEN, differing
from toolmem.guidance.observations import Observation, arguments_of, leaves
from toolmem.guidance.shown_values import form_of
from toolmem.models.calls import ToolCallResult
from toolmem.models.guidance import Repair
from toolmem.view.effects import CallEffects
from toolmem.view.parameters import words_of

MAX_OUTPUT = 20_000  # characters of a result that is looked through
LOOK_BACK = 30  # calls of a conversation before one
LOOK_AHEAD = 3  # calls after a failure, of which one may have done the same
LEAST_VALUE = 4  # characters of a value that is looked for
SHARED = "shared"
MAX_SHORT = 60  # characters of an answer that is known by its form
# Share of fields that two answers have in common, from 0 to 1; of calls with the same arguments.
_ALIKE = 0.8
_SIMILAR = 0.6

Calls = Sequence[ToolCallResult]


class Context:
    """The calls of some conversations, of all tools. `calls`: oldest first."""

    def __init__(self, calls: Calls = ()) -> None:
        self._conversations: dict[str, list[ToolCallResult]] = {}
        self._places: dict[tuple[str, str], int] = {}
        for call in calls:
            if name := call.conversation_id:
                own = self._conversations.setdefault(name, [])
                self._places[call.tool_name, call.id or ""] = len(own)
                own.append(call)

    def before(self, call: ToolCallResult) -> Calls:
        """The calls of its conversation before this one, at most 30."""
        place = self._place(call)
        calls = self._conversations.get(call.conversation_id, [])
        return calls[max(0, (place or 0) - LOOK_BACK) : place or 0]

    def after(self, call: ToolCallResult) -> Calls:
        """The next calls of its conversation, at most 3."""
        place = self._place(call)
        calls = self._conversations.get(call.conversation_id, [])
        return () if place is None else calls[place + 1 : place + 1 + LOOK_AHEAD]

    def _place(self, call: ToolCallResult) -> int | None:
        return self._places.get((call.tool_name, call.id)) if call.id else None

    def sources(
        self,
        failed: ToolCallResult,
        worked: ToolCallResult,
        before: Observation,
        after: Observation,
    ) -> set[Repair]:
        """For each parameter that changed: the other tools whose earlier results held its value.

        Those that were called between the two calls come before all others. `SHARED` marks a tool
        whose results held the value that failed, too.
        """
        earlier = self.before(worked)
        since = [each for each in earlier if each in self._later(failed)]
        found: set[Repair] = set()
        for path, old, new in differing(before.arguments, after.arguments):
            values = new_values(path, old, new) if path not in after.texts else set()
            failing = new_values(path, NOT_GIVEN, old) - new_values(path, NOT_GIVEN, new)
            known = earlier[: len(earlier) - len(since)]
            for calls, before_them in ((since, known), (known, ())):
                tools = holders(calls, values, before_them) - {worked.tool_name}
                shared = holders(earlier, failing) if tools else set()
                found |= {
                    Repair("source", path, SHARED if tool in shared else "", tool) for tool in tools
                }
                if tools:
                    break
        return found

    def acted_between(self, failed: ToolCallResult, worked: ToolCallResult) -> Calls:
        """The calls of other tools between two calls that worked and may have changed something."""
        since = [each for each in self.before(worked) if each in self._later(failed)]
        return [
            each
            for each in since
            if each.tool_name != failed.tool_name and each.failed is False
            if CallEffects(each.tool_name, each.input).may_write()
        ]

    def _later(self, failed: ToolCallResult) -> Calls:
        place = self._place(failed)
        calls = self._conversations.get(failed.conversation_id, [])
        return () if place is None else calls[place + 1 :]

    def instead(self, failed: ToolCallResult, answers: Answers) -> str:
        """The other tool that then did what a failed call tried; "" where none did."""
        for later in self.after(failed):
            if later.tool_name == failed.tool_name:
                return ""
            worked = later.failed is False and later.score != 0.0
            if worked and _may_be_told(failed, later) and _does_same(failed, later, answers):
                return later.tool_name
        return ""


class Answers:
    """How the answers of a tool look where it worked."""

    def __init__(self, outputs: Iterable[str]) -> None:
        self._outputs = list(outputs)

    @cached_property
    def _shapes(self) -> list[Any]:
        return [shape for each in self._outputs if (shape := _shape(each))]

    def are_like(self, output: str, least: float) -> bool:
        shape = _shape(output)
        if isinstance(shape, frozenset):
            fields = (each for each in self._shapes if isinstance(each, frozenset))
            return any(len(shape & each) >= least * len(shape | each) for each in fields)
        return bool(shape) and shape in self._shapes


def _shape(output: str) -> str | frozenset[str]:
    """The fields of an object, or the form of a short answer; "" for others and bare numbers."""
    text = output.strip()
    if text[:1] == "{" and len(text) <= MAX_OUTPUT:
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            return ""
        return frozenset(map(str, read)) if isinstance(read, dict) and len(read) > 1 else ""
    form = form_of(text) if len(text) <= MAX_SHORT and "\n" not in text else ""
    return form if re.search(r"[^\W\d_].*[#_@.:-]|[#_@.:-].*[^\W\d_]", form) else ""


def _may_be_told(failed: ToolCallResult, later: ToolCallResult) -> bool:
    """Whether a call of another tool changes no more than the failed one, and was not proposed."""
    one, other = (CallEffects(each.tool_name, each.input) for each in (failed, later))
    if other.destroys() or (other.may_write() and not one.may_write()):
        return False
    return failed.error_class != "permission_denied" and later.tool_name not in failed.output


def _does_same(failed: ToolCallResult, later: ToolCallResult, answers: Answers) -> bool:
    """Whether a call of another tool gave what the failed one was asked for.

    Its answer looks like those of the tool that failed, and it was given all the same values; or
    neither changes anything, and their names have most of their words in common.
    """
    given = _values(failed)
    is_same = bool(given) and given <= _values(later)
    if not answers.are_like(later.output[:MAX_OUTPUT], _SIMILAR if is_same else _ALIKE):
        return False
    if is_same:
        return True
    if any(CallEffects(each.tool_name, each.input).may_write() for each in (failed, later)):
        return False
    first, second = words_of(failed.tool_name), words_of(later.tool_name)
    return 2 * len(first & second) > min(len(first), len(second))


def share_a_value(one: ToolCallResult, other: ToolCallResult) -> bool:
    """Whether two calls were given the same value."""
    first, second = ({value for _, value in _values(each)} for each in (one, other))
    return any(len(value) >= LEAST_NAME for value in first & second)


def _values(call: ToolCallResult) -> set[tuple[str, str]]:
    pairs = leaves(arguments_of(call.input))
    return {(path, str(value)) for path, value in pairs if isinstance(value, str | int | float)}


def new_values(path: str, old: Any, new: Any) -> set[str]:
    """The texts and numbers that a parameter holds now and did not hold before.

    Only those with a digit: words such as `economy` stand in results by chance.
    """
    if new is NOT_GIVEN:
        return set()
    was = set() if old is NOT_GIVEN else {str(value) for _, value in leaves({path: old})}
    found = {str(v) for _, v in leaves({path: new}) if type(v) in (str, int)} - was
    return {each for each in found if len(each) >= LEAST_VALUE and any(map(str.isdigit, each))}


def holders(calls: Calls, values: set[str], known: Calls = ()) -> set[str]:
    """The tools of calls that worked and whose results first held one of these values.

    A result that only repeats what a call was given is no source of it, and none is later.
    `known`: calls before these.
    """
    found: set[str] = set()
    for value in values:
        given = any(value in json.dumps(each.input, ensure_ascii=False) for each in known)
        for call in () if given else calls:
            if value in json.dumps(call.input, ensure_ascii=False):
                break
            if call.failed is False and holds(call.output, value):
                found.add(call.tool_name)
    return found


def holds(output: str, value: str) -> bool:
    """Whether a result holds a value as a word of its own."""
    head = output[:MAX_OUTPUT]
    if value not in head:
        return False
    return re.search(rf"(?<![\w-]){re.escape(value)}(?![\w-])", head) is not None
