"""Rules as Claude Code's permissions stop what they stop here or less; what does not fit is named."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from toolmem.light_models import ToolMemoryRule, ToolSchema
from toolmem.rules.claude_permissions import ClaudePermissions, claude_permissions
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


def left_out(done: ClaudePermissions) -> list[str]:
    return [each.rule.rule for each in done.left_out]


def test_claude_codes_permissions_hold_what_they_can_say_and_the_rest_is_named() -> None:
    shell = rules("Bash", "Never use sudo.", "Never push.", "Ask me before you commit.", "Never push to main.")
    files = rules("Read", "Never read /etc/shadow.", "Never read .env.")
    web = rules("WebFetch", "Never fetch evil.example.")
    mail = rules("send_email", "Never send emails.", "Never email Sarah.")
    done = claude_permissions([*shell, *files, *web, *mail])
    permissions = json.loads(done.settings)["permissions"]
    assert set(permissions["deny"]) == {
        *("Bash(sudo:*)", "Bash(git push:*)", "WebFetch(domain:evil.example)", "send_email"),
        *("Read(//etc/shadow)", "Read(//etc/shadow/**)", "Read(**/.env)", "Read(**/.env/**)"),
    }
    assert permissions["ask"] == ["Bash(git commit:*)"]
    assert left_out(done) == ["Never push to main.", "Never email Sarah."]


def test_what_only_reminds_or_does_not_hold_is_not_exported() -> None:
    polite = rules("send_email", "Always answer politely.")
    gone = rules("send_email", "Never email Bob.", status="withdrawn")
    done = claude_permissions([*polite, *gone])
    assert left_out(done) == ["Always answer politely."]
    assert "Bob" not in done.settings
