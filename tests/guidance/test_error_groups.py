from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.guidance.counted.error_groups import ErrorGroup, error_groups
from toolmem.models import ToolCallResult
from toolmem.readers.error_messages import mask, telling_line


def groups_of(calls: list[ToolCallResult]) -> list[ErrorGroup]:
    return error_groups(calls, {i: telling_line(one.output) for i, one in enumerate(calls)})


def failed(output: str, error_class: str = "") -> ToolCallResult:
    return ToolCallResult(
        tool_name="t",
        output=output,
        success=False,
        error_class=error_class,
        create_time=datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("Error executing query: Unknown column 'a' in 'field list'", "Unknown column 'a' in 'field list'"),
        ("ERROR:\nParameter `old_str` is required.", "Parameter `old_str` is required."),
        (
            '{"error": "", "response": "{\'message\': \\"Endpoint \'/x\' does not exist\\"}"}',
            "Endpoint '/x' does not exist",
        ),
        ('{"status": 404, "detail": {"msg": "no such user"}}', "no such user"),
        ('{"error": "", "response": "An API key is required"}', "An API key is required"),
        ('Traceback (most recent call last):\n  File "x", line 1\nValueError: bad\n', "ValueError: bad"),
        (
            "Error: 1 validation error for P\ndob\n  Field required [type=missing]",
            "1 validation error for P: dob Field required [type=missing]",
        ),
        (
            '{"status": 404, "body": "<html><head><title>404 Not Found</title></head><body><h1>Not Found</h1></body>"}',
            "404 Not Found",
        ),
        (
            "<html><title>Forbidden</title><h1>Forbidden</h1><p>Access is denied.</p></html>",
            "Forbidden Access is denied.",
        ),
        (
            '{"status": "conflict", "conflicts_with": {"title": "Error review"}}',
            "status: conflict, conflicts_with: title",
        ),
        ("building\nmaking\nmake: *** [x] Error 2\ndone", "make: *** [x] Error 2"),
        ("   \n", ""),
    ],
)
def test_the_telling_line_is_found(output: str, line: str) -> None:
    assert telling_line(output) == line


def test_a_quotation_over_several_lines_is_kept_together() -> None:
    line = telling_line("ERROR:\nNo replacement was performed, old_str `a\n  b` did not appear verbatim in /w/x.c.")
    assert line.endswith("did not appear verbatim in /w/x.c.")
    assert mask(line) == "No replacement was performed, old_str … did not appear verbatim in …"


def test_messages_that_differ_in_names_are_one_group_and_status_codes_are_kept_apart() -> None:
    calls = [
        failed("Error: flight HAT030 not available on date 2024-05-13"),
        failed("Error: flight HAT112 not available on date 2024-05-14"),
        failed("request failed. status_code=400"),
        failed("request failed. status_code=500"),
        failed(""),
    ]
    groups = groups_of(calls)
    assert [group.positions for group in groups] == [(0, 1), (2,), (3,), (4,)]
    assert groups[0].label == "flight … not available on date …"
    assert groups[3].label == ""


def test_what_all_messages_share_is_shown_and_the_judges_class_with_it() -> None:
    calls = [failed(f"Unknown column '{name}' in 'field list'", "unknown_column") for name in "abc"]
    (group,) = groups_of(calls)
    assert group.label == "Unknown column '…' in 'field list'"
    assert group.error_class == "unknown_column"
    assert group.example in {f"Unknown column '{name}' in 'field list'" for name in "abc"}


def test_messages_that_differ_in_one_unquoted_word_are_one_group() -> None:
    words = ("Comedy", "Thriller", "Thriller")
    calls = [failed(json.dumps({"message": f"genre must be an integer: {word}"})) for word in words]
    (group,) = groups_of(calls)
    assert group.label == "genre must be an integer: …"
    assert group.varying == ("Thriller", "Comedy")


def test_what_varies_is_told_where_it_is_a_single_thing() -> None:
    (group,) = groups_of([failed(f"unsupported language '{name}'") for name in ("xx", "yy", "yy")])
    assert (group.label, group.varying) == ("unsupported language '…'", ("'yy'", "'xx'"))
    (group,) = groups_of([failed(f"unknown name '{name}' at position {i}") for i, name in enumerate("ab")])
    assert group.varying == ()


def test_huge_outputs_are_read_at_their_ends_only() -> None:
    assert telling_line("x\n" * 500_000 + "fatal: not a git repository") == "fatal: not a git repository"


@given(st.lists(st.text(max_size=200), max_size=12))
def test_every_failure_is_in_exactly_one_group(outputs: list[str]) -> None:
    groups = groups_of([failed(output) for output in outputs])
    assert sorted(i for group in groups for i in group.positions) == list(range(len(outputs)))
    sizes = [len(group.positions) for group in groups]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("user ann@example.com not found", "user … not found"),
        ("cannot open /var/log/app.log", "cannot open …"),
        ("Table 'shop.users' doesn't exist", "Table … doesn't exist"),
        ("order #W2586676 is unknown", "order … is unknown"),
        ("at most 12 items, got 40", "at most … items, got …"),
        ("see https://example.com/help?id=3", "see …"),
    ],
)
def test_particulars_are_masked(message: str, expected: str) -> None:
    assert mask(message) == expected
