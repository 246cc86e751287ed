"""Advice on one call: at the error, and before it is made."""

import pytest

from toolmem import ToolMem
from toolmem.errors import RequestError


def turn(conversation, *calls):
    """Calls of `ship` in one conversation: (arguments, error or "")."""
    return [
        {
            "tool_name": "ship",
            "input": given,
            "output": error or '{"shipped": true}',
            "success": not error,
            "conversation_id": conversation,
        }
        for given, error in calls
    ]


HEAVY = "E503 weight implausible (grams)"


@pytest.fixture
def shipped(memory):
    for n in range(3):
        light, heavy = ({"order": f"O-{n}", "weight": each} for each in (4.3, 4300))
        memory.add(turn(f"c{n}", (light, HEAVY), (heavy, "")))
    return memory


def test_at_an_error_what_worked_after_it_is_told_with_its_counts(shipped):
    found = shipped.advise("ship", {"order": "O-9", "weight": 2.5}, error=HEAVY)
    assert '"weight": 4.3' in found.text
    assert '"weight": 4300' in found.text
    assert (found.lines[0].k, found.lines[0].n) == (3, 3)
    assert len(found.lines[0].call_ids) == 3
    assert len(shipped.calls()) == 6  # nothing is kept


def test_an_error_is_answered_by_one_in_like_words_and_not_by_another_of_its_class(shipped):
    late = "Error: the query timed out after 30 s"
    for n in range(2):
        given = {"order": f"T-{n}"}
        shipped.add(turn(f"t{n}", ({**given, "deep": True}, late), (given, "")))
    other = shipped.advise("ship", {"order": "X"}, error="TimeoutError: deadline exceeded")
    assert other.text == ""
    alike = shipped.advise("ship", {"weight": 3.5}, error="E504 weight implausible (tons)")
    assert '"weight": 4300' in alike.text
    assert len(alike.lines) <= 5


def test_of_a_value_that_an_error_names_it_is_told_that_others_worked(memory):
    for n in range(2):
        memory.add(turn(f"c{n}", ({"items": [{"sku": f"A-{n}"}], "to": "Oslo"}, "")))
    told = memory.advise("ship", {"items": [{"sku": "B-9"}], "to": "Oslo"}, error="B-9 is sold out")
    assert told.text == "`items`: 2 of 2 calls that worked gave another one"


def test_nothing_is_told_where_nothing_is_known(shipped):
    assert shipped.advise("none", {}, error="boom").lines == []
    assert shipped.advise("ship", {"weight": 1}, error="the printer is on fire").text == ""


def test_the_history_of_the_card_is_used_after_the_calls_are_gone(path, shipped, records):
    shipped.summarize()
    more = ["op.parse_tool_call_result_op.params.max_history_tool_call_cnt=1"]
    with ToolMem(path, overrides=more) as memory:
        memory.add(turn("later", ({"order": "O-8", "weight": 900}, "")))
        assert len(memory.calls()) == 1
        assert '"weight": 4300' in memory.advise("ship", {"weight": 1.5}, error=HEAVY).text


def test_an_error_that_nobody_repaired_is_told_with_what_it_is_about(memory):
    for n in range(4):
        given = {"customer_id": f"C-{n}77", "amount": 5}
        look = {"tool_name": "find", "input": {}, "output": f"customer_id C-{n}77"}
        call = {"tool_name": "pay", "input": given, "output": "paid"}
        done = {"success": True, "conversation_id": f"c{n}"}
        memory.add([{**each, **done} for each in (look, call)])
    told = memory.advise("pay", {"amount": 5}, error="customer_id is required").text
    assert "`customer_id`, which the error asks for: 4 of 4 calls that worked gave it" in told
    assert "from a result of `find` (4 of the 4 newest calls that worked)" in told


def test_after_an_open_failure_of_a_writing_tool_the_same_call_is_not_advised(memory):
    given = {"order": "O-1"}
    memory.add(turn("c", (given, "HTTP 500 internal server error"), (given, "")))
    told = memory.advise("ship", given, error="HTTP 500 internal server error").text
    assert "the same call" not in told
    assert "then worked" not in told


def test_lines_keep_to_their_budget_and_other_conversations_free_text_is_not_told(memory):
    mail = "Dear Ann, I am writing to you about the strange matter of the missing parcel today."
    error, given = "to: no such mailbox", {"body": mail}
    calls = ({**given, "to": "ann"}, error), ({**given, "to": "ann@example.org"}, "")
    memory.add(turn("c", *calls))
    told = memory.advise("ship", {**given, "to": "bob"}, error=error).text
    assert "strange matter" not in told
    assert "ann@example.org" not in told
    few = memory.advise("ship", {**given, "to": "bob"}, error=error, budget_tokens=3)
    assert few.lines == []


def test_a_request_for_advice_is_checked(memory):
    with pytest.raises(RequestError, match="tool_name: missing"):
        memory.run("advise_tool_call", error="x")
    with pytest.raises(RequestError, match="budget_tokens"):
        memory.run("advise_tool_call", tool_name="x", budget_tokens=0)


def test_advice_is_told_in_chinese_where_the_language_says_so(path, shipped):
    with ToolMem(path, overrides=["language=zh"]) as memory:
        assert "随后成功" in memory.advise("ship", {"weight": 2.5}, error=HEAVY).text
