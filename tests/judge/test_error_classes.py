"""Classes of error messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.readers.error_classes import ERROR_CLASSES, class_of_status, error_class_of


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("Request timed out after 30 s", "timeout"),
        ("请求超时", "timeout"),
        ("429 Too Many Requests", "rate_limited"),
        ("Permission denied", "permission_denied"),
        ("401 Unauthorized", "permission_denied"),
        ("Unknown action fly_to_moon", "unknown_tool"),
        ("Tool 'x' not found", "unknown_tool"),
        ("Missing required argument: city", "missing_parameter"),
        ("参数错误：缺少必填参数 amount", "missing_parameter"),
        ("f() got an unexpected keyword argument 'town'", "unknown_parameter"),
        ("ls: invalid option -- 'Q'", "unknown_parameter"),
        ("SyntaxError: invalid syntax", "syntax_error"),
        ("You have an error in your SQL syntax", "syntax_error"),
        ("Unknown column 'a' in 'field list'", "unknown_column"),
        ("no such table: users", "unknown_table"),
        ("bash: foo: command not found", "command_not_found"),
        ("No such file or directory", "not_found"),
        ("slot overlaps with 'Standup'", "conflict"),
        ("amount must be greater than 0", "invalid_value"),
        ("Connection refused", "connection_error"),
        ("JSONDecodeError: Expecting value", "parse_error"),
        ("Insufficient funds", "insufficient_resources"),
        ("non-pending order cannot be cancelled", "not_allowed_in_state"),
        ("502 Bad Gateway", "server_error"),
        ("2 failed, 1 passed", "failed_check"),
        ("KeyboardInterrupt: panic", "exception"),
        ("oops", "error"),
    ],
)
def test_a_message_has_its_class(message: str, name: str) -> None:
    assert error_class_of(message) == name


@given(st.text(max_size=2_000))
def test_every_text_has_a_class_of_the_vocabulary(text: str) -> None:
    assert error_class_of(text) in ERROR_CLASSES


@given(st.integers(min_value=400, max_value=599))
def test_every_http_failure_has_a_class_of_the_vocabulary(code: int) -> None:
    assert class_of_status(code) in ERROR_CLASSES
