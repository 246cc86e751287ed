"""No output makes the rule-based check slow: windows are bounded and patterns do not backtrack without end."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from tests.processor_time import takes_less_than
from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import ToolCallResult

MEGABYTE = 1_000_000
UNITS = [
    "a", " ", "\n", "_", "-", ".", "[", "{", '"', "'", "\\", "<", "(", "#", "0", "错", "\u2028", "a.", "A.", "a: ",
    "a/", "a|b\n", "a,", '{"a":', "{'a': ", "[{", "error ", "error_", "Error", "no ", "find: ", "bash: ", "<title>",
    "http://", "x@", "E: x\n", "Traceback (most recent call last)\n", "  File x\n", "not ", "exit ", "错误", "1.",
    "(1, ", "a=b ", "- ", "\t",
]  # fmt: skip
STARTS = ["", "Error", "<h1>404", '{"error": "', "{'message': '", "Traceback (most recent call last):\n", "HTTP"]
TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("get_thing", {}),
    ("bash", {"command": "find . | grep a"}),
    ("run_python", {}),
    ("read_file", {"path": "a"}),
]


@pytest.mark.parametrize(("tool_name", "given"), TOOLS)
@pytest.mark.parametrize("length", [420, 12_000, MEGABYTE])
def test_repetitive_outputs_are_judged_in_bounded_time(tool_name: str, given: dict[str, Any], length: int) -> None:
    check = RuleBasedCheck()
    for start in STARTS if length < MEGABYTE else STARTS[:1]:
        for unit in UNITS:
            output = (start + unit * (length // len(unit)))[:length]
            call = ToolCallResult(tool_name=tool_name, input=given, output=output, create_time=datetime.now(UTC))
            # About 0.02 on an idle machine.
            assert takes_less_than(0.5, partial(check.check, call)), f"{start!r} + {unit!r}"


def test_a_megabyte_of_input_costs_no_more_than_reading_it() -> None:
    for command in (" " * MEGABYTE, "a|" * (MEGABYTE // 2), "x" * MEGABYTE):
        for key in ("command", "query", "other"):
            call = ToolCallResult(
                tool_name="sql_query", input={key: command}, output="x: cannot do it", create_time=datetime.now(UTC)
            )
            assert takes_less_than(0.5, partial(RuleBasedCheck().check, call)), (key, command[:5])
