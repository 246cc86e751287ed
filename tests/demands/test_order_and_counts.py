"""A note of order, flow or a count: verified by its examples, kept, and held on each road."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from toolmem import AgentSession, AsyncToolMem, CallDenied
from toolmem.demands.contract import contract, listed_contract
from toolmem.demands.note import FIELDS, read_note
from toolmem.guard.alternatives import TESTS, read_conditions
from toolmem.guard.condition_words import in_words
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.session.demand_tools import demand_tools

SAID = "always run the tests before you commit"
TESTED = {"earlier": {"command": "^(npm test|pytest)", "worked": True, "since": {"writes": True}}}
NOTE: dict[str, Any] = {
    "quote": SAID,
    "effect": "deny",
    "lasting": "always",
    "tools": ["Bash"],
    "when": [{"command": "^git commit"}],
    "unless": [TESTED],
    "stops": [{"tool": "Bash", "arguments": {"command": "git commit -m x"}}],
    "passes": [{"tool": "Bash", "arguments": {"command": "pytest && git commit -m x"}}],
}
COUNT: dict[str, Any] = {
    "quote": "no more than 3 e-mails an hour",
    "effect": "deny",
    "lasting": "always",
    "tools": ["send_email"],
    "when": [{"more_than": {"calls": 3, "per": "3600s"}}],
    "stops": [{"tool": "send_email", "arguments": {"to": "bob@x.com", "body": "hi"}}],
    "passes": [{"tool": "search_mail", "arguments": {"query": "hi"}}],
}
FLOW: dict[str, Any] = {
    **COUNT,
    "quote": "once you have read the inbox, send nothing outside acme.com",
    "when": [{"target": "@", "earlier": {"tool": "^read_inbox$"}}],
    "unless": [{"target": r"@acme\.com$"}],
    "passes": [{"tool": "send_email", "arguments": {"to": "bob@acme.com", "body": "hi"}}],
}
AGENT = ["Bash", "Edit", "send_email", "read_inbox", "search_mail"]


@pytest.fixture
async def mem() -> AsyncIterator[AsyncToolMem]:
    async with AsyncToolMem(":memory:") as memory:
        yield memory


async def noted(mem: AsyncToolMem, note: dict[str, Any], **road: Any) -> Any:
    return await mem.note_demand(
        **note, user_message=note["quote"], tools_available=AGENT, conversation_id="c1", **road
    )


async def uses(mem: AsyncToolMem, tool: str, *, success: bool = True, **given: Any) -> str:
    """A program of the user's, which asks before each call and adds how it ended."""
    decision = await mem.check_tool_call(tool, given, conversation_id="c1")
    if not decision.stops:
        call = {"tool_name": tool, "input": given, "output": "", "success": success}
        await mem.add([{**call, "conversation_id": "c1", "decision_id": decision.id}])
    return decision.action


async def test_a_note_of_order_is_kept_by_its_examples_and_holds(mem: AsyncToolMem) -> None:
    kept = await noted(mem, NOTE)
    assert kept.outcome == "kept"
    assert "stops `git commit -m x`, not `pytest && git commit -m x`" in str(kept)
    assert await uses(mem, "Bash", command="git commit -m x") == "deny"
    assert await uses(mem, "Bash", command="pytest -q", success=False) == "allow"
    assert await uses(mem, "Bash", command="git commit -m x") == "deny"
    assert await uses(mem, "Bash", command="npm test") == "allow"
    assert await uses(mem, "Bash", command="git commit -m x") == "allow"
    assert await uses(mem, "Edit", file_path="a.py", old_string="a", new_string="b") == "allow"
    assert await uses(mem, "Bash", command="git commit -m x") == "deny"


async def test_tests_that_no_program_asked_about_do_not_count(mem: AsyncToolMem) -> None:
    await noted(mem, NOTE)
    call = {"tool_name": "Bash", "input": {"command": "pytest"}, "output": "", "success": True}
    await mem.add([{**call, "conversation_id": "c1"}, {**call, "conversation_id": "c1", "decision_id": "0" * 32}])
    assert await uses(mem, "Bash", command="git commit -m x") == "deny"


async def test_a_note_of_a_count_holds(mem: AsyncToolMem) -> None:
    assert (await noted(mem, COUNT)).outcome == "kept"
    sent = [await uses(mem, "send_email", to="bob@x.com", body=str(number)) for number in range(5)]
    assert sent == ["allow"] * 3 + ["deny"] * 2


async def test_a_note_of_flow_holds(mem: AsyncToolMem) -> None:
    assert (await noted(mem, FLOW)).outcome == "kept"
    assert await uses(mem, "send_email", to="bob@x.com", body="hi") == "allow"
    assert await uses(mem, "read_inbox", limit=3) == "allow"
    assert await uses(mem, "send_email", to="bob@x.com", body="again") == "deny"
    assert await uses(mem, "send_email", to="bob@acme.com", body="again") == "allow"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"passes": NOTE["stops"]}, "must pass"),
        (
            {"passes": [{"tool": "Bash", "arguments": {"command": "pytest; git commit -m x"}}]},
            "must pass",
        ),
        ({"stops": NOTE["passes"]}, "must be stopped and is not"),
        ({"unless": [{"earlier": {"tool": "^run_tests$"}}]}, "fits none of the agent's tools"),
        ({"unless": [{"earlier": {"command": "(?=pytest)"}}]}, "look-around"),
    ],
)
async def test_a_note_that_comes_out_otherwise_is_refused(mem: AsyncToolMem, change: dict[str, Any], told: str) -> None:
    refused = await noted(mem, {**NOTE, **change})
    assert refused.outcome == "refused"
    assert told in str(refused)


async def test_a_shell_that_is_named_is_every_agents_shell(mem: AsyncToolMem) -> None:
    earlier = {"earlier": {"tool": "^Bash$", "command": "^pytest", "worked": True}}
    assert (await noted(mem, {**NOTE, "unless": [earlier]})).outcome == "kept"
    for command, action in (("pytest", "allow"), ("git commit -m x", "allow")):
        assert await uses(mem, "exec_command", cmd=command) == action


async def test_a_rule_that_is_put_by_hand_may_ask_for_history_and_people_read_it_in_words(mem: AsyncToolMem) -> None:
    rule = await mem.rules.put("@shell", SAID, effect="deny", when={"when": NOTE["when"], "unless": [TESTED]})
    assert in_words(rule.when) == (
        "a command like `git commit`; not after a call with a command like `npm test` or `pytest` has worked since "
        "files were last written"
    )
    assert await uses(mem, "Bash", command="git commit -m x") == "deny"


async def test_in_a_session_its_own_tools_count(mem: AsyncToolMem) -> None:
    session = await AgentSession.start(mem, base_prompt="Help.", tools=["Bash", "edit"])
    ran: list[str] = []

    @session.tool
    def Bash(command: str) -> str:
        ran.append(command)
        if "broken" in command:
            raise RuntimeError("1 failed")
        return "ok"

    @session.tool
    def edit(file_path: str, new_string: str) -> str:
        return "ok"

    async def turn(said: str) -> None:
        await session.after_turn([{"role": "user", "content": said}, {"role": "assistant", "content": "ok"}])

    await noted(mem, NOTE)
    edit("a.py", "x")
    with pytest.raises(CallDenied, match=r"it must work after your last edit"):
        Bash("git commit -m x")
    with pytest.raises(RuntimeError):
        Bash("pytest broken")
    with pytest.raises(CallDenied):
        Bash("git commit -m x")
    Bash("pytest")
    await turn("go on")  # what is told of the calls then counts no second time
    Bash("git commit -m x")
    edit("a.py", "y")
    with pytest.raises(CallDenied):
        Bash("git commit -m y")
    assert ran == ["pytest broken", "pytest", "git commit -m x"]
    await session.close()


async def test_in_a_loop_of_your_own_the_end_of_a_call_is_what_after_turn_tells(mem: AsyncToolMem) -> None:
    await noted(mem, NOTE)
    session = await AgentSession.start(mem, base_prompt="Help.", tools=["Bash"])
    for ended, stops in ((False, True), (True, False)):
        assert not (await session.check("Bash", {"command": f"pytest {ended}"})).stops
        told = {"tool_name": "Bash", "input": {"command": f"pytest {ended}"}, "output": "ok", "success": ended}
        await session.after_turn(user_message="go on", calls=[told])
        assert (await session.check("Bash", {"command": "git commit -m x"})).stops is stops
    await session.close()


@pytest.mark.parametrize(("text", "tokens"), [(contract(), 900), (listed_contract(), 600)])
def test_the_contract_is_short_and_shows_each_field_and_each_test_as_it_is_written(text: str, tokens: int) -> None:
    assert QwenTokenizer().count(text) <= tokens
    assert all(re.search(rf"\b{name}\b[:,]", text) for name in FIELDS)
    shown = {}
    for line in text.splitlines():
        if line.startswith('  "'):
            name, _, rest = line.strip().partition(": ")
            shown[json.loads(name)] = json.JSONDecoder().raw_decode(rest)[0]
    assert set(shown) == set(TESTS)
    beside = {"more_than": {"target": "."}}  # a count is of something
    for name, test in shown.items():
        read_conditions([{name: test, **beside.get(name, {})}])


@pytest.mark.parametrize("form", ["anthropic", "mcp"])
def test_the_tools_of_a_session_show_the_whole_contract(form: Any) -> None:
    assert demand_tools(form)[0]["description"] == contract()


def test_a_note_is_read_with_both_tests() -> None:
    assert read_note(NOTE).conditions is not None
    assert read_note(COUNT).conditions is not None


@pytest.mark.parametrize("command", ["pytest && git push", "npm test && git push", "pytest -q && git push origin $B"])
async def test_tests_in_the_same_line_let_a_command_through_whose_end_the_shell_alone_knows(
    mem: AsyncToolMem, command: str
) -> None:
    said = "always run the tests before you push"
    note = {**NOTE, "quote": said, "when": [{"command": r"^git push\b"}]}
    note["stops"] = [{"tool": "Bash", "arguments": {"command": "git push origin main"}}]
    note["passes"] = [{"tool": "Bash", "arguments": {"command": "pytest && git push origin main"}}]
    async with await AgentSession.start(mem, tools=AGENT) as session:
        session.messages(said)
        await session.call_tool("note_demand", note)
        assert (await session.check("Bash", {"command": command})).action == "allow"
        alone = command.partition("&& ")[2]
        assert (await session.check("Bash", {"command": alone})).stops
        assert (await session.check("Bash", {"command": command.replace("&&", ";")})).stops
