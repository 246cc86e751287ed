"""A rule is tried on calls as the guard would hold them."""

import pytest

from toolmem.errors import RequestError
from toolmem.guard import trial
from toolmem.rules.changes import Actor

RULES = [
    ("@shell", "Never push to main", [{"command": "^git push", "word": "main"}]),
    ("send_email", "Never email Bob", [{"target": "bob@example.com"}]),
    ("@edit", "Never edit the lock file", [{"path": "poetry.lock$"}]),
]
WRAPPED = {"calls": [{"tool_name": "send_email", "arguments": {"to": "bob@example.com"}}]}
CALLS = [
    ("bash", {"command": "git push origin main"}),
    ("bash", {"command": "bash -c 'git push origin main'"}),
    ("bash", {"command": "git push origin dev"}),
    ("bash", {"command": "git push origin $BRANCH"}),
    ("send_email", {"to": "Bob <bob@example.com>"}),
    ("send_email", {"to": "eve@example.com"}),
    ("send_email", WRAPPED),
    ("write", {"file_path": "poetry.lock", "old_string": "a", "new_string": "b"}),
    ("write", {"file_path": "poetry.lock", "content": "b"}),
]
MATCHES = {"allow": "no", "ask": "maybe", "deny": "yes"}


@pytest.fixture
def made(memory):
    return [memory.tool_rule_put(*of, effect="deny", when=when) for *of, when in RULES]


def test_a_trial_says_what_the_guard_does(memory, made):
    tools = {"bash": made[0], "send_email": made[1], "write": made[2]}
    found = set()
    for tool, arguments in CALLS:
        decision = memory.check_tool_call(tool, arguments)
        match = memory.tool_rule_try(id=tools[tool].id, call=arguments).match
        assert match == MATCHES[decision.action], (tool, arguments)
        found.add(match)
    assert found == {"no", "maybe", "yes"}


def test_a_rule_is_tried_on_recorded_calls_as_the_guard_would_have_held_them(memory, made):
    records = [
        {"tool_name": tool, "input": given, "output": "ok", "success": True}
        for tool, given in CALLS
    ]
    records[0] |= {"tool_name": "exec_command", "success": False}
    memory.add(records)
    for rule in made:
        trial = memory.tool_rule_try(id=rule.id)
        stops = [
            given
            for tool, given in CALLS
            if rule.id in memory.check_tool_call(tool, given).rule_ids
            and (rule.tool_name.startswith("@") or rule.tool_name == tool)
        ]
        assert [call.input for call in trial.stopped] == stops
        assert trial.worked == sum(call.success for call in trial.stopped)
    assert memory.tool_rule_try(id=made[0].id).calls == 4
    assert memory.tool_rule_try(id=made[1].id, recorded=1).calls == 1


def test_recorded_calls_are_tried_oldest_first_across_spellings_of_a_tool(memory, monkeypatch):
    monkeypatch.setattr(trial, "CALLS_AT_ONCE", 2)
    names = ["Bash", "bash", "bash", "Read", "Bash", "bash"]
    made = [
        {"tool_name": t, "id": f"{n}", "input": "x", "output": "x"} for n, t in enumerate(names)
    ]
    memory.add(made[:3])
    memory.add(made[3:])
    draft = {"tool_name": "BASH", "rule": "Never", "effect": "deny", "when": [{"text": "x"}]}
    found = memory.tool_rule_try(**draft, recorded=4)
    order = [call.id for call in memory.calls(["Bash", "bash"], limit=4)]
    assert (found.calls, [call.id for call in found.stopped]) == (4, order)


def test_a_draft_is_understood_as_the_rule_that_would_be_put(memory):
    memory.add([{"tool_name": "send_email", "input": {"to": "bob@example.com"}, "output": "ok"}])
    draft = {"tool_name": "send_email", "rule": "Never email bob@example.com"}
    trial = memory.tool_rule_try(**draft)
    assert (trial.rule.effect, trial.calls, len(trial.stopped)) == ("deny", 1, 1)
    assert memory.tool_rules() == []
    put = memory.tool_rule_put(*draft.values())
    assert (trial.rule.when, trial.rule.unless) == (put.when, put.unless)
    assert memory.tool_rule_try(**draft).rule.id == put.id
    with pytest.raises(RequestError, match="when: needed"):
        memory.tool_rule_try(tool_name="t", rule="x", effect="deny")
    with pytest.raises(RequestError, match="tool_name and rule of a draft"):
        memory.tool_rule_try(rule="x")
    with pytest.raises(RequestError, match="id: names a stored rule"):
        memory.tool_rule_try(id=put.id, when=[{"text": "x"}])


def test_a_change_that_is_asked_for_is_what_is_tried(memory, made):
    agent, (push, *_) = memory.acting_as(Actor("agent")), made
    looser = [{"command": "^git push", "word": "--force"}]
    agent.tool_rule_put("@shell", push.rule, when=looser)
    assert memory.tool_rule_try(id=push.id, call="git push origin main").match == "no"
    assert memory.tool_rule_try(id=push.id, call="git push --force").match == "yes"
    assert memory.check_tool_call("Bash", {"command": "git push origin main"}).action == "deny"


def test_tests_of_earlier_calls_are_said_to_be_untried(memory):
    when = [{"more_than": {"calls": 2, "per": "day"}}]
    rule = memory.tool_rule_put("t", "At most two a day", effect="deny", when=when)
    assert memory.tool_rule_try(id=rule.id).is_partial


def test_a_trial_leaves_out_calls_of_other_sessions_and_those_that_the_guard_never_stops(memory):
    push = {"input": {"command": "git push origin main"}, "output": "ok", "success": True}
    memory.add([{"tool_name": "Bash", **push, "metadata": {"session_id": s}} for s in ("a", "b")])
    memory.add([{"tool_name": "note_demand", **push}])
    memory.capture_rules("In this session, don't push to main", conversation_id="a", tools=["Bash"])
    (found,) = memory.tool_rules()
    trial = memory.tool_rule_try(id=found.rule.id)
    assert (found.rule.session, trial.calls) == ("a", 1)
    assert [call.conversation_id for call in trial.stopped] == ["a"]
    draft = {"tool_name": "__unscoped__", "effect": "deny", "when": [{"text": "main"}]}
    assert memory.tool_rule_try(rule="Never main", **draft).calls == 2


def test_a_command_line_is_a_call_of_a_shell_whatever_class_a_rule_is_about(memory):
    draft = {"rule": "Never x", "effect": "deny", "when": [{"text": "evil"}]}
    assert memory.tool_rule_try(tool_name="@web", call="curl evil", **draft).match == "no"
    assert memory.tool_rule_try(tool_name="@web", call={"query": "evil"}, **draft).match == "yes"
    assert memory.tool_rule_try(tool_name="@shell", call="curl evil", **draft).match == "yes"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"tool_name": "@shel"}, "^tool_name: there is no class @shel .did you mean '@shell'"),
        ({"when": [{"comand": "x"}]}, r"^`when\[0\]`: .*unknown field `comand`"),
        ({"unless": [{"comand": "x"}]}, r"^`unless\[0\]`: .*unknown field `comand`"),
        ({"when": [{"command": "(("}]}, r"^`when\[0\]`: '\(\(': missing \)"),
    ],
)
def test_conditions_that_cannot_be_read_are_named_with_their_place(memory, given, told):
    draft = {"tool_name": "t", "rule": "Never x", "effect": "deny", "when": [{"text": "x"}]}
    with pytest.raises(RequestError, match=told) as raised:
        memory.tool_rule_try(**{**draft, **given})
    assert raised.value.field in given
