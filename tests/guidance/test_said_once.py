"""Each fact is said in one line, in words that a reader can act on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import Guidance, ToolCallResult
from toolmem.readers.error_messages import telling_line

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
