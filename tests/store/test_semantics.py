"""What a store decides, whatever it writes to: laws over any series of requests, without a store."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from toolmem.errors import Conflict, RequestError
from toolmem.models import ToolCallResult, ToolMemory
from toolmem.store.codec import members
from toolmem.store.copying import whole_memory
from toolmem.store.merging import Merge
from toolmem.store.semantics import AppendCalls, Found, PutGuidance, Request, Step, ToolRow, UpdateVerdicts
from toolmem.stored import StoredMemory
from toolmem.testing.store_contract.scenario import START, TOOL, W, call, document, guidance, verdict


@dataclass
class Held:
    """What a store would hold of one tool: it carries steps out and decides nothing."""

    row: ToolRow | None = None
    calls: dict[int, ToolCallResult] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)

    def found(self, request: Request[Any]) -> Found:
        return Found(self.row, self.ids, {seq: self.calls[seq] for seq in request.seqs if seq in self.calls})

    def do(self, request: Request[Any]) -> Step[Any]:
        request.prepare()
        before = deepcopy(self.row)
        step = request.decide(self.found(request))
        assert self.row == before  # deciding changes nothing
        if step.row is not None:
            self.row = step.row
            self.calls = step.window(self.calls)
            self.ids |= set(step.ids)
        return step

    def append(self, new: list[ToolCallResult], keep: int) -> Step[Any]:
        return self.do(AppendCalls(START, W, TOOL, lambda: new, keep))

    def summarize(self, covered: list[int]) -> Step[Any]:
        version = self.row.guidance_version if self.row else 0
        return self.do(PutGuidance(START, W, TOOL, guidance(covered=covered), document(), version))

    def judge(self, scores: dict[int, float | None]) -> Step[Any]:
        bare = call(judged=False)
        judged = {seq: bare.unjudged("no") if s is None else bare.judged(verdict(s)) for seq, s in scores.items()}
        return self.do(UpdateVerdicts(START, W, TOOL, judged))

    @property
    def covered(self) -> set[int]:
        return members(self.row.covered) if self.row else set()

    def dumped(self) -> ToolMemory:
        assert self.row is not None
        shown = [each.model_copy(update={"is_summarized": seq in self.covered}) for seq, each in self.calls.items()]
        return whole_memory(StoredMemory(self.row.record(W), calls=tuple(shown)))


ids = st.one_of(st.none(), st.integers(0, 15).map("id {}".format))
made = st.builds(
    lambda n, id, success, judged: call(n, id=id, success=success, judged=judged),
    st.integers(0, 50),
    ids,
    st.sampled_from([True, False, None]),
    st.booleans(),
)
batches = st.lists(made, max_size=6)
keeps = st.integers(1, 8)
operations = st.one_of(
    st.tuples(st.just("append"), batches, keeps),
    st.tuples(st.just("summarize"), st.lists(st.integers(-1, 40), max_size=6)),
    st.tuples(st.just("judge"), st.dictionaries(st.integers(0, 40), st.sampled_from([0.0, 1.0, None]), max_size=3)),
)
series = st.lists(operations, max_size=12)


def after(steps: list[Any]) -> Held:
    held = Held()
    held.append([call()], 8)
    for name, *values in steps:
        getattr(held, name)(*values)
    return held


@given(series, batches, keeps)
def test_the_window_is_the_newest_calls_without_gaps(steps, batch, keep):
    held = after(steps)
    before = held.row
    step = held.append(batch, keep)
    assert list(held.calls) == list(range(held.row.first_seq, held.row.last_seq + 1))
    assert held.row.last_seq == before.last_seq + step.answer().stored
    if step.answer().stored:
        assert held.row.kept <= keep
        assert step.answer().trimmed == before.kept + step.answer().stored - held.row.kept
    else:
        assert step.row is None  # nothing to write


@given(series, operations)
def test_counters_of_calls_never_shrink_and_say_what_was_ever_taken_in(steps, last):
    held = after(steps)
    before = held.row.counters
    getattr(held, last[0])(*last[1:])
    now = held.row.counters
    assert now.calls >= before.calls
    assert (now.time_calls, now.time_sum) >= (before.time_calls, before.time_sum)
    assert now.token_sum >= before.token_sum
    assert now.since <= before.since
    assert now.calls == held.row.last_seq
    assert 0 <= now.failures + now.successes <= now.calls
    assert 0 <= now.score_sum <= now.judged <= now.calls


@given(series, batches, keeps)
def test_a_call_sent_again_counts_once(steps, batch, keep):
    held = after(steps)
    held.append(batch, keep)
    counters = held.row.counters
    named = [each for each in batch if each.id is not None]
    step = held.append([*named, *named], keep)
    assert step.row is None
    assert (step.answer().stored, len(step.answer().duplicates)) == (0, 2 * len(named))
    assert held.row.counters == counters
    again = held.append([each.model_copy() for each in held.calls.values()], keep)  # under the ids that they were given
    assert again.answer().stored == 0


@given(series, st.lists(st.integers(-1, 60), max_size=8), batches, keeps)
def test_coverage_marks_exactly_the_calls_of_the_window_that_were_read(steps, covered, batch, keep):
    held = after(steps)
    earlier = held.covered
    held.summarize(covered)
    assert held.covered == earlier | (set(covered) & set(held.calls))
    marked = held.covered
    held.append(batch, keep)  # what comes meanwhile stays new
    assert held.covered == marked & set(held.calls)


@given(series, st.dictionaries(st.integers(1, 40), st.sampled_from([0.0, 1.0, None]), min_size=1, max_size=4))
def test_a_call_judged_anew_is_new_again_and_no_other(steps, scores):
    held = after(steps)
    before, calls = held.row, dict(held.calls)
    step = held.judge(scores)
    changed = set(scores) & set(calls)
    assert set(step.replaced) == changed
    assert held.covered == members(before.covered) - changed
    assert members(held.row.unjudged) == {seq for seq, each in held.calls.items() if each.score is None}
    assert {seq: each for seq, each in held.calls.items() if seq not in changed} == {
        seq: each for seq, each in calls.items() if seq not in changed
    }
    assert held.row.guidance_version == before.guidance_version + bool(changed)


@given(series, st.integers(1, 5))
def test_guidance_of_another_version_is_a_conflict(steps, ahead):
    held = after(steps)
    version = held.row.guidance_version
    request = PutGuidance(START, W, TOOL, guidance(), document(), version + ahead)
    with pytest.raises(Conflict, match=f"at version {version}"):
        held.do(request)
    with pytest.raises(Conflict, match="is gone"):
        Held().do(PutGuidance(START, W, TOOL, guidance(), document(), 0))


@given(series, keeps)
def test_a_memory_taken_over_twice_adds_nothing(steps, keep):
    source, target = after(steps), Held()
    first = target.do(Merge(START, W, source.dumped(), keep, None))
    assert first.answer().stored == len(source.calls)
    row = target.row
    assert row.counters == source.row.counters
    assert row.last_seq == source.row.last_seq
    assert target.covered == source.covered & set(target.calls)
    assert row.id_stem != source.row.id_stem
    second = target.do(Merge(START, W, source.dumped(), keep, None))
    assert (second.row, second.answer().stored) == (None, 0)


@given(series, operations)
def test_each_commit_raises_the_version_by_one(steps, last):
    held = after(steps)
    version = held.row.version
    step = getattr(held, last[0])(*last[1:])
    assert held.row.version == version + (step.row is not None)
    record = step.answer().record if last[0] == "append" else step.answer()
    assert record.version == held.row.version


@given(batches)
def test_a_call_that_cannot_be_kept_is_named_and_takes_none_with_it(batch):
    bad = [call(id=""), call(tool="another"), call(output="\ud800")]
    held = Held()
    request = AppendCalls(START + timedelta(days=1), W, TOOL, lambda: [*bad, *batch], 100)
    step = held.do(request)
    assert [failure.index for failure in step.answer().failures] == [0, 1, 2]
    assert step.answer().stored == len({each.id for each in batch if each.id}) + sum(each.id is None for each in batch)


def test_a_call_that_the_backend_refuses_is_named_and_the_others_are_decided_again():
    request = AppendCalls(START, W, TOOL, lambda: [call(1), call(2)], 10)
    request.prepare()
    (first, _) = request.decide(Found()).entering.values()
    request.refuse(first, "too large")
    step = request.decide(Found())
    assert [(failure.index, failure.error) for failure in step.answer().failures] == [(0, "too large")]
    assert [item.call.output for item in step.entering.values()] == ["answer 2"]


@pytest.mark.parametrize(("workspace", "tool"), [("", TOOL), (W, "")])
def test_a_first_write_needs_names(workspace, tool):
    request = AppendCalls(START, workspace, tool, lambda: [call(tool=tool)], 1)
    request.prepare()
    with pytest.raises(RequestError, match="expected a name"):
        request.decide(Found())
