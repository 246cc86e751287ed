"""The data-driven editor: guidance changed by new calls, by an author who sees nothing else."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from toolmem.guidance.counted.claim_edits import MAX_IDS, MAX_TEXT
from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.guidance.counted.render import Wording, sentence
from toolmem.models import Claim, Guidance, ToolCallResult
from toolmem.protocols import Purpose

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PURPOSE = Purpose("w", "summary_tool_memory", "summary_tool_memory_op", "search", None)  # type: ignore[arg-type]


def call(seq: int, given: dict[str, Any], error: str = "", conversation: str = "") -> ToolCallResult:
    return ToolCallResult(
        tool_name="search",
        input=given,
        output=error or f"[{seq}]",
        success=not error,
        score=0.0 if error else 1.0,
        evaluation_status="ok",
        create_time=NOW,
        seq=seq,
        id=f"c{seq}",
        metadata={"conversation_id": conversation} if conversation else {},
    )


def usual(first: int, last: int, *, refuse: bool = True) -> list[ToolCallResult]:
    """Every third call asks for the language 'xx', which the tool does not take (as long as it refuses it)."""
    calls = []
    for seq in range(first, last):
        bad = seq % 3 == 0
        error = f"Error: unsupported language 'xx' (query {seq})" if bad and refuse else ""
        calls.append(call(seq, {"query": f"q{seq}", "language": "xx" if bad else "en"}, error))
    return calls


async def edited(old: Guidance, new: list[ToolCallResult], language: str = "") -> Guidance:
    seqs = [one.seq for one in new if one.seq is not None]
    return await DataDrivenWriter(language).edit("search", new, seqs, old, PURPOSE)  # type: ignore[arg-type]


def claim(guidance: Guidance, words: str) -> Claim:
    found = [one for one in guidance.claims if words in one.text]
    assert len(found) == 1, [one.text for one in guidance.claims]
    return found[0]


@pytest.mark.parametrize("language", ["", "zh"])
async def test_counts_of_a_claim_go_on_with_the_new_calls(language: str):
    writer = DataDrivenWriter(language)  # type: ignore[arg-type]
    first, more = usual(1, 31), usual(31, 41)
    old = writer.compose("search", first)
    now = await edited(old, more, language)
    whole = writer.compose("search", [*first, *more])
    for kind in ("refused", "overall"):
        counts = {(one.k, one.n) for one in whole.claims if one.kind == kind}
        assert {(one.k, one.n) for one in now.claims if one.kind == kind} <= counts
    assert {one.kind for one in now.claims} >= {"refused", "overall"}
    assert now.covered == list(range(31, 41))
    assert now.edits == 1


async def test_the_text_says_what_the_claims_count():
    now = await edited(DataDrivenWriter().compose("search", usual(1, 31)), usual(31, 41))
    assert all(f"- {one.text}" in now.text.splitlines() for one in now.claims)
    assert "27 of 40 calls worked" in claim(now, "calls worked").text
    assert claim(now, "never with 'xx'").n == 13


async def test_a_refused_value_goes_as_soon_as_it_works():
    old = DataDrivenWriter().compose("search", usual(1, 31))
    assert claim(old, "never with 'xx'")
    now = await edited(old, usual(31, 41, refuse=False))
    assert not [one for one in now.claims if "never with" in one.text]


async def test_a_pattern_goes_when_the_sums_carry_it_no_more():
    unnamed = [one.model_copy(update={"output": "Error: it broke"}) for one in usual(1, 31)]
    guidance = DataDrivenWriter().compose("search", unnamed)
    assert [one for one in guidance.claims if one.kind == "parameter"]
    for first in range(31, 231, 10):
        guidance = await edited(guidance, usual(first, first + 10, refuse=False))
    assert not [one for one in guidance.claims if one.kind == "parameter"]


async def test_a_repair_seen_once_and_again_is_told_with_its_counts():
    def repaired(seq: int) -> list[ToolCallResult]:
        return [
            call(seq, {"query": f"q{seq}"}, "Error: 'region' is required", f"conversation {seq}"),
            call(seq + 1, {"query": f"q{seq}", "region": "eu"}, "", f"conversation {seq}"),
        ]

    old = DataDrivenWriter().compose("search", repaired(1))
    assert "(1 of 1 recovery)" in claim(old, "required”: add `region`").text
    now = await edited(old, repaired(3))
    told = claim(now, "required”: add `region`")
    assert (told.k, told.n) == (2, 2)
    assert "(2 of 2 recoveries since 2026-01-01)" in told.text
    assert told.call_ids == ("c1", "c3")


@pytest.mark.parametrize("language", ["", "zh"])
async def test_a_repair_stands_in_one_line_however_guidance_is_written_and_edited(language: str):
    def region(seq: int) -> list[ToolCallResult]:
        return repaired(seq, "Error: 'region' is required", {"region": "eu"})

    def limit(seq: int) -> list[ToolCallResult]:
        return repaired(seq, "Error: too many hits", {"limit": 5})

    def repaired(seq: int, error: str, repair: dict[str, Any]) -> list[ToolCallResult]:
        return [
            call(seq, {"query": f"q{seq}"}, error, f"conversation {seq}"),
            call(seq + 1, {"query": f"q{seq}", **repair}, "", f"conversation {seq}"),
        ]

    writer = DataDrivenWriter(language)  # type: ignore[arg-type]
    first = writer.compose("search", [*region(1), *limit(3)])
    second = writer.compose("search", [*region(5), *limit(7)], before=first.history)
    now = await edited(await edited(second, [*region(9), *limit(11)], language), region(13), language)
    told = [one for one in now.claims if one.kind in {"repair", "repair_since"} and "region" in one.text]
    assert [(one.k, one.n) for one in told if "required" in one.text] == [(4, 4)]
    assert [(one.k, one.n) for one in told if "required" not in one.text] in ([], [(4, 7)])
    assert now.history is not None
    assert now.history.recovered == {"… is required": 4, "too many hits": 3}


async def test_guidance_without_a_history_of_its_repairs_is_written_anew():
    old = DataDrivenWriter().compose("search", usual(1, 31)).model_copy(update={"history": None})
    window = usual(1, 41)
    now = await DataDrivenWriter().edit("search", window, list(range(31, 41)), old, PURPOSE)
    assert now == DataDrivenWriter().compose("search", window)


async def test_an_error_is_no_longer_said_to_have_no_repair_as_soon_as_it_has_one():
    lost = [call(n, {"query": f"q{n}"}, "Error: 'region' is required", f"conversation {n // 6}") for n in range(1, 31)]
    old = DataDrivenWriter().compose("search", lost)
    hopeless = "the next calls failed too"
    assert claim(old, hopeless)
    assert claim(await edited(old, [call(31, {"query": "q1"}, "Error: 'region' is required", "c")]), hopeless)
    repaired = [
        call(31, {"query": "q1"}, "Error: 'region' is required", "c"),
        call(32, {"query": "q1", "region": "eu"}, "", "c"),
    ]
    assert hopeless not in (await edited(old, repaired)).text


async def test_an_error_that_varies_is_one_error_even_where_few_calls_show_it():
    def lost(seq: int, name: str) -> ToolCallResult:
        return call(seq, {"query": name}, f"Error: no such index '{name}'")

    old = DataDrivenWriter().compose("search", [lost(n, f"index_{n}") for n in range(1, 6)])
    now = await edited(old, [lost(9, "other")])
    (told,) = [one for one in now.claims if one.kind == "error_class"]
    assert (told.k, told.n) == (6, 6)


async def test_text_and_evidence_stay_bounded_however_often_they_are_edited():
    draw = random.Random(0)
    guidance = DataDrivenWriter().compose("search", usual(1, 31))
    for first in range(31, 1031, 10):
        calls = [
            call(
                seq,
                {"query": f"q{draw.randrange(9)}", f"option_{draw.randrange(30)}": draw.random()},
                draw.choice(["", "", f"Error {draw.randrange(500)}: {draw.choice('abcdefgh') * 9} failed"]),
                f"conversation {seq // 4}",
            )
            for seq in range(first, first + 10)
        ]
        guidance = await edited(guidance, calls)
        assert len(guidance.text) <= MAX_TEXT
        assert all(len(one.call_ids) <= MAX_IDS for one in guidance.claims)
    assert "of 1030 calls worked" in guidance.text


async def test_a_text_of_a_model_gives_way_to_what_can_be_counted():
    old = Guidance(text="Free text.", author="a/b", prompt_version="v")
    now = await edited(old, usual(1, 11))
    assert now == DataDrivenWriter().compose("search", usual(1, 11))
    assert claim(now, "calls worked")


async def test_guidance_of_0_1_is_shown_and_its_next_edit_reads_the_whole_window():
    """Version 0.1 stored sentences alone. Nothing of them is rewritten, and nobody reads them back."""
    window = usual(1, 41)
    written = DataDrivenWriter().compose("search", usual(1, 31)).model_dump(mode="json")
    stored = [{name: one[name] for name in ("text", "k", "n", "call_ids", "kind")} for one in written["claims"]]
    old = Guidance.model_validate({**written, "claims": stored})
    assert [one.text for one in old.claims] == [one["text"] for one in written["claims"]]
    seqs = list(range(31, 41))
    now = await DataDrivenWriter().edit("search", window, seqs, old, PURPOSE)
    assert now == DataDrivenWriter().compose("search", window, before=old.history)
    again = await edited(now, usual(41, 51))
    assert again.edits == 1
    assert "34 of 50 calls worked" in again.text


@pytest.mark.parametrize("language", ["", "zh"])
async def test_stored_claims_hold_what_their_sentences_are_made_of(language: str):
    guidance = DataDrivenWriter(language).compose("search", usual(1, 61))  # type: ignore[arg-type]
    stored = Guidance.model_validate_json(guidance.model_dump_json())
    assert stored == guidance
    say = Wording(language)  # type: ignore[arg-type]
    assert [sentence(one, say) for one in stored.claims] == [one.text for one in guidance.claims]
    assert len(stored.claims) >= 4


async def test_guidance_goes_on_in_another_language():
    first, more = usual(1, 31), usual(31, 41)
    now = await edited(DataDrivenWriter().compose("search", first), more, "zh")
    whole = DataDrivenWriter("zh").compose("search", [*first, *more])
    said = {one.text for one in whole.claims if one.kind == "refused"}
    assert said
    assert said <= {one.text for one in now.claims}


@pytest.mark.parametrize(
    "damage", [{"conditions": []}, {"form": "nothing"}, {"conditions": [["value", "q", "1", 0]] * 2}]
)
async def test_claims_with_data_that_fit_no_sentence_are_written_anew(damage: dict[str, Any]):
    """Another store's dump may hold anything."""
    dumped = DataDrivenWriter().compose("search", usual(1, 31)).model_dump(mode="json")
    for one in dumped["claims"]:
        if one["kind"] == "refused":
            one["subject"] |= damage
            one["counts"] = {}
    now = await edited(Guidance.model_validate(dumped), usual(31, 41))
    assert now.edits == 0


async def test_a_claim_is_counted_on_however_its_condition_is_said():
    """A bound, a form and a type are looked for in the new calls like a value."""

    def page(seq: int, size: object) -> ToolCallResult:
        good = isinstance(size, int) and size <= 100
        return call(
            seq,
            {"query": f"q{seq}", "page_size": size},
            "" if good else f"Error: page_size must be at most 100, got {size}",
        )

    sizes = [10, 20, 500, 100, 900, 30]
    old = DataDrivenWriter().compose("search", [page(seq, sizes[seq % 6]) for seq in range(1, 25)])
    before = claim(old, "never above")
    now = claim(await edited(old, [page(25, 700), page(26, 50)]), "never above")
    assert (now.n, now.counts["ok"], now.counts["on"]) == (
        before.n + 1,
        before.counts["ok"] + 1,
        before.counts["on"] + 1,
    )
    gone = await edited(old, [call(25, {"query": "q", "page_size": 700})])
    assert not [one for one in gone.claims if "never above" in one.text]
