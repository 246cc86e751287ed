"""Below each line of a tool's card stand the calls behind it, and what followed each in its conversation."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape

from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.models import Claim, ToolCallResult
from toolmem.research.report import claims_frame, guidance_block
from toolmem.research.report.cited_calls import MOST_CALLS, MOST_LINES, PROOF
from toolmem.research.report.findings import Evaluation

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
EVIL = "<script>alert(1)</script>\n## Rules\n\u202e"


def call(number: int, given: dict, failed: bool, *, conversation: str = "c-1", tool: str = "ship", output: str = ""):
    return ToolCallResult(
        tool_name=tool,
        input=given,
        output=output or ("Error: weight is in grams" if failed else "booked"),
        success=not failed,
        execution_failed=failed,
        score=float(not failed),
        evaluation_status="ok",
        error_class="bad_parameter" if failed else "",
        create_time=START + timedelta(minutes=number),
        id=f"call-{number}",
        seq=number + 1,
        metadata={"conversation_id": conversation} if conversation else {},
    )


def evaluation_with_card(build, calls: list[ToolCallResult], claims: list[Claim] | None = None) -> Evaluation:
    """An evaluation whose guidance of each tool is the card that is written from these calls, or these claims."""
    evaluation = build(calls=calls)
    for memory in evaluation.memories:
        made = DataDrivenWriter().compose(memory.when_to_use, list(memory.tool_call_results))
        told = made.claims if claims is None else claims
        memory.content = "\n".join(f"- {one.text}" for one in told)
        memory.metadata["claims"] = [one.model_dump(mode="json") for one in told]
    return evaluation


def lines_of(page: str) -> list[tuple[str, str]]:
    """(the line, what is folded below it) as a reader sees them."""
    found = re.findall(r'<details class="line"><summary>(.*?)</summary>(.*?)</details>', page, re.DOTALL)
    return [tuple(" ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split()) for text in one) for one in found]


def test_below_a_line_stands_its_call_and_the_one_that_followed_with_its_outcome(build):
    calls = [
        call(0, {"weight": 4.3}, True),
        call(1, {"q": "scales"}, False, tool="search"),
        call(2, {"weight": 4300}, False, output="booked as B-7"),
        call(3, {"weight": 70}, False, conversation="c-2"),
    ]
    page = guidance_block(evaluation_with_card(build, calls)).text
    (line, below), *_ = lines_of(page)
    assert line.startswith('failed: {"weight": 4.3}: "weight is in grams"; then worked: {"weight": 4300}')
    assert line.endswith("1 of 3 calls, 1 recovered")
    told = [r"0 2026-03-01 09:00:00 failed \(bad_parameter\)", r"1 2026-03-01 09:01:00 then search worked"]
    told.append(r"2 2026-03-01 09:02:00 then worked \{\"weight\": 4300\} booked as B-7")
    assert re.search(".*".join(told), below)
    assert "09:03:00" not in below  # another conversation


def test_a_call_that_followed_is_not_told_again_where_it_is_behind_the_same_line(build):
    calls = [call(number, {"weight": 4.3}, number < 3) for number in range(4)]
    (_, below), *_ = lines_of(guidance_block(evaluation_with_card(build, calls)).text)
    assert [below.count(f"09:0{number}:00") for number in range(4)] == [1, 1, 1, 1]


def test_what_followed_is_said_to_be_unknown_where_no_conversation_is_named(build):
    calls = [call(0, {"weight": 4.3}, True, conversation=""), call(1, {"weight": 4300}, False, conversation="")]
    below = " ".join(text for _, text in lines_of(guidance_block(evaluation_with_card(build, calls)).text))
    assert "the call names no conversation" in below
    assert "then worked" not in below


def test_texts_of_calls_are_one_line_of_text_and_cut(build):
    calls = [call(0, {"weight": EVIL * 400}, True, output=EVIL * 4000), call(1, {"weight": EVIL}, False, output=EVIL)]
    page = guidance_block(evaluation_with_card(build, calls)).text
    assert "<script" not in page
    assert not {"\u202e"} & set(page)
    assert [line for line in page.splitlines() if line.startswith("## ")] == []
    assert len(page) < 12_000
    assert "characters…]" in page


def test_the_page_is_bounded_however_many_lines_and_calls_there_are(build):
    calls = [call(number, {"weight": number}, number % 2 == 0, output="x" * 300) for number in range(90)]
    ids = tuple(str(one.id) for one in calls)
    claims = [Claim(text=f"line {number}", k=90, n=90, call_ids=ids, kind="failure") for number in range(60)]
    lines = lines_of(guidance_block(evaluation_with_card(build, calls, claims)).text)
    assert len(lines) == 60
    told = [len(re.findall(r"\d\d:\d\d:\d\d", below)) for _, below in lines]
    assert max(told) == MOST_CALLS
    assert told[MOST_LINES:] == [0] * (60 - MOST_LINES)
    assert "10:29:00" in lines[0][1]  # the newest
    assert "85 more calls: claims.csv has the rows." in lines[0][1]
    assert "90 calls behind it: claims.csv has the rows." in lines[-1][1]


def test_a_call_that_is_no_longer_kept_is_named_by_its_id(build):
    claims = [Claim(text="an old line", k=1, n=1, call_ids=("gone-1",), kind="failure")]
    lines = lines_of(guidance_block(evaluation_with_card(build, [call(0, {"weight": 1}, False)], claims)).text)
    assert "gone-1 a call that is no longer kept" in lines[0][1]


def test_a_claim_that_the_text_does_not_hold_stands_beside_it(build):
    claims = [Claim(text="counted only", k=1, n=1, call_ids=("call-0",), kind="failure")]
    evaluation = evaluation_with_card(build, [call(0, {"weight": 1}, True)], claims)
    evaluation.memories[0].content = "What a model wrote."
    page = guidance_block(evaluation).text
    assert page.index("What a model wrote.") < page.index("not in the text") < page.index("counted only")


def test_lines_that_helped_most_come_first_with_what_was_counted_and_withheld_ones_stand_beside_the_text(build):
    proof = {"never": (3, 1, 0), "often": (4, 4, 3), "harmful": (2, 2, 0), "once": (2, 1, 1)}
    claims = [
        Claim(
            text=f"failed: {name}",
            k=1,
            n=2,
            call_ids=(),
            kind="withheld" if name == "harmful" else "failure",
            counts={"recovered": 1, **dict(zip(PROOF, counts, strict=True))},
        )
        for name, counts in proof.items()
    ]
    evaluation = evaluation_with_card(build, [call(0, {"weight": 4.3}, True)], claims)
    for memory in evaluation.memories:
        memory.content = "\n".join(f"- {one.text}" for one in claims if one.kind != "withheld")
    page = guidance_block(evaluation).text
    assert [line for line, _ in lines_of(page)] == [
        "failed: often 1 of 2 calls, 1 recovered, shown 4, followed 4, worked 3",
        "failed: once 1 of 2 calls, 1 recovered, shown 2, followed 1, worked 1",
        "failed: never 1 of 2 calls, 1 recovered, shown 3, followed 1, worked 0",
        "failed: harmful 1 of 2 calls, shown 2, followed 2, worked 0, withheld",
    ]
    assert page.index("failed: never") < page.index("not in the text") < page.index("failed: harmful")
    frame = claims_frame(evaluation)
    rows = frame.set_index("text")[[*PROOF]].T
    assert {name: tuple(rows[f"failed: {name}"]) for name in proof} == proof
