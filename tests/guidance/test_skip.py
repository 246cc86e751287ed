"""Which calls a summary reads, and when it is skipped."""

from datetime import UTC, datetime

import pytest

from toolmem.guidance.skip import plan_summary
from toolmem.models.tools import ToolRecord

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def record(**fields):
    return ToolRecord(
        workspace="w",
        tool_name="t",
        memory_id="m",
        first_seq=3,
        last_seq=8,
        time_created=NOW,
        time_modified=NOW,
        **fields,
    )


@pytest.mark.parametrize(
    ("fields", "has_guidance", "force", "reason", "skip"),
    [
        ({}, True, False, "up_to_date", True),
        ({}, False, False, "no_guidance", False),
        ({}, True, True, "forced", False),
        ({"new": [8]}, True, False, "new_calls", False),
        ({"new": [3]}, True, False, "up_to_date", True),  # new, and outside the window
        ({"new": [8], "unjudged": [8]}, True, False, "up_to_date", True),
        ({"unjudged": [3, 4, 5, 6, 7, 8]}, True, True, "nothing_judged", True),
    ],
)
def test_a_tool_is_skipped_where_guidance_covers_its_newest_judged_calls(
    fields, has_guidance, force, reason, skip
):
    plan = plan_summary(record(**fields), 4, force=force, has_guidance=has_guidance)
    assert (plan.reason, plan.skip) == (reason, skip)


def test_the_newest_judged_calls_are_read_and_the_rest_is_counted():
    plan = plan_summary(record(new=[3, 4, 7, 8], unjudged=[7]), 3, has_guidance=True)
    assert plan.seqs == (5, 6, 8)
    assert plan.new == (8,)
    assert plan.not_analyzed == 2


def test_a_new_call_that_is_not_to_be_read_is_no_reason_to_summarize_again():
    plan = plan_summary(record(new=[7]), 10, has_guidance=True, among={6, 8})
    assert (plan.skip, plan.new, plan.not_analyzed) == (True, (), 1)
