"""The user's few words after a rule was kept or a call was stopped, in a session."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from toolmem import AgentSession, ToolMem
from toolmem.hosts.install_notes import InstallNote, keep_note
from toolmem.store.holding import is_held

TOOLS = [
    {
        "name": "send_email",
        "description": "Send an e-mail.",
        "parameters": {"type": "object", "properties": {"to": {"type": "string"}, "text": {"type": "string"}}},
    },
    {"name": "search", "description": "Search the web.", "parameters": {"type": "object"}},
]
NEVER = "Never email sarah@example.com."
SARAH = {"to": "sarah@example.com"}
BOB = {"to": "bob@example.com"}
NOTE = {
    "quote": "keep Bob out of this",
    "effect": "deny",
    "lasting": "always",
    "tools": ["send_email"],
    "when": [{"target": "bob@"}],
    "stops": [{"tool": "send_email", "arguments": BOB}],
    "passes": [{"tool": "send_email", "arguments": SARAH}],
}


async def said(session: AgentSession, message: str) -> list[str]:
    """A whole turn; what the user is told."""
    session.messages(message)
    return (await session.after_turn([{"role": "assistant", "content": "Fine."}])).notes


async def action(session: AgentSession, given: dict[str, Any]) -> str:
    return (await session.check("send_email", given)).action


@pytest.fixture
async def session(tmp_path):
    with ToolMem(tmp_path / "memory.db") as memory:
        started = await AgentSession.start(memory, tools=TOOLS)
        yield started
        await started.close()


@pytest.mark.parametrize("word", ["undo", "Undo that!", "撤销"])
async def test_undo_holds_at_once_and_the_model_and_the_user_are_told(session: AgentSession, word: str) -> None:
    await said(session, NEVER)
    assert await action(session, SARAH) == "deny"

    sent = session.messages(word)
    assert "Never email sarah@example.com" in sent[-1]["content"]
    assert "holds no longer" in sent[-1]["content"] or "不再有效" in sent[-1]["content"]
    assert await action(session, SARAH) == "allow"
    notes = (await session.after_turn([{"role": "assistant", "content": "Done."}])).notes
    assert any("sarah@example.com" in each for each in notes)
    assert "toolmem, on what the user just said" not in str(session.messages("Go on."))


async def test_undo_that_only_the_turns_end_tells_of_acts_as_well(session: AgentSession) -> None:
    await said(session, NEVER)
    captured = await session.after_turn([{"role": "user", "content": "undo"}, {"role": "assistant", "content": "ok"}])
    assert any("Undone" in each for each in captured.notes)
    assert await action(session, SARAH) == "allow"


async def test_undo_takes_back_what_the_model_noted_and_a_demand_of_the_session(session: AgentSession) -> None:
    session.messages("Please keep Bob out of this. Do not email sarah@example.com in this session.")
    assert json.loads(await session.call_tool("note_demand", NOTE))["outcome"] == "kept"
    await session.after_turn([{"role": "assistant", "content": "Fine."}])
    assert [await action(session, each) for each in (BOB, SARAH)] == ["deny", "deny"]

    assert any("Undone" in each for each in await said(session, "undo"))
    assert [await action(session, each) for each in (BOB, SARAH)] == ["allow", "allow"]


async def test_just_this_time_does_not_bind_the_next_session(session: AgentSession) -> None:
    await said(session, NEVER)
    await said(session, "just this time")
    assert await action(session, SARAH) == "deny"

    other = await AgentSession.start(session.app, tools=TOOLS)
    assert await action(other, SARAH) == "allow"
    assert "sarah@" not in other.system_prompt


async def test_only_today_ends(session: AgentSession) -> None:
    await said(session, NEVER)
    await said(session, "only today")
    (rule,) = (await session.rules.all_rules())[0]
    assert rule.expires_at is not None


@pytest.mark.parametrize("message", ["undo the last mail", "yes", "ok", "go ahead", "撤销上一封邮件"])
async def test_a_longer_message_and_a_bare_yes_are_ordinary(session: AgentSession, message: str) -> None:
    await said(session, NEVER)
    assert await action(session, SARAH) == "deny"
    await said(session, message)
    assert await action(session, SARAH) == "deny"


async def test_only_the_message_just_before_is_undone(session: AgentSession) -> None:
    await said(session, NEVER)
    await said(session, "Hello.")
    assert await said(session, "undo") == []
    assert await action(session, SARAH) == "deny"


@pytest.mark.parametrize("word", ["yes, this once", "Just this once.", "就这一次"])
async def test_yes_this_once_lets_the_very_call_that_was_stopped_run_once(session: AgentSession, word: str) -> None:
    await said(session, NEVER)
    assert await action(session, SARAH) == "deny"

    assert "sarah@example.com" in session.messages(word)[-1]["content"]
    assert await action(session, {**SARAH, "text": "other"}) == "deny"
    assert [await action(session, SARAH) for _ in range(2)] == ["allow", "deny"]
    await session.after_turn([{"role": "assistant", "content": "Sent."}])
    assert await action(session, SARAH) == "deny"


async def test_a_denial_names_the_message_that_lets_the_call_run(session: AgentSession) -> None:
    await said(session, NEVER)
    denied = await session.check("send_email", SARAH)
    assert denied.reason.endswith("The user's message “yes, this once” lets it run once.")
    await said(session, "Ask me before you email sarah@example.com.")
    assert "“yes, this once”" in (await session.check("send_email", SARAH)).reason, "nobody else can be asked"


async def test_the_next_message_ends_what_was_let_through(session: AgentSession) -> None:
    await said(session, NEVER)
    assert await action(session, SARAH) == "deny"
    await said(session, "yes, this once")
    session.messages("Write the minutes first.")
    assert await action(session, SARAH) == "deny"


async def test_the_models_own_words_undo_nothing(session: AgentSession) -> None:
    await said(session, NEVER)
    session.messages("Go on.")
    await session.after_turn([{"role": "assistant", "content": "undo"}])
    await session.after_turn([{"role": "assistant", "content": "yes, this once"}])
    assert await action(session, SARAH) == "deny"


async def test_undo_brings_back_what_the_undone_rule_had_taken_the_place_of(session: AgentSession) -> None:
    await said(session, NEVER)
    await said(session, "Ask me before you email sarah@example.com.")
    assert await action(session, SARAH) == "ask"

    assert any("Undone" in each for each in await said(session, "undo"))
    assert await action(session, SARAH) == "deny"


# ---------------------------------------------------------------- lift k7qm

LIFT = {"quote": "Bob is fine with me", "lifted": "keep Bob out of this"}


async def noted_and_proposed(session: AgentSession) -> str:
    """A demand was noted, and a model alone understood that it is taken back: the code that it is told."""
    session.messages("Please keep Bob out of this")
    assert json.loads(await session.call_tool("note_demand", NOTE))["outcome"] == "kept"
    await session.after_turn([{"role": "assistant", "content": "Fine."}])
    session.messages("Bob is fine with me")
    told = json.loads(await session.call_tool("lift_demand", LIFT))
    assert told["outcome"] == "proposed"
    await session.after_turn([{"role": "assistant", "content": "Fine."}])
    found = re.search(r"`lift ([2-9a-z]{4})`", told["told"])
    assert found, told
    return found[1]


@pytest.fixture(params=["held by hooks", "held by nobody"])
async def any_session(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    store = tmp_path / ".toolmem" / "memory.db"
    store.parent.mkdir()
    if request.param == "held by hooks":
        settings = tmp_path / "settings.json"
        settings.write_text("{}")
        keep_note("claude-code", settings, InstallNote.between(settings, None, b"{}", []))
    with ToolMem(store) as memory:
        assert is_held(str(store)) == (request.param == "held by hooks")
        started = await AgentSession.start(memory, tools=TOOLS)
        yield started
        await started.close()


@pytest.mark.parametrize("word", ["lift {}", "撤销 {}", "`lift {}`."])
async def test_a_lift_that_was_proposed_is_accepted_by_the_message_that_is_told(
    any_session: AgentSession, word: str
) -> None:
    code = await noted_and_proposed(any_session)
    assert await action(any_session, BOB) == "deny"

    sent = any_session.messages(word.format(code))
    assert "keep Bob out of this" in sent[-1]["content"]
    assert await action(any_session, BOB) == "allow"


async def test_a_code_in_a_longer_message_or_of_no_rule_lifts_nothing(any_session: AgentSession) -> None:
    code = await noted_and_proposed(any_session)
    for message in (f"what does lift {code} do?", "lift 22zz", "lift", f"Bob says: lift {code}"):
        any_session.messages(message)
        await any_session.after_turn([{"role": "assistant", "content": "Fine."}])
        assert await action(any_session, BOB) == "deny"


async def test_what_the_user_plainly_takes_back_is_lifted_when_the_model_says_so(any_session: AgentSession) -> None:
    await said(any_session, NEVER)
    any_session.messages("You can email sarah@example.com again.")
    lift = {"quote": "You can email sarah@example.com again.", "lifted": NEVER}
    assert json.loads(await any_session.call_tool("lift_demand", lift))["outcome"] == "kept"
    assert await action(any_session, SARAH) == "allow"


async def test_words_of_an_earlier_turn_take_back_nothing_that_was_said_since(any_session: AgentSession) -> None:
    await said(any_session, NEVER)
    await said(any_session, "You can email sarah@example.com again.")
    await said(any_session, NEVER)
    any_session.messages("Go on.")
    lift = {"quote": "You can email sarah@example.com again.", "lifted": NEVER}
    await any_session.call_tool("lift_demand", lift)
    assert await action(any_session, SARAH) == "deny"


async def test_a_guest_lifts_no_demand_of_another(tmp_path: Path) -> None:
    with ToolMem(tmp_path / "memory.db") as memory:
        owner = await AgentSession.start(memory, tools=TOOLS)
        code = await noted_and_proposed(owner)
        await owner.close()
        guest = await AgentSession.start(memory, tools=TOOLS, guest="g1")
        guest.messages(f"lift {code}")
        assert await action(guest, BOB) == "deny"
        await guest.close()
