"""Order, flow and counts over a store: what earlier calls were lets calls through or stops them, in every process."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from toolmem.engine.guard_records import COUNTS, HISTORIES
from toolmem.engine.guarding import CallGuard
from toolmem.errors import StoreUnavailable
from toolmem.flow.runner import SystemClock
from toolmem.guard.decision import CheckedRule, GuardDecision
from toolmem.guard.histories import MOST_ASKED
from toolmem.light_models import ToolCall
from toolmem.protocols import MemoryStore
from toolmem.rules.identity import ASKED
from toolmem.rules.rule_store import RuleStore
from toolmem.store.masked import masking
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract import EMBEDDER, StoreFactory

TESTED = {"earlier": {"command": "^pytest", "worked": True, "since": {"writes": True}}}
ORDER: dict[str, Any] = {"when": [{"command": "^git commit"}], "unless": [TESTED]}
FLOW: list[dict[str, Any]] = [{"target": ".", "earlier": {"tool": "^read_inbox$"}}]
MAIL = {"to": "sarah@example.com", "body": "x"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store_factory(tmp_path: Path) -> StoreFactory:
    """Stores on the same data, in any process."""
    return partial(SqliteStore, tmp_path / "memory.db", embedder=EMBEDDER)


@pytest.fixture
async def store(store_factory: StoreFactory, clock: ManualClock) -> AsyncIterator[MemoryStore]:
    opened = store_factory(clock=clock)
    await opened.open()
    yield masking(opened)
    await opened.close()


@pytest.fixture
def guard(store: MemoryStore, clock: ManualClock) -> CallGuard:
    return CallGuard(store, "w", clock=clock, timeout=60)


@pytest.fixture
def rules(store: MemoryStore, clock: ManualClock) -> RuleStore:
    return RuleStore(store, "w", clock=clock)


def three(per: str = "3600s", **more: Any) -> list[dict[str, Any]]:
    return [{"always": True, "more_than": {"calls": 3, "per": per}, **more}]


async def run(
    guard: CallGuard, tool: str, arguments: dict[str, Any], *, failed: bool = False, conversation: str = "c"
) -> GuardDecision:
    """A call, as a host runs it where it may."""
    decision = await guard.before(tool, arguments, conversation_id=conversation)
    if not decision.stops:
        await guard.ended(decision, ToolCall(tool, arguments, "", success=not failed))
    return decision


async def shell(guard: CallGuard, *commands: str, conversation: str = "c") -> list[str]:
    return [(await run(guard, "bash", {"command": each}, conversation=conversation)).action for each in commands]


async def mails(guard: CallGuard, times: int, conversation: str = "c") -> list[str]:
    return [(await run(guard, "send_email", MAIL, conversation=conversation)).action for _ in range(times)]


# ---------------------------------------------------------------- order and flow


async def test_a_commit_is_stopped_until_tests_have_worked_after_the_last_edit(
    guard: CallGuard, rules: RuleStore
) -> None:
    await rules.put_rule("@shell", "always run the tests before you commit", effect="deny", when=ORDER)
    stopped = await run(guard, "bash", {"command": "git commit -m x"})
    assert stopped.action == "deny"
    assert "First run `pytest` (it must work after your last edit)" in stopped.reason
    assert await shell(guard, "pytest -q", "git add -A", "git commit -m x") == ["allow"] * 3
    await run(guard, "edit", {"file_path": "a.py", "new_string": "x"})
    assert await shell(guard, "git commit -m x", "pytest || true", "git commit -m x") == ["deny", "allow", "deny"]
    assert (await run(guard, "bash", {"command": "pytest"}, failed=True)).action == "allow"
    assert await shell(guard, "git commit -m x", "pytest && git commit -m x") == ["deny", "allow"]


async def test_what_runs_in_another_conversation_or_another_store_lets_nothing_through(
    guard: CallGuard, rules: RuleStore
) -> None:
    await rules.put_rule("@shell", "always run the tests before you commit", effect="deny", when=ORDER)
    assert await shell(guard, "pytest", conversation="other") == ["allow"]
    assert await shell(guard, "git commit -m x") == ["deny"]
    nameless = await run(guard, "bash", {"command": "git commit -m x"}, conversation="")
    assert "nothing is known here of earlier calls" in nameless.reason


async def test_calls_that_nobody_decided_on_count_for_nothing_but_their_writes(
    guard: CallGuard, rules: RuleStore
) -> None:
    await rules.put_rule("@shell", "always run the tests before you commit", effect="deny", when=ORDER)
    imported = ToolCall("bash", {"command": "pytest"}, "", success=True)
    await guard.learn([imported], "c")
    await guard.ended("0" * 32, imported)  # a decision that nobody made
    assert await shell(guard, "git commit -m x", "pytest", "git commit -m x") == ["deny", "allow", "allow"]
    await guard.learn([ToolCall("edit", {"file_path": "a.py", "new_string": "x"}, "", success=True)], "c")
    assert await shell(guard, "git commit -m x") == ["deny"]


async def test_what_another_process_saw_is_known(
    guard: CallGuard, rules: RuleStore, store: MemoryStore, clock: ManualClock
) -> None:
    await rules.put_rule("@shell", "always run the tests before you commit", effect="deny", when=ORDER)
    other = CallGuard(store, "w", clock=clock, timeout=60, of_called=True)
    assert await shell(other, "pytest") == ["allow"]
    assert await shell(guard, "git commit -m x", "echo x > a.py") == ["allow", "allow"]
    assert await shell(other, "git commit -m x") == ["deny"]


async def test_after_reading_the_inbox_nothing_is_sent_outside(guard: CallGuard, rules: RuleStore) -> None:
    await rules.put_rule("send_email", "after reading the inbox, send nothing", effect="deny", when=FLOW)
    assert await mails(guard, 1) == ["allow"]
    await run(guard, "read_inbox", {"limit": 3}, failed=True)
    assert await mails(guard, 1) == ["deny"]
    assert await mails(guard, 1, "another") == ["allow"]


async def test_an_inbox_that_is_being_read_counts(guard: CallGuard, rules: RuleStore) -> None:
    await rules.put_rule("send_email", "after reading the inbox, send nothing", effect="deny", when=FLOW)
    await guard.before("read_inbox", {"limit": 3}, conversation_id="c")
    assert await mails(guard, 1) == ["deny"]


async def test_a_demand_of_a_session_beside_the_stored_rules_is_held_from_its_first_call_on(guard: CallGuard) -> None:
    demand = CheckedRule("", "run the tests before you commit", "deny", ORDER)
    actions = []
    for command in ("pytest", "git commit -m x", "touch a.py", "git commit -m y"):
        decision = await guard.before("bash", {"command": command}, conversation_id="c", demands=[demand])
        actions.append(decision.action)
        await guard.ended(decision, ToolCall("bash", {"command": command}, "", success=True))
    assert actions == ["allow", "allow", "allow", "deny"]


async def test_a_rule_that_asks_its_user_asks_where_the_tests_were_not_run(guard: CallGuard, rules: RuleStore) -> None:
    await rules.put_rule("@shell", "ask me before you commit untested code", effect="ask", when=ORDER)
    assert await shell(guard, "git commit -m x", "pytest", "git commit -m x") == ["ask", "allow", "allow"]


async def test_nothing_is_kept_where_no_rule_asks_for_it(
    guard: CallGuard, rules: RuleStore, store: MemoryStore
) -> None:
    await rules.put_rule("@shell", "never push", effect="deny", when=[{"command": "^git push"}])
    await shell(guard, "pytest", "echo x > a.py", "git commit -m x")
    assert await store.list_raw("w", [HISTORIES, COUNTS, ASKED[0]]) == []
    await rules.put_rule("@shell", "always run the tests before you commit", effect="deny", when=ORDER)
    await shell(guard, "ls", "cat a.py", "git status", "echo x > a.py")
    assert await store.list_raw("w", [HISTORIES, COUNTS]) == []


async def test_a_history_holds_nothing_of_what_calls_were_given(
    guard: CallGuard, rules: RuleStore, store: MemoryStore
) -> None:
    await rules.put_rule("@shell", "always run the tests before you commit", effect="deny", when=ORDER)
    await shell(guard, "pytest -k tangerine", "echo tangerine > tangerine.py", conversation="tangerine")
    (record,) = await store.list_raw("w", [HISTORIES])
    assert "tangerine" not in record.key + record.text


async def test_a_damaged_history_is_none(guard: CallGuard, rules: RuleStore, store: MemoryStore) -> None:
    await rules.put_rule("@shell", "always run the tests before you commit", effect="deny", when=ORDER)
    await shell(guard, "pytest")
    (record,) = await store.list_raw("w", [HISTORIES])
    await store.put("w", HISTORIES, record.key, {"at": "?"})
    await store.put("w", *ASKED, {"tests": 5})
    assert await shell(guard, "git commit -m x", "pytest", "git commit -m x") == ["deny", "allow", "allow"]


async def test_while_the_store_does_not_answer_nothing_is_known_of_earlier_calls(
    guard: CallGuard, rules: RuleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rules.put_rule("@shell", "always run the tests before you commit", effect="deny", when=ORDER)
    await rules.put_rule("send_email", "after reading the inbox, send nothing", effect="deny", when=FLOW)
    await run(guard, "read_inbox", {"limit": 3})
    assert await shell(guard, "pytest", "git commit -m x") == ["allow", "allow"]

    async def away(*_: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(type(guard.store), "read_stamped", away, raising=False)
    stopped = await guard.before("bash", {"command": "git commit -m x"}, conversation_id="c")
    assert "nothing is known here of earlier calls" in stopped.reason
    assert (await guard.before("send_email", MAIL, conversation_id="c")).action == "allow"


async def test_the_newest_tests_are_noted(rules: RuleStore, store: MemoryStore) -> None:
    for number in range(MOST_ASKED + 2):
        when = [{"command": "^git commit", "earlier": {"command": f"^job {number}$"}}]
        await rules.put_rule("@shell", f"after job {number} commit nothing", effect="deny", when=when)
    record = await store.get("w", *ASKED)
    assert record is not None
    assert len(record.value["tests"]) == MOST_ASKED


# ---------------------------------------------------------------- counts


async def test_at_most_three_mails_an_hour(guard: CallGuard, rules: RuleStore, clock: ManualClock) -> None:
    await rules.put_rule("send_email", "at most 3 e-mails an hour", effect="deny", when=three())
    assert await mails(guard, 4) == ["allow", "allow", "allow", "deny"]
    stopped = await run(guard, "send_email", MAIL, conversation="another")
    assert "This call is beyond 3 such calls in one hour." in stopped.reason
    clock.advance(3500)
    assert await mails(guard, 1) == ["deny"]
    clock.advance(101)
    assert await mails(guard, 4) == ["allow", "allow", "allow", "deny"]


async def test_calls_under_way_and_calls_that_failed_count(guard: CallGuard, rules: RuleStore) -> None:
    await rules.put_rule("send_email", "at most 3 e-mails an hour", effect="deny", when=three())
    assert (await guard.before("send_email", MAIL)).action == "allow"
    assert (await run(guard, "send_email", {"to": "bob@example.com"}, failed=True)).action == "allow"
    assert await mails(guard, 2) == ["allow", "deny"]


async def test_a_day_and_a_conversation_end(guard: CallGuard, rules: RuleStore, clock: ManualClock) -> None:
    await rules.put_rule("send_email", "3 e-mails a conversation", effect="deny", when=three("conversation"))
    assert await mails(guard, 4) == ["allow", "allow", "allow", "deny"]
    assert await mails(guard, 4, "another") == ["allow", "allow", "allow", "deny"]
    await rules.put_rule("post_note", "3 notes a day", effect="deny", when=three("day"))
    assert [(await guard.before("post_note", MAIL)).action for _ in range(4)] == ["allow", "allow", "allow", "deny"]
    clock.advance(timedelta(days=1).total_seconds())
    assert (await guard.before("post_note", MAIL)).action == "allow"


async def test_what_the_rule_does_not_mean_or_another_rule_stops_is_not_counted(
    guard: CallGuard, rules: RuleStore
) -> None:
    when = {"when": three(), "unless": [{"target": "^boss@"}]}
    await rules.put_rule("send_email", "3 e-mails an hour, but for my boss", effect="deny", when=when)
    await rules.put_rule("send_email", "never write to Bob", effect="deny", when=[{"target": "^bob@"}])
    for to, action in (("boss@x.com", "allow"), ("bob@x.com", "deny")):
        assert [(await guard.before("send_email", {"to": to})).action for _ in range(5)] == [action] * 5
    assert await mails(guard, 4) == ["allow", "allow", "allow", "deny"]
    assert (await guard.before("send_email", {"to": "boss@x.com"})).action == "allow"


async def test_a_call_that_one_count_stops_takes_no_place_of_another(guard: CallGuard, rules: RuleStore) -> None:
    await rules.put_rule("send_email", "3 e-mails an hour", effect="deny", when=three())
    only = [{"target": "^sarah@", "more_than": {"calls": 1, "per": "3600s"}}]
    await rules.put_rule("send_email", "one to Sarah an hour", effect="deny", when=only)
    assert await mails(guard, 4) == ["allow", "deny", "deny", "deny"]
    others = [(await guard.before("send_email", {"to": "bob@x.com"})).action for _ in range(3)]
    assert others == ["allow", "allow", "deny"]


async def test_two_alternatives_of_one_demand_count_apart(guard: CallGuard, rules: RuleStore) -> None:
    one = {"calls": 1, "per": "3600s"}
    when = [{"target": "^bob@", "more_than": one}, {"target": "^sarah@", "more_than": one}]
    await rules.put_rule("send_email", "one mail an hour to Bob, and one to Sarah", effect="deny", when=when)
    to = ("bob@x.com", "sarah@x.com", "bob@x.com", "sarah@x.com", "anna@x.com")
    actions = [(await guard.before("send_email", {"to": each})).action for each in to]
    assert actions == ["allow", "allow", "deny", "deny", "allow"]


async def test_a_rule_that_is_damaged_stops_nothing_and_the_others_go_on(
    guard: CallGuard, rules: RuleStore, store: MemoryStore
) -> None:
    kept = await rules.put_rule("send_email", "at most 3 e-mails an hour", effect="deny", when=three())
    record = await store.get("w", "tool-send_email", f"rule/{kept.id}")
    assert record is not None
    damaged = {**record.value, "rule": "another", "when": {"when": [{"more_than": {"calls": "x", "per": 3}}]}}
    await store.put("w", "tool-send_email", "rule/damaged", {**damaged, "id": "damaged"})
    assert await mails(guard, 4) == ["allow", "allow", "allow", "deny"]


async def test_one_demand_for_several_classes_of_tools_counts_once(guard: CallGuard, rules: RuleStore) -> None:
    for place in ("send_email", "@mail", "@chat"):
        await rules.put_rule(place, "3 messages an hour", effect="deny", when=three())
    assert await mails(guard, 2) == ["allow", "allow"]
    chat = [(await guard.before("send_message", {"channel": "x", "text": "y"})).action for _ in range(2)]
    assert chat == ["allow", "deny"]


async def test_of_calls_at_once_no_more_than_three_are_let_through(store: MemoryStore, rules: RuleStore) -> None:
    guard = CallGuard(store, "w", clock=SystemClock(), timeout=60)
    await rules.put_rule("send_email", "at most 3 e-mails an hour", effect="deny", when=three())
    decisions = await asyncio.gather(*(guard.before("send_email", MAIL) for _ in range(10)))
    assert sorted(each.action for each in decisions) == ["allow"] * 3 + ["deny"] * 7


async def test_of_two_processes_at_once_no_more_than_three_calls_are_let_through(
    rules: RuleStore, store_factory: StoreFactory
) -> None:
    await rules.put_rule("send_email", "at most 3 e-mails an hour", effect="deny", when=three())
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(2)]
    processes = [context.Process(target=mail_by_pipe, args=(store_factory, theirs), daemon=True) for _, theirs in pipes]
    for each in processes:
        each.start()
    for mine, _ in pipes:  # each is ready, so that they begin at once
        assert await asyncio.to_thread(mine.poll, 60)
        mine.recv()
    for mine, _ in pipes:
        mine.send(6)
    actions: list[str] = []
    for mine, _ in pipes:
        assert await asyncio.to_thread(mine.poll, 60)
        actions += mine.recv()
    for each in processes:
        each.join(60)
    assert sorted(actions) == ["allow"] * 3 + ["deny"] * 9


def mail_by_pipe(factory: StoreFactory, pipe: Any) -> None:
    async def ask() -> None:
        opened = factory(clock=SystemClock())
        await opened.open()
        guard = CallGuard(masking(opened), "w", clock=SystemClock(), timeout=60)
        pipe.send("ready")
        times = await asyncio.to_thread(pipe.recv)
        pipe.send([(await guard.before("send_email", MAIL)).action for _ in range(times)])
        await opened.close()

    asyncio.run(ask())
