from __future__ import annotations

import json
from datetime import UTC, datetime

from tests.processor_time import takes_less_than
from toolmem.guidance.statistics import statistics_of
from toolmem.guidance.tool_memory import tool_memory
from toolmem.models import CallFigures, Claim, Guidance, LifetimeCounters, ToolCallResult, ToolRecord
from toolmem.stored import StoredMemory

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def stored(calls: int = 100, *, judges: int = 1, guidance: bool = True) -> StoredMemory:
    figures = tuple(
        CallFigures(
            seq=seq,
            success=seq % 4 != 0,
            execution_failed=None,
            score=float(seq % 2),
            time_cost=0.5,
            token_cost=None,
            judge=f"offline/judge{seq % judges}@v1",
        )
        for seq in range(1, calls + 1)
    )
    claims = [
        Claim(text=f"claim {i}", k=3, n=30, call_ids=tuple(f"c{j}" for j in range(30)), kind="overall")
        for i in range(20)
    ]
    written = Guidance(
        text="use it well",
        claims=claims,
        covered=list(range(71, 101)),
        author="offline/data_driven",
        prompt_version="v1",
        created_at=NOW,
    )
    return StoredMemory(
        record=ToolRecord(
            workspace="w",
            tool_name="search",
            memory_id="m1",
            version=7,
            last_seq=calls,
            covered=[(71, 100)] if guidance else [],
            unjudged=[],
            counters=LifetimeCounters(calls=500, successes=400, failures=100, judged=500, score_sum=250.0, since=NOW),
            guidance=written if guidance else None,
            time_created=NOW,
            time_modified=NOW,
        ),
        figures=figures,
    )


def test_memory_carries_guidance_score_and_both_kinds_of_figures() -> None:
    memory = tool_memory(stored())
    assert (memory.when_to_use, memory.content, memory.author) == ("search", "use it well", "offline/data_driven")
    assert memory.score == 0.5
    assert memory.metadata["statistics"]["success_rate"] == 0.75
    assert memory.metadata["lifetime"]["calls"] == 500
    assert memory.metadata["lifetime"]["success_rate"] == 0.8
    assert (memory.metadata["covered"], memory.metadata["new"]) == (30, 70)
    assert memory.metadata["window"] == {"first_seq": 1, "last_seq": 100, "calls": 100, "kept": 100}
    assert len(memory.metadata["claims"]) == 20
    assert memory.tool_call_results == []


def test_metadata_is_json() -> None:
    for guidance in (True, False):
        metadata = tool_memory(stored(guidance=guidance)).metadata
        assert json.loads(json.dumps(metadata, allow_nan=False)) == metadata


def test_a_tool_without_guidance_or_calls_has_empty_content_and_no_score() -> None:
    memory = tool_memory(stored(0, guidance=False))
    assert (memory.content, memory.score, memory.author) == ("", None, "")
    assert memory.metadata["claims"] == []
    assert memory.metadata["window"]["first_seq"] is None


def test_an_average_over_two_judges_says_so() -> None:
    assert "judges_note" not in tool_memory(stored()).metadata
    memory = tool_memory(stored(judges=2))
    assert len(memory.metadata["judges"]) == 2
    assert "mixes 2 judges" in memory.metadata["judges_note"]


def test_calls_are_included_only_when_asked_for() -> None:
    calls = tuple(
        ToolCallResult(tool_name="search", create_time=NOW, seq=seq, success=seq > 1, score=1.0) for seq in (1, 2)
    )
    with_calls = StoredMemory(record=stored().record, calls=calls)
    assert tool_memory(with_calls, include_calls=True).tool_call_results == list(calls)
    memory = tool_memory(with_calls)
    assert memory.tool_call_results == []
    assert memory.metadata["statistics"] == statistics_of(calls).model_dump(mode="json")


def test_one_memory_takes_well_under_a_millisecond() -> None:
    one = stored()
    tool_memory(one)
    # The goal for a whole retrieval is 1 ms; the margin is for a busy machine.
    assert takes_less_than(0.001, lambda: tool_memory(one))
