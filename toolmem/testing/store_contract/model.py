"""The store against a model in plain Python: any sequence of operations, the same answers."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from toolmem.errors import Conflict
from toolmem.models import ToolCallResult
from toolmem.protocols import MemoryStore
from toolmem.testing.store_contract.copies import dumped
from toolmem.testing.store_contract.scenario import Scenario, StoreFactory, call, document, guidance, verdict

WORKSPACES = ("w", "W2")
TOOLS = ("search", "Search")
NAMESPACES = ("n", "tool-n")
KEYS = ("a", "A", "b/1")

workspaces = st.sampled_from(WORKSPACES)
tools = st.sampled_from(TOOLS)
ids = st.one_of(st.none(), st.integers(0, 12).map("id {}".format))
batches = st.lists(st.tuples(ids, st.sampled_from([True, False, None]), st.booleans()), max_size=5)


@dataclass
class ModelTool:
    kept: list[ToolCallResult] = field(default_factory=list)  # as the store should hand them out
    ever: set[str] = field(default_factory=set)  # ids
    last_seq: int = 0
    calls: int = 0
    failed: list[bool] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    guidance: str | None = None

    def append(self, new: list[ToolCallResult], keep: int) -> int:
        """Answers how many were stored."""
        stored = 0
        for each in new:
            if each.id is not None and each.id in self.ever:
                continue
            stored += 1
            self.last_seq += 1
            self.calls += 1
            self.note_outcome(each)
            if each.id is not None:
                self.ever.add(each.id)
            self.kept.append(each.model_copy(update={"seq": self.last_seq, "is_summarized": False}))
        if stored:
            del self.kept[:-keep]
        return stored

    def note_outcome(self, each: ToolCallResult) -> None:
        if each.failed is not None:
            self.failed.append(each.failed)
        if each.score is not None:
            self.scores.append(each.score)

    def forget_outcome(self, each: ToolCallResult) -> None:
        if each.failed is not None:
            self.failed.remove(each.failed)
        if each.score is not None:
            self.scores.remove(each.score)


class StoreMachine(RuleBasedStateMachine):
    """Drives a store and the model side by side; `factory` is given by a subclass."""

    factory: StoreFactory

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.model: dict[str, dict[str, ModelTool]] = {name: {} for name in WORKSPACES}
        self.notes: dict[tuple[str, str, str], tuple[dict[str, Any], int]] = {}
        self.cached: dict[tuple[str, str], Any] = {}
        self.store: MemoryStore = type(self).factory()
        self.run(self.store.open())

    def run(self, operation: Any) -> Any:
        return self.runner.run(operation)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.runner.close()

    # -- tool memories

    @rule(workspace=workspaces, tool=tools, batch=batches, keep=st.integers(1, 5))
    def append(self, workspace: str, tool: str, batch: list[Any], keep: int) -> None:
        new = [
            call(n, tool, id=call_id, success=success, judged=judged)
            for n, (call_id, success, judged) in enumerate(batch)
        ]
        memory = self.model[workspace].get(tool, ModelTool())
        stored = memory.append(new, keep)
        appended = self.run(self.store.append_calls(workspace, tool, new, keep))
        assert (appended.stored, len(appended.duplicates)) == (stored, len(new) - stored)
        if stored:
            self.model[workspace][tool] = memory
        assert (appended.record is not None) == (tool in self.model[workspace])

    @rule(workspace=workspaces, tool=tools, stale=st.booleans(), share=st.floats(0, 1))
    def summarize(self, workspace: str, tool: str, stale: bool, share: float) -> None:
        memory = self.model[workspace].get(tool)
        records = self.run(self.store.records(workspace, [tool]))
        version = (records[0].guidance_version if records else 0) + stale
        seqs = [each.seq or 0 for each in memory.kept][: round(share * 5)] if memory else []
        text = f"Guidance {uuid.uuid4().hex}."
        put = self.store.put_guidance(
            workspace, tool, guidance(text, seqs), document=document(text), guidance_version=version
        )
        if memory is None or stale:
            with pytest.raises(Conflict):
                self.run(put)
            return
        assert self.run(put).guidance_version > version
        memory.guidance = text
        for each in memory.kept:
            each.is_summarized = each.is_summarized or each.seq in seqs

    @rule(workspace=workspaces, tool=tools, place=st.integers(0, 4), score=st.sampled_from([0.0, 1.0, None]))
    def judge_again(self, workspace: str, tool: str, place: int, score: float | None) -> None:
        memory = self.model[workspace].get(tool)
        seqs = [each.seq or 0 for each in memory.kept][place : place + 2] if memory else [1]
        verdicts = {}
        for seq in seqs:
            bare = call(0, tool, judged=False)
            verdicts[seq] = bare.unjudged("no") if score is None else bare.judged(verdict(score, execution_failed=None))
        record = self.run(self.store.update_verdicts(workspace, tool, verdicts))
        assert (record is None) == (memory is None)
        for i, each in enumerate(memory.kept if memory else []):
            if memory and each.seq in verdicts:
                memory.forget_outcome(each)
                new = each.unjudged("no") if score is None else each.judged(verdict(score, execution_failed=None))
                memory.note_outcome(new)
                memory.kept[i] = new.model_copy(update={"is_summarized": False})

    @rule(workspace=workspaces, tool=tools)
    def forget_tool(self, workspace: str, tool: str) -> None:
        records = self.run(self.store.records(workspace, [tool]))
        wanted = [record.memory_id for record in records]
        assert self.run(self.store.delete_memories(workspace, [*wanted, "unknown"])) == wanted
        assert (self.model[workspace].pop(tool, None) is not None) == bool(wanted)

    @rule(tool=tools, keep=st.integers(1, 5))
    def copy_tool(self, tool: str, keep: int) -> None:
        """From the first workspace into the second: adds what is new there, or takes over everything."""
        source = self.model["w"].get(tool)
        if source is None:
            return
        (stored,) = self.run(self.store.memories("w", [tool], calls=True))
        target = self.model["W2"].get(tool)
        merged = self.run(self.store.merge("W2", dumped(stored), keep))
        if target is not None:
            assert merged.stored == target.append(list(stored.calls), keep)
            return
        copied = ModelTool(
            kept=[each.model_copy() for each in source.kept][-keep:],
            ever={each.id for each in source.kept if each.id},
            last_seq=source.last_seq,
            calls=source.calls,
            failed=list(source.failed),
            scores=list(source.scores),
            guidance=source.guidance,
        )
        self.model["W2"][tool] = copied

    @rule(workspace=workspaces)
    def forget_all_tools(self, workspace: str) -> None:
        assert self.run(self.store.delete_tools(workspace)) == len(self.model[workspace])
        self.model[workspace] = {}

    @rule(workspace=workspaces)
    def forget_workspace(self, workspace: str) -> None:
        assert self.run(self.store.delete_workspace(workspace)) == len(self.model[workspace])
        self.model[workspace] = {}
        self.notes = {place: note for place, note in self.notes.items() if place[0] != workspace}
        self.cached = {place: each for place, each in self.cached.items() if place[0] != workspace}

    # -- keyed records and verdicts

    @rule(
        place=st.tuples(workspaces, st.sampled_from(NAMESPACES), st.sampled_from(KEYS)),
        number=st.integers(),
        expected=st.one_of(st.none(), st.integers(0, 2)),
    )
    def put_note(self, place: tuple[str, str, str], number: int, expected: int | None) -> None:
        version = self.notes.get(place, ({}, 0))[1]
        put = self.store.put(*place, {"n": number}, document=document(f"note {number}"), expected_version=expected)
        if expected is not None and expected != version:
            with pytest.raises(Conflict):
                self.run(put)
            return
        assert self.run(put).version == version + 1
        self.notes[place] = ({"n": number}, version + 1)

    @rule(place=st.tuples(workspaces, st.sampled_from(NAMESPACES), st.sampled_from(KEYS)))
    def delete_note(self, place: tuple[str, str, str]) -> None:
        assert self.run(self.store.delete(*place)) == (self.notes.pop(place, None) is not None)

    @rule(workspace=workspaces, key=st.sampled_from(KEYS), score=st.sampled_from([0.0, 1.0]))
    def cache_verdict(self, workspace: str, key: str, score: float) -> None:
        self.cached[workspace, key] = verdict(score)
        self.run(self.store.put_verdicts(workspace, {key: verdict(score)}))

    @rule()
    def open_again(self) -> None:
        self.run(self.store.close())
        self.store = type(self).factory()
        self.run(self.store.open())

    # -- what must always hold

    @invariant()
    def tools_are_as_in_the_model(self) -> None:
        for workspace, held in self.model.items():
            assert self.run(self.store.tool_names(workspace)) == sorted(held)
            for stored in self.run(self.store.memories(workspace, None, calls=True)):
                self._compare(stored.record, list(stored.calls), held[stored.record.tool_name])

    @staticmethod
    def _compare(record: Any, kept: list[ToolCallResult], memory: ModelTool) -> None:
        for theirs, ours in zip(kept, memory.kept, strict=True):
            if ours.id is None:  # the store has chosen one; from now on the model knows it
                assert theirs.id is not None
                assert theirs.id not in memory.ever
                ours.id = theirs.id
                memory.ever.add(theirs.id)
            assert theirs == ours
        seqs = [each.seq for each in memory.kept]
        assert list(range(record.first_seq, record.last_seq + 1)) == seqs
        assert record.last_seq == memory.last_seq
        assert record.unjudged == [each.seq for each in memory.kept if each.score is None]
        summarized = [each.seq for each in memory.kept if each.is_summarized]
        assert [seq for low, high in record.covered for seq in range(low, high + 1)] == summarized
        counters = record.counters
        assert (counters.calls, counters.failures) == (memory.calls, sum(memory.failed))
        assert counters.successes == len(memory.failed) - sum(memory.failed)
        assert (counters.judged, counters.score_sum) == (len(memory.scores), sum(memory.scores))
        assert (record.guidance.text if record.guidance else None) == memory.guidance

    @invariant()
    def ids_ever_stored_are_known(self) -> None:
        for workspace, held in self.model.items():
            for tool, memory in held.items():
                asked = [*memory.ever, "never stored"]
                assert self.run(self.store.known_ids(workspace, tool, asked)) == memory.ever

    @invariant()
    def records_and_verdicts_are_as_in_the_model(self) -> None:
        for workspace in WORKSPACES:
            found = {
                (workspace, namespace, record.key): (record.value, record.version)
                for namespace in self.run(self.store.namespaces(workspace))
                for record in self.run(self.store.list(workspace, namespace))
            }
            assert found == {place: note for place, note in self.notes.items() if place[0] == workspace}
            cached = {key: each for (name, key), each in self.cached.items() if name == workspace}
            assert self.run(self.store.verdicts(workspace, KEYS)) == cached
        in_use = {name for name, held in self.model.items() if held}
        in_use |= {place[0] for place in [*self.notes, *self.cached]}
        assert self.run(self.store.workspaces()) == sorted(in_use)


class ModelContract(Scenario):
    model_examples = 25
    model_steps = 20

    def test_any_sequence_of_operations_agrees_with_the_model(self, fresh_store: Callable[[], StoreFactory]) -> None:
        class Machine(StoreMachine):
            def __init__(self) -> None:
                type(self).factory = staticmethod(fresh_store())
                super().__init__()

        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=self.model_examples,
                stateful_step_count=self.model_steps,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
