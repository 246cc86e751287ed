"""Memories beside the rules, and the tools by which an agent reaches both."""

from __future__ import annotations

import json

import pytest

from tests.agent_over_rules import agent_over
from toolmem.errors import RequestError
from toolmem.operations.agent_tools import AgentTools
from toolmem.rules.general_memory import GeneralMemory


@pytest.fixture
def memory(store, clock, embedder):
    return GeneralMemory(store, "team", clock=clock, embedder=embedder)


@pytest.fixture
def tools(rules, memory):
    return agent_over(rules)


# ---------------------------------------------------------------- general memory


async def test_what_fits_the_query_best_is_recalled_first(memory):
    for text in ("The printer is on the second floor.", "Sarah prefers to be called.", "Reports are due on Friday."):
        await memory.remember(text)
    assert (await memory.recall("when are the reports due?", limit=1))[0].content == "Reports are due on Friday."
    assert (await memory.recall("how does Sarah want to be reached", limit=1))[0].content.startswith("Sarah")


async def test_without_a_query_the_newest_come_first(memory, clock):
    for text in ("one", "two", "three"):
        clock.advance(1)
        await memory.remember(text)
    assert [entry.content for entry in await memory.recall(limit=2)] == ["three", "two"]


async def test_namespaces_do_not_mix_and_tools_have_no_case(memory):
    await memory.remember("of all")
    await memory.remember("of a skill", namespace="skill-7")
    await memory.remember("of a tool", namespace="tool-Send_Email")
    assert [entry.content for entry in await memory.recall()] == ["of all"]
    assert [entry.content for entry in await memory.recall("of", namespace="skill-7")] == ["of a skill"]
    assert [entry.content for entry in await memory.recall("of", namespace="tool-send_email")] == ["of a tool"]


async def test_the_same_text_is_the_same_memory(memory, clock):
    first = await memory.remember("Sarah prefers to be called.", tags=["people"])
    clock.advance(1)
    again = await memory.remember("sarah prefers  to be called")
    assert (again.id, again.created_at, again.tags) == (first.id, first.created_at, ["people"])
    assert again.updated_at == clock.now()
    assert len(await memory.recall()) == 1


async def test_a_forgotten_memory_is_gone(memory):
    entry = await memory.remember("temporary")
    assert await memory.forget(entry.id) is True
    assert await memory.forget(entry.id) is False
    assert await memory.recall("temporary") == []


async def test_the_rules_of_a_tool_are_recalled_with_its_memories_and_are_not_forgotten(memory, rules):
    rule = await rules.put_rule("send_email", "prefer plain text over HTML")
    await memory.remember("The mail server is slow on Mondays.", namespace="tool-send_email")
    (found, *_) = await memory.recall("plain text or HTML?", namespace="tool-send_email")
    assert (found.kind, found.id, found.priority) == ("rule", rule.id, "normal")
    assert {entry.kind for entry in await memory.recall(namespace="tool-send_email")} == {"rule", "memory"}
    with pytest.raises(RequestError, match="delete it as a rule"):
        await memory.forget(rule.id, namespace="tool-send_email")


async def test_what_has_nothing_in_common_with_the_query_is_not_recalled(memory):
    await memory.remember("aaaa")
    assert await memory.recall("zzzz") == []


@pytest.mark.parametrize(
    ("query", "about", "not_about"),
    [
        ("Rust", "The backend is written in Rust.", "I trust the robust crust of this bread."),
        ("rust", "Rust 1.80 is installed.", "The trustees met."),
        ("port", "The port is 8002.", "The important report."),
        ("deploying", "Deployment happens on Mondays.", "They employ ten people."),
        ("reprots", "Reports are due on Friday.", "Sprouts are green."),
        ("log", "Logs are kept for a week.", "The logic is sound."),
        ("天气", "明天的天气很好", "空气质量"),
    ],
)
async def test_what_only_shares_some_letters_with_the_query_is_not_recalled(memory, query, about, not_about):
    for text in (about, not_about):
        await memory.remember(text)
    assert [entry.content for entry in await memory.recall(query)] == [about]


async def test_a_damaged_memory_hides_no_other(memory, store):
    await memory.remember("good")
    await store.put("team", "global", "memory/bad", {"content": 7})
    assert [entry.content for entry in await memory.recall()] == ["good"]


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda m: m.remember(" "), "content"),
        (lambda m: m.remember("x" * 10_001), "content"),
        (lambda m: m.remember("x", namespace="elsewhere"), "namespace"),
        (lambda m: m.remember("x", namespace="tool-"), "namespace"),
        (lambda m: m.remember("x", namespace="skill- "), "namespace"),
        (lambda m: m.recall("x", namespace=7), "namespace"),
        (lambda m: m.recall(7), "query"),
        (lambda m: m.recall("x", limit=0), "limit"),
        (lambda m: m.recall("x", limit=True), "limit"),
        (lambda m: m.forget(" "), "id"),
    ],
)
async def test_what_cannot_be_served_is_refused_by_field(memory, call, field):
    with pytest.raises(RequestError) as caught:
        await call(memory)
    assert caught.value.field == field


# ---------------------------------------------------------------- the agent's tools

NAMES = ["note_demand", "lift_demand", "memory_tools_put", "memory_tools_list"]
NAMES += ["memory_recall", "memory_store", "memory_forget"]


def test_the_schemas_come_in_both_forms():
    openai, mcp = AgentTools.openai_schemas(), AgentTools.mcp_schemas()
    assert [each["function"]["name"] for each in openai] == [each["name"] for each in mcp] == NAMES
    for one, other in zip(openai, mcp, strict=True):
        assert one["function"]["parameters"] == other["inputSchema"]
        assert set(other["inputSchema"]["required"]) <= set(other["inputSchema"]["properties"])
    recall = mcp[NAMES.index("memory_recall")]["inputSchema"]["properties"]
    assert list(recall) == ["query", "namespace", "limit"]
    assert recall["limit"]["default"] == 5
    json.dumps([openai, mcp])


async def test_an_agent_stores_recalls_and_forgets(tools):
    stored = await tools.call("memory_store", {"content": "Reports are due on Friday.", "namespace": "global"})
    found = await tools.call("memory_recall", {"query": "reports"})
    assert [each["id"] for each in found] == [stored["id"]]
    assert await tools.call("memory_forget", {"id": stored["id"]}) is True
    assert await tools.call("memory_recall") == []


async def test_an_agent_puts_and_lists_rules(tools):
    put = await tools.call("memory_tools_put", {"tool_name": "shell", "rule": "ask before rm", "priority": "high"})
    assert put["source"] == "programmatic"
    assert await tools.call("memory_tools_list", {"tool_name": "SHELL"}) == [put]
    changed = {"tool_name": "shell", "rule": "ask before rm -r", "id": put["id"], "priority": "normal"}
    assert (await tools.call("memory_tools_put", changed))["priority"] == "normal"


async def test_an_agent_cannot_weaken_what_the_user_said(tools, rules):
    rule = await rules.put_rule("shell", "never sudo", priority="critical", source="user_explicit")
    weaker = [
        {"tool_name": "shell", "rule": "Never sudo!", "priority": "normal"},
        {"tool_name": "Shell", "rule": "sudo as you like", "id": rule.id},
    ]
    for arguments in weaker:
        with pytest.raises(RequestError, match="user"):
            await tools.call("memory_tools_put", arguments)
    await tools.call("memory_tools_put", {"tool_name": "shell", "rule": "never sudo"})
    (stored,) = await rules.list_rules("shell")
    assert (stored.rule, stored.priority, stored.source) == ("never sudo", "critical", "user_explicit")


@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [
        ("memory_recal", {}, "name"),
        ("memory_recall", {"q": "x"}, "q"),
        ("memory_store", {}, "content"),
        ("memory_store", {"content": None}, "content"),
        ("memory_store", [], "arguments"),
        ("memory_tools_put", {"tool_name": "t", "rule": "x" * 3000}, "rule"),
        ("memory_tools_put", {"tool_name": "t", "rule": "x", "source": "user_explicit"}, "source"),
        ("memory_tools_list", {"tool_name": 3}, "tool_name"),
        ("memory_forget", {"id": 3}, "id"),
    ],
)
async def test_a_bad_call_names_the_tool_or_the_argument(tools, name, arguments, field):
    with pytest.raises(RequestError) as caught:
        await tools.call(name, arguments)
    assert caught.value.field == field
