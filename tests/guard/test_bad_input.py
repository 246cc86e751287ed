"""Whatever a call or a rule holds: none of it stops an agent that no rule stops, or costs more than its size."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processor_time import grows_at_most
from toolmem.guard.conversation import ConversationGuard
from toolmem.guard.decision import CheckedRule
from toolmem.light_models import ToolSchema
from toolmem.sentences.schemas import command, listed, word_pattern

NO_SARAH = CheckedRule("sarah", "never email Sarah", "deny", listed("targets", word_pattern("sarah")))
ASK_MAIL = CheckedRule("ask", "ask me before you send an email", "ask", True)
NO_RM = CheckedRule("rm", "never use rm", "deny", command(("rm",)))
RULES = {"send_email": [NO_SARAH], "bash": [NO_RM], "no_such_tool": [CheckedRule("gone", "never", "deny", True)]}


def deep(levels: int, inside: Any = "sarah") -> Any:
    for level in range(levels):
        inside = {"to": inside} if level % 2 else [inside]
    return inside


def said_to(tool: str, arguments: Any, **given: Any) -> str:
    return ConversationGuard(RULES, **given).weigh(tool, arguments).decision.action


ODD: dict[str, Any] = {
    "text": "hello",
    "a text that is no JSON": '{"to": ',
    "a list": ["a", "b"],
    "nothing": None,
    "a number": 3.5,
    "bytes": b"\xff\xfe",
    "a set": {"a": {1, 2}},
    "an object of Python": {"a": object()},
    "keys that are no text": {1: "a", None: "b", (1, 2): "c"},
    "NaN": {"amount": math.nan, "to": math.inf, "cc": -math.inf},
    "a number beyond all floats": {"amount": 10**400},
    "a lone surrogate": {"to": "a\ud800b", "body": "\udfff"},
    "null characters": {"to": "a\0b", "command": "ls \0 x"},
    "200 levels": {"body": deep(200, "x")},
    "empty": {},
    "an empty name": {"": ""},
    "a command that is a list of lists": {"command": [["ls"], "x"]},
    "a command that is a number": {"command": 7},
    "a path with a null character": {"path": "\0/x"},
    "a host that is none": {"url": "http://[::1"},
    "an address without a host": {"to": "a@"},
}


@pytest.mark.parametrize("arguments", ODD.values(), ids=list(ODD))
@pytest.mark.parametrize("tool", ["send_email", "bash", "other"])
def test_odd_arguments_are_decided_on_and_stop_nobody(tool: str, arguments: Any) -> None:
    assert said_to(tool, arguments) == "allow"


def test_what_is_nested_20_000_levels_deep_is_asked_about_where_a_rule_could_bind() -> None:
    said = [said_to(tool, {"body": deep(20_000, "x")}) for tool in ("send_email", "bash", "other")]
    assert said == ["ask", "ask", "allow"]


def test_what_is_forbidden_is_found_200_levels_deep() -> None:
    assert said_to("send_email", {"to": deep(198)}) == "deny"


@pytest.mark.parametrize("size", [8_000_000])
def test_arguments_of_8_megabytes_are_decided_on(size: int) -> None:
    begun = time.process_time()
    assert said_to("send_email", {"to": "bob@acme.com", "body": "sarah " * (size // 6)}) == "allow"
    assert said_to("send_email", {"to": "sarah@example.com", "body": "x" * size}) == "deny"
    assert said_to("bash", {"command": "rm x", "input": "y" * size}) == "deny"
    assert said_to("bash", {"command": "echo '" + "y " * (size // 2) + "'"}) == "ask"
    assert said_to("other", {"rows": [{"a": n, "b": "x"} for n in range(size // 40)]}) == "allow"
    assert time.process_time() - begun < 120


def test_a_rule_for_a_tool_that_does_not_exist_stops_no_other() -> None:
    tools = [ToolSchema(name="send_email")]
    assert said_to("send_email", {"to": "bob@acme.com"}, tools=tools) == "allow"
    assert said_to("no_such_tool", {}, tools=tools) == "deny"


@pytest.mark.parametrize("order", [[NO_SARAH, ASK_MAIL], [ASK_MAIL, NO_SARAH]])
def test_of_two_rules_that_contradict_deny_wins_and_both_are_named(order: list[CheckedRule]) -> None:
    decision = ConversationGuard({"send_email": order}).weigh("send_email", {"to": "sarah@example.com"}).decision
    assert decision.action == "deny"
    assert decision.reason.startswith("toolmem: not run. The user said: never email Sarah.")
    assert "ask me before you send an email" in decision.reason
    assert {each.rule_id for each in decision.sources} == {"sarah", "ask"}
    other = ConversationGuard({"send_email": order}).weigh("send_email", {"to": "bob@acme.com"}).decision
    assert (other.action, [each.rule_id for each in other.sources]) == ("ask", ["ask"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON, st.sampled_from(["send_email", "bash", "write_file", "apply_patch"]))
def test_no_arguments_make_the_guard_fail(arguments: Any, tool: str) -> None:
    assert said_to(tool, arguments) in {"allow", "ask", "deny"}
    json.dumps(ConversationGuard(RULES).weigh(tool, arguments).decision.as_json())


_NASTY = [
    "a@b ",
    "/",
    "../",
    "~/",
    "x=",
    "*** delete file: ",
    "http://",
    ".toolmem ",
    "rm ",
    "a,",
    "{",
    "mailto:",
    "%41",
    "(",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["command", "path", "to"])
def test_four_times_the_arguments_cost_about_four_times_the_time(name: str) -> None:
    guard = ConversationGuard(RULES, protected=("/srv/data/toolmem.db",))

    def weighed(piece: str, size: int) -> Callable[[], object]:
        arguments = {name: piece * (size // len(piece)), "b": "x"}
        return lambda: guard.weigh("bash", arguments, directory=Path("/srv/app"))

    pieces = [*_NASTY, ".toolmem/*", "cd .toolmem;", "rm -r .;", "find . -name x -delete;"]
    assert [piece for piece in pieces if not grows_at_most(8, partial(weighed, piece), 4_000, 16_000)] == []
