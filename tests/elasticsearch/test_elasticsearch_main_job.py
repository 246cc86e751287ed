"""The whole main job with two lines of configuration changed: the same figures as on the embedded store."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elasticsearch_nodes.server import Server

from toolmem import ToolMemApp
from toolmem.research.evaluation import evaluate
from toolmem.testing.store_contract.scenario import call

UNPACED = (
    "op.parse_tool_call_result_op.params.evaluation_sleep_interval=0",
    "op.summary_tool_memory_op.params.summary_sleep_interval=0",
)
OF_THIS_RUN = frozenset(("started", "phases", "seconds", "store"))


def on_elasticsearch(url: str, prefix: str) -> list[str]:
    return [
        "vector_store.default.backend=elasticsearch",
        f"vector_store.default.params.hosts={url}",
        f"vector_store.default.params.index_prefix={prefix}",
        "vector_store.default.params.number_of_replicas=0",
        *UNPACED,
    ]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def figures(value: Any) -> Any:
    """Without times of the clock and the name of the store."""
    if isinstance(value, dict):
        return {key: figures(held) for key, held in value.items() if key not in OF_THIS_RUN}
    return [figures(held) for held in value] if isinstance(value, list) else value


def test_the_main_job_gives_the_same_figures_on_both_stores(
    server: Server, fresh_prefix: Callable[[], str], tmp_path: Path
):
    evaluate(out=tmp_path / "embedded", overrides=UNPACED)
    evaluate(out=tmp_path / "distributed", overrides=on_elasticsearch(server.url, fresh_prefix()))
    for name in ("calls.csv", "tools.csv", "skips.csv"):
        assert rows(tmp_path / "distributed" / name) == rows(tmp_path / "embedded" / name), name
    ours, embedded = (
        figures(json.loads((tmp_path / name / "summary.json").read_text())) for name in ("distributed", "embedded")
    )
    assert ours == embedded
    assert not (tmp_path / "distributed" / "memory.db").exists()


async def test_every_action_of_the_store_flow_works(server: Server, fresh_prefix: Callable[[], str], tmp_path: Path):
    overrides = [*on_elasticsearch(server.url, fresh_prefix()), f"dump_dir='{tmp_path / 'dumps'}'"]
    records = [
        {"tool_name": f"tool_{n % 3}", "input": {"n": n}, "output": "ok", "create_time": "2026-03-01T00:00:00+00:00"}
        for n in range(30)
    ]
    async with ToolMemApp(overrides=overrides) as app:

        async def act(action: str, workspace: str = "team", **more: Any) -> dict[str, Any]:
            response = await app.run_flow("vector_store", workspace_id=workspace, action=action, **more)
            assert response.success, response.answer
            return response.metadata

        await app.run_flow("add_tool_call_result", workspace_id="team", tool_call_results=records)
        summary = await app.run_flow("summary_tool_memory", workspace_id="team", tool_names="tool_0,tool_1,tool_2")
        assert "3 summarized" in summary.answer
        again = await app.run_flow("summary_tool_memory", workspace_id="team", tool_names="tool_0,tool_1,tool_2")
        assert "3 skipped" in again.answer
        assert (await act("dump"))["dumped"] == 3
        assert (await act("copy", "second", src_workspace_id="team"))["calls_added"] == 30
        assert (await act("delete"))["deleted"] == 3
        assert (await act("load"))["calls_added"] == 30
        assert (await act("load"))["calls_added"] == 0
        listed = (await act("list"))["memory_list"]
        assert [len(memory["tool_call_results"]) for memory in listed] == [10, 10, 10]
        assert (await act("delete_ids", memory_ids=[listed[0]["memory_id"]]))["deleted"] == 1
        assert len((await act("list"))["memory_list"]) == 2
        response = await app.run_flow("retrieve_tool_memory", workspace_id="second", query="tool_1", top_k=1)
        assert [memory["when_to_use"] for memory in response.metadata["memory_list"]] == ["tool_1"]
        await (await app.rule_store("second")).put_rule("tool_0", "never twice", priority="critical")
        gone = await app.run_flow("vector_store", workspace_id="second", action="delete")
        assert (gone.metadata["deleted"], gone.metadata["rules_kept"]) == (3, 1)
        gone = await app.run_flow("vector_store", workspace_id="second", action="delete_workspace", confirm="second")
        assert gone.metadata["counts"]["rules"] == 1
        assert "second" not in await (await app.services.store_named()).workspaces()


async def test_25000_calls_are_listed_dumped_and_loaded_by_the_flow(
    server: Server, fresh_prefix: Callable[[], str], tmp_path: Path
):
    overrides = [*on_elasticsearch(server.url, fresh_prefix()), f"dump_dir='{tmp_path / 'dumps'}'"]
    async with ToolMemApp(overrides=overrides) as app:
        store = await app.services.store_named("default")
        for tool in ("one", "two"):
            for first in range(0, 12_500, 2_500):
                batch = [call(n, tool) for n in range(first, first + 2_500)]
                await store.append_calls("team", tool, batch, 20_000)

        async def act(action: str, workspace: str) -> dict[str, Any]:
            response = await app.run_flow("vector_store", workspace_id=workspace, action=action, path="all.jsonl")
            assert response.success, response.answer
            return response.metadata

        listed = (await act("list", "team"))["memory_list"]
        assert [len(memory["tool_call_results"]) for memory in listed] == [12_500, 12_500]
        assert (await act("dump", "team"))["dumped"] == 2
        assert (await act("load", "second"))["calls_added"] == 25_000
        ours, loaded = [await store.memories(name, None, calls=True) for name in ("team", "second")]
        assert [memory.calls for memory in loaded] == [memory.calls for memory in ours]
        assert [memory.figures for memory in loaded] == [memory.figures for memory in ours]
        assert (await act("delete", "team"))["deleted"] == 2
        assert await store.workspaces() == ["second"]
