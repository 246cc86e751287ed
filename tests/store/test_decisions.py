"""The log of decisions."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from toolmem.models.decisions import Decision, DecisionSource

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


def decision(number, **fields):
    return Decision(
        id=f"d{number}",
        time=BEGIN + timedelta(seconds=number),
        tool_name=fields.pop("tool_name", "send_email"),
        action="deny",
        reason="toolmem: not run.",
        sources=(DecisionSource(kind="rule", rule_id="r1"),),
        **fields,
    )


@pytest.fixture
def logged(store):
    made = [
        decision(n, conversation_id="ab"[n % 2], tool_name=["x", "y", "z"][n % 3])
        for n in (3, 0, 2, 1, 5, 4)
    ]
    for each in made:
        store.log_decision("w", each)
    return sorted(made, key=lambda each: each.time)


def test_decisions_are_read_in_the_order_of_their_times(store, logged):
    assert store.decisions("w") == logged
    assert store.decisions("w", limit=2) == logged[-2:]
    assert store.decisions("v") == []


def test_decisions_are_filtered_by_id_conversation_and_tool(store, logged):
    assert [each.id for each in store.decisions("w", ids=["d1", "d4", "no"])] == ["d1", "d4"]
    assert [each.id for each in store.decisions("w", conversation_id="b")] == ["d1", "d3", "d5"]
    assert [each.id for each in store.decisions("w", conversation_id="b", tool_name="x")] == ["d3"]
    assert [each.id for each in store.decisions("w", tool_name="x", limit=1)] == ["d3"]


def test_what_became_of_a_call_replaces_its_decision(store, logged):
    store.log_decision("w", replace(logged[0], outcome="ran"))
    assert len(store.decisions("w")) == len(logged)
    assert store.decisions("w")[0].outcome == "ran"


def test_decisions_are_not_listed_among_records(store, logged):
    assert store.namespaces("w") == []
    assert store.list_records("w") == []
