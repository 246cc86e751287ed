"""The ops of the mission on every road: Python, a YAML file, the command line; without a model and
with one over both protocols."""

from __future__ import annotations

import json

import command_line
import pytest
from model_settings import model_of

from toolmem import ToolMem
from toolmem.ops import ParseToolCallResultOp, SummaryToolMemoryOp, UpdateVectorStoreOp
from toolmem.testing.model_server import ModelServer

YAML = """
flow:
  add_tool_call_result:
    flow_content: >
      ParseToolCallResultOp(max_history_tool_call_cnt=40) >> update_vector_store_op
  summary_tool_memory:
    flow_content: summary_tool_memory_op >> UpdateVectorStoreOp()
op:
  summary_tool_memory_op:
    params: {recent_call_count: 31, summary_sleep_interval: 0}
  parse_tool_call_result_op:
    params: {evaluation_sleep_interval: 0}
"""
OVERRIDES = [
    "op.parse_tool_call_result_op.params.max_history_tool_call_cnt=40",
    "op.parse_tool_call_result_op.params.evaluation_sleep_interval=0",
    "op.summary_tool_memory_op.params.recent_call_count=31",
    "op.summary_tool_memory_op.params.summary_sleep_interval=0",
    "embedding_model.default.backend=hashing",
]


def calls(start, end, tool="search"):
    return [
        {
            "tool_name": tool,
            "input": {"q": n},
            "output": "Error: no such file" if n % 10 == 9 else f"{n + 1} results",
            "success": n % 10 != 9,
            "time_cost": 0.5,
            "token_cost": 10,
        }
        for n in range(start, end)
    ]


@pytest.fixture(params=["offline", "openai_compatible", "dashscope"])
def model(request):
    """Settings of a model, and the server behind it; None: there is none."""
    if request.param == "offline":
        yield [], None
        return
    with ModelServer() as server:
        yield model_of(server, backend=request.param), server


@pytest.fixture(params=["python", "yaml", pytest.param("command line", marks=pytest.mark.slow)])
def run(request, tmp_path, model):
    """Run a flow by name; answers the response as a dict."""
    (tmp_path / "my.yaml").write_text(YAML)
    store = f"vector_store.default.params.path={tmp_path / 'memory.db'}"
    settings = [store, *model[0]]
    if request.param == "command line":

        def by_command(flow, **given):
            asked = ["run", flow, "--request", "-", *OVERRIDES, *settings]
            done = command_line.run(tmp_path, *asked, given={"workspace_id": "w", **given})
            assert done.returncode in (0, 1), done.stderr
            return json.loads(done.stdout)

        yield by_command
        return
    hashing = "embedding_model.default.backend=hashing"
    memory = (
        ToolMem(tmp_path / "my.yaml", overrides=[*settings, hashing])
        if request.param == "yaml"
        else ToolMem(overrides=[*OVERRIDES, *settings])
    )
    composed = {
        "add_tool_call_result": ParseToolCallResultOp() >> UpdateVectorStoreOp(),
        "summary_tool_memory": SummaryToolMemoryOp(),
    }

    def by_python(flow, **given):
        flow = composed.get(flow, flow) if request.param == "python" else flow
        done = memory.run(flow, workspace_id="w", **given)
        return {"answer": done.answer, "success": done.success, "metadata": done.metadata}

    yield by_python
    memory.close()


def memory_of(run, tool="search", **more):
    (found,) = run("retrieve_tool_memory", tool_names=tool, **more)["metadata"]["memory_list"]
    return json.loads(json.dumps(found, default=str))


def test_the_sentences_of_the_mission_hold(run, model):
    server = model[1]

    def asked():
        return len(server.requests) if server else 0

    # each call is judged: summary, evaluation, score 0.0 or 1.0
    added = run("add_tool_call_result", tool_call_results=calls(0, 30))
    assert added["answer"] == "Successfully evaluated 30 tool calls"
    kept = memory_of(run, include_calls=True)["tool_call_results"]
    assert {call["score"] for call in kept} == {0.0, 1.0}
    assert all(call["summary"] and call["evaluation"] for call in kept)
    assert asked() == (30 if server else 0)

    # statistics
    figures = memory_of(run)["metadata"]["statistics"]
    assert figures["success_rate"] == pytest.approx(27 / 30)
    assert figures["avg_score"] == pytest.approx(27 / 30)
    assert (figures["avg_time_cost"], figures["avg_token_cost"]) == (0.5, 10)

    # summarized, and the same calls skipped without a request
    done = run("summary_tool_memory", tool_names="search")
    assert done["answer"] == (
        "Successfully processed 1 tool memories: 1 summarized, 0 skipped (already up-to-date)"
    )
    before = asked()
    again = run("summary_tool_memory", tool_names="search")["metadata"]
    assert (again["skipped"], asked()) == (["search"], before)

    # one new call: all 31 are read again and marked
    run("add_tool_call_result", tool_call_results=calls(30, 31))
    assert run("summary_tool_memory", tool_names="search")["metadata"]["summarized"] == ["search"]
    kept = memory_of(run, include_calls=True)["tool_call_results"]
    assert [call["is_summarized"] for call in kept] == [True] * 31
    assert memory_of(run)["content"]

    # the window is first in, first out
    run("add_tool_call_result", tool_call_results=calls(31, 45))
    kept = memory_of(run, include_calls=True)["tool_call_results"]
    assert [call["input"]["q"] for call in kept] == list(range(5, 45))

    # several tools, counted in the answer
    others = [call for tool in ("calc", "mail", "map") for call in calls(0, 2, tool)]
    run("add_tool_call_result", tool_call_results=others)
    run("summary_tool_memory")
    run("add_tool_call_result", tool_call_results=calls(2, 3, "calc") + calls(0, 1, "clock"))
    done = run("summary_tool_memory", tool_names="search,calc,mail,map,clock")
    assert done["answer"] == (
        "Successfully processed 5 tool memories: 2 summarized, 3 skipped (already up-to-date)"
    )

    # retrieval by names in the order asked, and by query
    found = run("retrieve_tool_memory", tool_names=["map", "none", "calc"])["metadata"]
    assert [each["when_to_use"] for each in found["memory_list"]] == ["map", "calc"]
    assert (found["not_found"], found["partial"]) == (["none"], True)
    hits = run("retrieve_tool_memory", query="calc", top_k=2)["metadata"]["memory_list"]
    assert len(hits) == 2
    assert hits[0]["when_to_use"] == "calc"
