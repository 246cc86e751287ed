"""What the MCP server declares, and how progress becomes notifications."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import Tool

from toolmem.errors import ConfigError
from toolmem.flow.report import Event
from toolmem.server.mcp import McpService
from toolmem.server.mcp.declarations import offered_tools
from toolmem.server.mcp.progress_notifications import ProgressNotifications
from toolmem.server.mcp.tool_calls import UnderWay


def declared(app) -> dict[str, Tool]:
    return {tool.name: tool for tool in offered_tools(app, "team")}


@pytest.mark.parametrize(
    ("names", "reads", "destroys", "settles"),
    [
        (("retrieve_tool_memory", "tool_rules_for_prompt", "memory_recall", "memory_tools_list"), True, False, True),
        (("add_tool_call_result",), False, False, False),
        (("summary_tool_memory", "retry_evaluations", "capture_tool_rules"), False, False, True),
        (("vector_store", "rejudge", "memory_tools_put", "memory_store", "memory_forget"), False, True, True),
    ],
)
def test_annotations_say_what_a_tool_does_to_the_memory(make_app, names, reads, destroys, settles):
    tools = declared(make_app("mcp.tools=all"))
    for name in names:
        hints = tools[name].annotations
        assert hints is not None
        assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) == (reads, destroys, settles)
        assert hints.open_world_hint is False


def test_a_model_elsewhere_makes_the_world_open(make_app):
    tools = declared(make_app("llm.default.backend=openai_compatible", "llm.default.params.base_url=http://x"))
    assert tools["add_tool_call_result"].annotations.open_world_hint is True
    assert tools["retrieve_tool_memory"].annotations.open_world_hint is False
    tools = declared(make_app("embedding_model.default.backend=openai_compatible"))
    assert tools["retrieve_tool_memory"].annotations.open_world_hint is True


def test_a_flow_of_the_users_is_a_tool_with_the_schema_of_its_configuration(make_app):
    app = make_app(
        "flow.recall.flow_content=retrieve_tool_memory_op",
        "flow.recall.description=Look a tool up.",
        "flow.recall.input_schema.tool_names.type=array",
        'disabled_flows=["vector_store"]',
        "mcp.tools=all",
    )
    tools = declared(app)
    assert "vector_store" not in tools
    assert tools["recall"].description == "Look a tool up."
    assert tools["recall"].input_schema == {
        "type": "object",
        "properties": {
            "tool_names": {"type": "array", "items": {}},
            "workspace_id": {"type": "string", "default": "team"},
        },
        "required": ["tool_names"],
        "additionalProperties": False,
    }
    assert tools["recall"].annotations.read_only_hint is True


async def test_a_flow_that_is_switched_off_says_why(make_app):
    async with McpService(make_app('disabled_flows=["vector_store"]')) as service:
        answer = await service._tools.call("vector_store", {"action": "list"})
        assert answer["isError"]
        assert "switched off by disabled_flows" in answer["content"][0]["text"]


def test_every_model_that_cannot_be_asked_is_named_at_once(make_app):
    with pytest.raises(ConfigError, match="DASHSCOPE_API_KEY"):
        McpService(make_app("llm.default.backend=dashscope"))


# ---------------------------------------------------------------- progress

EVENTS = st.lists(
    st.one_of(
        st.builds(
            lambda op, done, more: Event("progress", "f", op, done=done, total=done + more, message="judged"),
            st.sampled_from("ab"),
            st.integers(0, 9),
            st.integers(0, 9),
        ),
        st.builds(lambda op: Event("op_finished", "f", op, message="ok"), st.sampled_from("ab")),
        st.just(Event("notice", "f", "a", message="this will cost")),
    ),
    max_size=30,
)


@given(EVENTS)
def test_progress_only_grows_and_never_exceeds_its_total(events):
    told: list[float] = []

    async def send(progress: float, total: float | None, message: str | None) -> None:
        assert message
        assert total == 2.0
        told.append(progress)

    async def follow() -> None:
        async with ProgressNotifications(send) as progress:
            progress.tell(Event("flow_started", "f", total=2))
            for event in events:
                progress.tell(event)
                if event.kind == "op_finished":
                    await asyncio.sleep(0)

    asyncio.run(follow())
    assert told == sorted(set(told))
    assert all(0 <= each <= 2 for each in told)
    if events:
        assert told or all(event.kind == "progress" and not event.total for event in events)


# ---------------------------------------------------------------- work that is seen to its end


async def test_work_is_cancelled_once_and_finishes_what_it_must():
    under_way, steps = UnderWay(), []

    async def write() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)  # a second cancellation would end it here
            steps.append("written")
            raise

    waiting = asyncio.create_task(under_way.run(write()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert steps == []
    await under_way.settled()
    assert steps == ["written"]
