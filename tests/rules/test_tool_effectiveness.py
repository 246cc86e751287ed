"""How tools have fared, counted."""

from __future__ import annotations

import asyncio

import pytest

from toolmem.rules.effectiveness import ToolEffectivenessTracker
from toolmem.rules.turns import ToolUse


@pytest.fixture
def tracker(store):
    return ToolEffectivenessTracker(store, "team")


def failed(output: str) -> ToolUse:
    return ToolUse("fetch", success=False, output_summary=output)


async def test_calls_are_counted_by_outcome(tracker, store):
    uses = [ToolUse("fetch", success=True, duration_ms=100), failed("boom"), ToolUse("fetch", duration_ms=300)]
    await tracker.record([*uses, ToolUse("other", success=True)])
    await tracker.record([ToolUse(" fetch ", success=True)])
    record = await store.get("team", "tool_effectiveness", "tool/fetch")
    assert record.value == {
        "tool_name": "fetch",
        "total_calls": 4,
        "successes": 2,
        "failures": 1,
        "timed_calls": 2,
        "avg_duration_ms": 200.0,
        "common_error_patterns": ["boom"],
    }
    assert [each.tool_name for each in await tracker.all()] == ["fetch", "other"]
    assert (await tracker.of("other")).avg_duration_ms is None
    assert await tracker.of("none") is None


async def test_the_last_five_distinct_errors_are_kept_80_characters_each(tracker):
    await tracker.record([failed(f"error {n}\n" + "x" * 100) for n in (1, 2, 3, 4, 5, 2, 6)])
    patterns = (await tracker.of("fetch")).common_error_patterns
    assert [pattern[:7] for pattern in patterns] == ["error 3", "error 4", "error 5", "error 2", "error 6"]
    assert {len(pattern) for pattern in patterns} == {80}


async def test_counting_at_once_loses_nothing(tracker):
    await asyncio.gather(*(tracker.record([ToolUse("fetch", success=True, duration_ms=n)]) for n in range(20)))
    counted = await tracker.of("fetch")
    assert counted.total_calls == 20
    assert counted.avg_duration_ms == pytest.approx(9.5)


async def test_a_damaged_record_is_counted_anew(tracker, store):
    await store.put("team", "tool_effectiveness", "tool/fetch", {"total_calls": "many"})
    assert await tracker.all() == []
    await tracker.record([ToolUse("fetch", success=True)])
    assert (await tracker.of("fetch")).total_calls == 1


async def test_a_row_of_the_source_system_is_counted_on(tracker, store):
    row = {
        "total_calls": 4,
        "successes": 3,
        "failures": 1,
        "avg_duration_ms": 100.0,
        "common_error_patterns": ["timed out"],
    }
    await store.put("team", "tool_effectiveness", "tool/search", row)
    failed = ToolUse("search", success=False, output_summary="no such table", duration_ms=200.0)
    await tracker.record([failed])
    counters = await tracker.of("search")
    assert (counters.tool_name, counters.total_calls, counters.successes, counters.failures) == ("search", 5, 3, 2)
    assert counters.avg_duration_ms == 120.0
    assert counters.common_error_patterns == ["timed out", "no such table"]
    assert await tracker.all() == [counters]


@pytest.mark.parametrize("untimed", [{}, {"avg_duration_ms": None}, {"common_error_patterns": None}])
async def test_a_row_of_the_source_system_may_leave_out_what_it_does_not_know(tracker, store, untimed):
    await store.put("team", "tool_effectiveness", "tool/search", {"total_calls": 2, "successes": 2, **untimed})
    await tracker.record([ToolUse("search", success=True, duration_ms=50.0)])
    counters = await tracker.of("search")
    assert (counters.total_calls, counters.successes, counters.avg_duration_ms) == (3, 3, 50.0)


async def test_statistics_are_no_rules(tracker, rules):
    await tracker.record([failed("boom")])
    assert await rules.all_rules() == ([], [])


async def test_a_call_that_was_stopped_before_it_ran_is_not_counted(tracker):
    await tracker.record([failed("toolmem: not run. The user said: never fetch pages."), failed("boom")])
    counted = await tracker.of("fetch")
    assert (counted.total_calls, counted.failures, counted.common_error_patterns) == (1, 1, ["boom"])
