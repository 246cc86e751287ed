"""Writers and readers of one tool, stopped at each request; every fault at every step."""

from __future__ import annotations

import os
from typing import Any

import pytest
from elasticsearch_fake.interleave import (
    Killed,
    Network,
    Task,
    direct_store,
    faults_of,
    stopping_store,
)
from elasticsearch_fake.making import calls_of, guidance_of, judged
from elasticsearch_fake.model import LOG_KEEP, Model, Op, told
from elasticsearch_fake.server import Mget, Server
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from toolmem.errors import Conflict, StoreUnavailable
from toolmem.store import changes
from toolmem.store.elasticsearch import tool_calls

IDS = tuple("abcdefghijkl")
WHO, ID = st.integers(0, 2), st.sampled_from(IDS)
SCORES = st.dictionaries(st.integers(1, 8), st.sampled_from((0.0, 1.0)), min_size=1)


class Names:
    """In the place of `os`: a commit is named after its operation, so that the model knows it."""

    def __init__(self) -> None:
        self.operation, self.stems = "", 0
        self.size = 0

    def urandom(self, size: int) -> Names:
        self.size = size
        return self

    def hex(self) -> str:
        if self.size == 6:
            return self.operation
        self.stems += 1
        return f"stem{self.stems}"


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.names = Names()
        tool_calls.os = self.names  # type: ignore[assignment]
        self.server = Server()
        self.network = Network(self.server)
        self.model = Model(self.server)
        self.server.on_write = self.model.written
        self.stores = [stopping_store() for _ in range(3)]
        self.tasks: list[tuple[int, Task]] = []  # with the store that works on it
        self.begun: dict[str, int] = {}  # how many moments there were when a task began
        self.count = 0

    # -- operations

    @initialize(ids=st.lists(st.sampled_from(IDS), max_size=4, unique=True), who=WHO)
    def some_calls(self, ids: list[str], who: int) -> None:
        for writer, call_id in enumerate(ids, who):
            self.append(writer % 3, [call_id], 6)
            while self.tasks:
                self.go_on(0, 6)

    def start(self, kind: str, who: int, work: Any, **asked: Any) -> None:
        if any(busy == who for busy, _ in self.tasks):
            return  # a process writes one thing at a time
        self.count += 1
        name = self.names.operation = f"{kind}{self.count}"
        if kind in ("append", "verdicts", "guidance", "delete", "forget"):
            self.model.ops[name] = Op(name, kind, **asked)
        self.begun[name] = len(self.model.moments)
        self.tasks.append((who, Task(name, work)))
        self.ended()

    @rule(who=WHO, ids=st.lists(ID, min_size=1, max_size=4), keep=st.sampled_from((1, 2, 3, 6)))
    def append(self, who: int, ids: list[str], keep: int) -> None:
        calls = calls_of(ids, self.count)
        asked = tuple((call.id, call.output) for call in calls)
        work = lambda: self.stores[who].append_calls("w", calls, keep)["t"]  # noqa: E731
        self.start("append", who, work, calls=asked, keep=keep)

    @rule(who=WHO, scores=SCORES)
    def judge(self, who: int, scores: dict[int, float]) -> None:
        work = lambda: self.stores[who].update_verdicts("w", "t", judged(scores))  # noqa: E731
        self.start("verdicts", who, work, verdicts=scores)

    @rule(who=WHO, covered=st.frozensets(st.integers(1, 8)), late=st.sampled_from((0, 0, 0, 1)))
    def guide(self, who: int, covered: frozenset[int], late: int) -> None:
        life = self.model.life
        expected = max((life.guidance_version if life else 0) - late, 0)
        guidance, document = guidance_of(f"guidance{self.count + 1}", covered)
        options = {"document": document, "expected_version": expected}
        work = lambda: self.stores[who].put_guidance("w", "t", guidance, **options)  # noqa: E731
        self.start("guidance", who, work, covered=covered, expected=expected)

    @rule(who=WHO, dice=st.integers(0, 3))
    def delete(self, who: int, dice: int) -> None:
        if dice == 0:
            self.start("delete", who, lambda: self.stores[who].delete_tools("w", ["t"]))

    @rule(who=WHO, ids=st.frozensets(st.sampled_from(IDS), min_size=1))
    def forget(self, who: int, ids: frozenset[str]) -> None:
        work = lambda: self.stores[who].delete_calls("w", "t", ids, back=IDS)  # noqa: E731
        self.start("forget", who, work, ids=ids)

    @rule(
        who=WHO,
        kind=st.sampled_from(("window", "window", "log", "known")),
        ids=st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True),
    )
    def read(self, who: int, kind: str, ids: list[str]) -> None:
        store, life = self.stores[who], self.model.life
        if kind == "window":
            self.start(kind, who, lambda: store.windows("w", ["t"]))
        elif kind == "known":
            self.start(kind, who, lambda: (ids, store.known_ids("w", "t", ids)))
        else:
            owed = None if life is None else (life, life.last)
            self.start(kind, who, lambda: (owed, store.call_log("w")))

    @rule(who=WHO)
    def new_process(self, who: int) -> None:
        if all(busy != who for busy, _ in self.tasks):
            self.stores[who] = stopping_store()

    # -- going on

    def any_task(self) -> bool:
        return bool(self.tasks)

    @precondition(any_task)
    @rule(number=WHO, steps=st.integers(1, 6))
    def go_on(self, number: int, steps: int) -> None:
        _, task = self.tasks[number % len(self.tasks)]
        for _ in range(steps):
            if not task.done:
                self.step(task, "ok", 1)
        self.ended()

    @precondition(any_task)
    @rule(number=WHO, fault=st.integers(0, 9), amount=st.integers(1, 9))
    def go_wrong(self, number: int, fault: int, amount: int) -> None:
        _, task = self.tasks[number % len(self.tasks)]
        faults = faults_of(task.request)
        self.step(task, faults[fault % len(faults)], amount)
        self.ended()

    @precondition(lambda self: self.network.limbo)
    @rule(number=st.integers(0, 9))
    def deliver(self, number: int) -> None:
        self.network.deliver(number % len(self.network.limbo))

    @precondition(lambda self: self.server.doomed)
    @rule()
    def heal(self) -> None:
        self.server.doomed.clear()

    def step(self, task: Task, fault: str, amount: int) -> None:
        request = task.request
        looks_up_ids = isinstance(request, Mget) and request.keys[0][0] == "p-calls"
        if fault == "stale" and looks_up_ids and task.name[:5] in ("appen", "known", "forge"):
            fault = "ok"  # a limit: see test_an_old_id_looked_up_in_an_old_copy_counts_once
        self.names.operation = task.name
        self.network.step(task, fault, amount)

    # -- what must be true

    def ended(self) -> None:
        for who, task in [each for each in self.tasks if each[1].done]:
            self.tasks.remove((who, task))
            kind = task.name.rstrip("0123456789")
            moments = self.model.moments[self.begun[task.name] - 1 :]
            if task.error is None:
                getattr(self, f"check_{kind}")(task, moments)
            elif isinstance(task.error, Conflict):
                assert kind == "guidance" and task.name not in self.model.applied
                expected = self.model.ops[task.name].expected
                others = [each is None or each[3][1] != expected for each in moments]
                assert any(others) or task.absent, "a conflict that was none"
            elif not isinstance(task.error, Killed | StoreUnavailable):
                raise task.error
            elif isinstance(task.error, Killed):
                self.stores[who] = stopping_store()

    def check_append(self, task: Task, moments: list[Any]) -> None:
        op, result = self.model.ops[task.name], task.result
        stored = [each[0] for n, each in enumerate(op.calls) if n not in result.duplicates]
        assert result.stored == len(stored)
        if task.name in self.model.applied:
            assert stored == self.model.applied[task.name], "the answer tells of another commit"
            return
        assert stored == []
        ids = {each[0] for each in op.calls}
        lives = self.model.lives.values()
        assert any(ids <= life.ever for life in lives)

    def check_verdicts(self, task: Task, moments: list[Any]) -> None:
        if task.name in self.model.applied:
            counters = task.result.counters
            told = (counters.calls, counters.judged, counters.score_sum)
            assert told == self.model.applied[task.name]
            return
        wanted = self.model.ops[task.name].verdicts
        passed = [each is None or not wanted.keys() & dict(each[0]) for each in moments]
        assert any(passed) or task.absent, "acknowledged, and not done"

    def check_guidance(self, task: Task, moments: list[Any]) -> None:
        assert task.result.guidance_version == self.model.applied[task.name]

    def check_delete(self, task: Task, moments: list[Any]) -> None:
        assert bool(task.result) == (task.name in self.model.applied) or task.absent
        assert task.result or None in moments or task.absent

    def check_forget(self, task: Task, moments: list[Any]) -> None:
        assert task.result == self.model.applied.get(task.name, 0)

    def check_window(self, task: Task, moments: list[Any]) -> None:
        shown = None
        if task.result:
            (window,) = task.result
            record, counters = window.record, window.record.counters
            shown = (
                tuple((call.seq, told(call)) for call in window.calls),
                record.new,
                (counters.calls, counters.judged, counters.score_sum),
                (record.guidance.text if record.guidance else "", record.guidance_version),
            )
        if not task.dirty:
            assert shown in (self.model.moments if task.stale else moments), "never was so"

    def check_log(self, task: Task, moments: list[Any]) -> None:
        owed, log = task.result
        lives = self.model.lives.values()
        for each in log:
            assert any(told(each.call) in life.versions.values() for life in lives)
        assert len({each.position for each in log}) == len(log)
        if owed is not None and owed[0] is self.model.life and None not in moments:
            life, last = owed
            ids = {each.call.id for each in log}
            for seq in range(max(1, life.last - LOG_KEEP + 1), last + 1):
                assert seq not in life.calls or life.calls[seq][0] in ids, f"the log lacks {seq}"

    def check_known(self, task: Task, moments: list[Any]) -> None:
        ids, known = task.result
        lives = self.model.lives.values()
        assert known <= {each for life in lives for each in life.ever}
        if moments[0] and None not in moments and not task.stale:
            forgotten = {each for op in self.model.ops.values() for each in op.ids}
            assert {call[0] for _, call in moments[0][0]} & set(ids) - forgotten <= known

    def teardown(self) -> None:
        """Everything under way ends or dies, what is delayed comes; a new process sees it all."""
        for number, (_, task) in enumerate(self.tasks):
            for _ in range(300):
                if number % 2 and not task.done:
                    self.step(task, "ok", 1)
            if not task.done:
                task.fail(Killed())
        self.ended()
        while self.network.limbo:
            self.network.deliver()
        self.server.doomed.clear()
        store, life = direct_store(self.server), self.model.life
        known = store.known_ids("w", "t", IDS)  # first, while outboxes hold what is forgotten
        windows, log = store.windows("w"), store.call_log("w")
        assert [each.record.tool_name for each in windows] == ([] if life is None else ["t"])
        if life is None:
            assert log == []
            return
        assert [told(call) for call in windows[0].calls] == list(life.window.values())
        newest = [life.calls[seq] for seq in sorted(life.calls) if seq > life.last - LOG_KEEP]
        assert [told(each.call) for each in log][len(log) - len(newest) :] == newest
        everything = {call[0] for call in life.calls.values()}
        self.names.operation = "again"
        self.model.ops["again"] = Op("again", "append", keep=3)
        assert known == everything >= {each.call.id for each in log}
        assert store.append_calls("w", calls_of(sorted(everything), 0), 3)["t"].stored == 0
        self.names.operation = "last"
        self.model.ops["last"] = Op("last", "append", calls=(("z", "z of 0.0"),), keep=3)
        fresh = direct_store(self.server)
        assert fresh.append_calls("w", calls_of(["z"], 0), 3)["t"].stored == 1


@pytest.fixture(autouse=True)
def short_log(monkeypatch):
    monkeypatch.setattr(changes, "LOG_CALLS", LOG_KEEP)
    monkeypatch.setattr(changes, "EMPTIED_AT_ONCE", 1)
    monkeypatch.setattr(tool_calls, "os", tool_calls.os)


def test_whatever_is_lost_repeated_delayed_or_killed_no_acknowledged_call_is(request):
    case = Machine.TestCase
    case.settings = settings(
        max_examples=int(os.environ.get("EXAMPLES", "60")),
        stateful_step_count=60,
        deadline=None,
        phases=[Phase.generate] if os.environ.get("NOSHRINK") else list(Phase),
        suppress_health_check=list(HealthCheck),
    )
    case("runTest").runTest()
