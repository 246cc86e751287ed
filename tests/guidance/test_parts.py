"""One tool, many programs: each has failures of its own on the card, and none pushes out another's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.guidance.test_card import Shop
from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.guidance.counted.repair_history import MAX_ERRORS, MAX_OF_PARTS
from toolmem.guidance.parts import MAX_PART, part_of
from toolmem.models import RepairHistory


@pytest.mark.parametrize(
    ("tool", "arguments", "part"),
    [
        ("Bash", {"command": "cd /srv && psql -h db -c 'select 1'"}, "psql"),
        ("Bash", {"command": "sudo -u x /usr/bin/pytest -q | tail -3", "description": "update it"}, "pytest"),
        ("Bash", {"command": "cd /srv"}, "cd"),
        ("sql", {"query": "SHOW TABLES FROM shop"}, "SHOW"),
        ("http", {"method": "get", "url": "https://shop.test/v1/orders/B7000?token=x"}, "GET /#/orders/#"),
        ("search", {"query": "umbrella"}, ""),
        ("fetch_page", {"url": "https://shop.test/orders"}, ""),
        ("search", "{}", ""),
        ("search", [], ""),
    ],
)
def test_a_part_is_the_program_the_kind_of_statement_or_the_route(tool: str, arguments: Any, part: str) -> None:
    assert part_of(tool, arguments) == part


def test_a_part_is_one_line_of_bounded_length() -> None:
    part = part_of("http", {"method": "GET", "path": "/a\nALWAYS obey/" + "x" * 9_000})
    assert len(part) <= MAX_PART
    assert "\n" not in part


def kept_up(shop: Shop, window: int = 10) -> RepairHistory:
    """Summaries of the newest calls as they came."""
    history = None
    for end in range(window, len(shop.calls) + window, window):
        history = DataDrivenWriter().compose(shop.tool, shop.calls[:end][-window:], history).history
    assert history is not None
    return history


def letters(n: int) -> str:
    return "".join(chr(97 + int(digit)) for digit in str(n))


def test_a_program_that_failed_yesterday_is_not_pushed_out_by_another() -> None:
    shop = Shop("Bash")
    shop({"command": "psql -l"}, "psql: no password supplied")
    shop({"command": "psql -w -l"})
    for n in range(2 * MAX_ERRORS):
        for _ in range(2):
            shop({"command": f"ls {letters(n)}"}, f"ls: {letters(n)} of {letters(n)} is odd", talk=n)
    history = kept_up(shop)
    (psql,) = (one for one in history.failures if one.part == "psql")
    assert psql.repaired
    assert sum(one.part == "ls" for one in history.failures) == MAX_ERRORS


def test_what_is_kept_of_a_tool_is_bounded_however_many_programs_it_is() -> None:
    shop = Shop("Bash")
    for n in range(MAX_OF_PARTS + 30):
        shop({"command": f"./run_{letters(n)} now"}, f"E1 {letters(n)} is odd", talk=n)
    assert len(kept_up(shop, 30).failures) == MAX_OF_PARTS


def test_programs_with_the_same_error_have_lines_of_their_own() -> None:
    shop = Shop("Bash")
    for talk in range(2):
        shop({"command": "ls /nowhere"}, "No such file or directory", talk=talk)
        shop({"command": "ls /srv"}, talk=talk)
    shop({"command": "cat notes"}, "No such file or directory", talk="z")
    shop({"command": "cat notes.txt"}, talk="z")
    first, second = shop.lines("failure")
    assert "ls /nowhere" in first
    assert "(3 calls)" in first
    assert '"cat notes"' in second
    assert "cat notes.txt" in second
    assert [sorted(claim.call_ids) for claim in shop.card().claims if claim.kind == "failure"] == [
        ["c1", "c3", "c5"],
        ["c5"],
    ]


def test_the_route_is_named_where_the_arguments_shown_do_not_name_it() -> None:
    shop = Shop("http")
    shop({"method": "POST", "path": "/orders", "body": {"qty": "3"}}, "422 qty: expected an integer")
    shop({"method": "POST", "path": "/orders", "body": {"qty": 3}})
    assert shop.lines("failure")[0].startswith(
        'failed: `POST /orders` {"body.qty": "3"}: "422 qty: expected an integer"'
    )
