"""Calls and tools as they are found: by outcome, text, id and name, in order and in pages."""

import asyncio
import sqlite3
from contextlib import closing

import pytest
from msgspec.structs import replace

from toolmem import AsyncToolMem, ToolMem
from toolmem.errors import RequestError
from toolmem.models.calls import JudgeIdentity
from toolmem.operations import calls as operation

JUDGED = {"evaluation_status": "ok", "judge": JudgeIdentity("scripted", "m", "1")}
FAILED = ["flagged", "silent", "scored 0 without a flag", "flagged and scored 1"]
OUTCOMES = {
    "failed": [*FAILED, "flagged unjudged"],
    "silent": ["silent"],
    "worked": ["worked", "worked unjudged", "of no use"],
    "no_use": ["of no use"],
    "lost": [*FAILED, "flagged unjudged", "of no use"],
    "unjudged": ["flagged unjudged", "worked unjudged", "nothing is known"],
}


@pytest.fixture
def keep(memory, call):
    def made(*calls, keep=100):
        return memory.services.store().append_calls("default", calls, keep)

    return made


def ids(found):
    return [each.id for each in found]


@pytest.mark.parametrize("ends", ["kept", "judged late", "trimmed"])
def test_calls_are_found_by_what_became_of_them_and_the_tool_counts_the_same(
    memory, keep, call, ends
):
    calls = [
        call(id="flagged", success=False, score=0.0, **JUDGED),
        call(id="silent", success=True, execution_failed=True, score=0.0, **JUDGED),
        call(id="scored 0 without a flag", score=0.0, **JUDGED),
        call(id="flagged and scored 1", success=False, score=1.0, **JUDGED),
        call(id="flagged unjudged", success=False),
        call(id="worked", success=True, execution_failed=False, score=1.0, **JUDGED),
        call(id="worked unjudged", success=True),
        call(id="of no use", success=True, execution_failed=False, score=0.0, **JUDGED),
        call(id="nothing is known"),
    ]
    if ends == "trimmed":
        keep(*(replace(each, id=f"older {each.id}") for each in calls), *calls, keep=len(calls))
    elif ends == "judged late":
        keep(*(replace(each, score=None, execution_failed=None) for each in calls))
        judged = {seq: each for seq, each in enumerate(calls, 1) if each.score is not None}
        memory.services.store().update_verdicts("default", "search", judged)
    else:
        keep(*calls)
    (tool,) = memory.tools()
    for outcome, expected in OUTCOMES.items():
        found = memory.calls(outcome=outcome, limit=20)
        assert [each for each in ids(found) if "older" not in each] == expected
        count = tool.window.silent_failures if outcome == "silent" else getattr(tool, outcome)
        assert count == len(expected), outcome


def test_calls_are_found_in_the_log_by_text_ids_tools_and_conversation(memory, keep, call):
    for n in range(6):
        metadata = {"session_id": f"s{n % 2}"}
        keep(call("abc"[n % 3], id=str(n), output=f"it is {n}", metadata=metadata), keep=1)
    assert ids(memory.calls()) == ["3", "4", "5"]  # the windows
    assert ids(memory.calls(limit=1_000)) == list("012345")
    assert ids(memory.calls(text="IT IS 1")) == ["1"]
    assert ids(memory.calls(["a", "b"], ids=["0", "2", "4"])) == ["0", "4"]
    assert ids(memory.calls(["a", "c"], conversation_id="s0")) == ["0", "2"]
    assert ids(memory.calls([], limit=5)) == ids(memory.calls(ids=[])) == []


def test_pages_of_calls_are_without_gap_or_repetition(memory, keep, call):
    keep(*(call("ab"[n % 2], id=str(n), success=n % 5 > 0) for n in range(60)))
    for wanted, expected in (({}, range(60)), ({"outcome": "failed"}, range(0, 60, 5))):
        seen, page = [], memory.calls(limit=6, **wanted)
        while page.next is not None:
            seen = ids(page) + seen
            page = memory.calls(limit=6, before=page.next, **wanted)
        assert ids(page) + seen == list(map(str, expected))
    assert memory.calls().next is None
    assert len(memory.calls(limit=6).to_frame()) == 6


def test_damaged_calls_hide_no_older_ones(memory, keep, call, path):
    keep(*(call(id=str(n)) for n in range(5)))
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE calls SET body = '{}' WHERE seq IN (3, 4, 5)")
        db.commit()
        newest = memory.calls(limit=1)
        older = memory.calls(limit=1, before=newest.next)
    assert (ids(newest), ids(older)) == (["1"], ["0"])


def test_a_rare_outcome_is_looked_for_further_where_one_request_found_none(
    memory, keep, call, monkeypatch
):
    monkeypatch.setattr(operation, "MAX_SCANNED", 10)
    monkeypatch.setattr(operation, "CALLS_AT_ONCE", 10)
    keep(call(id="old", success=False), *(call(success=True) for _ in range(25)))
    found, asked = memory.calls(outcome="failed", limit=5), 1
    while not found and found.next is not None:
        found, asked = memory.calls(outcome="failed", limit=5, before=found.next), asked + 1
    assert (ids(found), found.next, asked) == (["old"], None, 3)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"recent": 3, "before": 9}, "recent: it cannot be combined with before; use limit"),
        ({"outcome": "useless"}, "outcome: expected one of 'failed', .*'unjudged'"),
        ({"limit": 1_001}, "limit"),
        ({"before": 2**63}, "before"),
        ({"text": "x" * 2_001}, "text"),
    ],
)
def test_a_wrong_question_for_calls_is_refused_with_its_field(memory, wanted, told):
    with pytest.raises(RequestError, match=told) as refused:
        memory.calls(**wanted)
    assert refused.value.field == next(iter(wanted))


def test_so_many_of_a_conversations_calls_are_also_asked_for_by_recent(memory, keep, call):
    keep(*(call(id=str(n), metadata={"session_id": "s"}) for n in range(5)))
    found = memory.calls(conversation_id="s", recent=2)
    assert ids(found) == ["3", "4"]
    assert ids(memory.calls(conversation_id="s", before=found.next)) == ["0", "1", "2"]


def test_a_coroutine_is_told_where_older_calls_begin(path):
    async def main():
        async with AsyncToolMem(path) as memory:
            await memory.add([{"tool_name": "t", "output": "x"}] * 3)
            newer = await memory.calls(limit=2)
            return len(newer), len(await memory.calls(limit=2, before=newer.next))

    assert asyncio.run(main()) == (2, 1)


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        (None, ["Fast", "broken", "mixed", "slow"]),
        ("name", ["Fast", "broken", "mixed", "slow"]),
        ("failed", ["mixed", "broken", "Fast", "slow"]),
        ("share", ["broken", "mixed", "Fast", "slow"]),
        ("calls", ["mixed", "Fast", "broken", "slow"]),
        ("score", ["broken", "mixed", "slow", "Fast"]),
        ("time", ["slow", "Fast", "broken", "mixed"]),
        ("new", ["mixed", "Fast", "broken", "slow"]),
    ],
)
def test_tools_are_sorted_as_asked(memory, keep, call, sort, expected):
    failed = {"success": False, "score": 0.0, "time_cost": 1.0, **JUDGED}
    worked = {"success": True, "score": 1.0, **JUDGED}
    keep(
        *(call("mixed", **failed) for _ in range(3)),
        *(call("mixed", **worked) for _ in range(2)),
        *(call("broken", **failed) for _ in range(2)),
        *(call("Fast", success=True, time_cost=1.0) for _ in range(2)),
        call("slow", time_cost=9.0, **worked),
    )
    assert [each.tool_name for each in memory.tools(sort=sort)] == expected
    first = memory.tools(sort=sort, limit=2) + memory.tools(sort=sort, start=2)
    assert first == memory.tools(sort=sort)
    assert [each.tool_name for each in memory.tools(text="FAST")] == ["Fast"]
    mixed = next(each for each in memory.tools() if each.tool_name == "mixed")
    assert (mixed.worked, mixed.failed) == (2, 3)


def test_guidance_is_read_of_the_tools_that_are_shown_only(memory, records, monkeypatch):
    memory.add(records(1, "a") + records(1, "b") + records(1, "c"))
    memory.summarize()
    read, plain = [], memory.services.store().records

    def counted(workspace, names=None, *, guidance=True):
        read.append(names if guidance else "none")
        return plain(workspace, names, guidance=guidance)

    monkeypatch.setattr(memory.services.store(), "records", counted)
    (shown,) = memory.tools(start=1, limit=1)
    assert shown.guidance and read == ["none", ["b"]]
    assert not any(each.guidance for each in memory.tools(guidance=False)) and read[2:] == ["none"]


def test_new_calls_are_those_since_the_guidance_whatever_old_ones_no_summary_read(path, records):
    newest = ["op.summary_tool_memory_op.params.recent_call_count=4"]
    with ToolMem(path, overrides=newest) as memory:
        memory.add(records(9))
        assert memory.tools()[0].new_calls == 9
        memory.summarize()
        assert len(memory.services.store().records("default")[0].new) == 5
        assert memory.tools()[0].new_calls == 0
        memory.add(records(3, start=9))
        (tool,) = memory.retrieve(tool_names="search").memory_list
        assert memory.tools()[0].new_calls == tool.metadata["new_calls"] == 3
