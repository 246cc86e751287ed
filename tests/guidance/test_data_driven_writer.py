from __future__ import annotations

import json
import random
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processor_time import takes_less_than
from toolmem.guidance.counted.data_driven import AUTHOR, DataDrivenWriter
from toolmem.guidance.shown import fit
from toolmem.models import Claim, Guidance, ToolCallResult
from toolmem.protocols import GuidanceWriter, LedgerEntry, Purpose

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WRITER = DataDrivenWriter()


def call(
    number: int, given_: object, success: bool | None = True, output: str = "fine", **fields: object
) -> ToolCallResult:
    return ToolCallResult.model_validate(
        {
            "tool_name": "translate",
            "input": given_,
            "output": output,
            "success": success,
            "id": f"c{number}",
            "seq": number,
            "create_time": NOW + timedelta(seconds=number),
            "score": None if success is None else float(success),
            "evaluation_status": "ok",
            **fields,
        }
    )


def planted() -> list[ToolCallResult]:
    """30 calls: language 'unknown' never works, text is given always, two failures are repaired by dropping `beam`."""
    calls = [
        call(i, {"language": "unknown", "text": f"t{i}"}, False, "Error: unsupported language 'unknown'")
        for i in range(8)
    ]
    calls += [call(i, {"language": "en", "text": f"t{i}"}) for i in range(8, 26)]
    for i in (26, 28):
        conversation = {"metadata": {"conversation_id": f"k{i}"}}
        calls.append(
            call(i, {"language": "en", "text": f"t{i}", "beam": i}, False, f"Error: beam {i} too wide", **conversation)
        )
        calls.append(call(i + 1, {"language": "en", "text": f"t{i}"}, **conversation))
    return calls


def claims_of(guidance: Guidance, kind: str) -> list[Claim]:
    return [claim for claim in guidance.claims if claim.kind == kind]


class _Meter:
    def book(self, entry: LedgerEntry) -> None:
        raise AssertionError(f"nothing is sent, so nothing is booked: {entry}")


async def test_it_is_a_guidance_writer_that_costs_nothing() -> None:
    writer: GuidanceWriter = DataDrivenWriter()
    purpose = Purpose("w", "summary_tool_memory", "summary_tool_memory_op", "translate", _Meter())
    guidance = await writer.write("translate", planted(), None, purpose)
    assert guidance.author == AUTHOR == writer.author
    assert guidance.prompt_version == writer.prompt_version
    assert guidance.covered == list(range(30))
    assert guidance.prompt_tokens == 0
    assert guidance == WRITER.compose("translate", planted())


def test_every_line_of_the_text_is_a_claim_and_the_other_way_round() -> None:
    guidance = WRITER.compose("translate", planted())
    lines = [line.removeprefix("- ") for line in guidance.text.splitlines() if not line.startswith("## ")]
    assert sorted(lines) == sorted(claim.text for claim in guidance.claims)


def test_metadata_groups_calls_and_is_never_evidence() -> None:
    rng = random.Random(3)
    calls = planted()
    rewards = [
        {**c.metadata, "task_reward": rng.random(), "success": rng.random() < 0.5, "model": rng.choice("ab")}
        for c in calls
    ]
    told = [c.model_copy(update={"metadata": m}) for c, m in zip(calls, rewards, strict=True)]
    assert WRITER.compose("translate", told).text == WRITER.compose("translate", calls).text


def test_numbers_for_conversations_or_their_names_make_no_difference() -> None:
    calls = planted()
    renamed = [
        c.model_copy(update={"metadata": {"conversation_id": "z" + c.metadata["conversation_id"]}}) if c.metadata else c
        for c in calls
    ]
    assert WRITER.compose("translate", renamed).text == WRITER.compose("translate", calls).text


def test_calls_of_equal_content_may_change_places() -> None:
    calls = planted()
    calls[8:20] = [call(i, {"language": "en", "text": "b"}) for i in range(8, 20)]
    turned = [*calls[:8], *reversed(calls[8:20]), *calls[20:]]
    assert WRITER.compose("translate", turned).text == WRITER.compose("translate", calls).text


# ---------------------------------------------------------------- whatever calls hold

scalars = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=8), st.sampled_from(["a", "b", ""]))
inputs = st.one_of(
    st.dictionaries(st.sampled_from(["mode", "q", "n", "", "command", "query"]), scalars, max_size=4),
    st.dictionaries(st.text(max_size=4), st.lists(scalars, max_size=2), max_size=2),
    st.lists(scalars, max_size=3),
    st.text(max_size=30),
    st.builds(lambda a, b: {"query": f"SELECT {a} FROM {b}"}, st.sampled_from("xyz"), st.sampled_from("tu")),
    st.builds(lambda a, b: {"command": f"{a} -l {b}"}, st.sampled_from(["ls", "find"]), st.sampled_from(["/a", "'b"])),
)
rows = st.lists(
    st.tuples(
        inputs,
        st.sampled_from([True, True, False, False, None]),
        st.one_of(
            st.sampled_from(["ok", "", "[]", "Error: no 'x' in y", "Error: 12 of 3", "Traceback"]), st.text(max_size=40)
        ),
        st.sampled_from([0.0, 1.0, None]),
        st.sampled_from([None, 1, 2, "x"]),
        st.sampled_from([None, False, True]),
    ),
    max_size=30,
)
Rows = list[tuple[object, bool | None, str, float | None, object, bool | None]]


def made(drawn: Rows) -> list[ToolCallResult]:
    return [
        call(
            i,
            given_,
            success,
            output,
            score=score,
            metadata={} if c is None else {"conversation_id": c},
            execution_failed=failed,
        )
        for i, (given_, success, output, score, c, failed) in enumerate(drawn)
    ]


_BY_K = {
    *("error_class", "empty_answer", "flag_wrong", "usage", "example", "rule_out", "repair", "unrecovered", "repeat"),
    "target",
}


def recount(guidance: Guidance, calls: list[ToolCallResult]) -> None:
    """The counts of the main kinds of claims again, from the calls alone."""
    by_id = {c.id: c for c in calls}
    wrong = {c.id for c in calls if c.success is False or c.execution_failed is True}
    known = {c.id for c in calls if c.success is not None or c.execution_failed is not None}
    ran = [c for c in calls if c.id not in wrong and c.score is not None]
    for claim in guidance.claims:
        named = [by_id[i] for i in claim.call_ids]
        if claim.kind in {"parameter", "advice", "sequence"}:
            assert claim.k == sum(c.id in known - wrong for c in named)
        elif claim.kind in {"error_class", "refused", "repair", "unrecovered", "rule_out", "target"}:
            assert all(c.id in wrong for c in named)
            assert claim.kind != "error_class" or claim.n == len(wrong)
        elif claim.kind == "empty_answer":
            assert claim.n == len(ran)
            assert claim.k == sum(c.score == 0.0 for c in ran)
        elif claim.kind == "overall" and "interval" in claim.text:
            assert (claim.k, claim.n) == (len(known - wrong), len(known))
        elif claim.kind == "recorded_flag":
            assert guidance.statistics.success_rate == claim.k / claim.n
            assert claim.n == len(known)
        elif claim.kind == "flag_wrong":
            assert all(c.success is True and c.execution_failed is True for c in named)
            assert claim.n == sum(c.success is True for c in calls)


# ---------------------------------------------------------------- fitting


def words(text: str) -> int:
    return len(text.split())


@given(st.integers(0, 400))
def test_fitted_text_stays_in_its_budget_and_keeps_whole_lines(budget: int) -> None:
    guidance = WRITER.compose("translate", planted())
    text = fit(guidance, budget, words)
    assert words(text) <= budget
    assert set(text.splitlines()) <= set(guidance.text.splitlines())
    # No heading stands without a line under it.
    assert not re.search(r"^## [^\n]*\n(## |\Z)|^## [^\n]*\Z", text, re.MULTILINE)


def test_a_models_text_is_cut_at_whole_lines() -> None:
    guidance = Guidance(text="# Use\nfirst line\nsecond line is longer\nthird", author="m", prompt_version="v")
    assert fit(guidance, 5, words) == "# Use\nfirst line\nthird"


# ---------------------------------------------------------------- cost


def test_a_window_and_a_long_history_are_quick() -> None:
    rng = random.Random(1)
    calls = []
    for i in range(10_000):
        kind = rng.choice(["SELECT a FROM t", "SHOW TABLES", "DESC t"])
        failed = kind.startswith("SELECT") and rng.random() < 0.4
        output = "Error: Unknown column 'a'" if failed else "[(1,)]"
        calls.append(call(i, {"query": f"{kind}{i % 700}"}, not failed, output, metadata={"conversation_id": i // 6}))
    assert WRITER.compose("sql_execute", calls).claims
    # Goals: 2 s and 5 ms on an idle machine; the margins are for a busy one.
    assert takes_less_than(8.0, lambda: WRITER.compose("sql_execute", calls))
    assert takes_less_than(0.1, lambda: WRITER.compose("sql_execute", calls[-30:]))


def test_huge_outputs_and_inputs_do_not_slow_it_down() -> None:
    calls = [call(i, {"code": "x = 1\n" * 20_000, "n": i}, i % 2 == 0, "y" * 1_000_000) for i in range(12)]
    assert takes_less_than(3.0, lambda: json.dumps(WRITER.compose("run", calls).model_dump(mode="json")))


@pytest.mark.parametrize("outcome", [True, False])
def test_surrogates_and_control_characters_do_no_harm(outcome: bool) -> None:
    calls = [call(i, {"q\x00": "a\ud800\u2028", "n": i}, outcome, "Error:\x00 \x1b[31mbad\u2029") for i in range(6)]
    assert WRITER.compose("t", calls).claims
