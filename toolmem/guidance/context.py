"""Look at what other tools did in the conversations of a tool's calls.

Another tool may have done what a failed call tried, or its result may have held the value that
worked. A call is recognized by its tool and id, which no other call of a workspace has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from toolmem.guidance.differences import LEAST_NAME, NOT_GIVEN, differing
from toolmem.guidance.observations import Calls, Observation, arguments_of, leaves
from toolmem.guidance.shown_values import form_of
from toolmem.models.calls import ToolCallResult
from toolmem.models.guidance import Repair
from toolmem.view.effects import CallEffects
from toolmem.view.parameters import words_of

MAX_OUTPUT = 20_000  # characters of a result that are searched
LOOK_BACK = 30  # calls before a call, in its conversation
LOOK_AHEAD = 3  # calls after a failure that may have done the same
LEAST_VALUE = 4  # characters of a value that is searched for
SHARED = "shared"  # marks a source that gave the value that failed, too
MAX_SHORT = 60  # characters of an answer that is recognized by its form
# Share of fields, from 0 to 1, that two answers must have in common.
_ALIKE = 0.8
_ALIKE_FOR_SAME_ARGUMENTS = 0.6


class Context:
    """The calls of all tools in some conversations. `calls`: oldest first."""

    def __init__(self, calls: Calls = ()) -> None:
        self._conversations: dict[str, list[ToolCallResult]] = {}
        self._places: dict[tuple[str, str], int] = {}
        for call in calls:
            if name := call.conversation_id:
                own = self._conversations.setdefault(name, [])
                self._places[call.tool_name, call.id or ""] = len(own)
                own.append(call)

    def before(self, call: ToolCallResult) -> Calls:
        """Return the calls before this one in its conversation, at most 30."""
        place = self._place(call) or 0
        return self._conversation(call)[max(0, place - LOOK_BACK) : place]

    def after(self, call: ToolCallResult) -> Calls:
        """Return the calls after this one in its conversation, at most 3."""
        place = self._place(call)
        if place is None:
            return ()
        return self._conversation(call)[place + 1 : place + 1 + LOOK_AHEAD]

    def _conversation(self, call: ToolCallResult) -> Calls:
        return self._conversations.get(call.conversation_id, [])

    def _place(self, call: ToolCallResult) -> int | None:
        return self._places.get((call.tool_name, call.id)) if call.id else None

    def sources(
        self,
        failed: ToolCallResult,
        worked: ToolCallResult,
        before: Observation,
        after: Observation,
    ) -> set[Repair]:
        """Return a repair for each other tool whose results held a changed parameter's new value.

        It is `Repair("source", path, "", tool)`, with `SHARED` in place of "" if the tool's results
        held the failed value, too. Calls before `failed` count only if none after it held the new.
        """
        earlier = self.before(worked)
        between = self._between(failed, worked)
        before_both = earlier[: len(earlier) - len(between)]
        found: set[Repair] = set()
        for path, old, new in differing(before.arguments, after.arguments):
            if path in after.texts:
                continue
            values = new_values(path, old, new)
            tools = holders(between, values, before_both) - {worked.tool_name}
            tools = tools or holders(before_both, values) - {worked.tool_name}
            failing = new_values(path, NOT_GIVEN, old) - new_values(path, NOT_GIVEN, new)
            shared = holders(earlier, failing) if tools else set()
            found |= {
                Repair("source", path, SHARED if tool in shared else "", tool) for tool in tools
            }
        return found

    def acted_between(self, failed: ToolCallResult, worked: ToolCallResult) -> Calls:
        """Return the calls of other tools in between that worked and may have changed something."""
        return [
            each
            for each in self._between(failed, worked)
            if each.tool_name != failed.tool_name and each.failed is False and may_write(each)
        ]

    def _between(self, failed: ToolCallResult, worked: ToolCallResult) -> Calls:
        """Return the calls between two calls of a conversation, as far as `before` looks back."""
        start, end = self._place(failed), self._place(worked)
        if start is None or end is None:
            return ()
        return self._conversation(worked)[max(start + 1, end - LOOK_BACK) : end]

    def instead(self, failed: ToolCallResult, answers: Answers) -> str:
        """Name the other tool that soon did what the failed call tried; "" if there is none."""
        for later in self.after(failed):
            if later.tool_name == failed.tool_name:
                return ""
            worked = later.failed is False and later.score != 0.0
            if worked and _may_be_recommended(failed, later) and _does_same(failed, later, answers):
                return later.tool_name
        return ""


class Answers:
    """Tells if an output looks like a tool's answers. `outputs`: answers of calls that worked."""

    def __init__(self, outputs: Iterable[str]) -> None:
        self._outputs = outputs

    @cached_property
    def _shapes(self) -> list[Any]:
        return list(filter(None, map(_shape, self._outputs)))

    def are_like(self, output: str, least: float) -> bool:
        """Whether an output looks like an answer. `least`: share of common fields, from 0 to 1."""
        shape = _shape(output)
        if isinstance(shape, frozenset):
            fields = (each for each in self._shapes if isinstance(each, frozenset))
            return any(len(shape & each) >= least * len(shape | each) for each in fields)
        return bool(shape) and shape in self._shapes


def _shape(output: str) -> str | frozenset[str]:
    """Return an object's fields or a short answer's form; "" for other answers and for numbers."""
    text = output.strip()
    if text[:1] == "{" and len(text) <= MAX_OUTPUT:
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            return ""
        return frozenset(map(str, read)) if isinstance(read, dict) and len(read) > 1 else ""
    form = form_of(text) if len(text) <= MAX_SHORT and "\n" not in text else ""
    return form if re.search(r"[^\W\d_].*[#_@.:-]|[#_@.:-].*[^\W\d_]", form) else ""


def call_destroys(call: ToolCallResult) -> bool:
    """Whether the call deletes something, or does something that cannot be undone."""
    return CallEffects(call.tool_name, call.input).destroys()


def may_write(call: ToolCallResult) -> bool:
    """Whether the call may change something."""
    return CallEffects(call.tool_name, call.input).may_write()


def _may_be_recommended(failed: ToolCallResult, later: ToolCallResult) -> bool:
    """Whether a later call of another tool may be shown as a way out of a failure.

    It must change no more and evade no permission, and the failed output must not name its tool.
    """
    if call_destroys(later) or (may_write(later) and not may_write(failed)):
        return False
    return failed.error_class != "permission_denied" and later.tool_name not in failed.output


def _does_same(failed: ToolCallResult, later: ToolCallResult, answers: Answers) -> bool:
    """Whether a call of another tool gave the answer that the failed call should have given.

    Its output must look like answers of the tool that failed. Also, it was given all values of the
    failed call, or neither call changes anything and the names of both tools share most words.
    """
    given = _values(failed)
    is_same = bool(given) and given <= _values(later)
    least = _ALIKE_FOR_SAME_ARGUMENTS if is_same else _ALIKE
    if not answers.are_like(later.output[:MAX_OUTPUT], least):
        return False
    if is_same:
        return True
    if may_write(failed) or may_write(later):
        return False
    first, second = words_of(failed.tool_name), words_of(later.tool_name)
    return 2 * len(first & second) > min(len(first), len(second))


def share_a_value(one: ToolCallResult, other: ToolCallResult) -> bool:
    """Whether the inputs of two calls share a value of three characters or more."""
    first, second = ({value for _, value in _values(each)} for each in (one, other))
    return any(len(value) >= LEAST_NAME for value in first & second)


def _values(call: ToolCallResult) -> set[tuple[str, str]]:
    pairs = leaves(arguments_of(call.input))
    return {(path, str(value)) for path, value in pairs if isinstance(value, str | int | float)}


def new_values(path: str, old: Any, new: Any) -> set[str]:
    """Return the texts and integers in `new` that are not in `old`, the parameter's earlier value.

    Short ones, and those without a digit, are left out: they occur in results by chance.
    """
    if new is NOT_GIVEN:
        return set()
    known = set() if old is NOT_GIVEN else {str(value) for _, value in leaves({path: old})}
    found = {str(v) for _, v in leaves({path: new}) if type(v) in (str, int)} - known
    return {each for each in found if len(each) >= LEAST_VALUE and any(map(str.isdigit, each))}


def holders(calls: Calls, values: set[str], known: Calls = ()) -> set[str]:
    """Return the names of the tools whose successful results held one of `values`.

    `calls`: oldest first. Once an input has a value, later results that hold it do not count. A
    value that is in an input of `known`, the calls before these, is not looked for.
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
    """Whether an output contains a value as a whole word."""
    head = output[:MAX_OUTPUT]
    if value not in head:
        return False
    return re.search(rf"(?<![\w-]){re.escape(value)}(?![\w-])", head) is not None
