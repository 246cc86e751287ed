"""What every adapter promises, held against the real framework: `run.py` says which one, in an environment of its own.

Its name keeps it out of the ordinary tests.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tools_at_hand

from toolmem import AsyncToolMem, ToolMem
from toolmem.engine.guarding import CallGuard

FRAMEWORK = os.environ["TOOLMEM_FRAMEWORK"]
harness: Any = importlib.import_module(f"harness_{FRAMEWORK}")

SARAH = ("send_email", {"to": "sarah@example.com", "text": "hi"})
BOB = ("send_email", {"to": "bob@example.com", "text": "hi"})
GONE = ("crash", {"path": "gone.txt"})
NOT_RUN = "toolmem: not run"


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    tools_at_hand.ran.clear()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def mem(path: Path) -> Iterator[ToolMem]:
    with ToolMem(path) as memory:
        yield memory


def records(memory: ToolMem, tool: str) -> list[Any]:
    """Those that ran. A call that was stopped is told by the log of decisions."""
    return list(memory.calls([tool]))


def not_run(memory: ToolMem) -> list[Any]:
    return [each for each in memory.decisions() if each.outcome == "not_run"]


def rules(memory: ToolMem) -> list[Any]:
    """Those about emails: of the tool, and of every tool that sends some."""
    return [*memory.rules.list("send_email"), *memory.rules.list("@mail")]


def forbid(memory: ToolMem, rule: str = "never email Sarah", tool: str = "send_email") -> None:
    memory.rules.put(tool, rule, priority="critical")


@pytest.mark.parametrize("way", harness.ways)
def test_a_call_that_nothing_stands_against_runs_and_is_recorded_once(mem: ToolMem, way: str) -> None:
    seen = harness.run(mem, [[BOB]], way=way)
    assert seen.raised is None
    assert tools_at_hand.ran == [("send_email", "bob@example.com")]
    assert ["sent to bob@example.com" in each for each in seen.results] == [True]
    (call,) = records(mem, "send_email")
    assert (call.success, call.input) == (True, BOB[1])
    assert "sent to bob@example.com" in call.output
    assert call.time_cost is not None
    assert call.time_cost >= 0
    assert call.metadata["conversation_id"] == "c1"


@pytest.mark.parametrize("way", harness.ways)
def test_a_call_that_a_rule_forbids_does_not_run_and_the_model_reads_why(mem: ToolMem, way: str) -> None:
    forbid(mem)
    seen = harness.run(mem, [[SARAH], [BOB]], way=way)
    assert tools_at_hand.ran == [("send_email", "bob@example.com")]
    assert NOT_RUN in seen.results[0]
    assert "never email Sarah" in seen.results[0]
    assert "sent to bob" in seen.results[1]
    (ran,) = records(mem, "send_email")
    assert (ran.success, ran.input) == (True, BOB[1])
    (decision,) = mem.decisions()
    assert (decision.action, decision.outcome, decision.tool_name) == ("deny", "not_run", "send_email")
    assert decision.call_id


@pytest.mark.parametrize("answer", [None, True, False])
def test_a_call_that_needs_consent_runs_when_the_user_gives_it(mem: ToolMem, answer: bool | None) -> None:
    forbid(mem, "ask me before you delete anything", "delete_file")
    asked: list[Any] = []

    def on_ask(decision: Any) -> bool:
        asked.append(decision)
        return bool(answer)

    seen = harness.run(mem, [[("delete_file", {"path": "a"})]], on_ask=None if answer is None else on_ask)
    assert len(asked) == (answer is not None)
    assert tools_at_hand.ran == ([("delete_file", "a")] if answer else [])
    assert ("deleted a" in seen.results[0]) is bool(answer)
    if answer is None:
        assert "ask the user first" in seen.results[0]


@pytest.mark.skipif("async" not in harness.ways, reason="the framework runs nothing async")
def test_the_user_is_asked_by_an_async_function_too(mem: ToolMem) -> None:
    forbid(mem, "ask me before you delete anything", "delete_file")

    async def on_ask(decision: Any) -> bool:
        return True

    harness.run(mem, [[("delete_file", {"path": "a"})]], on_ask=on_ask, way="async")
    assert tools_at_hand.ran == [("delete_file", "a")]


def test_advice_reaches_the_model_beside_the_result(path: Path) -> None:
    with ToolMem(path, overrides=["guard.rules=advise"]) as mem:
        forbid(mem)
        seen = harness.run(mem, [[SARAH]])
        assert tools_at_hand.ran == [("send_email", "sarah@example.com")]
        assert "sent to sarah@example.com" in seen.results[0]
        assert "never email Sarah" in seen.results[0]
        (call,) = records(mem, "send_email")
        assert "never email Sarah" not in call.output


@pytest.mark.parametrize("way", harness.ways)
def test_a_tool_that_raises_is_recorded_with_its_error_and_the_framework_treats_it_as_ever(
    mem: ToolMem, way: str
) -> None:
    seen = harness.run(mem, [[GONE]], way=way)
    assert tools_at_hand.ran == [("crash", "gone.txt")]
    (call,) = records(mem, "crash")
    assert call.success is False
    assert "no such file: gone.txt" in call.output
    if harness.tells_error:
        assert seen.raised is None
        assert harness.tells_error in seen.results[0]
    else:
        assert "no such file: gone.txt" in str(seen.raised)


def test_a_call_that_failed_is_stopped_when_it_is_repeated_and_runs_when_it_is_sent_once_more(mem: ToolMem) -> None:
    if harness.tells_error:
        seen = harness.run(mem, [[GONE], [GONE], [GONE]])
        assert NOT_RUN in seen.results[1]
        assert "failed once in this conversation" in seen.results[1]
    else:  # the run ends with the error, and the same message is answered again
        for _ in range(3):
            harness.run(mem, [[GONE]], say="")
    assert len(tools_at_hand.ran) == 2
    assert [call.success for call in records(mem, "crash")] == [False, False]
    assert len(not_run(mem)) == 1


@pytest.mark.parametrize("method", ["before", "after"])
def test_trouble_of_ours_never_reaches_the_agent(mem: ToolMem, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ours")

    monkeypatch.setattr(CallGuard, method, broken)
    seen = harness.run(mem, [[BOB]])
    assert seen.raised is None
    assert ["sent to bob@example.com" in each for each in seen.results] == [True]


def test_a_store_that_is_away_stops_no_call(tmp_path: Path) -> None:
    (tmp_path / "memory.db").mkdir()
    mem = ToolMem(tmp_path / "memory.db")
    seen = harness.run(mem, [[BOB]])
    assert seen.raised is None
    assert ["sent to bob@example.com" in each for each in seen.results] == [True]


@pytest.mark.parametrize("way", harness.ways)
def test_calls_at_once_are_each_decided_and_recorded_once(mem: ToolMem, way: str) -> None:
    forbid(mem, "never wait for Sarah", "wait")
    names = ["anna", "ben", "carl", "dora"]
    step = [("wait", {"name": name}) for name in names] + [SARAH, BOB]
    forbid(mem)
    seen = harness.run(mem, [step], way=way)
    assert len(seen.results) == 6
    assert [f"waited for {name}" in result for name, result in zip(names, seen.results, strict=False)] == [True] * 4
    assert NOT_RUN in seen.results[4]
    assert "sent to bob" in seen.results[5]
    assert sorted(call.input["name"] for call in records(mem, "wait")) == names
    assert [call.success for call in records(mem, "send_email")] == [True]
    assert len(not_run(mem)) == 1
    assert len({call.id for call in records(mem, "wait")}) == 4


def test_a_tool_without_parameters_is_recorded(mem: ToolMem) -> None:
    seen = harness.run(mem, [[("now", {})]])
    assert "12:00" in seen.results[0]
    (call,) = records(mem, "now")
    assert (call.input, call.success) == ({}, True)


def test_a_memory_for_async_code_does_the_same(mem: ToolMem, path: Path) -> None:
    forbid(mem)
    memory = AsyncToolMem(path)
    way = "async" if "async" in harness.ways else harness.ways[0]
    seen = harness.run(memory, [[SARAH], [BOB]], way=way)
    assert NOT_RUN in seen.results[0]
    assert tools_at_hand.ran == [("send_email", "bob@example.com")]
    assert [call.success for call in records(mem, "send_email")] == [True]
    assert len(not_run(mem)) == 1


def test_a_conversation_is_made_where_none_is_given(mem: ToolMem) -> None:
    harness.run(mem, [[BOB]], conversation=None)
    harness.run(mem, [[BOB]], conversation=None)
    names = {call.metadata["conversation_id"] for call in records(mem, "send_email")}
    assert len(names) == 2
    assert all(names)


@pytest.mark.skipif(not harness.shows_prompt, reason="the framework lets nobody add to the system prompt in few lines")
@pytest.mark.parametrize("way", harness.ways)
def test_rules_stand_in_the_system_prompt_beside_what_was_there(mem: ToolMem, way: str) -> None:
    forbid(mem)
    seen = harness.run(mem, [[BOB]], way=way)
    assert "never email Sarah" in seen.prompts[0]
    assert "You are an agent." in seen.prompts[0]


@pytest.mark.skipif(not harness.hears_user, reason="the framework does not show what the user says")
@pytest.mark.parametrize("way", harness.ways)
def test_what_the_user_says_binds_at_once_and_is_kept_once(mem: ToolMem, way: str) -> None:
    seen = harness.run(mem, [[SARAH]], say="Never email Sarah.", way=way)
    assert NOT_RUN in seen.results[0]
    assert tools_at_hand.ran == []
    assert [rule.source for rule in rules(mem)] == ["user_explicit"]
    harness.run(mem, [[SARAH]], say="You can email Sarah again.", way=way)
    assert tools_at_hand.ran == [("send_email", "sarah@example.com")]


def test_a_rule_of_one_framework_binds_in_the_others(tmp_path: Path) -> None:
    """One store is shared by the frameworks that are tried; each says a rule, and keeps those of the others."""
    shared = Path(os.environ.get("TOOLMEM_SHARED_STORE") or tmp_path / "shared.db")
    with ToolMem(shared) as mem:
        before = [rule.rule.rpartition(" ")[2] for rule in rules(mem)]
        own = f"{FRAMEWORK.replace('_', '')}@example.com"
        if harness.hears_user:
            harness.run(mem, [[BOB]], say=f"Never email {own}.", conversation=FRAMEWORK)
        else:
            forbid(mem, f"Never email {own}")
        calls = [("send_email", {"to": name, "text": ""}) for name in [*before, own]]
        tools_at_hand.ran.clear()
        seen = harness.run(mem, [[call] for call in calls], conversation=f"{FRAMEWORK}-2")
        assert tools_at_hand.ran == []
        assert all(NOT_RUN in each for each in seen.results)
        assert len(seen.results) == len(calls)


def test_the_guard_can_be_switched_off(mem: ToolMem, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid(mem)
    monkeypatch.setenv("TOOLMEM_GUARD", "off")
    with ToolMem(path) as off:
        harness.run(off, [[SARAH]])
    assert tools_at_hand.ran == [("send_email", "sarah@example.com")]
    assert len(records(mem, "send_email")) == 1


SAID = "Sarah has left the company, so no mail to Sarah from us any more"
NOTE = (
    "note_demand",
    {
        "quote": SAID,
        "effect": "deny",
        "lasting": "always",
        "tools": ["send_email"],
        "when": [{"target": "sarah@"}],
        "stops": [{"tool": "send_email", "arguments": {"to": "sarah@example.com"}}],
        "passes": [{"tool": "send_email", "arguments": {"to": "bob@example.com"}}],
    },
)
takes_notes = pytest.mark.skipif(
    not harness.takes_notes, reason="the adapter gives the model no tools: it hears no user, or hooks are all it has"
)


@takes_notes
@pytest.mark.parametrize("way", harness.ways)
def test_what_the_model_notes_of_the_users_words_binds_from_the_next_call_on(mem: ToolMem, way: str) -> None:
    seen = harness.run(mem, [[NOTE], [SARAH], [BOB]], say=SAID, way=way)
    assert seen.raised is None
    assert "Kept: " in seen.results[0]
    assert NOT_RUN in seen.results[1]
    assert SAID in seen.results[1]
    assert tools_at_hand.ran == [("send_email", "bob@example.com")]
    assert records(mem, "note_demand") == []
    harness.run(mem, [[SARAH]], conversation="c2", way=way)
    assert tools_at_hand.ran == [("send_email", "bob@example.com")]


@takes_notes
def test_what_the_user_did_not_say_is_refused_with_what_to_change(mem: ToolMem) -> None:
    seen = harness.run(mem, [[NOTE], [SARAH]], say="go on")
    assert "the user did not say this here" in seen.results[0]
    assert tools_at_hand.ran == [("send_email", "sarah@example.com")]


@takes_notes
def test_a_demand_holds_on_where_the_users_words_do_not_surely_take_it_back(mem: ToolMem) -> None:
    forbid(mem)
    lift = ("lift_demand", {"quote": "Sarah is a fine person", "lifted": "never email Sarah"})
    seen = harness.run(mem, [[lift], [SARAH]], say="Sarah is a fine person")
    assert "still holds" in seen.results[0]
    assert NOT_RUN in seen.results[1]
    assert tools_at_hand.ran == []


@takes_notes
def test_no_rule_stops_the_noting_of_a_demand(mem: ToolMem) -> None:
    for rule_of in ("note_demand", "lift_demand"):
        mem.rules.put(rule_of, "never note anything", priority="critical", effect="deny", when=True)
    assert "Kept: " in harness.run(mem, [[NOTE]], say=SAID).results[0]


@takes_notes
def test_the_two_tools_can_be_taken_away(mem: ToolMem) -> None:
    harness.run(mem, [[NOTE]], say=SAID, demand_tools=False)
    assert [rule.rule for rule in rules(mem) if "noted-demand" in rule.tags] == []
