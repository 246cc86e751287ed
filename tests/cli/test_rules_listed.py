"""`toolmem rules list` and `show`: what a person sees of rules, what is new first, here and everywhere apart."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from toolmem import ToolMem
from toolmem.cli.rules_listed import print_rule
from toolmem.hosts import ancestry
from toolmem.light_models import ToolMemoryRule

SAID = "--no-verify is cheating. The hooks are there for a reason"
NOTE: dict[str, Any] = {
    "quote": SAID,
    "effect": "deny",
    "lasting": "always",
    "tools": ["Bash"],
    "rule": "Never skip the hooks of git.",
    "when": [{"command": r"^git (commit|push|merge)\b", "word": "--no-verify"}],
    "unless": [{"command": "--dry-run"}],
    "stops": [{"tool": "Bash", "arguments": {"command": "git commit --no-verify -m x"}}],
    "passes": [{"tool": "Bash", "arguments": {"command": "git commit -m wip"}}],
}
ROAD: dict[str, Any] = {"user_message": SAID, "tools_available": ["Bash"], "conversation_id": "c1"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("home", "shop"):
        (tmp_path / name / ".toolmem").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def put(folder: Path, tool: str, rule: str, effect: str = "") -> None:
    checked = {"effect": effect, "when": True} if effect else {}
    with ToolMem(str(folder / ".toolmem" / "memory.db")) as memory:
        memory.rules.put(tool, rule, source="user_explicit", **checked)  # type: ignore[arg-type]


def headings(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith(("Checked", "Asked", "Reminders"))]


def test_checked_asked_and_reminding_rules_stand_apart_with_their_counts(
    project: Path, run_command: Callable[..., Any]
) -> None:
    put(project, "deploy", "never deploy on your own", "deny")
    put(project, "remove", "ask me before you remove anything", "ask")
    put(project, "write", "be brief")
    put(project, "read", "be quick")
    assert headings(run_command("rules", "list").out) == [
        "Checked here: calls against these are stopped (1)",
        "Asked here: you are asked before such calls (1)",
        "Reminders here: no call is held against these (2)",
    ]


def test_what_is_new_since_the_last_look_comes_first_and_is_marked(
    project: Path, run_command: Callable[..., Any]
) -> None:
    put(project, "aaa", "be brief")
    assert "new" in run_command("rules", "list").out
    assert "new" not in run_command("rules", "list").out
    put(project, "zzz", "be quick")
    listed = run_command("rules", "list").out
    assert listed.index("be quick") < listed.index("be brief")
    (fresh,) = [line for line in listed.splitlines() if line.split()[:2] == ["new", "zzz"]]
    assert "be quick" in fresh
    put(project, "aaa", "be brief", "deny")
    (changed,) = [line for line in run_command("rules", "list").out.splitlines() if line.split()[:1] == ["changed"]]
    assert "be brief" in changed


@pytest.mark.parametrize("look", [("rules", "list", "--json"), ("rules", "list", "aaa"), ("rules", "show", "aaa")])
def test_only_a_look_at_all_rules_makes_them_old(
    project: Path, run_command: Callable[..., Any], look: tuple[str, ...]
) -> None:
    put(project, "aaa", "be brief")
    run_command(*look)
    assert "new" in run_command("rules", "list").out


def test_what_an_agent_looked_at_is_still_new_to_its_user(
    project: Path, run_command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, "aaa", "be brief")
    with monkeypatch.context() as patch:
        name, _, value = ancestry.MARKS["claude-code"][0].partition("=")
        patch.setenv(name, value or "1")
        run_command("rules", "list")
    assert "new" in run_command("rules", "list").out


def test_the_look_is_kept_in_the_state_folder_and_nothing_in_the_store(
    project: Path, run_command: Callable[..., Any], tmp_path: Path
) -> None:
    put(project, "aaa", "be brief")
    before = {path.name: path.read_bytes() for path in (project / ".toolmem").iterdir()}
    run_command("rules", "list")
    assert {path.name: path.read_bytes() for path in (project / ".toolmem").iterdir()} == before
    assert (tmp_path / "state" / "toolmem" / "rules-seen.json").is_file()


@pytest.mark.parametrize("kept", ["", "[]", '{"x": 1', '{"[]": []}', "9" * 300_000])
def test_a_file_of_looks_that_cannot_be_read_shows_all_as_new(
    project: Path, run_command: Callable[..., Any], tmp_path: Path, kept: str
) -> None:
    put(project, "aaa", "be brief")
    (tmp_path / "state" / "toolmem" / "rules-seen.json").write_text(kept, encoding="utf-8")
    ran = run_command("rules", "list")
    assert (ran.code, "new" in ran.out) == (0, True)
    assert "new" not in run_command("rules", "list").out


def test_here_and_everywhere_stand_apart_and_json_is_of_here(
    project: Path, run_command: Callable[..., Any], tmp_path: Path
) -> None:
    put(project, "deploy", "never deploy on your own", "deny")
    put(tmp_path / "home", "send", "never send by yourself", "deny")
    ran = run_command("rules", "list")
    assert headings(ran.out) == [
        "Checked here: calls against these are stopped (1)",
        "Checked everywhere: calls against these are stopped (1)",
    ]
    assert f"vector_store.default.params.path={tmp_path / 'home' / '.toolmem' / 'memory.db'}" in ran.out
    assert [rule["tool_name"] for rule in json.loads(run_command("rules", "list", "--json").out)] == ["deploy"]
    (everywhere,) = json.loads(run_command("rules", "show", "send", "--json").out)
    assert everywhere["rule"] == "never send by yourself"
    named = run_command("rules", "list", f"vector_store.default.params.path={project / '.toolmem' / 'memory.db'}")
    assert "everywhere" not in named.out


def test_rules_of_the_users_own_store_are_everywhere_also_where_a_folder_has_none(
    project: Path, run_command: Callable[..., Any], tmp_path: Path
) -> None:
    put(tmp_path / "home", "send", "never send by yourself", "deny")
    ran = run_command("rules", "list")
    assert headings(ran.out) == ["Checked everywhere: calls against these are stopped (1)"]
    assert not list((project / ".toolmem").iterdir())


def test_a_rule_is_shown_in_words_with_its_examples_and_who_said_and_noted_it(
    project: Path, run_command: Callable[..., Any]
) -> None:
    with ToolMem(str(project / ".toolmem" / "memory.db")) as memory:
        noted = memory.note_demand(**NOTE, **ROAD, noted_by="claude-code")
    shown = run_command("rules", "show", noted.rules[0].id[:8]).out
    lines = {line.split("  ")[0].strip(): line for line in shown.splitlines()}
    assert SAID in lines["rule"]
    assert "a command like `git commit`, `git push` or `git merge` and one with the word `--no-" in lines["stops"]
    assert "a command like `--dry-run`; and every other call" in lines["lets through"]
    assert "Bash: git commit --no-verify -m x" in lines["stops, e.g."]
    assert "Bash: git commit -m wip" in lines["passes, e.g."]
    assert "in session c1" in lines["said by"]
    assert "UTC" in lines["said by"]
    assert "claude-code" in lines["noted by"]
    assert "as the agent understood it: Never skip the hooks of git." in shown


def test_a_reminder_and_a_rule_on_every_call_say_so(project: Path, run_command: Callable[..., Any]) -> None:
    put(project, "deploy", "never deploy on your own", "deny")
    put(project, "write", "be brief")
    assert "stops" in run_command("rules", "show", "deploy").out
    assert "every call" in run_command("rules", "show", "deploy").out
    assert "it only reminds: no call is held against it" in run_command("rules", "show", "write").out


def test_a_condition_of_a_later_version_is_shown_as_one_that_cannot_be_told(capsys: pytest.CaptureFixture[str]) -> None:
    now = datetime.now(UTC)
    when = {"when": [{"mood": "bad"}], "stops": [{"tool": "Bash", "arguments": {"command": "ls"}}, 7]}
    rule = ToolMemoryRule(
        id="1", tool_name="t", rule="be kind", created_at=now, updated_at=now, effect="ask", when=when
    )
    print_rule(rule)
    shown = capsys.readouterr().out
    assert "calls that cannot be told here: `when[0]`: mood" in shown
    assert "Bash: ls" in shown


LONG = "never push to main without asking me first, whatever the ticket, the branch or the reviewer says"


def list_in(width: str, monkeypatch: pytest.MonkeyPatch, run_command: Callable[..., Any]) -> list[str]:
    if width:
        monkeypatch.setenv("COLUMNS", width)
    else:
        monkeypatch.delenv("COLUMNS", raising=False)
    return [line.rstrip() for line in run_command("rules", "list").out.splitlines()]


@pytest.mark.parametrize("width", ["60", "90", "200"])
def test_rules_are_listed_as_wide_as_the_terminal_says_it_is(
    width: str, project: Path, monkeypatch: pytest.MonkeyPatch, run_command: Callable[..., Any]
) -> None:
    put(project, "Bash", LONG, "deny")
    lines = list_in(width, monkeypatch, run_command)
    assert max(map(len, lines)) <= int(width)
    assert set(LONG.split()) <= set(" ".join(lines).split()), "no word is broken or left out"


def test_where_nobody_says_how_wide_it_is_every_column_is_in_one_line(
    project: Path, monkeypatch: pytest.MonkeyPatch, run_command: Callable[..., Any]
) -> None:
    put(project, "Bash", LONG[:60], "deny")
    for width in ("", "wide"):
        lines = list_in(width, monkeypatch, run_command)
        assert any(all(each in line for each in ("Bash", "deny", LONG[:60], "program")) for line in lines)


def test_what_a_rule_in_chinese_checks_is_told_in_one_language_a_line(
    project: Path, run_command: Callable[..., Any]
) -> None:
    said, when = "提交之前必须先运行测试，不要碰删除脚本", [{"command": "^(git commit|删除)", "text": "密码"}]
    unless = [{"earlier": {"command": "^pytest", "worked": True, "since": {"writes": True}}}]
    with ToolMem(str(project / ".toolmem" / "memory.db")) as memory:
        rule = memory.rules.put("@shell", said, effect="deny", when={"when": when, "unless": unless})
    shown = run_command("rules", "show", rule.id).out
    lines = {line.split("  ")[0].strip(): line for line in shown.splitlines() if not line.startswith("condition")}
    assert lines["rule"].split(maxsplit=1)[1] == said
    assert lines["stops"].endswith("a command like `git commit` or `删除` and a text like `密码`")
    told = {name: re.sub(r"`[^`]*`", "", line) for name, line in lines.items() if name not in ("rule", "in the words")}
    assert {name: line for name, line in told.items() if re.search("[\u3400-\u9fff]", line)} == {}
