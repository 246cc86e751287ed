"""What a condition sees of a call: whom and where apart from what is written, in one spelling."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processor_time import grows_at_most
from toolmem.guard.view import view_of

LISTS = ("values", "targets", "emails", "hosts", "paths", "tables", "statements", "programs")


def seen(**arguments: Any) -> dict[str, Any]:
    return view_of("t", arguments).fields


def test_every_list_is_there_for_a_call_without_arguments() -> None:
    view = seen()
    assert all(view[name] == [] for name in (*LISTS, "commands", "numbers"))
    assert (view["tool_name"], view["arguments"]) == ("t", {})


@pytest.mark.parametrize(
    "spelling",
    [
        "sarah@example.com",
        "Sarah@Example.COM",
        "  sarah@example.com ",
        "Sarah Connor <sarah@example.com>",
        '"Connor, S." <sarah@example.com>',
        "sarah+news@example.com",
        "sarah@ｅｘａｍｐｌｅ.com",
        "sa\u200brah@example.com",
        "mailto:sarah@example.com?subject=x",
        "bob@acme.com, sarah@example.com",
    ],
)
def test_an_address_is_one_target_in_whatever_spelling(spelling: str) -> None:
    assert "sarah@example.com" in seen(to=spelling)["targets"]


def test_a_display_name_is_a_target_of_its_own() -> None:
    assert seen(to="Sarah Connor <s@example.com>")["targets"] == ["s@example.com", "sarah connor"]


def test_what_is_written_is_no_target() -> None:
    view = seen(to="bob@acme.com", body="tell sarah@example.com", subject="Sarah")
    assert view["targets"] == ["bob@acme.com"]
    assert view["emails"] == ["bob@acme.com", "sarah@example.com"]


@pytest.mark.parametrize(
    "url",
    [
        "https://user:pw@Api.Example.com:8443/v1?q=1",
        "http://api.example.com.",
        "api.example.com/v1",
        "https://ａｐｉ.example.com",
    ],
)
def test_the_host_of_an_address_is_a_target_without_user_port_and_dot(url: str) -> None:
    assert "api.example.com" in seen(url=url)["targets"]


def test_a_host_in_another_script_is_seen_as_dns_sees_it() -> None:
    assert "xn--bcher-kva.example" in seen(url="https://bücher.example/x")["targets"]


def test_a_parameter_whose_description_says_whom_is_a_target() -> None:
    declared = {"properties": {"x": {"type": "string", "description": "The recipient of the message."}}}
    assert view_of("t", {"x": "Bob"}, declared).fields["targets"] == ["bob"]


def test_numbers_are_read_from_numeric_text_too() -> None:
    view = seen(amount="$6,000", rate=0.5, n=3, text="call 911 now", flag=True)
    assert view["numbers"] == [
        {"name": "amount", "value": 6000.0},
        {"name": "n", "value": 3.0},
        {"name": "rate", "value": 0.5},
    ]


def test_paths_are_taken_against_the_directory_of_the_call() -> None:
    view = view_of("t", {"path": "../x/./secret.txt"}, directory=Path("/home/me/work")).fields
    assert view["paths"] == ["/home/me/x/secret.txt"]


def test_statements_and_tables_are_read_from_sql() -> None:
    view = seen(query="DROP TABLE users; SELECT * FROM orders")
    assert view["statements"] == ["drop table", "select"]
    assert view["tables"] == ["orders", "users"]


def test_arguments_of_megabytes_and_hundreds_of_levels_are_looked_at() -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    view = seen(body="a " * 4_000_000, deep=deep, near={"to": "bob@acme.com"})
    assert "bob@acme.com" in view["targets"]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=12), JSON, max_size=5))
def test_every_list_is_sorted_and_without_doubles_whatever_the_arguments(arguments: dict[str, Any]) -> None:
    view = view_of("t", arguments).fields
    for name in LISTS:
        assert view[name] == sorted(set(view[name]))


def test_a_number_beyond_all_floats_and_a_name_that_is_no_text_are_looked_at() -> None:
    view = view_of("t", {"amount": 10**400, 1: "a@b.org", "to": "bob@acme.com"}).fields  # type: ignore[dict-item]
    assert view["numbers"] == [{"name": "amount", "value": sys.float_info.max}]
    assert view["targets"] == ["bob@acme.com"]


@pytest.mark.parametrize("piece", [" ", "a|", "a@b ", "a.", "/a", ";", ", ", "<", "$(", "`", '"', "-C ", "x=", "> "])
def test_four_times_the_arguments_cost_about_four_times_the_time(piece: str) -> None:
    def looked_at(times: int) -> Callable[[], object]:
        text = f"a@b{piece * times}c"
        return lambda: view_of("bash", {"command": text, "to": text})

    assert grows_at_most(8, looked_at, 6_000, 24_000)
