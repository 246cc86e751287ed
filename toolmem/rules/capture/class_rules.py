"""Which sentences are kept for a class of tools, in place of the tools of one agent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from toolmem.guard.condition_shapes import Joined, ListShape, Shape, read_condition
from toolmem.guard.tool_classes import by_class, declared_as, scopes_of
from toolmem.late_dataclasses import replace
from toolmem.light_models import ToolSchema
from toolmem.rules.rule_checks import Check, checks_of
from toolmem.rules.turns import Turn
from toolmem.sentences.tools_meant import named_exactly

_USED = r"\b(?:use|uses|using|call|calling|run|running|invoke|invoking|with|in|via|through)\s+(?:the\s+)?"


def with_classes(turn: Turn) -> Turn:
    """The turn as its sentences are read for classes: every class is at hand, and tools of a class stand for it."""
    ran = (replace(use, name=(scopes_of(use.name) or (use.name,))[0]) for use in turn.tool_calls)
    return replace(turn, tools=tuple(by_class(turn.tools)), tool_calls=tuple(ran))


def checks_by_name(sentence: str, turn: Turn) -> Mapping[str, Check]:
    """How a sentence binds the tools that it names as they are called: those alone. Empty where it names none."""
    tools = [declared_as(each) for each in (*turn.tools, *turn.ran)]
    named = named_alone(sentence, tools)
    for name in named:  # "the Bash tool" is `Bash`
        sentence = re.sub(rf"(?:\bthe )?(?<![\w`]){re.escape(name)} tool\b", f"`{name}`", sentence)
    return checks_of(sentence, named, tools) if named else {}


def without_files(checks: Mapping[str, Check]) -> Mapping[str, Check]:
    """Without tools for files, where whom is written to is meant: "never write to Bob" is about no file `bob`."""
    if not {"@mail", "@chat"} & checks.keys():
        return checks
    return {
        tool: check
        for tool, check in checks.items()
        if tool not in {"@read", "@write", "@delete"} or _is_of_paths(read_condition(check.when))
    }


def _is_of_paths(shape: Shape | None) -> bool:
    if isinstance(shape, Joined):
        return any(map(_is_of_paths, shape.parts))
    return isinstance(shape, ListShape) and shape.text.kind == "below"


def named_alone(sentence: str, tools: Sequence[ToolSchema]) -> tuple[str, ...]:
    """The tools whose names a sentence holds: `run_sql`, "the Bash tool", "never use Bash"."""
    exact = named_exactly(sentence, tools)
    called = (each.name for each in tools if re.search(_USED + re.escape(each.name) + r"(?!\w)", sentence))
    return tuple(dict.fromkeys([*exact, *(name for name in called if name[:1].isupper())]))
