"""Before a person decides on a rule, it is seen what it would have stopped."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from toolmem import ToolMem
from toolmem.cli import main
from toolmem.rules.rule_store import RuleStore

SARAH = "never email Sarah at sarah@example.com"
TO_BOB = {
    "type": "object",
    "required": ["targets"],
    "properties": {"targets": {"type": "array", "contains": {"const": "bob@example.com"}}},
}


class Ran(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def cli(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Ran:
        code = 0
        try:
            main(["rules", *words])
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
        return Ran(code, *capsys.readouterr())

    return run


def keep_calls(*targets: str) -> None:
    with ToolMem() as mem:
        for number, target in enumerate(targets):
            answer = {
                "output": "sent",
                "success": True,
                "id": f"c{number}",
                "create_time": f"2026-01-0{number + 1}T00:00:00Z",
            }
            mem.add([{"tool_name": "send_email", "input": {"to": target, "body": "Sarah"}, **answer}])


def proposed(text: str = SARAH, **given) -> str:
    async def put(rules: RuleStore) -> str:
        return (await rules.for_agent().put_rule("send_email", text, **given)).id

    with ToolMem() as mem:
        return mem.app.call(_on_rules(mem, put))


async def _on_rules(mem: ToolMem, put):
    return await put(await mem.app.rule_store("default"))


def test_review_shows_the_sentence_the_condition_and_the_calls_that_it_would_have_stopped(cli):
    keep_calls("bob@example.com", "ann@example.com", "bob@example.com")
    rule = proposed("not Bob", effect="deny", when=TO_BOB)
    shown = cli("review")
    assert shown.exit_code == 0
    told = shown.stdout
    assert rule[:8] in told
    assert "proposed, by agent" in told
    assert "not Bob" in told
    assert "checked: deny: a target `bob@example.com`" in told
    assert "of 3 logged calls it would have denied 2, 2 of which worked" in told
    assert "2026-01-01 00:00  send_email" in told
    (found,) = json.loads(cli("review", "--json").stdout)
    assert (found["rule"]["id"], found["calls"], found["stopped"], found["worked"]) == (rule, 3, 2, 2)
    assert [each["input"]["to"] for each in found["examples"]] == ["bob@example.com"] * 2


def test_approve_shows_it_and_the_rule_binds_restore_brings_back_what_was_rejected(cli):
    keep_calls("bob@example.com")
    rule = proposed("not Bob", effect="deny", when=TO_BOB)
    approved = cli("approve", rule[:6])
    assert approved.exit_code == 0
    shown = approved.stderr
    assert shown.index("it would have denied 1") < shown.index("approved")
    assert json.loads(cli("list", "--json").stdout)[0]["effect"] == "deny"
    assert cli("reject", rule[:6]).exit_code == 0
    assert json.loads(cli("list", "--json").stdout) == []
    assert "withdrawn, by agent" in cli("review").stdout
    assert "restored" in cli("restore", rule[:6]).stderr
    assert json.loads(cli("list", "--json").stdout)[0]["status"] == "active"
    assert cli("review").stdout == ""


def test_what_was_never_decided_on_is_approved_not_restored(cli):
    rule = proposed(priority="critical")
    refused = cli("restore", rule[:8])
    assert refused.exit_code == 2
    assert "approve" in refused.stderr
    assert json.loads(cli("list", "--all", "--json").stdout)[0]["status"] == "proposed"


def test_a_proposed_reminder_is_shown_without_calls(cli):
    keep_calls("sarah@example.com")
    proposed("be kind", priority="critical")
    shown = cli("review").stdout
    assert "only reminds" in shown
    assert "logged call" not in shown


def test_a_rule_is_edited_with_its_id_and_what_it_checks_is_told(cli):
    rule = proposed("not Bob", effect="deny", when=TO_BOB)
    edited = cli("add", "send_email", "not Ann", "--id", rule[:8], "--effect", "ask", "--when", "true")
    assert edited.exit_code == 0
    assert "checked: ask: every call" in edited.stderr
    (stored,) = json.loads(cli("list", "--json").stdout)
    assert (stored["id"], stored["rule"], stored["effect"], stored["when"]) == (rule, "not Ann", "ask", True)
    assert "only reminds: 'weekends'" in cli("add", "send_email", "never email Ann on weekends").stderr


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--when", "{torn"], "when: not JSON"),
        (["--when", '{"$ref": "file:///etc/passwd"}'], "$ref"),
        (["--effect", "deny"], "needs `when`"),
        (["--effect", "forbid"], "effect: expected one of"),
        (["--expires-at", "soon"], "expires_at"),
    ],
)
def test_what_cannot_be_a_condition_is_refused_with_its_place(cli, given, told):
    refused = cli("add", "send_email", SARAH, *given)
    assert refused.exit_code == 2
    assert told in refused.stderr
    assert json.loads(cli("list", "--all", "--json").stdout) == []


def test_a_call_that_did_not_run_and_one_of_another_tool_are_not_counted(cli):
    keep_calls("bob@example.com")
    with ToolMem() as mem:
        denied = {"output": "toolmem: not run. The user said: not Bob", "success": False, "id": "d"}
        mem.add([{"tool_name": "send_email", "input": {"to": "bob@example.com"}, **denied}])
        mem.add([{"tool_name": "share", "input": {"to": "bob@example.com"}, "output": "ok", "id": "s"}])
    proposed("not Bob", effect="ask", when=TO_BOB)
    assert "of 1 logged call it would have asked about 1, 1 of which worked" in cli("review").stdout


def test_one_who_asks_over_the_library_gets_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keep_calls("bob@example.com", "ann@example.com")
    rule = proposed("not Bob", effect="deny", when=TO_BOB)
    with ToolMem() as mem:
        (found,) = mem.rules.replay([rule[:8]])
        assert (found.condition, found.calls, found.stopped) == ("deny: a target `bob@example.com`", 2, 1)
        assert mem.rules.replay() == [found]
        mem.rules.set_status(rule[:8], "active")
        assert mem.rules.replay() == []


def test_rules_as_they_are_listed_or_captured_are_replayed_as_they_are(cli, tmp_path, capsys):
    cli("add", "send_email", SARAH, "--effect", "ask", "--when", json.dumps(TO_BOB))
    cli("add", "send_email", "never email Ann", "--effect", "remind")
    listed = json.loads(cli("list", "--json").stdout)
    (tmp_path / "rules.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in listed), encoding="utf-8")
    to = ("bob@example.com", "ann@example.com")
    sent = [{"tool_name": "send_email", "input": {"to": each}, "output": "ok"} for each in to]
    (tmp_path / "calls.jsonl").write_text("".join(json.dumps(call) + "\n" for call in sent), encoding="utf-8")
    with suppress(SystemExit):
        main(["guard", "replay", "--input", "calls.jsonl", "--rules", "rules.jsonl", "--json"])
    flags = json.loads(capsys.readouterr().out)["flags"]
    assert [(flag["index"], flag["action"]) for flag in flags] == [(0, "ask")]
