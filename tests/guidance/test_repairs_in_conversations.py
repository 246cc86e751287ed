"""Repairs are told inside one conversation, of calls about the same thing, and never trade a value of the user's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from toolmem.formats.call_records import RecordNotes, read_record
from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.guidance.counted.repair_history import RULES, counted
from toolmem.guidance.counted.user_values import named_as_own, same_in_another_form
from toolmem.models import Guidance, ToolCallResult
from toolmem.testing.clock import ManualClock

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
WRITER = DataDrivenWriter()


class Log:
    """Calls of one tool in the order made, a minute apart."""

    def __init__(self, tool: str = "send_money") -> None:
        self.calls: list[ToolCallResult] = []
        self._tool, self._numbers = tool, count(1)

    def __call__(
        self, given: dict[str, Any], error: str = "", conversation: Any = None, error_class: str = "", **metadata: Any
    ) -> None:
        seq = next(self._numbers)
        told = {} if conversation is None else {"conversation_id": conversation}
        self.calls.append(
            ToolCallResult(
                tool_name=self._tool,
                id=f"c{seq}",
                seq=seq,
                input=given,
                output=error or "done",
                success=not error,
                error_class=error_class,
                create_time=BEGIN + timedelta(minutes=seq),
                metadata={**told, **metadata},
            )
        )

    def guidance(self) -> Guidance:
        return WRITER.compose(self._tool, self.calls)

    def repairs(self) -> list[str]:
        texts = (claim.text for claim in self.guidance().claims if claim.kind == "failure")
        return [told for text in texts if (told := text.partition("; then worked: ")[2])]


@pytest.mark.parametrize("sign", [{}, {"task_id": "t1"}, {"run": "a", "task_id": "1", "trial": 0}])
def test_calls_that_name_no_conversation_repair_nothing(sign: dict[str, Any]) -> None:
    log = Log()
    for _ in range(3):
        log({"amount": 18000, "currency": "eur"}, "Error: rejected", **sign)
        log({"amount": 70, "currency": "USD"}, **sign)
    text = log.guidance().text
    assert log.repairs() == []
    assert "recover" not in text
    assert "18000 →" not in text


def test_what_the_agent_was_asked_names_no_conversation() -> None:
    log = Log("search")
    for _ in range(3):
        log({"q": "tae", "top": 3}, "Error: no match")
        log({"q": "tea", "top": 3})
    log.calls = [call.model_copy(update={"context": "find tea"}) for call in log.calls]
    assert log.repairs() == []
    log.calls = [call.model_copy(update={"metadata": {"conversation_id": call.context}}) for call in log.calls]
    assert log.repairs() != []


def test_a_failure_in_one_conversation_is_not_repaired_in_another() -> None:
    log = Log("search")
    for number in range(6):
        log({"q": f"w{number}", "top": 3}, "" if number % 2 else "Error: no match", conversation=number)
    assert log.repairs() == []


@pytest.mark.parametrize("key", ["conversation_id", "session_id", "thread_id", "trace_id", "run_id"])
@pytest.mark.parametrize("inside", [False, True])
def test_each_alias_names_the_conversation_on_the_record_and_in_its_metadata(key: str, inside: bool) -> None:
    told = {key: "c-7"}
    record = {"tool_name": "t", "output": "x", **({"metadata": told} if inside else told)}
    call = read_record(record, 0, clock=ManualClock(), notes=RecordNotes())
    assert call.conversation_id == "c-7"


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"conversation_id": "a", "session_id": "b"}, "a"),
        ({"run_id": "b", "thread_id": "a"}, "a"),
        ({"session_id": "a", "metadata": {"conversation_id": "b"}}, "a"),
        ({"conversation_id": "a", "metadata": {"conversation_id": "b"}}, "a"),
        ({"conversation_id": "", "metadata": {"trace_id": 7}}, "7"),
        ({"metadata": {"session_id": None, "run_id": "a"}}, "a"),
        ({"session_id": {"a": 1}, "metadata": {"conversation_id": True}}, ""),
        ({}, ""),
    ],
)
def test_the_records_own_keys_go_first_and_in_order(record: dict[str, Any], expected: str) -> None:
    call = read_record({"tool_name": "t", "output": "x", **record}, 0, clock=ManualClock(), notes=RecordNotes())
    assert call.conversation_id == expected
    again = read_record(call.model_dump(mode="json"), 0, clock=ManualClock(), notes=RecordNotes())
    assert again.conversation_id == expected


@pytest.mark.parametrize("wrong", [["a"], {"a": 1}, True, 1.5, "x" * 2000])
def test_a_conversation_that_is_no_name_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(Exception, match="conversation_id"):
        read_record({"tool_name": "t", "conversation_id": wrong}, 0, clock=ManualClock(), notes=RecordNotes())


def test_step_orders_the_calls_of_a_conversation_where_times_tie() -> None:
    log = Log("search")
    for number in range(2):
        log({"q": "tea", "top": 3}, conversation=number, step=1)
        log({"q": "tae", "top": 3}, "Error: no match", conversation=number, step=0)
    assert log.repairs() == []  # by time the success came first
    log.calls = [call.model_copy(update={"create_time": BEGIN}) for call in log.calls]
    assert log.repairs() == ["another `q`"]


def test_calls_about_different_things_repair_nothing() -> None:
    log = Log("fetch")
    for number in range(4):
        log({"place": f"/a{number}", "size": number}, "Error: no answer", conversation=number)
        log({"place": f"/b{number}", "size": number + 50, "query": {"page": 1}}, conversation=number)
    assert log.repairs() == []


def test_a_success_about_the_same_thing_counts_though_another_call_worked_before_it() -> None:
    log = Log("fetch")
    for number in range(2):
        log({"place": f"/a{number}", "speed": "fast"}, "Error: speed fast is gone", conversation=number)
        log({"place": "/z", "speed": "slow", "size": 3}, conversation=number)
        log({"place": f"/a{number}", "speed": "slow"}, conversation=number)
    assert log.repairs() == ["another `speed`"]


@pytest.mark.parametrize("error_class", ["connection_error", "rate_limited"])
def test_after_a_failure_that_no_input_is_to_blame_for_only_the_same_call_is_a_repair(error_class: str) -> None:
    log = Log("fetch")
    for number in range(3):
        log({"place": "/a"}, "ConnectionError: refused", conversation=number, error_class=error_class)
        log({"place": "/a", "query": "x"}, conversation=number)
    assert log.repairs() == []
    log = Log("read_place")  # a tool that writes may have done it
    for number in range(3):
        log({"place": "/a"}, "ConnectionError: refused", conversation=number, error_class=error_class)
        log({"place": "/a"}, conversation=number)
    assert log.repairs() == ["the same call, later"]


OWN = [
    ({"amount": 18000}, {"amount": 70}),
    ({"recipient": "Ann"}, {"recipient": "Bob"}),
    ({"to": ["ann@x.org"]}, {"to": ["eve@x.org"]}),
    ({"order_id": "A-17"}, {"order_id": "A-18"}),
    ({"customerId": 4}, {"customerId": 5}),
    ({"date": "2026-03-01"}, {"date": "2026-05-01"}),
    ({"who": "ann@x.org"}, {"who": "eve@x.org"}),
    ({"start": "2026-03-01"}, {"start": "2026-05-01"}),
    ({"payment": {"amount": 18000, "note": "x"}}, {"payment": {"amount": 70, "note": "x"}}),
    ({"金额": 18000}, {"金额": 70}),
]


@pytest.mark.parametrize(("before", "after"), OWN)
@pytest.mark.parametrize("alone", [True, False])
def test_a_value_of_the_users_is_never_replaced_where_the_error_does_not_name_its_parameter(
    before: dict[str, Any], after: dict[str, Any], alone: bool
) -> None:
    beside = {} if alone else {"note": "for the trip"}
    log = Log()
    for number in range(3):
        log({**before, **beside}, "Error: it was declined", conversation=number)
        log({**after, **beside}, conversation=number)
    ((path, value),) = after.items()
    failures = [claim for claim in log.guidance().claims if claim.kind == "failure"]
    later = [claim for claim in counted_on(log, log.guidance()).claims if claim.kind == "failure"]
    for claim in (*failures, *later):
        assert claim.text.endswith(("; then worked: another `payment.amount`", f"; then worked: another `{path}`"))
        for leaf in value if isinstance(value, list) else [value.get("amount")] if isinstance(value, dict) else [value]:
            assert str(leaf) not in claim.text


def counted_on(log: Log, guidance: Guidance) -> Guidance:
    """The guidance of the newest call, with the history of all before it."""
    return WRITER.compose(log.calls[0].tool_name, log.calls[-1:], before=guidance.history)


def test_what_was_left_out_is_named_without_its_value() -> None:
    log = Log()
    for number in range(3):
        log({"amount": 18000, "note": "x"}, "Error: it was declined", conversation=number)
        log({"note": "x"}, conversation=number)
    assert log.repairs() == ["without `amount`"]


def test_where_the_error_names_the_parameter_it_is_told_without_another_users_value() -> None:
    log = Log()
    for number in range(3):
        log({"amount": 18000, "note": "x"}, "Error: the amount exceeds the limit", conversation=number)
        log({"amount": 70, "note": "x"}, conversation=number)
    assert log.repairs() == ["another `amount`"]
    assert "another `amount`" in counted_on(log, log.guidance()).text


def test_another_form_of_the_same_value_may_be_told_with_its_example() -> None:
    log = Log()
    for number in range(3):
        log({"date": f"{10 + number}/03/2026", "note": "x"}, "Error: what is that?", conversation=number)
        log({"date": f"2026-03-{10 + number}", "note": "x"}, conversation=number)
    assert log.repairs() == ['{"date": "2026-03-12"}']


def test_another_form_of_a_name_is_told_where_both_share_a_word() -> None:
    log = Log()
    for number in range(3):
        log({"recipient": "Silvio", "text": "x"}, "Error: 553 'Silvio' was refused", conversation=number)
        log({"recipient": "silvio.ricci", "text": "x"}, conversation=number)
    assert log.repairs() == ['{"recipient": "silvio.ricci"}']


def test_counts_of_older_rules_are_not_counted_on() -> None:
    from toolmem.guidance.counted.analysis import analyze

    log = Log("search")
    log({"q": "tae", "top": 3}, "Error: no match", conversation=1)
    log({"q": "tea", "top": 3}, conversation=1)
    found = analyze("search", log.calls)
    now = counted(found, None)
    assert now is not None
    assert now.rules == RULES
    older = now.model_copy(update={"rules": 1, "calls": 50})
    assert counted(found, older) == now


@pytest.mark.parametrize(
    ("path", "own"),
    [
        *(
            (name, True)
            for name in (
                "amount",
                "to",
                "cc",
                "userId",
                "order.id",
                "due_date",
                "phoneNumber",
                "seat_ids",
                "last_name",
                "转账金额",
            )
        ),
        *(
            (name, False)
            for name in ("query", "units", "page_number", "line_number", "timeout_ms", "token", "idle", "path")
        ),
    ],
)
def test_a_parameters_name_tells_whose_its_values_are(path: str, own: bool) -> None:
    assert named_as_own(path) is own


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("4,156.88", 4156.88, True),
        ("09/03/2026", "2026-03-09", True),
        ("a@x.org", ["a@x.org"], True),
        ("EUR", "eur", True),
        (18000, 70, False),
        ("2026-03-09", "2026-03-10", False),
        ("eur", "USD", False),
    ],
)
def test_the_same_value_in_another_form_is_known(before: Any, after: Any, same: bool) -> None:
    assert same_in_another_form(before, after) is same
