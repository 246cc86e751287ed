"""A sentence is said to stop calls only where a plain call that it forbids is stopped on trial."""

from __future__ import annotations

from typing import Any

import pytest

from toolmem.guard.tool_classes import class_schema
from toolmem.light_models import ToolSchema
from toolmem.rules.rule_checks import checks_of
from toolmem.sentences.declared_tools import read_tool
from toolmem.sentences.reading import read
from toolmem.sentences.said_conditions import condition_of
from toolmem.sentences.schemas import command, listed, path_like
from toolmem.sentences.trial_calls import Trial, trial_of

SHELL, READ = class_schema("@shell"), class_schema("@read")
PAY = ToolSchema(
    name="transfer_money",
    description="Send money.",
    parameters={"type": "object", "properties": {"recipient": {"type": "string"}, "amount": {"type": "number"}}},
)
OVER_5: dict[str, Any] = {
    "type": "object",
    "required": ["name", "value"],
    "properties": {"name": {"const": "amount"}, "value": {"type": "number", "exclusiveMinimum": 9_000}},
}
RM = command(("rm",))


def tried(sentence: str, tool: ToolSchema, when: Any) -> Trial:
    known = read_tool(tool)
    return trial_of(read(sentence, known.told), known, when)


@pytest.mark.parametrize(
    ("sentence", "tool", "when", "call"),
    [
        ("Never use sudo.", SHELL, RM, "sudo x"),
        ("Never run npm.", SHELL, RM, "npm x"),
        ("Never delete files in /srv/data.", SHELL, command(("unlink",)), "rm -rf /srv/data"),
        ("Don't touch ~/.ssh", SHELL, command(("rm",)), "cat ~/.ssh"),
        ("Never write to /etc.", SHELL, RM, "echo x > /etc/x"),
        ("Please do not read /etc/shadow!", SHELL, RM, "cat /etc/shadow"),
        ("Never commit .env files.", SHELL, RM, "git add .env"),
        (
            "Never read ~/.aws/credentials.",
            READ,
            listed("targets", path_like("~/.aws/config")),
            'read(path="~/.aws/credentials")',
        ),
        (
            "Never send more than 5,000 in one transfer.",
            PAY,
            listed("numbers", OVER_5),
            "transfer_money(amount=5001)",
        ),
        ("Never transfer more than 8k.", PAY, listed("numbers", OVER_5), "transfer_money(amount=8001)"),
    ],
)
def test_a_condition_that_lets_a_forbidden_call_pass_is_refuted_by_it(
    sentence: str, tool: ToolSchema, when: dict[str, Any], call: str
) -> None:
    assert tried(sentence, tool, when).passed == call


@pytest.mark.parametrize(
    "sentence",
    [
        "Never use sudo.",
        "Never use xargs.",
        "Never delete files in /srv/data.",
        "Don't touch ~/.ssh.",
        "Never write to /etc.",
        "Never read /etc/shadow.",
        "Never commit secrets or .env files.",
        "Never send more than 5,000 in one transfer.",
        "Never send over 1'250'000 in one transfer.",
        "Never access ~/.aws/credentials.",
        "单笔转账不要超过5,000",
        "Always answer politely.",
    ],
)
def test_what_a_sentence_becomes_is_refuted_by_no_trial_call(sentence: str) -> None:
    tools = {tool.name: tool for tool in (SHELL, READ, PAY)}
    made = condition_of(sentence, list(tools.values()))
    assert [tried(sentence, tools[name], when).passed for name, when in made.when.items()] == [""] * len(made.when)
    assert bool(made.when) != (made.effect == "remind")


def test_a_refuted_condition_leaves_a_reminder_that_names_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolmem.sentences.said_conditions.shell_condition", lambda demand: RM)
    made = checks_of("Never use sudo.", ["@shell"], [])["@shell"]
    assert (made.effect, made.when) == ("remind", None)
    assert "sudo x" in made.unchecked


@pytest.mark.parametrize(
    ("sentence", "call"),
    [
        ("Never force-push.", "git push --force origin main"),
        ("永远不要用 sudo", "sudo x"),
        ("Never write to /etc.", "echo x > /etc/x"),
        ("Never delete /srv/data.", "rm -rf /srv/data"),
        ("Never pay more than 5,000.", "transfer_money(amount=5001)"),
        ("Ask me before you read ~/.aws/credentials.", "cat ~/.aws/credentials"),
    ],
)
def test_of_what_is_checked_the_call_is_told_that_was_stopped_on_trial(sentence: str, call: str) -> None:
    made = condition_of(sentence, [SHELL, PAY])
    assert list(made.stops.values()) == [call]
    assert set(made.stops) == set(made.when)
