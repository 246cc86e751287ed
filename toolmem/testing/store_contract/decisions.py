"""The log of the guard's decisions, and the read by which a guard knows that its rules are still the same."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from toolmem.errors import RequestError
from toolmem.protocols import MemoryStore
from toolmem.readers.secret_spans import MASK
from toolmem.store.masked import masking
from toolmem.stored import LoggedDecision, LogLimits
from toolmem.testing.store_contract.scenario import START, Scenario, StoreFactory, W, append, drive, driven

RULES = "tool-send_email"
SECRET = "hunter2!x"


def decision(number: int, **fields: Any) -> LoggedDecision:
    whole: dict[str, Any] = {
        "id": f"decision {number}",
        "time": START + timedelta(seconds=number),
        "conversation_id": "c",
        "tool_name": "send_email",
        "input": '{"to": "sarah@example.com"}',
        "action": "deny",
        "reason": "toolmem: not run. 漢字",
        "advice": "",
        "mode": "enforce",
        "sources": [{"kind": "rule", "rule_id": "r", "k": None, "n": 3, "call_ids": ["a"]}],
        **fields,
    }
    return LoggedDecision(**whole)


async def decided(store: MemoryStore, workspace: str = W, **asked: Any) -> list[int]:
    return [int(each.id.removeprefix("decision ")) for each in await store.decisions(workspace, **asked)]


class DecisionLogContract(Scenario):
    @driven
    async def test_a_decision_comes_back_as_it_was_logged(self, store: MemoryStore) -> None:
        given = decision(1, forced=True, outcome="worked", call_id="call 7", advice="line\n\ttab \x00", input="no JSON")
        await store.log_decision(W, given)
        assert await store.decisions(W) == [given]

    @driven
    async def test_the_newest_come_first_whatever_their_times(self, store: MemoryStore) -> None:
        for number, seconds in ((1, 0), (2, 50), (3, -50)):
            await store.log_decision(W, decision(number, time=START + timedelta(seconds=seconds)))
        assert await decided(store) == [3, 2, 1]
        assert await decided(store, limit=2) == [3, 2]
        assert await decided(store, limit=0) == []

    @driven
    async def test_one_logged_again_is_replaced_in_its_place(self, store: MemoryStore) -> None:
        for number in range(3):
            await store.log_decision(W, decision(number))
        changed = replace(decision(1), outcome="failed", call_id="x", conversation_id="d")
        await store.log_decision(W, changed)
        assert await decided(store) == [2, 1, 0]
        assert await store.decisions(W, ids=["decision 1"]) == [changed]
        assert await decided(store, conversation="c") == [2, 0]
        assert await decided(store, conversation="d") == [1]

    @driven
    async def test_those_are_answered_that_fit_all_that_is_asked(self, store: MemoryStore) -> None:
        for number in range(8):
            fields = {"conversation_id": ("c", "d")[number % 2], "tool_name": ("a", "b")[number // 4]}
            await store.log_decision(W, decision(number, **fields))
        await store.log_decision(W, decision(8, conversation_id="", tool_name=""))
        assert await decided(store, conversation="c") == [6, 4, 2, 0]
        assert await decided(store, tool="a") == [3, 2, 1, 0]
        assert await decided(store, tool="a", conversation="d", limit=1) == [3]
        assert await decided(store, ids=["decision 1", "decision 6", "unknown"]) == [6, 1]
        assert await decided(store, ids=["decision 1", "decision 6"], tool="b") == [6]
        assert (
            await decided(store, ids=[]) == await decided(store, tool="A") == await decided(store, tool="\ud800") == []
        )

    @driven
    async def test_two_workspaces_never_see_each_others_decisions(self, store: MemoryStore) -> None:
        await store.log_decision("a", decision(1))
        await store.log_decision("b", decision(1, reason="another"))
        await store.log_decision("b", decision(2))
        assert [each.reason for each in await store.decisions("a", ids=["decision 1"])] == [decision(1).reason]
        assert await decided(store, "b", conversation="c") == [2, 1]
        assert await decided(store, "c") == await decided(store, "\ud800") == []

    @driven
    async def test_decisions_go_with_their_workspace_and_not_with_its_tools(self, store: MemoryStore) -> None:
        await append(store, 1, tool="send_email")
        await store.log_decision(W, decision(1))
        await store.delete_tools(W)
        assert await decided(store) == [1]
        assert await store.workspaces() == [W]
        assert (await store.info())["workspaces"][W]["decisions"] == 1
        await store.delete_workspace(W)
        assert await decided(store) == await decided(store, conversation="c") == []
        assert await store.workspaces() == []
        await store.log_decision(W, decision(2))
        assert await decided(store) == [2]

    @driven
    async def test_decisions_at_the_same_time_are_all_logged(self, store: MemoryStore) -> None:
        await asyncio.gather(*(store.log_decision(W, decision(number)) for number in range(30)))
        assert sorted(await decided(store)) == list(range(30))
        await asyncio.gather(*(store.log_decision(W, decision(number, outcome="worked")) for number in range(30)))
        assert {each.outcome for each in await store.decisions(W)} == {"worked"}
        assert len(await decided(store)) == 30

    def test_the_oldest_decisions_go(self, store_factory: StoreFactory) -> None:
        async def scenario(store: MemoryStore) -> None:
            for number in range(9):
                await store.log_decision(W, decision(number))
            await store.log_decision("other", decision(0))
            assert await decided(store, limit=1000) == [8, 7, 6, 5]
            await store.log_decision(W, decision(6, outcome="worked"))  # takes no room
            assert await decided(store, conversation="c") == [8, 7, 6, 5]
            assert await decided(store, ids=["decision 2"]) == []
            assert (await store.info())["workspaces"][W]["decisions"] == 4
            await store.log_decision(W, decision(2))  # is gone, so it is a new one
            assert await decided(store) == [2, 8, 7, 6]

        drive(store_factory(log=LogLimits(max_decisions=4)), scenario)

    @driven
    async def test_what_cannot_be_logged_is_refused(self, store: MemoryStore) -> None:
        bad: list[dict[str, Any]] = [
            {"id": ""},
            {"reason": "\ud800"},
            {"sources": [{"n": float("nan")}]},
            {"sources": [object()]},
            {"outcome": "perhaps"},
            {"time": START.replace(tzinfo=None)},
        ]
        for fields in bad:
            with pytest.raises(RequestError, match="decision"):
                await store.log_decision(W, decision(1, **fields))
        with pytest.raises(RequestError, match="workspace"):
            await store.log_decision("", decision(1))
        assert await store.workspaces() == []

    @driven
    async def test_no_secret_of_a_decisions_input_is_stored(self, store: MemoryStore) -> None:
        given = {"user": "bob", "password": SECRET}
        told = f"'login --password {SECRET}' failed"
        await masking(store).log_decision(W, decision(1, input=json.dumps(given), advice=told))
        await masking(store).log_decision(W, decision(2, input=f"login --password {SECRET}"))
        await masking(store).log_decision(W, decision(3))
        third, second, first = await store.decisions(W)
        assert SECRET not in f"{first}{second}"
        assert json.loads(first.input) == {"user": "bob", "password": MASK.findall(first.advice)[0]}
        assert MASK.search(second.input)
        assert third == decision(3)


class StampContract(Scenario):
    @driven
    async def test_records_are_read_as_they_are_now(self, store: MemoryStore) -> None:
        keys = [(RULES, "rule/1"), ("guard-conversation", "c"), (RULES, "rule/2"), ("\ud800", "x")]
        assert (await store.read_stamped(W, keys)).records == (None,) * 4
        for number in range(3):
            await store.put(W, RULES, "rule/1", {"n": number})
            await store.put(W, "guard-conversation", "c", {"state": [number]})
            rule, state, other, unnameable = (await store.read_stamped(W, keys)).records
            assert rule is not None
            assert state is not None
            assert (other, unnameable) == (None, None)
            assert (rule.namespace, rule.key, json.loads(rule.text)) == (RULES, "rule/1", {"n": number})
            assert (json.loads(state.text), state.version) == ({"state": [number]}, number + 1)
        assert (await store.read_stamped("\ud800", keys)).records == (None,) * 4
        assert (await store.read_stamped(W, [])).records == ()

    @driven
    async def test_the_stamp_changes_with_every_write_to_a_rule(
        self, store: MemoryStore, store_factory: StoreFactory
    ) -> None:
        other = store_factory()
        await other.open()
        try:
            stamps = [await self._stamp(store)]
            for writer, status in ((store, "proposed"), (other, "active"), (other, "active"), (store, "withdrawn")):
                await writer.put(W, RULES, "rule/1", {"status": status})
                stamps.append(await self._stamp(store))
            for writer, key in ((store, "rule/2"), (other, "rule/3")):
                await writer.put(W, "tool-", key, {})
                stamps.append(await self._stamp(store))
            for writer, place in (
                (store, ("tool-", "rule/2")),
                (other, (RULES, "rule/1")),
                (other, ("tool-", "rule/3")),
            ):
                await writer.delete(W, *place)
                stamps.append(await self._stamp(store))
            assert len(set(stamps)) == len(stamps)
            assert await self._stamp(other) == stamps[-1]
        finally:
            await other.close()

    @driven
    async def test_the_stamp_stays_with_everything_else(self, store: MemoryStore) -> None:
        await store.put(W, RULES, "rule/1", {})
        stamp = await self._stamp(store)
        for namespace, key in (
            ("tool", "rule/1"),
            ("tools-x", "rule/1"),
            (RULES, "note"),
            (RULES, "rule"),
            ("guard-c", "c"),
        ):
            await store.put(W, namespace, key, {})
            await store.delete(W, namespace, key)
        await append(store, 1, tool="send_email")
        await store.log_decision(W, decision(1))
        await store.put("other", RULES, "rule/1", {})
        await store.delete_workspace("other")
        await store.delete(W, RULES, "rule/unknown")
        await store.delete_tools(W)
        assert await self._stamp(store) == stamp

    @driven
    async def test_no_two_states_of_the_rules_have_one_stamp_also_where_the_workspace_was_deleted(
        self, store: MemoryStore
    ) -> None:
        seen: set[str] = set()
        for number in range(4):
            for rules in range(1, 3):
                await store.put(W, RULES, f"rule/{rules}", {"n": number})
                stamp = await self._stamp(store)
                assert stamp not in seen
                seen.add(stamp)
            await store.delete_workspace(W)
            assert await self._stamp(store) not in seen  # no rules

    @staticmethod
    async def _stamp(store: MemoryStore) -> str:
        return (await store.read_stamped(W, [])).stamp
