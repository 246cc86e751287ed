"""The flows retrieve_tool_memory and vector_store, and dumps that ReMe and toolmem both read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolmem.errors import RequestError
from toolmem.rules.general_memory import GeneralMemory
from toolmem.testing.scripted_llm import ScriptedLLM


def record(number: int, tool: str = "search", **more: Any) -> dict[str, Any]:
    return {
        "tool_name": tool,
        "input": {"query": f"question {number}"},
        "output": f"[{number}]",
        "create_time": f"2026-03-01T00:{number:02}:00+00:00",
        **more,
    }


async def fill(app, workspace: str = "team", tools: tuple[str, ...] = ("search", "send_email")) -> None:
    for tool in tools:
        await app.run_flow(
            "add_tool_call_result",
            workspace_id=workspace,
            tool_call_results=[record(n, tool, time_cost=None if n else 0.5, token_cost=n or None) for n in range(5)],
        )
    await app.run_flow("summary_tool_memory", workspace_id=workspace, tool_names=list(tools))


async def act(app, action: str, workspace: str = "team", **more):
    return await app.run_flow("vector_store", workspace_id=workspace, action=action, **more)


async def listed(app, workspace: str = "team") -> list[dict[str, Any]]:
    return (await act(app, "list", workspace)).metadata["memory_list"]


async def test_memories_come_in_the_order_asked_and_missing_ones_are_named(make_app):
    async with make_app() as app:
        await fill(app)
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="send_email,nosuch,search")
        assert [m["when_to_use"] for m in got.metadata["memory_list"]] == ["send_email", "search"]
        assert got.metadata["not_found"] == ["nosuch"]
        assert got.success  # with `partial`: a client that drops an answer without success would lose the known ones
        assert got.metadata["partial"]
        assert all(m["tool_call_results"] == [] for m in got.metadata["memory_list"])


async def test_a_query_ranks_by_meaning_and_words(make_app):
    replies = {"send_email": "```txt\nSends a message to a mailbox.\n```", "search": "```txt\nFinds documents.\n```"}
    llm = ScriptedLLM(
        lambda prompt: (
            next(reply for tool, reply in replies.items() if tool in prompt)
            if "```txt" in prompt and '"score"' not in prompt
            else '{"summary": "s", "evaluation": "e", "score": 1.0}'
        )
    )
    async with make_app(llms={"default": llm}) as app:
        await fill(app)
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", query="which tool writes to a mailbox?")
        assert got.success
        assert got.metadata["memory_list"][0]["when_to_use"] == "send_email"
        assert -1.0 <= got.metadata["memory_list"][0]["metadata"]["similarity"] <= 1.0
        one = await app.run_flow("retrieve_tool_memory", workspace_id="team", query="mailbox", top_k=1)
        assert len(one.metadata["memory_list"]) == 1


async def test_neither_names_nor_query_is_refused(make_app):
    async with make_app() as app:
        with pytest.raises(RequestError, match="tool_names or query"):
            await app.run_flow("retrieve_tool_memory", workspace_id="team")


async def test_a_dump_loaded_elsewhere_holds_the_same_memories_and_twice_adds_nothing(make_app, tmp_path: Path):
    async with make_app(f"dump_dir='{tmp_path / 'dumps'}'") as app:
        await fill(app)
        before = await listed(app)
        dumped = await act(app, "dump")
        assert dumped.success
        path = Path(dumped.metadata["path"])
        assert path.parent == (tmp_path / "dumps").resolve()
        path.rename(path.with_name("other.jsonl"))
        loaded = await act(app, "load", "other")
        assert loaded.metadata["calls_added"] == 10
        after = await listed(app, "other")
        for old, new in zip(before, after, strict=True):
            assert new["content"] == old["content"]
            assert new["metadata"]["lifetime"] == old["metadata"]["lifetime"]
            assert new["metadata"]["covered"] == old["metadata"]["covered"] == 5
            assert new["metadata"]["claims"] == old["metadata"]["claims"]
            for a, b in zip(old["tool_call_results"], new["tool_call_results"], strict=True):
                assert a == b
        again = await act(app, "load", "other")
        assert (again.metadata["calls_added"], again.metadata["duplicates"]) == (0, 10)
        into_itself = await act(app, "load", "team", path="other.jsonl")
        assert into_itself.metadata["calls_added"] == 0
        skipped = await app.run_flow("summary_tool_memory", workspace_id="other", tool_names="search")
        assert skipped.metadata["skipped"] == ["search"]


async def test_the_next_summary_goes_on_after_a_dump_and_after_a_copy_as_it_would_have_here(make_app, tmp_path: Path):
    """What policies and the writer keep of a guidance comes along: there and back, under `metadata.toolmem` alone."""
    params = "op.summary_tool_memory_op.params"

    def repaired(number: int) -> list[dict[str, Any]]:
        return [
            record(
                2 * number,
                success=False,
                output="Error: region is missing",
                id=f"bad {number}",
                conversation_id="c",
            ),
            record(
                2 * number + 1,
                input={"query": f"question {2 * number}", "region": "eu"},
                id=f"good {number}",
                conversation_id="c",
            ),
        ]

    async def add(app, workspace: str, number: int) -> dict[str, Any]:
        await app.run_flow("add_tool_call_result", workspace_id=workspace, tool_call_results=repaired(number))
        done = await app.run_flow("summary_tool_memory", workspace_id=workspace, tool_names="search")
        (memory,) = await listed(app, workspace)
        return {"content": memory["content"], "summarized": done.metadata["summarized"]}

    async def kept(app, workspace: str) -> dict[str, Any]:
        (found,) = await (await app.services.store_named()).records(workspace, ["search"])
        return found.guidance.upkeep()

    chosen = [f"{params}.policy=incremental", f"{params}.full_every=9", f"{params}.recent_call_count=4"]
    async with make_app(f"dump_dir='{tmp_path}'", *chosen) as app:
        for number in range(5):
            await add(app, "team", number)
        upkeep = await kept(app, "team")
        assert upkeep["history"]["recovered"] == {"region is missing": 5}
        assert upkeep["edits"] > 0
        await act(app, "copy", "copied", src_workspace_id="team")
        written = Path((await act(app, "dump")).metadata["path"])
        line = json.loads(written.read_text())
        assert list(line["metadata"]) == ["toolmem"]
        assert line["metadata"]["toolmem"]["metadata"]["upkeep"] == upkeep
        await act(app, "load", "loaded", path="team.jsonl")
        await act(app, "dump", "loaded", path="back.jsonl")
        await act(app, "load", "back", path="back.jsonl")
        for workspace in ("copied", "loaded", "back"):
            assert await kept(app, workspace) == upkeep
        assert "upkeep" not in (await listed(app))[0]["metadata"]
        here = await add(app, "team", 5)
        for workspace in ("copied", "loaded", "back"):
            assert await add(app, workspace, 5) == here
            assert await kept(app, workspace) == await kept(app, "team")


async def test_a_dump_holds_only_what_remes_types_take(make_app, tmp_path: Path):
    async with make_app(f"dump_dir='{tmp_path}'") as app:
        await fill(app)
        await act(app, "dump", path="out.jsonl")
    for line in (tmp_path / "out.jsonl").read_text().splitlines():
        memory = json.loads(line)
        assert memory["memory_type"] == "tool"
        assert isinstance(memory["score"], float)
        for call in memory["tool_call_results"]:
            assert isinstance(call["success"], bool)
            assert isinstance(call["score"], float)
            assert isinstance(call["time_cost"], float)
            assert isinstance(call["token_cost"], int)
        assert memory["tool_call_results"][0]["token_cost"] == -1


async def test_a_path_as_reme_writes_it_is_told_where_paths_are_taken_and_works_from_there(
    make_app, tmp_path: Path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    async with make_app() as app:
        await fill(app)
        with pytest.raises(RequestError) as caught:
            await act(app, "load", path="./docs/library/")
        assert str(caught.value) == (
            "path: there is no dump '.toolmem/dumps/docs/library/team.jsonl' "
            "(paths are taken inside `dump_dir`, which is '.toolmem/dumps')"
        )
        with pytest.raises(RequestError, match=r"outside the dump folder \(paths are .* '\.toolmem/dumps'\)"):
            await act(app, "dump", path="../../elsewhere")
    async with make_app("dump_dir=.") as app:
        await fill(app)
        assert (await act(app, "dump", path="./dumps/")).metadata["path"] == "dumps/team.jsonl"
        assert (tmp_path / "dumps" / "team.jsonl").is_file()
        assert (await act(app, "load", "other", path="./dumps/team.jsonl")).success


REME_LINE = {
    "workspace_id": "old",
    "memory_id": "0123abcd",
    "memory_type": "tool",
    "when_to_use": "web_search",
    "content": "Prefer precise queries.",
    "score": 0.5,
    "time_created": "2025-11-01 08:00:00",
    "time_modified": "2025-11-02 08:00:00",
    "author": "qwen3-30b",
    "tool_call_results": [
        {
            "create_time": "2025-11-01 08:00:00",
            "tool_name": "web_search",
            "input": {"query": "a"},
            "output": "ok",
            "token_cost": -1,
            "success": True,
            "time_cost": 1.5,
            "summary": "searched",
            "evaluation": "fine",
            "score": 1.0,
            "is_summarized": True,
            "metadata": {},
        },
        {
            "create_time": "2025-11-01 08:01:00",
            "tool_name": "web_search",
            "input": "raw text",
            "output": "Error",
            "token_cost": 7,
            "success": False,
            "time_cost": 0.5,
            "summary": "searched",
            "evaluation": "failed",
            "score": 0.0,
            "is_summarized": False,
            "metadata": {},
        },
    ],
    "metadata": {},
}


@pytest.mark.parametrize("as_vector_node", [False, True])
async def test_remes_own_files_are_loaded_with_their_scores_and_guidance(make_app, tmp_path: Path, as_vector_node):
    line = dict(REME_LINE)
    if as_vector_node:
        keys = ("memory_type", "content", "score", "time_created", "time_modified", "author", "tool_call_results")
        line = {
            "unique_id": line["memory_id"],
            "workspace_id": "old",
            "content": line["when_to_use"],
            "vector": [0.1, 0.2],
            "metadata": {**{key: line[key] for key in keys}, "metadata": {}},
        }
    personal = {"memory_type": "personal", "when_to_use": "x", "content": "y"}
    (tmp_path / "old.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(personal) + "\n")
    async with make_app(f"dump_dir='{tmp_path}'", "time_zone=Asia/Shanghai") as app:
        response = await act(app, "load", "old")
        assert response.success
        assert response.metadata["passed_over"] == [{"line": 2, "memory_type": "personal"}]
        (memory,) = await listed(app, "old")
        assert memory["content"] == "Prefer precise queries."
        assert memory["author"] == "qwen3-30b"
        first, second = memory["tool_call_results"]
        assert "token_cost" not in first, "an unknown cost is left out, as ReMe's types want it"
        assert first["create_time"] == "2025-11-01T00:00:00Z"
        assert (first["score"], second["score"]) == (1.0, 0.0)
        assert (first["is_summarized"], second["is_summarized"]) == (True, False)
        again = await act(app, "load", "old")
        assert again.metadata["calls_added"] == 0


async def test_a_dump_with_a_bad_line_changes_nothing_and_names_the_line(make_app, tmp_path: Path):
    bad = json.dumps({**REME_LINE, "when_to_use": ""})
    (tmp_path / "team.jsonl").write_text(json.dumps(REME_LINE) + "\n" + bad + "\nnot json\n")
    async with make_app(f"dump_dir='{tmp_path}'") as app:
        with pytest.raises(RequestError) as refused:
            await act(app, "load")
        assert "line 2" in str(refused.value)
        assert "line 3" in str(refused.value)
        assert await listed(app) == []


@pytest.mark.parametrize("path", ["../out.jsonl", "/etc/out.jsonl", "a/../../b"])
async def test_a_path_outside_the_dump_folder_is_refused(make_app, tmp_path: Path, path):
    async with make_app(f"dump_dir='{tmp_path / 'dumps'}'") as app:
        await fill(app)
        for action in ("dump", "load"):
            with pytest.raises(RequestError, match="dump"):
                await act(app, action, path=path)


async def test_copy_delete_ids_and_delete(make_app):
    async with make_app() as app:
        await fill(app)
        copied = await act(app, "copy", "second", src_workspace_id="team")
        assert copied.metadata["calls_added"] == 10
        first, second = await listed(app, "second")
        gone = await act(app, "delete_ids", "second", memory_ids=[first["memory_id"], "nosuch"])
        assert gone.metadata["deleted"] == 1
        assert gone.metadata["not_found"] == ["nosuch"]
        assert not gone.success
        assert [m["memory_id"] for m in await listed(app, "second")] == [second["memory_id"]]
        await act(app, "delete", "second")
        assert await listed(app, "second") == []
        assert len(await listed(app)) == 2


async def keep_everything(app, workspace: str = "team") -> None:
    """Two tool memories, a rule, a note and an entry of the ledger."""
    await fill(app)
    rules = await app.rule_store(workspace)
    await rules.put_rule("send_email", "never email Sarah", priority="critical")
    await GeneralMemory(rules.store, workspace, clock=app.clock).remember("the office moved")
    await rules.store.put(workspace, "ledger", "2026-01-01", {"entries": []})


async def test_delete_takes_the_tool_memories_and_says_that_the_rules_stay(make_app):
    async with make_app() as app:
        await keep_everything(app)
        gone = await act(app, "delete")
        assert gone.answer == "Deleted 2 tool memories of workspace team; 1 rule stays"
        assert (gone.metadata["deleted"], gone.metadata["rules_kept"]) == (2, 1)
        assert await listed(app) == []
        rules = await app.rule_store("team")
        assert [rule.rule for rule in await rules.list_rules("send_email")] == ["never email Sarah"]
        assert await rules.store.namespaces("team") == ["global", "ledger", "tool-send_email", "tool_rule_ids"]
        assert (await act(app, "delete")).answer == "Deleted 0 tool memories of workspace team; 1 rule stays"


async def test_everything_goes_by_delete_workspace_which_names_what_it_deleted(make_app):
    async with make_app() as app:
        await keep_everything(app)
        gone = await act(app, "delete_workspace", confirm="team")
        counts = {"tool_memories": 2, "rules": 1, "notes": 1, "ledger_records": 1, "tool_statistics": 0}
        assert gone.metadata["counts"] == counts
        assert all(f"{count} {kind.replace('_', ' ')}" in gone.answer for kind, count in counts.items())
        assert await (await app.services.store_named()).workspaces() == []


@pytest.mark.parametrize("confirm", [None, "", "Team", "other", True, ["team"]])
async def test_a_workspace_is_deleted_only_where_it_is_named_twice(make_app, confirm):
    async with make_app() as app:
        await keep_everything(app)
        with pytest.raises(RequestError) as caught:
            await act(app, "delete_workspace", confirm=confirm)
        assert caught.value.field == "confirm"
        assert len(await listed(app)) == 2


async def test_an_unknown_action_names_the_nearest(make_app):
    async with make_app() as app:
        with pytest.raises(RequestError, match="dump"):
            await act(app, "dmp")


async def test_an_empty_workspace_is_not_found_by_dump_and_copy(make_app):
    async with make_app() as app:
        assert not (await act(app, "dump", "nobody")).success
        assert not (await act(app, "copy", "team", src_workspace_id="nobody")).success


async def test_a_load_that_replaces_leaves_what_the_file_holds_and_every_rule(make_app):
    async with make_app() as app:
        await fill(app)
        await act(app, "dump")
        await (await app.rule_store("team")).put_rule("search", "never search at night", priority="critical")
        later = [{"tool_name": "later", "output": "x", "id": "l-1"}]
        await app.run_flow("add_tool_call_result", workspace_id="team", tool_call_results=later)
        before = [memory["when_to_use"] for memory in await listed(app)]
        loaded = await app.run_flow("vector_store", workspace_id="team", action="load", replace=True)
        assert loaded.metadata["replaced"] == len(before)
        assert [memory["when_to_use"] for memory in await listed(app)] == [name for name in before if name != "later"]
        assert [rule.rule for rule in await (await app.rule_store("team")).list_rules("search")] == [
            "never search at night"
        ]


@pytest.mark.parametrize("calls", [10**30, -5, "x"])
async def test_counters_that_no_tool_can_have_are_refused_with_the_whole_file(make_app, tmp_path, calls):
    async with make_app(f"dump_dir='{tmp_path}'") as app:
        await app.run_flow("add_tool_call_result", workspace_id="a", tool_call_results=[record(1)])
        await app.run_flow("vector_store", workspace_id="a", action="dump")
        body = json.loads((tmp_path / "a.jsonl").read_text())
        other = {**body, "when_to_use": "other", "memory_id": "other"}
        body["metadata"]["toolmem"]["metadata"]["lifetime"]["calls"] = calls
        (tmp_path / "b.jsonl").write_text(f"{json.dumps(other)}\n{json.dumps(body)}\n")
        with pytest.raises(RequestError, match="lifetime"):
            await app.run_flow("vector_store", workspace_id="b", action="load")
        assert await (await app.services.store_named()).tool_names("b") == []


async def test_a_bad_file_replaces_nothing(make_app, tmp_path):
    async with make_app() as app:
        await fill(app)
        path = tmp_path / ".toolmem" / "dumps" / "team.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("not json\n")
        before = await listed(app)
        with pytest.raises(RequestError, match="nothing was loaded"):
            await app.run_flow("vector_store", workspace_id="team", action="load", replace=True)
        assert await listed(app) == before
