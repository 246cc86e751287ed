"""The rules of a repository's file: offered, agreed to, followed; nothing loosens by itself."""

from __future__ import annotations

import subprocess

import pytest
from hooks.conftest import Host
from msgspec.structs import replace

from toolmem.hooks.agents import AGENTS
from toolmem.rules.store import RuleInput

PUSH = "{id: no-push, tool: '@shell', rule: Never push to main, effect: deny, when: %s}"
BOTH = "[{command: ^git push, word: main}, {command: ^git push, word: master}]"
MAIN = "[{command: ^git push, word: main}]"
WIDE = "[{command: ^git push}]"
TAG = "{id: no-tag, tool: '@shell', rule: Never tag, effect: ask, when: [{command: ^git tag}]}"


@pytest.fixture
def write(project):
    def to_file(*entries):
        text = "".join(f"- {entry}\n" for entry in entries)
        (project / "toolmem.rules.yaml").write_text(f"rules:\n{text}" if text else "rules: []\n")

    return to_file


def start(host, session="s1"):
    """What the user is shown as a session begins, and what the model reads."""
    answer = host.send("SessionStart", session, source="startup")
    inner = answer.get("hookSpecificOutput", {})
    return answer.get("systemMessage", ""), inner.get("additionalContext", "")


def told(host, text="Go on.", session="s1"):
    return host.prompt(text, session).get("systemMessage", "")


@pytest.fixture
def agreed(host, write):
    write(PUSH % MAIN, TAG)
    start(host)
    assert "toolmem.rules.yaml bind from now on" in told(host, "use team rules")
    return host


def notice_of_denial(host):
    """What the user is told of a push that is stopped."""
    answer = host.send("PreToolUse", **host._call("git push origin main", "told"))
    return answer["systemMessage"]


def code_of(notice, words):
    line = next(line for line in notice.splitlines() if words in line)
    return line.rpartition("lift ")[2][:6]


def test_rules_are_listed_to_the_user_and_bind_nothing_before_the_yes(host, write):
    write(PUSH % MAIN, TAG)
    shown, context = start(host)
    assert "has 2 rules for agents (git does not hold" in shown
    assert "Never push to main" in shown and "^git tag" in shown
    assert "Never push" not in context
    assert host.before("git push origin main") == ""
    assert start(host, "s2") == ("", start(host, "s3")[1])
    assert "toolmem.rules.yaml bind from now on" in told(host, "Use team rules.")
    reason = host.before("git push origin main", key="call_2")
    assert "The repository's rules say: Never push to main" in reason
    assert "The user said" not in reason
    context = start(host, "s4")[1]
    assert "## Rules of this repository" in context and "Tool-scoped rules" not in context


@pytest.mark.parametrize(
    "words",
    ["yes", "ok", "use rules", "Should I use team rules?", "use team rules and go on", "undo"],
)
def test_other_words_are_no_yes(host, write, words):
    write(PUSH % MAIN)
    start(host)
    told(host, words)
    assert host.before("git push origin main") == ""


def test_a_yes_is_for_the_rules_that_were_listed(host, write):
    write(PUSH % MAIN)
    assert "Never push to main" in told(host, "use team rules")  # only now they are listed
    assert host.before("git push origin main") == ""
    write(PUSH % WIDE)
    assert "Nothing of it binds until" in told(host, "use team rules")
    assert host.before("git push origin main", key="call_2") == ""
    assert "bind from now on" in told(host, "please use team rules")
    assert host.before("git push origin dev", key="call_3") != ""


def test_a_change_that_only_restricts_binds_at_once_and_is_told(agreed, write):
    write(PUSH % BOTH, TAG, TAG.replace("tag", "rebase"))
    notice = told(agreed)
    assert "toolmem.rules.yaml changed" in notice and "before:" in notice
    assert "Never rebase" in notice
    assert agreed.before("git push origin master") != ""
    assert agreed.before("git rebase", key="call_2") != ""
    assert told(agreed) == ""


@pytest.mark.parametrize(
    ("entries", "new"),
    [
        ((PUSH.replace("deny", "ask") % MAIN, TAG), "looser: ask"),
        ((PUSH.replace("Never", "You may") % MAIN, TAG), "You may push"),
        (((PUSH % MAIN)[:-1] + ", unless: [{word: --force}]}", TAG), '"unless"'),
        (((PUSH % MAIN)[:-1] + ", expires_at: '2020-01-01T00:00:00Z'}", TAG), "2020-01-01"),
        ((PUSH.replace("@shell", "@mail") % MAIN, TAG), "missing: deny"),
        ((TAG,), "missing: deny"),
        ((), "missing: deny"),
    ],
)
def test_what_loosens_is_asked_with_old_and_new_and_the_old_binds_until_yes(
    agreed, write, entries, new
):
    write(*entries)
    notice = told(agreed)
    assert "deny, @shell: “Never push to main”" in notice and new in notice
    assert agreed.before("git push origin main") != ""
    assert told(agreed) == ""  # asked once
    lines = [each for each in notice.splitlines() if "old binds until" in each]
    line = next((each for each in lines if "Never push to main" in each), lines[0])
    told(agreed, line.rpartition(": ")[2])
    reason = agreed.before("git push --force origin main", key="call_2")
    assert reason == "" or "ask the user first" in reason or "You may push" in reason


def test_a_rule_that_binds_from_a_sessions_start_stands_in_its_prompt_once(agreed, write):
    write(PUSH % MAIN, TAG, TAG.replace("tag", "rebase"))
    shown, context = start(agreed, "s2")
    assert "Never rebase" in shown and context.count("Never rebase") == 1


def test_a_yes_to_what_was_shown_is_none_to_what_the_file_says_since(agreed, write):
    write(PUSH.replace("deny", "ask") % MAIN, TAG)
    code = code_of(told(agreed), "old binds until")
    write(PUSH.replace("deny", "ask") % "[{command: no such command}]", TAG)
    notice = told(agreed, f"lift {code}")
    assert "(before: ask" in notice and "no such command" in notice
    assert "ask the user first" in agreed.before("git push origin main")


def test_what_was_loosened_and_put_back_asks_no_longer(agreed, write):
    write(TAG)
    code = code_of(told(agreed), "old binds until")
    write(PUSH % MAIN, TAG)
    told(agreed)
    assert not any(rule.request for rule in agreed.rules())
    assert "lifted" in told(agreed, f"lift {code}").lower()


def test_what_the_user_lifted_stays_lifted_until_its_line_changes(agreed, write):
    code = code_of(notice_of_denial(agreed), "lift")
    told(agreed, f"lift {code}")
    write(PUSH % MAIN, TAG.replace("ask", "deny"))
    told(agreed)
    told(agreed, "use team rules")
    assert agreed.before("git push origin main", key="call_2") == ""
    write(PUSH % BOTH, TAG.replace("ask", "deny"))
    told(agreed)
    assert agreed.before("git push origin main", key="call_3") != ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "that you agreed to bind on"),  # the file is gone
        ("<<<<<<< HEAD\nrules: []\n", "line 2: mapping values are not allowed"),
        ("rules:\n- {id: a}\n", "missing required field"),
        ("x" * 1_100_000, "larger than 1,000,000 bytes"),
    ],
)
def test_a_file_that_is_gone_or_cannot_be_read_changes_nothing_and_is_told_once(
    agreed, project, text, why
):
    (project / "toolmem.rules.yaml").unlink()
    if text:
        (project / "toolmem.rules.yaml").write_text(text)
    notice = told(agreed)
    assert why in notice and len(notice.splitlines()) == 1
    assert "binds on" in notice or not text
    assert told(agreed) == ""
    assert agreed.before("git push origin main") != ""


def test_the_file_is_not_taken_into_a_store_that_binds_in_every_project(own_home, write, project):
    write(TAG)
    host = Host("claude-code", project, ["--store", str(own_home / ".toolmem" / "memory.db")])
    assert start(host)[0] == ""
    assert told(host, "use team rules") == ""


def test_a_program_cannot_loosen_a_rule_of_the_repository(agreed):
    with agreed.rule_store() as rules:
        rule = next(rule for rule in rules.all_rules().rules if rule.rule == "Never push to main")
        given = RuleInput(tool_name=rule.tool_name, rule=rule.rule, id=rule.id)
        for change in ({"effect": "ask"}, {"tags": []}, {"unless": [{"always": True}]}):
            rules.put_rule(replace(given, **change))
        rules.delete_rule(rule.tool_name, rule.id)
    assert agreed.before("git push origin main") != ""


def test_the_users_own_rule_is_not_changed_by_the_file(host, write):
    told(host, "Never push to main.")
    [own] = host.rules()
    weaker = PUSH.replace("no-push", own.id).replace("deny", "ask") % MAIN
    write(weaker)
    start(host)
    told(host, "use team rules")
    assert own in host.rules()
    assert "The user said" in host.before("git push origin main")


def test_an_agents_change_of_the_file_is_asked_about(host, write, project):
    write(TAG)
    start(host)
    writes = ("echo x > toolmem.rules.yaml", "rm toolmem.rules.yaml", "toolmem rules export a.yaml")
    for number, command in enumerate(writes):
        assert "only the user does" in host.before(command, key=f"w{number}")
    for number, command in enumerate(("cat toolmem.rules.yaml", "git diff toolmem.rules.yaml")):
        assert host.before(command, key=f"r{number}") == ""
    tool = {"file_path": str(project / "toolmem.rules.yaml"), "content": "rules: []"}
    answer = host.send("PreToolUse", tool_name="Write", tool_input=tool, tool_use_id="t")
    assert answer["hookSpecificOutput"]["permissionDecision"] == "ask"
    assert "systemMessage" not in answer  # there is nothing that lets it through for good


def test_a_file_that_git_does_not_hold_as_committed_is_said_to_be_so(host, write, project):
    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", *who, *words], cwd=project, check=True, capture_output=True)

    (project / ".git").rmdir()
    git("init", "-q")
    write(TAG)
    assert "git does not hold this file as committed" in start(host)[0]
    git("add", "-A", "toolmem.rules.yaml")
    git("commit", "-q", "-m", "y")
    write(TAG, PUSH % MAIN)
    assert "git does not hold this file as committed" in start(host)[0]
    write(TAG)
    assert start(host)[0].count("commit") == 0
    text = (project / "toolmem.rules.yaml").read_bytes()
    (project / "toolmem.rules.yaml").write_bytes(text.replace(b"\n", b"\r\n"))
    assert start(host)[0].count("commit") == 0  # git writes files so on Windows


@pytest.mark.parametrize("name", AGENTS)
def test_no_agents_model_reads_rules_that_bind_nothing(name, project, write):
    host = Host(name, project)
    write(TAG)
    answers = [host.send("SessionStart", source="startup"), host.prompt("Go on.")]
    seen = [a.get("hookSpecificOutput", {}).get("additionalContext", "") for a in answers]
    seen += [a.get(key, "") for a in answers for key in ("additional_context", "additionalContext")]
    assert not any("Never tag" in text for text in seen)
