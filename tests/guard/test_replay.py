"""What the guard would have said to a recording."""

from datetime import UTC, datetime, timedelta

from toolmem.formats.records import read_records
from toolmem.guard.replay import replay

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def recorded(*commands):
    """`(command, error)` or a command that worked, a minute apart, in one conversation."""
    records = []
    for number, each in enumerate(commands):
        command, error = each if isinstance(each, tuple) else (each, "")
        time = (BEGIN + timedelta(minutes=number)).isoformat()
        call = {"tool_name": "Bash", "input": {"command": command}, "conversation_id": "c"}
        records.append(call | {"create_time": time, "output": error or "ok", "success": not error})
    return [each.call for each in read_records(records, BEGIN).calls]


def test_rules_are_tried_in_the_order_of_the_calls_each_of_which_ran(store, forbid):
    tested = {"earlier": {"command": "^pytest", "worked": True}}
    rule = forbid({"command": "^git commit"}, unless=[tested])
    rules = store.list_records("default", prefix="tool-", key_prefix="rule/")
    done = replay(recorded("git commit -m a", "pytest -q", "git commit -m b"), rules)
    (flag,) = done.flags
    assert (flag.index, flag.rule_id, flag.action) == (0, rule.id, "deny")
    figures = done.sources["rule"]
    assert (figures.flagged, figures.wrong, figures.precision) == (1, 1, 0.0)


def test_an_unchanged_repeat_is_flagged_and_nothing_is_stored(store):
    done = replay(recorded(("cat x", "cat: x: No such file"), ("cat x", "cat: x: No such file")))
    assert (done.calls, done.failures, done.sources["repeat"].recall) == (2, 2, 0.5)
    assert store.workspaces() == []
