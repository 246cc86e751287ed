"""A ReMe client works unchanged: the requests of ReMe's tool memory demo and of its documentation, sent by `requests`.

The field names, the forms of times and paths, and the order of the steps are those of ReMe's published demo
(github.com/modelscope/ReMe, cookbook/simple_demo/use_tool_memory_demo.py); the recorded calls are our own.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests

WORKSPACE = "test_tool_memory_workspace"
TOOLS = {"web_search": 30, "database_query": 22, "file_processor": 18}


def recorded(tool: str, count: int) -> list[dict[str, Any]]:
    """Calls as ReMe clients record them: local times without a zone, costs, an input object, a flag."""
    calls = []
    for number in range(count):
        failed = number % 6 == 5
        call = {
            "create_time": f"2025-10-{1 + number // 24:02} {number % 24:02}:30:00",
            "tool_name": tool,
            "input": {"query": f"{tool} {number}", "max_results": 100 if failed else 10},
            "output": "Error: max_results is at most 50" if failed else f"Found {number + 8} relevant results",
            "token_cost": 20 if failed else 150 + number,
            "success": not failed,
            "time_cost": 10.0 if failed else 2.3,
        }
        calls.append(call)
    return calls


class ReMeClient:
    """What ReMe's demo does: post, and take anything but 200 for a failure."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, endpoint: str, **body: Any) -> dict[str, Any]:
        response = requests.post(f"{self._url}/{endpoint}", json={"workspace_id": WORKSPACE, **body}, timeout=30)
        assert response.status_code == 200, response.text
        answered: dict[str, Any] = response.json()
        assert set(answered) == {"answer", "success", "metadata"}
        return answered


@pytest.fixture
def reme(served):
    client = ReMeClient(served.url)
    client("vector_store", action="delete")  # as the demo begins; nothing may be there
    return client


def add_all(reme: ReMeClient) -> dict[str, Any]:
    return reme("add_tool_call_result", tool_call_results=[c for t, n in TOOLS.items() for c in recorded(t, n)])


def test_the_demo_runs_from_the_first_step_to_the_last(reme):
    added = add_all(reme)
    assert added["success"]
    assert {memory["when_to_use"] for memory in added["metadata"]["memory_list"]} == set(TOOLS)

    summed = reme("summary_tool_memory", tool_names=",".join(TOOLS))
    assert [memory["when_to_use"] for memory in summed["metadata"]["memory_list"]] == list(TOOLS)
    assert all(memory["content"] for memory in summed["metadata"]["memory_list"])

    for name, count in TOOLS.items():
        found = reme("retrieve_tool_memory", tool_names=name)
        (memory,) = found["metadata"]["memory_list"]
        assert memory["memory_type"] == "tool"
        assert memory["workspace_id"] == WORKSPACE
        assert ('"max_results": 100' if name == "web_search" else "at most 50") in memory["content"]
        assert memory["content"] in found["answer"]
        assert memory["metadata"]["statistics"]["calls"] == count

    dumped = reme("vector_store", action="dump", path="./")
    assert dumped["metadata"]["dumped"] == 3
    loaded = reme("vector_store", action="load", path="./")
    assert loaded["metadata"]["calls_added"] == 0, "the same file merges, it does not double"


def test_a_dump_outlives_its_workspace_and_is_a_file_that_reme_reads(reme, served):
    add_all(reme)
    reme("summary_tool_memory", tool_names="web_search")
    reme("vector_store", action="dump", path="./")
    lines = (served.folder / "dumps" / f"{WORKSPACE}.jsonl").read_text(encoding="utf-8").splitlines()
    memories = [json.loads(line) for line in lines]
    assert {memory["when_to_use"] for memory in memories} == set(TOOLS)
    for memory in memories:
        assert memory["memory_type"] == "tool"
        assert {"memory_id", "workspace_id", "content", "score", "time_created", "author", "metadata"} <= set(memory)
        for call in memory["tool_call_results"]:
            assert isinstance(call["token_cost"], int)
            assert isinstance(call["time_cost"], float)
            assert isinstance(call["success"], bool)
    assert reme("vector_store", action="delete")["metadata"]["deleted"] == 3
    assert reme("vector_store", action="list")["metadata"]["memory_list"] == []
    assert reme("vector_store", action="load", path="./")["metadata"]["calls_added"] == 70
    (memory,) = reme("retrieve_tool_memory", tool_names="web_search")["metadata"]["memory_list"]
    assert '"max_results": 100' in memory["content"]


def test_a_workspace_is_copied_listed_and_deleted_by_id(reme):
    add_all(reme)
    copy = f"{WORKSPACE}_copy"
    reme("vector_store", action="delete", workspace_id=copy)
    copied = reme("vector_store", action="copy", workspace_id=copy, src_workspace_id=WORKSPACE)
    assert copied["success"]
    listed = reme("vector_store", action="list", workspace_id=copy)["metadata"]["memory_list"]
    assert {memory["when_to_use"]: len(memory["tool_call_results"]) for memory in listed} == TOOLS
    ids = [memory["memory_id"] for memory in listed[:2]]
    assert reme("vector_store", action="delete_ids", workspace_id=copy, memory_ids=ids)["success"]
    assert len(reme("vector_store", action="list", workspace_id=copy)["metadata"]["memory_list"]) == 1
    assert len(reme("vector_store", action="list")["metadata"]["memory_list"]) == 3, "the source is as it was"


def test_the_call_of_remes_documentation_is_taken_as_it_stands(reme):
    call = {
        "create_time": "2025-10-21 10:30:00",
        "tool_name": "web_search",
        "input": {"query": "Python asyncio tutorial", "max_results": 10},
        "output": "Found 10 relevant results...",
        "token_cost": 150,
        "success": True,
        "time_cost": 2.3,
    }
    assert reme("add_tool_call_result", tool_call_results=[call])["success"]
    (memory,) = reme("retrieve_tool_memory", tool_names="web_search", include_calls=True)["metadata"]["memory_list"]
    (kept,) = memory["tool_call_results"]
    assert {name: kept[name] for name in call if name != "create_time"} == {
        name: value for name, value in call.items() if name != "create_time"
    }
    assert kept["create_time"].startswith("2025-10-21T10:30:00")
    assert kept["score"] in (0.0, 1.0)


def test_the_demos_own_slip_is_refused_by_name_and_takes_no_good_call_along(reme):
    """Its comment sends fields of other names (`tool_input`, `tool_output`, `execution_time`): a call without its
    output would be judged as one that answered nothing."""
    call = {"tool_name": "web_search", "tool_input": "Python", "tool_output": "Found 100", "execution_time": 0.5}
    added = reme("add_tool_call_result", tool_call_results=[call, *recorded("web_search", 1)])
    assert (added["success"], added["metadata"]["partial"]) == (False, True)
    (failure,) = added["metadata"]["evaluation"]["failures"]
    assert failure["index"] == 0
    assert all(name in failure["error"] for name in ("tool_input", "tool_output", "execution_time"))
    (memory,) = reme("retrieve_tool_memory", tool_names="web_search", include_calls=True)["metadata"]["memory_list"]
    assert [kept["output"] for kept in memory["tool_call_results"]] == ["Found 8 relevant results"]


def test_what_reme_answers_in_silence_is_said(reme):
    """A tool without a memory, and a record without a tool's name: 200 as ReMe's clients expect, and named."""
    missing = reme("retrieve_tool_memory", tool_names="nosuch")
    assert (missing["success"], missing["metadata"]["not_found"]) == (False, ["nosuch"])
    partial = reme("add_tool_call_result", tool_call_results=[*recorded("web_search", 19), {"output": "x"}])
    assert (partial["success"], partial["metadata"]["partial"]) == (False, True)
    evaluation = partial["metadata"]["evaluation"]
    assert evaluation["evaluated"] + evaluation["reused"] == 19, "verdicts of calls that were deleted are known still"
    assert [failure["index"] for failure in evaluation["failures"]] == [19]
