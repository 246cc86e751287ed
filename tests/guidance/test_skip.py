from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.guidance.skip import Window, count_covered, count_new, decide, window_of
from toolmem.models import Guidance, ToolRecord, merge_ranges

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WRITER = {"author": "offline/data_driven", "prompt_version": "v1"}


def record(last_seq: int, *, first_seq: int = 1, covered: list[int] | None = None, **fields: object) -> ToolRecord:
    return ToolRecord.model_validate(
        {
            "workspace": "w",
            "tool_name": "t",
            "memory_id": "m",
            "version": 1,
            "first_seq": first_seq,
            "last_seq": last_seq,
            "covered": merge_ranges(covered or []),
            "guidance": Guidance(text="text", covered=covered, **WRITER) if covered else None,
            "time_created": NOW,
            "time_modified": NOW,
            **fields,
        }
    )


def summarized(before: ToolRecord, window: Window) -> ToolRecord:
    """What `put_guidance` makes of the record."""
    return before.model_copy(
        update={
            "covered": merge_ranges(window.seqs, before.covered),
            "guidance": Guidance(text="text", covered=list(window.seqs), **WRITER),
        }
    )


@pytest.mark.parametrize(("recent", "third_run"), [(31, range(1, 32)), (30, range(2, 32))])
def test_thirty_calls_are_read_once_and_again_when_one_arrives(recent: int, third_run: range) -> None:
    first = record(30)
    window = window_of(first, recent)
    assert window.seqs == tuple(range(1, 31))
    assert not decide(first, window, **WRITER).skip

    second = summarized(first, window)
    window = window_of(second, recent)
    decision = decide(second, window, **WRITER)
    assert (decision.skip, decision.reason, window.new) == (True, "up_to_date", ())

    third = second.model_copy(update={"last_seq": 31})
    window = window_of(third, recent)
    decision = decide(third, window, **WRITER)
    assert (decision.skip, decision.reason) == (False, "new_calls")
    assert window.seqs == tuple(third_run)
    assert (window.new, window.covered) == ((31,), len(third_run) - 1)


def test_new_calls_outside_the_window_are_counted() -> None:
    window = window_of(record(100, covered=[1, 2]), 30)
    assert window.seqs == tuple(range(71, 101))
    assert window.not_analyzed == 68


def test_a_call_without_a_verdict_is_neither_read_nor_counted() -> None:
    window = window_of(record(5, unjudged=[1, 5]), 3)
    assert (window.seqs, window.not_analyzed) == ((2, 3, 4), 0)


def test_a_call_judged_later_counts_as_new_from_then_on() -> None:
    before = record(4, covered=[1, 2, 4], unjudged=[3])
    assert decide(before, window_of(before, 30), **WRITER).skip
    after = before.model_copy(update={"unjudged": []})
    assert window_of(after, 30).new == (3,)
    assert not decide(after, window_of(after, 30), **WRITER).skip


def test_force_summarizes_what_is_up_to_date() -> None:
    current = record(2, covered=[1, 2])
    decision = decide(current, window_of(current, 30), force=True, **WRITER)
    assert (decision.skip, decision.reason) == (False, "forced")


def test_nothing_judged_is_skipped_even_under_force() -> None:
    current = record(2, unjudged=[1, 2])
    decision = decide(current, window_of(current, 30), force=True, **WRITER)
    assert (decision.skip, decision.reason) == (True, "nothing_judged")


@pytest.mark.parametrize("other", [{"author": "dashscope/qwen-plus"}, {"prompt_version": "v2"}])
def test_guidance_of_another_author_or_version_is_reported_and_still_skipped(other: dict[str, str]) -> None:
    current = record(2, covered=[1, 2])
    decision = decide(current, window_of(current, 30), **{**WRITER, **other})
    assert (decision.skip, decision.stale_author) == (True, True)
    assert not decide(current, window_of(current, 30), **WRITER).stale_author


def test_covered_calls_without_guidance_are_summarized() -> None:
    current = record(2, covered=[1, 2], guidance=None)
    decision = decide(current, window_of(current, 30), **WRITER)
    assert (decision.skip, decision.reason) == (False, "no_guidance")


def test_only_eligible_calls_are_read() -> None:
    window = window_of(record(10, covered=[9]), 2, eligible=[3, 5, 9, 10, 99])
    assert (window.seqs, window.new, window.not_analyzed) == ((9, 10), (10,), 2)


def test_a_window_of_no_calls_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        window_of(record(3), 0)


@given(
    first=st.integers(1, 20),
    length=st.integers(0, 40),
    covered=st.sets(st.integers(1, 60)),
    unjudged=st.sets(st.integers(1, 60)),
    recent=st.integers(1, 40),
)
def test_window_is_what_a_plain_reading_of_the_rule_gives(
    first: int, length: int, covered: set[int], unjudged: set[int], recent: int
) -> None:
    kept = range(first, first + length)
    current = record(first + length - 1, first_seq=first, covered=sorted(covered), unjudged=sorted(unjudged))
    judged = [seq for seq in kept if seq not in unjudged]
    window = window_of(current, recent)
    assert window.seqs == tuple(judged[-recent:])
    assert window.new == tuple(seq for seq in judged[-recent:] if seq not in covered)
    assert window.not_analyzed == sum(seq not in covered for seq in judged[:-recent])
    assert window == window_of(current, recent, eligible=list(kept))
    assert count_new(current) == sum(seq not in covered for seq in judged)
    assert count_covered(current) == sum(seq in covered for seq in kept)
    decision = decide(current, window, **WRITER)
    assert decision.skip == (not judged or (not window.new and current.guidance is not None))
