"""What guidance must not say because the calls do not bear it out."""

import pytest
from guidance.conftest import call, card
from model_settings import NO_WAIT

from toolmem import ToolMem
from toolmem.testing.scripted import ScriptedModel

TIMED_OUT = "Err: ssh: connect to host app-1 port 22: Connection timed out"


# ---------------- parameters that an error names


def test_a_value_that_also_worked_is_not_said_to_be_another_one(memory):
    memory.add([call("sh", {"command": f"tail -n {n} x", "host": "app-1"}) for n in range(5)])
    told = memory.advise("sh", {"command": "df -h", "host": "app-1"}, error=TIMED_OUT)
    assert "another one" not in told.text


def test_calls_of_another_action_are_no_comparison(memory):
    opened = [call("ticket", {"action": "assign", "id": f"O-{n}", "who": "al"}) for n in range(3)]
    memory.add([*opened, call("ticket", {"action": "resolve", "id": "O-1", "text": "x"}, "no")])
    error = "TK-9 text of resolve: 'RCA: ...'"
    given = {"action": "resolve", "id": "O-2", "text": "rotated"}
    assert "none of" not in memory.advise("ticket", given, error=error).text


# ---------------- errors that pass by themselves


@pytest.mark.parametrize(
    "error",
    [
        TIMED_OUT,
        "curl: (56) Recv failure: Connection reset by peer",
        "HTTP 503 Service Unavailable",
        "429 Too Many Requests",
        "fatal: database is locked",
        "ERROR: could not obtain lock on relation pay",
        "E: Could not get lock /var/lib/dpkg/lock",
    ],
)
def test_an_error_that_passes_is_not_repaired_by_another_command(memory, error):
    text = card(
        memory,
        call("sh", {"command": 'find /var/log/pay -name "*.log"', "host": "app-1"}, error),
        call("sh", {"command": "ls /var/cache/pay", "host": "app-1"}),
        call("sh", {"command": "find /var/cache -delete", "host": "app-1"}),
    )
    assert "failed: " in text
    assert "then worked" not in text


def test_an_error_that_passes_is_repaired_by_the_same_call_later(memory):
    query = {"query": "SELECT a FROM t"}
    other = call("sql", {"query": "SELECT b FROM u"})
    text = card(memory, call("sql", query, "database is locked"), other, call("sql", query))
    assert "then worked: the same call, later" in text


def test_an_error_that_passes_is_repaired_by_the_parameter_that_it_names(memory):
    text = card(
        memory,
        call("get", {"page": "/a", "timeout_ms": 30}, "ReadTimeout: no answer within 30 ms"),
        call("get", {"page": "/a", "timeout_ms": 3000}),
    )
    assert '{"timeout_ms": 3000}' in text


def test_a_command_that_ran_out_of_time_may_be_repaired_by_one_like_it(memory):
    text = card(
        memory,
        call("sh", {"command": "tail -f app.log"}, "Command timed out after 5 s"),
        call("sh", {"command": "tail -n 5 app.log"}),
    )
    assert "tail -n 5 app.log" in text.partition("then worked")[2]
    other = card(
        memory,
        call("bash", {"command": "nc host 80"}, "Command timed out after 5 s", "b"),
        call("bash", {"command": "skip it"}, talk="b"),
    )
    assert "then worked" not in other


# ---------------- tools of many actions


def test_a_failure_is_repaired_by_its_own_action_alone(memory):
    text = card(
        memory,
        call("ticket", {"action": "resolve", "id": "O-1", "text": "x"}, "E9 text is too short"),
        call("ticket", {"action": "comment", "id": "O-1", "text": "hi there"}),
    )
    assert "then worked" not in text
    text = card(memory, call("ticket", {"action": "resolve", "id": "O-1", "text": "Disk-7"}))
    assert "`resolve` " in text
    assert "then worked: " in text


def test_an_action_that_is_unknown_is_repaired_by_another(memory):
    text = card(
        memory,
        call("ticket", {"action": "close", "id": "O-1"}, "unknown action 'close'"),
        call("ticket", {"action": "resolve", "id": "O-1"}),
    )
    assert '{"action": "resolve"}' in text.partition("then worked")[2]


# ---------------- counts, prose, calls that destroy


def test_failures_that_nothing_repaired_are_told_apart(memory):
    error = "no such file (volumes: raw:)"
    text = card(
        memory,
        call("run", {"file": "raw/a"}, error, "1"),
        call("run", {"file": "raw:a"}, talk="1"),
        call("run", {"file": "red:b"}, error, "2"),
        call("run", {"file": "red:c"}, error, "3"),
    )
    assert '(3 calls); 1 of these then worked: {"file": "raw:a"}' in text
    assert 'not repaired: {"file": "red:c"}' in text


def test_the_beginning_that_an_error_asks_for_is_shown_of_prose(memory):
    given = {"action": "resolve", "id": "O-1"}
    said = "RCA: the disk of Ms Miller, 0171 5551234, was full of old logs again"
    text = card(
        memory,
        call("ticket", {**given, "text": "rotated"}, "TK-9 text of resolve: 'RCA: ...'"),
        call("ticket", {**given, "text": said}),
    )
    assert f'{{"text": "RCA: … <text, {len(said)} characters>"}}' in text
    assert "Miller" not in text


def test_prose_that_the_error_does_not_begin_stays_hidden(memory):
    text = card(
        memory,
        call("mail", {"body": "hello you all"}, "the body must not be rude"),
        call("mail", {"body": "the body of Ms Miller"}),
    )
    assert "<text, 21 characters>" in text
    assert "Miller" not in text


def test_a_call_that_destroys_is_no_example_where_there_is_another(memory):
    text = card(
        memory,
        call("sql", {"query": "DELETE FROM t", "database": "rw"}),
        call("sql", {"query": "SELECT 1 FROM t", "database": "ro"}),
    )
    assert "DELETE" not in text
    assert "cannot be undone: 1 of the 2 newest calls" in text
    only = card(memory, call("sh", {"command": "rm -rf /tmp/x"}, talk="b"))
    assert "rm -rf /tmp/x" in only


def test_a_model_that_writes_guidance_does_not_hide_that_calls_were_left_out():
    with ToolMem(":memory:", llms={"default": ScriptedModel()}, overrides=NO_WAIT) as memory:
        text = card(
            memory,
            call("sql", {"query": "DELETE FROM t", "database": "rw"}),
            call("sql", {"query": "SELECT 1 FROM t", "database": "ro"}),
        )
        assert "cannot be undone: 1 of the 2 newest calls" in text


def test_a_call_that_destroys_something_else_is_no_repair(memory):
    text = card(
        memory,
        call("sh", {"command": "cd /l && rm *.1", "host": "a-1"}, "bash: cd: command not found"),
        call("sh", {"command": "rm -rf /var/cache/pay", "host": "a-1"}),
    )
    assert "then worked" not in text


# ---------------- rules of the user


@pytest.fixture
def ruled(memory):
    memory.add(
        [
            call("sql", {"query": "DELETE FROM t WHERE id=1", "database": "rw"}),
            call("sql", {"query": "SELECT 1 FROM t", "database": "ro"}),
            call("sql", {"query": "UPDAT t SET a=2 WHERE id=9", "database": "rw"}, "syntax error"),
            call("sql", {"query": "UPDATE t SET a=2 WHERE id=9", "database": "rw"}),
        ]
    )
    memory.summarize()
    assert "UPDATE t" in memory.prompt(["sql"])
    memory.tool_rule_put(
        "sql",
        "Never change data",
        priority="critical",
        effect="deny",
        when=[{"arg": {"name": "query", "matches": r"(?i)^\s*(insert|update|delete)\b"}}],
    )
    return memory


def test_no_call_is_shown_that_a_rule_stops_now(ruled):
    told = (ruled.prompt(["sql"]), ruled.guidance("sql").text, ruled.retrieve("sql").text)
    for text in told:
        assert "SELECT 1" in text
        assert "UPDATE t" not in text
        assert "DELETE" not in text
        assert '"syntax error"; repair withheld: a rule stops it' in text
        assert "- (2 examples withheld: a rule stops them)" in text
    advice = ruled.advise("sql", {"query": "UPDAT u SET a=2"}, error="syntax error")
    assert "UPDATE t" not in advice.text
    assert ruled.decisions() == []  # nothing is logged


def test_what_a_rule_hid_is_shown_again_without_it(ruled):
    (rule,) = ruled.tool_rule_list("sql")
    ruled.tool_rule_delete("sql", rule.id)
    assert "UPDATE t" in ruled.prompt(["sql"])
    assert "withheld" not in ruled.prompt(["sql"])


def test_a_field_inside_a_list_that_was_given_is_not_asked_for(memory):
    for n in range(3):
        memory.add([call("book", {"flights": [{"number": f"H{n}", "date": "2026-05-01"}]})])
    given = {"flights": [{"number": "H9", "date": "2026-05-14"}]}
    told = memory.advise("book", given, error="flight H9 is not available on date 2026-05-14")
    assert "asks for" not in told.text
