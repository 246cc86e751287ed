"""One table of what sentences are worth: the writer's value of a line is found again from the line's words."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from toolmem.guidance.counted import claim_lines, repair_sentences, sentences, usage_sentences, worth
from toolmem.guidance.counted.analysis import analyze
from toolmem.guidance.counted.claim_edits import _value
from toolmem.guidance.counted.claim_lines import read_line
from toolmem.guidance.counted.phrases import PHRASES
from toolmem.guidance.counted.repair_history import Totals, counted
from toolmem.guidance.counted.wording import Wording
from toolmem.models import Claim, ToolCallResult, ToolSchema

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = ToolSchema(name="search", description="Finds things.")


def calls(seed: int, number: int = 60) -> list[ToolCallResult]:
    """Refused values, two kinds of error with their repairs, empty answers, repeats: sentences of most kinds."""
    draw = random.Random(seed)
    made: list[ToolCallResult] = []

    def add(given: dict[str, Any], error: str = "", output: str = "[1]") -> None:
        made.append(
            ToolCallResult(
                tool_name="search",
                input=given,
                output=f"Error: {error}" if error else output,
                success=not error,
                score=0.0 if error or output == "[]" else 1.0,
                evaluation_status="ok",
                create_time=NOW,
                seq=len(made) + 1,
                id=f"c{len(made) + 1}",
                metadata={"conversation_id": f"k{len(made) // 6}"},
            )
        )

    while len(made) < number:
        query = {"query": f"q{len(made)}", "limit": draw.randrange(9)}
        kind = draw.randrange(5)
        if kind == 0:
            add({**query, "language": "xx"}, "unsupported language 'xx'")
            add({**query, "language": "en"})
        elif kind == 1:
            add(query, "'region' is required")
            add({**query, "region": "eu"})
        elif kind == 2:
            add(query, "try later")
            add(query, "try later")
        else:
            add({**query, "language": "en"}, output=draw.choice(["[]", "[1]"]))
    return made


@pytest.mark.parametrize("language", ["", "zh"])
@pytest.mark.parametrize("seed", range(4))
def test_a_line_read_back_is_worth_what_it_was_worth_when_it_was_written(seed: int, language: str) -> None:
    say = Wording(language)  # type: ignore[arg-type]
    found = analyze("search", calls(seed))
    ids = [call.id or "" for call in found.calls]
    history = counted(found, ids, None)
    assert history is not None
    written = [
        *usage_sentences.usage(found, SCHEMA, say),
        *sentences.refused(found, say),
        *sentences.errors(found, say),
        *sentences.empty_answers(found, say),
        *sentences.repeats(found, say),
        *sentences.example(found, say),
        *repair_sentences.repairs(found, say),
        *repair_sentences.since(found, Totals(history), say),
        *repair_sentences.unrecovered(found, say),
    ]
    told_twice = {one.text for one in written if one.kind == "refused"}  # the value depends on another sentence
    assert {one.kind for one in written} >= {"schema", "usage", "error_class", "empty_answer", "repair", "repair_since"}
    good, known = len(found.where(True)), len(found.where(True)) + len(found.where(False))
    for one in written:
        line = read_line(Claim(text=one.text, k=one.k, n=one.n, call_ids=(), kind=one.kind), say.language)
        assert line.phrase, one.text
        if one.text not in told_twice:
            assert _value(line, good, known) == pytest.approx(one.value), one.text


def test_every_phrase_that_a_line_is_read_as_has_a_worth() -> None:
    by_counts = {"pattern", "pattern_useful", "advice_first"}
    for kind, phrases in claim_lines._KINDS.items():
        for phrase in phrases:
            assert phrase in PHRASES
            if kind not in {"advice", "refused"} and phrase not in by_counts:
                assert worth.worth(phrase, 7, 3) != worth.worth("", 7, 3), phrase


def test_a_repair_is_worth_more_for_its_error_than_for_any_and_more_than_the_error_itself() -> None:
    assert worth.worth("repair", 5) > worth.worth("repair_any", 5) > worth.worth("target_named", 5)
    assert worth.worth("target_named", 5) > worth.worth("error", 5)
