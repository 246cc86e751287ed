"""The user's reminders come again in a session."""

from __future__ import annotations

import pytest

from toolmem import AgentSession, ToolMem

TIDY = "Keep commit messages short and kind"


@pytest.fixture
async def session(tmp_path):
    with ToolMem(tmp_path / "memory.db") as memory:
        memory.rules.put("Bash", TIDY, source="user_explicit", priority="critical", effect="remind")
        started = await AgentSession.start(memory, tools=["Bash", "Read"])
        yield started
        await started.close()


async def advice(session: AgentSession, tool: str = "Bash") -> str:
    decision = await session.check(tool, {"command": "ls"} if tool == "Bash" else {"file_path": "x"})
    assert not decision.stops
    assert (decision.action == "advise") == bool(decision.advice)
    return decision.advice


async def test_a_reminder_comes_with_the_first_call_of_its_tool_after_thirty_without_it(session: AgentSession) -> None:
    assert [await advice(session) for _ in range(20)] == [""] * 20
    assert [await advice(session, "Read") for _ in range(15)] == [""] * 15
    assert TIDY in await advice(session)
    assert [await advice(session) for _ in range(30)] == [""] * 30
    assert TIDY in await advice(session)


async def test_a_reminder_comes_after_a_compaction_and_once(session: AgentSession) -> None:
    assert await advice(session) == ""
    session.compress(10)
    assert TIDY in await advice(session)
    assert await advice(session) == ""


async def test_what_the_user_has_just_said_does_not_come_at_once(session: AgentSession) -> None:
    for _ in range(40):
        await advice(session, "Read")
    session.messages("remember: commits are signed")
    await session.after_turn([{"role": "assistant", "content": "Fine."}])
    assert "signed" not in await advice(session, "Read")
