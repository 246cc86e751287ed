"""Each fact is said in one line, in words that a reader can act on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import Guidance, ToolCallResult
from toolmem.readers.error_messages import mask, telling_line

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
JUDGE = RuleBasedCheck()


def guidance_of(*rows: tuple[dict[str, Any], str], language: Any = "", conversations: bool = True) -> Guidance:
    """Of (input, output) pairs without a flag, all in one conversation."""
    calls = [
        ToolCallResult(
            tool_name="t",
            id=f"c{i}",
            input=given,
            output=output,
            create_time=BEGIN + timedelta(seconds=i),
            metadata={"conversation_id": "c"} if conversations else {},
        )
        for i, (given, output) in enumerate(rows)
    ]
    return DataDrivenWriter(language).compose("t", [call.judged(JUDGE.check(call)) for call in calls])


PHONE = "phone must contain digits only"


@pytest.mark.parametrize(
    "output",
    [
        f'{{"error": "E_FORMAT", "message": "{PHONE}"}}',
        f'{{"message": "{PHONE}", "error": "E_FORMAT"}}',
        f'{{"error": {{"code": "E_FORMAT", "message": "{PHONE}"}}}}',
        f'{{"error": "E_FORMAT", "detail": {{"message": "{PHONE}"}}}}',
        f'{{"status": 400, "error": "Bad Request", "message": "{PHONE}", "path": "/v1/users"}}',
        f"{{'error': 'E_FORMAT', 'message': '{PHONE}'}}",
        f'Error: {{"error": "E_FORMAT", "message": "{PHONE}"}}',
        '{"errors": [{"field": "phone", "message": "must contain digits only"}]}',
        f'{{"error": "invalid_request", "error_description": "{PHONE}"}}',
        f'{{"ok": false, "error": "E_FORMAT", "msg": "{PHONE}"}}',
    ],
)
def test_the_message_is_quoted_beside_its_code(output: str) -> None:
    text = guidance_of(*[({"phone": "12-3", "n": i}, output) for i in range(2)], ({"phone": "123", "n": 0}, "ok")).text
    assert "must contain digits only" in text
    assert "phone" in telling_line(output)
    assert "/v1/users" not in telling_line(output)


def test_an_error_object_without_a_known_key_is_told_by_its_fields() -> None:
    assert telling_line('{"error": {"type": "E42", "text": "city is gone"}}') == "type: E42, text: city is gone"


def test_what_stands_before_an_object_is_quoted_with_its_message() -> None:
    line = telling_line(f'HTTP 400: {{"error": "E_FORMAT", "message": "{PHONE}"}}')
    assert line == f"HTTP 400: E_FORMAT: {PHONE}"


def test_an_answer_without_a_message_is_told_by_its_fields() -> None:
    output = '{"status": "conflict", "event": null, "conflicts_with": {"id": 3, "start": "2026-03-04T12:00"}}'
    assert telling_line(output) == "status: conflict, conflicts_with: id, start"
    assert telling_line('{"ok": false}') == "ok: False"


@pytest.mark.parametrize("code", ["E_FORMAT", "not_found", "INVALID", "404"])
def test_a_code_alone_is_quoted(code: str) -> None:
    assert telling_line(f'{{"error": "{code}"}}') == code


@pytest.mark.parametrize(
    "output", ["页大小不能超过50", '{"error": "页大小不能超过50"}', '{"code": 4, "msg": "页大小不能超过50"}']
)
@pytest.mark.parametrize("language", ["", "zh"])
def test_a_chinese_message_is_quoted_as_it_is_and_not_classed(output: str, language: str) -> None:
    rows = [({"page_size": size}, output if size > 50 else "[1]") for size in (100, 20, 60, 10, 70, 30)]
    text = guidance_of(*rows, language=language).text
    assert "“页大小不能超过50”: change `page_size`" in text or "“页大小不能超过50” 之后：修改 `page_size`" in text
    assert "at most" not in text
    assert "(invalid_value)" not in text


def test_two_chinese_messages_with_numbers_are_two_errors() -> None:
    assert mask("页大小不能超过50") == "页大小不能超过…"
    assert mask("数量不能超过100个") == "数量不能超过…个"
    assert mask("no product P-032/7 of 12:30") == "no product … of …"
    rows = [({"a": 1}, "页大小不能超过50"), ({"a": 2}, "数量不能超过100个"), ({"a": 3}, "页大小不能超过50")]
    errors = [one.text for one in guidance_of(*rows).claims if one.kind == "error_class"]
    assert len(errors) == 2
    assert errors[0].startswith("“页大小不能超过50”: 2 of 3")


def test_a_refused_value_is_told_in_one_line_of_values() -> None:
    rows = []
    for i in range(12):
        bad = i % 3 == 0
        given = {"language": "auto" if bad else "en", "text": f"t {i} x"}
        rows.append((given, "Error: language 'auto' is not one of de, en" if bad else "done"))
    guidance = guidance_of(*rows)
    about = [claim.kind for claim in guidance.claims if "'auto'" in claim.text]
    assert sorted(about) == ["error_class", "refused"]
    assert {claim.kind for claim in guidance.claims}.isdisjoint({"target", "advice", "parameter", "rule_out"})


def test_a_repair_is_not_told_again_as_a_target_or_of_any_failure() -> None:
    rows = []
    for i in range(4):
        rows += [({"expression": f"{i}^2"}, "Error: unexpected '^'"), ({"expression": f"{i}**2"}, "4")]
    rows += [({"expression": "1,5 + 2"}, "Error: too many commas"), ({"note": "z"}, "4")]
    lines = [one.text for one in guidance_of(*rows).claims if "change `expression`" in one.text]
    assert len([line for line in lines if "'^'" in line or "other errors" in line]) == 1


def test_a_rate_stands_in_one_line() -> None:
    good = guidance_of(*[({"q": f"w{i}"}, "fine") for i in range(20)]).text
    assert good.count("20 of 20 calls") == 2  # that they gave `q`, and that they worked
    assert "failure rate" not in good
    assert "usual form" not in good
    bad = guidance_of(*[({"q": f"w{i}"}, "Error: gone") for i in range(6)]).text
    assert bad.count("0 of 6") == 1
    assert "No call has worked: use another tool, or fix what the error names before calling again." in bad
    mixed = guidance_of(({"q": "a"}, "fine"), ({"q": "b"}, "Error: gone")).text
    assert mixed.count("1 of 2") == 1


def test_that_nothing_repaired_an_error_is_told_with_the_error() -> None:
    rows = [({"a": i, "b": 1}, "TimeoutError" if i % 2 else "ok") for i in range(5)]
    rows += [({"a": 7, "b": 1}, "TimeoutError"), ({"a": 8, "b": 2}, "TimeoutError")]
    text = guidance_of(*rows).text
    assert "rule out" not in text
    assert "Before calling" not in text
    broken = guidance_of(*[({"a": 1}, "ok")], *[({"a": i}, "Error: gone") for i in (2, 3)]).text
    assert "“gone”: 2 of 2 failures; 0 recovered within 3 calls." in broken
    unknown = guidance_of(*[({"a": 1}, "ok")], *[({"a": i}, "Error: gone") for i in (2, 3)], conversations=False).text
    assert "“gone”: 2 of 2 failures." in unknown


@pytest.mark.parametrize(
    ("language", "said"), [("", "a text of the form [digits]-[digits]"), ("zh", "形如 [数字]-[数字] 的文本")]
)
def test_the_form_of_a_code_is_written_so_that_it_can_be_followed(language: str, said: str) -> None:
    text = guidance_of(*[({"phone": f"{i}2-{i}3"}, "done") for i in range(6)], language=language).text
    assert said in text
    assert "#" not in text.replace("## ", "")


def test_a_form_that_is_told_apart_is_said_in_words_and_held_as_data() -> None:
    rows = [({"phone": f"{i}2-{i}3" if i % 2 else f"+{i}"}, "Error: no" if i % 2 else "done") for i in range(20)]
    (told,) = (one for one in guidance_of(*rows).claims if one.kind == "parameter")
    assert "`phone` as a text of the form [digits]-[digits]: 0 of 10 worked" in told.text
    assert told.subject is not None
    assert told.subject.conditions == (("shape", "phone", "like:#-#", 0.0),)


def test_a_literal_sign_of_a_code_is_no_digit() -> None:
    text = guidance_of(*[({"order_id": f"#W12{i}"}, "done") for i in range(6)]).text
    assert "`order_id` (a text of the form #W[digits])" in text


def test_a_form_is_told_only_where_every_value_has_it_and_more_than_one_was_seen() -> None:
    mixed = guidance_of(*[({"pay": f"card_{i}" if i else "gift_7"}, "done") for i in range(6)]).text
    assert "of the form" not in mixed
    assert "of the form" not in guidance_of(({"ref": "4RK9T0"}, "done")).text


@pytest.mark.parametrize(
    "message", ["unexpected keyword argument 'filename'", "unknown parameter 'filename'", "filename is not a parameter"]
)
def test_a_parameter_that_the_tool_does_not_know_is_not_to_be_changed_but_left_out(message: str) -> None:
    text = guidance_of(({"path": "a"}, "done"), ({"filename": "b"}, f"Error: {message}")).text
    assert "leave out `filename`, the tool knows no such parameter (1 of 1 failure)" in text
    assert "change `filename`" not in text


def test_a_parameter_that_came_along_is_not_told_where_the_error_names_another() -> None:
    text = guidance_of(
        ({"unit": "$", "amount": 3}, "Error: parameter 'unit' must be one of EUR, USD"),
        ({"unit": "USD", "amount": 3, "rate_date": "2026-01-02"}, "done"),
    ).text
    assert "change `unit`" in text
    assert "add `rate_date`" not in text


def test_the_program_that_was_replaced_in_a_pipe_is_named() -> None:
    text = guidance_of(
        ({"command": "ls | bc"}, "Error: bc: command not found"),
        ({"command": "ls | wc -l"}, "55"),
    ).text
    assert "use wc next, not bc" in text


def test_what_repaired_one_kind_of_error_is_not_said_of_any_failure() -> None:
    text = guidance_of(({"limit": 50, "q": "a"}, "Error: limit is at most 10"), ({"limit": 10, "q": "a"}, "done")).text
    assert "After “limit is at most 10”: change `limit`, e.g. 50 → 10 (1 of 1 recovery)" in text
    assert "any failure" not in text
