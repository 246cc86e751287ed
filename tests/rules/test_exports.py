"""Rules in the forms of other guards stop what they stop here or less; what does not fit is named."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import cedarpy
import pytest
import yaml

from toolmem.errors import RequestError
from toolmem.guard.view import view_of
from toolmem.light_models import ToolMemoryRule, ToolSchema
from toolmem.rules.exports import Export, export_rules
from toolmem.sentences.said_conditions import condition_of

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def rules(tool: str, *sentences: str, status: str = "active") -> list[ToolMemoryRule]:
    made = []
    for number, sentence in enumerate(sentences):
        demand = condition_of(sentence, [ToolSchema(name=tool)], [tool])
        made.append(
            ToolMemoryRule(
                id=f"{tool}-{number}",
                tool_name=tool,
                rule=sentence,
                priority="critical",
                created_at=NOW,
                updated_at=NOW,
                status=status,  # type: ignore[arg-type]
                effect=demand.effect,  # type: ignore[arg-type]
                when=dict(demand.when).get(tool),  # type: ignore[arg-type]
            )
        )
    return made


def left_out(done: Export) -> list[str]:
    return [each.rule.rule for each in done.left_out]


# ---------------------------------------------------------------- Claude Code


def test_claude_codes_permissions_hold_what_they_can_say_and_the_rest_is_named() -> None:
    shell = rules("Bash", "Never use sudo.", "Never push.", "Ask me before you commit.", "Never push to main.")
    files = rules("Read", "Never read /etc/shadow.", "Never read .env.")
    web = rules("WebFetch", "Never fetch evil.example.")
    mail = rules("send_email", "Never send emails.", "Never email Sarah.")
    done = export_rules([*shell, *files, *web, *mail], "claude-code")
    permissions = json.loads(done.files["settings.json"])["permissions"]
    assert set(permissions["deny"]) == {
        *("Bash(sudo:*)", "Bash(git push:*)", "WebFetch(domain:evil.example)", "send_email"),
        *("Read(//etc/shadow)", "Read(//etc/shadow/**)", "Read(**/.env)", "Read(**/.env/**)"),
    }
    assert permissions["ask"] == ["Bash(git commit:*)"]
    assert left_out(done) == ["Never push to main.", "Never email Sarah."]


# ---------------------------------------------------------------- hookify


@pytest.mark.parametrize(
    ("sentence", "stopped", "passed"),
    [
        (
            "Never push to main.",
            ["git push origin main", "cd x && git push origin main", "git push main --force"],
            ["git push origin feature/main-menu", "git log main", "git push origin dev; git log main"],
        ),
        ("Never run rm -rf.", ["rm -rf build", "rm -fr build", "sudo rm -r -f x"], ["rm -r build", "rm build"]),
        ("Never use sudo.", ["sudo ls", "ls; sudo ls"], ["echo sudo", "pseudo x"]),
        ("Never force-push.", ["git push -f", "git push --force-with-lease x"], ["git push origin x"]),
    ],
)
def test_hookify_gets_a_file_for_each_rule_on_commands(sentence: str, stopped: list[str], passed: list[str]) -> None:
    done = export_rules(rules("bash", sentence), "hookify")
    (text,) = done.files.values()
    front = yaml.safe_load(text.split("---")[1])
    assert (front["event"], front["action"], front["enabled"]) == ("bash", "block", True)
    assert list(done.files) == [f"hookify.{front['name']}.local.md"]
    assert sentence in text
    assert all(re.search(front["pattern"], command) for command in stopped)
    assert not any(re.search(front["pattern"], command) for command in passed)


def test_hookify_has_no_word_for_asking_nor_for_other_tools() -> None:
    done = export_rules(
        [*rules("bash", "Ask me before you commit."), *rules("send_email", "Never email Sarah.")], "hookify"
    )
    assert done.files == {}
    assert left_out(done) == ["Ask me before you commit.", "Never email Sarah."]


# ---------------------------------------------------------------- Cedar


def decided(policies: str, tool: str, **arguments: str) -> str:
    fields = view_of(tool, arguments).fields
    names = ("targets", "emails", "hosts", "paths", "programs", "statements", "tables")
    request = {
        "principal": 'Agent::"a"',
        "action": 'Action::"call"',
        "resource": f'Tool::"{tool}"',
        "context": {name: list(fields[name]) for name in names},
    }
    result = cedarpy.is_authorized(request, policies + "\npermit (principal, action, resource);", [])
    assert not result.diagnostics.errors
    return "deny" if result.decision == cedarpy.Decision.Deny else "allow"


def test_cedar_decides_over_the_same_view_of_a_call() -> None:
    mail = rules("send_email", "Never email sarah@example.com.", "Never email Sarah.")
    shell = rules("bash", "Never use sudo.", 'Never run "rm".')
    sql = rules("run_sql", "Don't drop the users table.")
    done = export_rules([*mail, *shell, *sql], "cedar")
    text = done.files["toolmem.cedar"]
    assert decided(text, "send_email", to="Sarah <SARAH+x@example.com>") == "deny"
    assert decided(text, "send_email", to="bob@example.com", body="sarah@example.com") == "allow"
    assert decided(text, "bash", command="ls; sudo ls") == "deny"
    assert decided(text, "bash", command="echo sudo") == "allow"
    assert decided(text, "run_sql", query="DROP TABLE users") == "deny"
    assert decided(text, "run_sql", query="DROP TABLE other") == "allow"
    assert left_out(done) == ["Never email Sarah."]


def test_a_sentence_cannot_break_out_of_the_policy_that_quotes_it() -> None:
    (rule,) = rules("bash", "Never use sudo.")
    rule.rule = 'x") forbid (principal, action, resource); //\n"\\'
    text = export_rules([rule], "cedar").files["toolmem.cedar"]
    assert decided(text, "bash", command="ls") == "allow"
    assert decided(text, "bash", command="sudo ls") == "deny"


# ---------------------------------------------------------------- all


def test_what_only_reminds_or_does_not_hold_is_not_exported() -> None:
    polite = rules("send_email", "Always answer politely.")
    gone = rules("send_email", "Never email Bob.", status="withdrawn")
    for form in ("claude-code", "hookify", "cedar"):
        done = export_rules([*polite, *gone], form)  # type: ignore[arg-type]
        assert left_out(done) == ["Always answer politely."]
        assert "Bob" not in "".join(done.files.values())


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(RequestError, match="to: expected one of claude-code, hookify, cedar"):
        export_rules([], "opa")  # type: ignore[arg-type]
