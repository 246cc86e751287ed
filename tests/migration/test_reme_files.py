"""Files that ReMe itself wrote (`reme/README.md` says how), and answers that its own types must be able to read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from toolmem import ToolCall, ToolMem

HERE = Path(__file__).parent / "reme"
PAGE = Path(__file__).parents[2] / "docs" / "migration" / "reme.md"


def imported(folder: Path) -> str:
    command = [sys.executable, "-m", "toolmem", "store", "import", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("kind", ["store", "dump"])
def test_a_file_of_remes_is_taken_over_whole_and_once(kind: str) -> None:
    imported(HERE / kind)
    imported(HERE / kind)
    with ToolMem(".toolmem/memory.db", workspace="team") as mem:
        (memory,) = mem.retrieve("search", include_calls=True)
        assert (memory.content, memory.author) == ("Keep limit at 10 or below.", "qwen3-30b-a3b-instruct-2507")
        assert memory.memory_id
        bad, good = memory.tool_call_results
        assert (bad.success, bad.score, bad.time_cost, bad.token_cost) == (False, 0.0, 0.2, None)
        assert (good.success, good.score, good.time_cost, good.token_cost) == (True, 1.0, None, 12)
        assert (bad.evaluation, good.is_summarized) == ("A wrong parameter.", True)


def test_both_kinds_of_file_hold_the_same_calls() -> None:
    imported(HERE / "store")
    assert "0 calls" in imported(HERE / "dump") or "nothing" in imported(HERE / "dump")


def test_a_call_that_is_sent_again_with_remes_hash_counts_once() -> None:
    imported(HERE / "dump")
    (line,) = (HERE / "dump" / "team.jsonl").read_text().splitlines()
    with ToolMem(".toolmem/memory.db", workspace="team") as mem:
        added = mem.add(json.loads(line)["tool_call_results"])
        assert (added.stored, added.duplicates) == (0, 2)


def test_what_is_answered_satisfies_the_types_of_remes_clients() -> None:
    schema = json.loads((HERE / "tool_memory.schema.json").read_text())
    with ToolMem(":memory:") as mem:
        mem.add([ToolCall("known", output="x"), ToolCall("failed", {"a": 1}, "Error: no", success=False)])
        named = {"tool_names": "known,failed", "include_calls": True}
        requests = [
            ("retrieve_tool_memory", named),
            ("vector_store", {"action": "list"}),
            ("summary_tool_memory", {"tool_names": "known"}),
        ]
        answers: list[dict[str, Any]] = []
        for flow, request in requests:
            answers += mem.app.run(flow, workspace_id="default", **request).metadata["memory_list"]
    assert len(answers) == 5
    for answer in answers:
        jsonschema.validate(answer, schema)


def test_the_page_for_remes_users_runs_on_a_line_that_reme_wrote() -> None:
    line = (HERE / "store" / "team.jsonl").read_text().strip()
    assert line in PAGE.read_text(encoding="utf-8")
