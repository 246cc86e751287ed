from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.guidance.counted.repair_history import KEPT_IDS, MAX_ERRORS, MAX_REPAIRS, after_error
from toolmem.models import Guidance, RepairHistory, ToolCallResult
from toolmem.protocols import LedgerEntry, Purpose

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
WRITER = DataDrivenWriter()


def pair(i: int, message: str, before: dict[str, Any], after: dict[str, Any]) -> list[ToolCallResult]:
    """A failure and the success that followed it, with the seqs 2 i + 1 and 2 i + 2."""
    return [
        ToolCallResult(
            tool_name="t",
            id=f"c{seq}",
            seq=seq,
            input=given,
            output=output,
            success=success,
            create_time=BEGIN + timedelta(hours=seq),
            metadata={"conversation_id": f"k{i}"},
        )
        for seq, given, output, success in (
            (2 * i + 1, before, f"Error: {message}", False),
            (2 * i + 2, after, "fine", True),
        )
    ]


def units(i: int) -> list[ToolCallResult]:
    return pair(i, "units must be metric", {"city": "x", "units": "kelvin"}, {"city": "x", "units": "metric"})


def after(*windows: list[ToolCallResult]) -> Guidance:
    guidance: Guidance | None = None
    for calls in windows:
        guidance = WRITER.compose("t", calls, before=guidance.history if guidance else None)
    assert guidance is not None
    return guidance


def history(guidance: Guidance) -> RepairHistory:
    assert guidance.history is not None
    return guidance.history


class _Meter:
    def book(self, entry: LedgerEntry) -> None:
        raise AssertionError(f"nothing is sent, so nothing is booked: {entry}")


async def test_the_writer_counts_repairs_on_from_the_old_guidance() -> None:
    purpose = Purpose("w", "summary_tool_memory", "summary_tool_memory_op", "t", _Meter())
    first = await WRITER.write("t", [*units(0), *units(1)], None, purpose)
    second = await WRITER.write("t", units(2), first, purpose)
    (claim,) = (claim for claim in second.claims if claim.kind == "failure")
    assert (
        claim.text == 'failed: {"units": "kelvin"}: "units must be metric" (3 calls); then worked: {"units": "metric"}'
    )
    assert (claim.k, claim.n, claim.call_ids) == (3, 6, ("c1", "c3", "c5"))
    assert claim.counts == {"recovered": 3}
    assert (history(second).calls, history(second).last_seq) == (6, 6)


def fields(i: int) -> list[ToolCallResult]:
    return pair(i, "fields is missing", {"city": "x"}, {"city": "x", "fields": "all"})


def test_windows_that_overlap_count_a_repair_once() -> None:
    guidance = after([*units(0), *units(1)], [*units(1), *units(2)], [*units(1), *units(2)])
    assert history(guidance).recovered == {"units must be metric": 3}
    assert history(guidance).calls == 6


def test_a_repair_whose_failure_stood_in_the_window_before_is_counted() -> None:
    failure, success = units(0)
    guidance = after([failure], [failure, success])
    assert history(guidance).recovered == {"units must be metric": 1}


def test_a_run_of_failures_that_ends_in_one_success_counts_once() -> None:
    def run(i: int) -> list[ToolCallResult]:
        first, last = units(i)
        first = first.model_copy(update={"seq": 3 * i + 1, "id": f"c{3 * i + 1}"})
        again = first.model_copy(update={"seq": 3 * i + 2, "id": f"c{3 * i + 2}"})
        return [first, again, last.model_copy(update={"seq": 3 * i + 3, "id": f"c{3 * i + 3}"})]

    guidance = after(run(0), [*run(0)[1:], *run(1)], run(2))
    assert history(guidance).recovered == {"units must be metric": 3}
    claim = next(claim for claim in guidance.claims if claim.kind == "failure")
    assert (claim.k, claim.n, claim.call_ids) == (6, 9, ("c2", "c4", "c5", "c7", "c8"))
    assert claim.counts == {"recovered": 3}


def test_an_error_is_known_again_by_its_masked_message() -> None:
    one = pair(0, "no city 'Oslo'", {"city": "Oslo", "n": 1}, {"city": "Bergen", "n": 1})
    other = pair(1, "no city 'Rome'", {"city": "Rome", "n": 1}, {"city": "Milan", "n": 1})
    guidance = after(one, other)
    assert history(guidance).recovered == {"no city …": 2}
    assert "\"no city 'Rome'\" (2 calls); then worked: another `city`" in guidance.text


def test_statements_keep_the_form_in_which_they_were_mostly_written() -> None:
    bad, good = {"query": "SELECT a FROM b"}, {"query": "SHOW TABLES"}
    guidance = after(*(pair(i, "Table 'b' doesn't exist", bad, good) for i in range(3)))
    assert 'then worked: {"query": "SHOW TABLES"}, SHOW TABLES (3) of 3' in guidance.text


def test_what_is_kept_is_bounded_and_can_be_stored() -> None:
    words = ["".join(chr(97 + (i // 26**p) % 26) for p in range(3)) for i in range(MAX_ERRORS + 9)]
    windows = [pair(i, f"{word} is wrong", {"a": i, word: 1}, {"a": i}) for i, word in enumerate(words)]
    windows += [pair(len(words) + i, "all is wrong", {"a": i}, {"a": i, f"p{i}": 1}) for i in range(MAX_REPAIRS + 9)]
    start = len(words) + MAX_REPAIRS + 9
    windows += [units(start + i) for i in range(KEPT_IDS + 4)]
    made = after(*windows)
    held = history(made)
    assert len(held.recovered) == MAX_ERRORS
    assert {one.error for one in held.repairs} <= set(held.recovered)
    assert max(sum(one.error == error for one in held.repairs) for error in held.recovered) == MAX_REPAIRS
    assert max(len(one.call_ids) for one in held.repairs) == KEPT_IDS
    assert after_error(held, "units must be metric")[0].k == KEPT_IDS + 4
    assert Guidance.model_validate_json(made.model_dump_json()) == made


def test_calls_without_a_place_in_the_store_have_no_history() -> None:
    calls = [one.model_copy(update={"seq": None}) for one in units(0)]
    assert WRITER.compose("t", calls).history is None


def test_a_tool_that_began_anew_has_no_old_history() -> None:
    guidance = after([*units(5), *units(6)], units(0))
    assert history(guidance).recovered == {"units must be metric": 1}
    assert "calls)" not in guidance.text
