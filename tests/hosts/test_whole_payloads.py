"""A payload that is deeper, or holds longer numbers, than Python reads is no way past a rule."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem import ToolMem
from toolmem.hosts.whole_payloads import DEEPEST, read_payload

NESTED = "[" * 5_000 + "]" * 5_000
DIGITS = "9" * 5_000

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=15,
)


@given(value=JSON)
def test_what_python_reads_is_read_as_it_is(value: Any) -> None:
    assert read_payload(json.dumps(value)) == value


@pytest.mark.parametrize("opened", ["[", '{"a":', '{"a":["b",'])
def test_what_stands_beside_something_too_deep_is_read(opened: str) -> None:
    closed = opened[::-1].translate(str.maketrans("[{", "]}", ':",ab'))
    text = f'{{"first": "[{{\\"", "deep": {opened * 6_000}1{closed * 6_000}, "last": 2}}'
    read = read_payload(text)
    assert (read["first"], read["last"]) == ('[{"', 2)
    depth, value = 0, read["deep"]
    while isinstance(value, dict | list) and value:
        depth, value = depth + 1, value["a"] if isinstance(value, dict) else value[-1]
    assert DEEPEST - 5 < depth <= DEEPEST


def test_a_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        read_payload("[" * 100_000)


def test_a_number_of_any_length_is_read() -> None:
    assert read_payload(f'{{"n": {DIGITS}}}') == {"n": float("inf")}


@pytest.mark.parametrize(
    ("more", "action"),
    [("1", "deny"), (NESTED, "deny"), (DIGITS, "deny")],
)
def test_a_rule_stops_a_command_whatever_stands_beside_it(tmp_path: Path, more: str, action: str) -> None:
    with ToolMem(tmp_path / "memory.db") as mem:
        mem.rules.put("Bash", "never use sudo", effect="deny", when=[{"command": "^sudo "}], priority="critical")
    event = (
        f'{{"session_id": "s", "transcript_path": "", "cwd": {json.dumps(str(tmp_path))}, '
        '"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t1", '
        f'"tool_input": {{"command": "sudo ls", "x": {more}}}}}'
    )
    run = subprocess.run(
        [sys.executable, "-P", "-m", "toolmem.hosts", "claude-code", "--store", str(tmp_path / "memory.db")],
        env={"HOME": str(tmp_path)},
        input=event,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(run.stdout)["hookSpecificOutput"]["permissionDecision"] == action
