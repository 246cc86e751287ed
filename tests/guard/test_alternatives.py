"""What a demand says of calls is read strictly, and judged for each command, recipient and path by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.errors import RequestError
from toolmem.guard.alternatives import as_written, read_conditions, spread
from toolmem.guard.alternatives_in_words import alternatives_in_words as in_words
from toolmem.guard.compiled_conditions import CompiledConditions, as_schema
from toolmem.guard.moments import moments_in
from toolmem.guard.view import view_of

MONDAY_NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def stops(
    when: Any, tool: str, arguments: dict[str, Any], unless: Any = None, now: datetime = MONDAY_NOON, **more: Any
) -> bool:
    conditions = read_conditions(when, unless)
    assert read_conditions(**as_written(conditions)) == conditions
    return CompiledConditions(conditions).hold(view_of(tool, arguments, **more), now)


def runs(command: str, when: Any, unless: Any = None, now: datetime = MONDAY_NOON) -> bool:
    return stops(when, "Bash", {"command": command, "description": "what it is for"}, unless, now)


PUSH = [{"command": r"\bgit push\b.*\bmain\b"}]


@pytest.mark.parametrize(
    "command",
    [
        "git push origin main",
        "git add -A && git push origin main",
        "git push origin main; git status",
        "sudo git push origin main",
        "GIT PUSH ORIGIN MAIN",
        "bash -c 'git push origin main'",
    ],
)
def test_a_command_is_found_in_whatever_stands_around_it(command: str) -> None:
    assert runs(command, PUSH)


@pytest.mark.parametrize(
    "command",
    ["git push origin dev", "git commit -m 'git push origin main'", "echo 'git push origin main'", "git log main"],
)
def test_a_command_that_is_only_named_is_not_run(command: str) -> None:
    assert not runs(command, [{"command": r"^git push .*\bmain\b"}])


def test_white_space_inside_a_word_parts_no_words() -> None:
    no_verify = [{"command": r"^git commit\b.*\s--no-verify(\s|$)"}]
    assert runs("git commit --no-verify -m x", no_verify)
    assert not runs("git commit -m 'why --no-verify is cheating'", no_verify)
    assert not runs("git commit -m 'why --no-verify is cheating'", [{"word": "--no-verify"}])
    assert runs("git commit --no-verify", [{"word": "--no-verify"}])


def test_a_pattern_that_looks_into_a_message_is_read_so_when_it_is_spread() -> None:
    written = read_conditions([{"command": r"-m fix: [a-z ]+$"}])
    view = view_of("Bash", {"command": "git commit -m 'fix: one typo'"})
    assert not CompiledConditions(written).hold(view, MONDAY_NOON)
    assert CompiledConditions(spread(written)).hold(view, MONDAY_NOON)


@pytest.mark.parametrize("joined", ["{a} && {b}", "{b} && {a}", "{b}; {a}", "{b} | {a}", "({b}); {a}"])
def test_what_lets_one_command_through_lets_no_other_through(joined: str) -> None:
    command = joined.format(a="gh pr create", b="gh pr create --draft")
    assert runs(command, [{"command": "^gh pr create"}], [{"command": "--draft"}])
    assert not runs("gh pr create --draft", [{"command": "^gh pr create"}], [{"command": "--draft"}])


def test_a_wrapper_and_what_it_wraps_are_one_command() -> None:
    assert runs("sudo rm x", [{"command": "^sudo "}])
    assert runs("sudo rm x", [{"command": "^rm "}])
    assert not runs("sudo rm -i x", [{"command": r"\brm\b"}], [{"command": "^rm -i"}])


def test_each_recipient_is_judged_by_itself() -> None:
    outside, own = [{"target": "@"}], [{"target": r"@acme\.com$"}]
    mail = {"to": ["bob@acme.com", "eve@evil.org"], "body": "for eve@evil.org"}
    assert stops(outside, "send_email", mail, own)
    assert not stops(outside, "send_email", {**mail, "to": "bob@acme.com"}, own)


def test_each_path_is_judged_by_itself() -> None:
    write, inside = [{"always": True}], [{"path": r"(^|/)src/"}]
    assert not stops(write, "Write", {"file_path": "src/a.py", "content": "see /etc/passwd"}, inside)
    assert stops(write, "Write", {"file_path": "lib/a.py", "content": "src/a.py"}, inside)
    assert stops([{"path": r"\.env$"}], "Bash", {"command": "cat a.txt .env"})
    assert stops([{"path": r"\.env$"}], "Read", {"file_path": "/home/kim/.env"})


def test_an_argument_is_over_under_like_or_missing() -> None:
    over = [{"arg": {"name": "amount", "over": 150}}]
    assert stops(over, "pay", {"amount": 151})
    assert stops(over, "pay", {"amount": "$1,500"})
    assert not stops(over, "pay", {"amount": 150})
    assert not stops(over, "pay", {"total": 900})
    assert stops([{"arg": {"name": "seats", "under": 3}}], "book", {"seats": [5, 2]})
    assert stops([{"arg": {"name": "draft", "matches": "^false$"}}], "pr", {"draft": False})
    missing = [{"tool": "^pay$", "arg": {"name": "memo", "missing": True}}]
    assert stops(missing, "pay", {"amount": 1})
    assert stops(missing, "pay", {"memo": ""})
    assert not stops(missing, "pay", {"memo": "rent"})
    both = [{"arg": [{"name": "amount", "over": 100}, {"name": "memo", "missing": True}]}]
    assert stops(both, "pay", {"amount": 101})
    assert not stops(both, "pay", {"amount": 101, "memo": "rent"})


def test_a_text_that_lets_through_counts_beside_a_command() -> None:
    when, unless = [{"command": "^deploy"}], [{"command": "^deploy", "text": "ticket-[0-9]+"}]
    assert stops(when, "Bash", {"command": "deploy web", "description": "for the fair"}, unless)
    assert not stops(when, "Bash", {"command": "deploy web", "description": "TICKET-12"}, unless)


def test_a_tool_is_meant_by_its_name_or_its_class() -> None:
    assert stops([{"tool": "^@shell$", "command": "^rm"}], "exec_command", {"command": "rm x"})
    assert not stops([{"tool": "^@mail$", "command": "^rm"}], "exec_command", {"command": "rm x"})


@pytest.mark.parametrize(
    ("clock", "now", "holds"),
    [
        ({"weekday": ["sat", "sun"]}, MONDAY_NOON, False),
        ({"weekday": "monday"}, MONDAY_NOON, True),
        ({"from": "09:00", "to": "17:00"}, MONDAY_NOON, True),
        ({"from": "09:00", "to": "12:00"}, MONDAY_NOON, False),
        ({"from": "22:00", "to": "07:00"}, MONDAY_NOON.replace(hour=23), True),
        ({"from": "22:00", "to": "07:00"}, MONDAY_NOON.replace(hour=6, minute=59), True),
        ({"from": "22:00", "to": "07:00"}, MONDAY_NOON, False),
        ({"weekday": ["sun"], "from": "22:00", "to": "07:00"}, MONDAY_NOON.replace(hour=2), True),
        ({"weekday": ["mon"], "from": "22:00", "to": "07:00"}, MONDAY_NOON.replace(hour=2), False),
    ],
)
def test_a_span_over_midnight_belongs_to_the_day_on_which_it_begins(clock: Any, now: datetime, holds: bool) -> None:
    assert runs("deploy web", [{"command": "^deploy", "clock": clock}], now=now) is holds
    assert runs("deploy web", [{"command": "^deploy"}], [{"clock": clock}], now=now) is not holds


def test_the_day_of_a_date_in_an_argument_is_known() -> None:
    weekend = [{"clock": {"weekday": ["sat", "sun"], "of": "start"}}]
    assert stops(weekend, "calendar_create_event", {"start": "2026-11-28"})
    assert stops(weekend, "calendar_create_event", {"start": "2026-11-28T10:00:00+01:00"})
    assert not stops(weekend, "calendar_create_event", {"start": "2026-11-27 10:00"})
    assert not stops(weekend, "calendar_create_event", {"start": "tomorrow"})
    night = [{"clock": {"from": "18:00", "to": "08:00", "of": "start"}}]
    assert stops(night, "calendar_create_event", {"start": "2026-11-27T19:00:00Z"})
    assert not stops(night, "calendar_create_event", {"start": "2026-11-27"})  # no time of day is told


def test_a_time_without_a_zone_is_the_users() -> None:
    zone = timezone(timedelta(hours=8))
    assert [each.isoformat() for each in moments_in("2026-11-27T19:00:00", zone)] == ["2026-11-27T19:00:00+08:00"]


@pytest.mark.parametrize(
    ("when", "place"),
    [
        ([], "`when`: expected a list of 1 to 20 alternatives"),
        ("git push", "`when`: expected a list"),
        ([{}], "`when[0]`: expected an object of tests"),
        ([{"program": "git"}], "`when[0]`: program: no test"),
        ([{"command": ""}], "`when[0].command`: expected a regular expression"),
        ([{"command": "(?=x)y"}], "`when[0].command`: look-around"),
        ([{"command": r"(a)\1"}], "`when[0].command`: look-around and back-references"),
        ([{"command": "(a"}], "`when[0].command`: no regular expression"),
        ([{"command": "a{1000}{1000}"}], "`when[0].command`: no regular expression that can be checked"),
        ([{"command": "a" * 501}], "`when[0].command`: 501 characters"),
        ([{"arg": {"name": "x"}}], "`when[0].arg`: expected"),
        ([{"arg": {"name": "x", "over": "3"}}], "`when[0].arg.over`: expected a number"),
        ([{"always": False}], "`when[0].always`: true"),
        ([{"clock": {"weekday": ["someday"]}}], "`when[0].clock.weekday`: expected some of mon"),
        ([{"clock": {"from": "22:00"}}], "`when[0].clock`: `from` and `to` go together"),
        ([{"clock": {"from": "25:00", "to": "26:00"}}], "`when[0].clock.from`: expected a time of day"),
    ],
)
def test_what_cannot_be_checked_is_refused_with_its_place(when: Any, place: str) -> None:
    with pytest.raises(RequestError) as told:
        read_conditions(when)
    assert place in str(told.value)


def test_conditions_are_said_in_words() -> None:
    told = in_words(read_conditions([{"command": "^gh pr create"}], [{"command": "--draft"}]))
    assert told == "a command like `gh pr create`; not a command like `--draft`"
    assert "every call by a tool" not in told
    clock = {"weekday": ["sat"], "from": "22:00", "to": "07:00"}
    assert in_words(read_conditions([{"tool": "^pay$", "arg": {"name": "amount", "over": 5000}, "clock": clock}])) == (
        "`amount` over 5,000 and by a tool like `pay` and at sat 22:00 to 07:00"
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


@given(given_when=JSON)
def test_whatever_a_model_writes_is_read_or_refused(given_when: Any) -> None:
    try:
        conditions = read_conditions(given_when)
    except RequestError as error:
        told = str(error)
    else:
        told = f"`when` {as_schema(conditions)}"
    assert "`when" in told


@given(arguments=st.dictionaries(st.text(max_size=12), JSON, max_size=5))
def test_whatever_a_call_holds_can_be_judged(arguments: dict[str, Any]) -> None:
    conditions = CompiledConditions(
        read_conditions(
            [{"command": "x", "path": "y", "text": "z"}, {"arg": {"name": "a", "over": 3}}, {"target": "t"}],
            [{"text": "u", "path": "v"}],
        )
    )
    conditions.hold(view_of("Bash", arguments), MONDAY_NOON)
