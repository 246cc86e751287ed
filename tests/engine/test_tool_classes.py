"""A sentence that means a class of tools binds each of them, whichever agent has it and however it calls it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.guard_rows import TOOLS, rows
from toolmem import ToolMem
from toolmem.engine import StoreFile, before, prompt_for, user_said
from toolmem.guard.replaying import replay
from toolmem.guard.tool_classes import SCOPES, class_schema, scopes_of
from toolmem.light_models import ToolCall, ToolSchema
from toolmem.rules.capture.hook import Captured
from toolmem.rules.rule_file import read_rules

CLAUDE = ["Bash", "Read", "Write", "Edit", "Glob", "Grep", "WebFetch", "WebSearch", "Task", "TodoWrite"]
CODEX = ["exec_command", "apply_patch", "web_search", "update_plan", "view_image"]
GEMINI = ["run_shell_command", "read_file", "write_file", "replace", "web_fetch", "google_web_search"]
PATCH = "*** Begin Patch\n*** Update File: {}\n@@\n-a\n+b\n*** End Patch"

# How Claude Code, Codex (its hook and its model), Gemini CLI, Cline, an MCP server and a Python agent run a command.
SHELLS: list[tuple[str, Any]] = [
    ("Bash", lambda line: {"command": line, "description": "a step"}),
    ("exec_command", lambda line: {"cmd": line}),
    ("shell", lambda line: {"command": ["bash", "-lc", line]}),
    ("run_shell_command", lambda line: {"command": line}),
    ("execute_command", lambda line: {"command": line, "requires_approval": False}),
    ("run_commands", lambda line: {"commands": ["ls", line]}),
    ("start_process", lambda line: {"command": line.split()[0], "args": line.split()[1:]}),
    ("run_commands", lambda line: {"commands": [{"command": line.split()[0], "args": line.split()[1:]}]}),
    ("terminal_of_tomorrow", lambda line: {"command": line}),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreFile]:
    with StoreFile(tmp_path / "memory.db") as opened:
        yield opened


def said(store: StoreFile, sentence: str, tools: list[str], turn: int = 1) -> Captured:
    return user_said(store, sentence, tools=tools, session_id="s1", turn=turn, by_class=True)


def action(store: StoreFile, tool: str, given: Any, **more: Any) -> str:
    return before(store, {"tool_name": tool, "input": given}, **more).action


@pytest.mark.parametrize("tools", [CLAUDE, CODEX, GEMINI])
@pytest.mark.parametrize("sentence", ["Never push to main.", "不要推送到 main"])
def test_what_is_forbidden_in_one_agent_is_forbidden_in_every_agent(
    store: StoreFile, sentence: str, tools: list[str]
) -> None:
    (rule,) = said(store, sentence, tools).rules

    assert rule.tool_name == "@shell"
    for tool, given in SHELLS:
        assert action(store, tool, given("git push origin main")) == "deny", tool
        assert action(store, tool, given("git push origin feature/main-menu")) == "allow", tool
        assert action(store, tool, given("git log main")) == "allow", tool


def test_a_python_agent_on_the_same_store_is_held_to_it(store: StoreFile, tmp_path: Path) -> None:
    said(store, "Never push to main.", CLAUDE)

    with ToolMem(tmp_path / "memory.db") as mem:
        check = mem.check_tool_call("run_in_shell", {"command": "git push origin main"})
        assert check.action == "deny"
        assert mem.check_tool_call("run_in_shell", {"command": "git push origin dev"}).action == "allow"
        assert "every tool that runs commands" in mem.prompt(tools=["execute_command"])
        assert "push" not in mem.prompt(tools=["get_weather"])


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Write", {"file_path": "/repo/.env", "content": "A=1"}),
        ("Edit", {"file_path": "/repo/.env", "old_string": "a", "new_string": "b"}),
        ("apply_patch", {"command": PATCH.format(".env")}),
        ("apply_patch", {"input": PATCH.format("/repo/.env")}),
        ("patch", {"patchText": PATCH.format("/repo/.env")}),
        ("write_to_file", {"path": ".env", "content": "A=1"}),
        ("replace", {"file_path": "/repo/.env", "old_string": "a", "new_string": "b"}),
        ("update_document_on_disk", {"path": "/repo/.env", "content": "b"}),
        ("exec_command", {"cmd": "echo A=1 > .env"}),
        ("exec_command", {"cmd": "apply_patch <<'EOF'\n" + PATCH.format(".env") + "\nEOF"}),
    ],
)
def test_a_file_that_nobody_is_to_edit_is_safe_from_every_tool_for_files(
    store: StoreFile, tool: str, given: dict[str, Any]
) -> None:
    said(store, "Never edit .env", CLAUDE)

    assert action(store, tool, given) == "deny"
    near = {name: value.replace(".env", "env.md") if isinstance(value, str) else value for name, value in given.items()}
    assert action(store, tool, near) == "allow"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "/repo/.env"}),
        ("Write", {"file_path": "/repo/notes.md", "content": "see .env and /repo/.env"}),
        ("send_email", {"to": "bob@example.com", "subject": ".env", "body": "/repo/.env"}),
        ("exec_command", {"cmd": "cat .env"}),
        ("Grep", {"pattern": "A", "path": "/repo/.env"}),
    ],
)
def test_a_ban_on_editing_a_file_stops_nothing_else(store: StoreFile, tool: str, given: dict[str, Any]) -> None:
    said(store, "Never edit .env", CLAUDE)

    assert action(store, tool, given) == "allow"


def test_a_ban_on_a_person_awaits_the_tool_that_could_reach_them(store: StoreFile) -> None:
    said(store, "Never email Sarah", CODEX)

    mail = {"to": "Sarah Miller <sarah@example.com>", "subject": "hello", "body": "..."}
    assert action(store, "send_email", mail) == "deny"
    assert action(store, "gmail_reply_email", mail) == "deny"
    assert action(store, "send_email", {**mail, "to": "bob@example.com", "body": "Sarah is here"}) == "allow"
    assert action(store, "search_email", {"query": "Sarah", "to": "Sarah"}) == "allow"
    assert action(store, "Read", {"file_path": "/people/sarah.md"}) == "allow"


def test_asking_before_commands_asks_in_every_shell_and_nowhere_else(store: StoreFile) -> None:
    said(store, "Ask me before you run commands.", GEMINI)

    for tool, given in SHELLS:
        assert action(store, tool, given("ls")) == "ask", tool
    assert action(store, "Read", {"file_path": "/etc/hosts"}) == "allow"
    assert action(store, "str_replace_based_edit_tool", {"command": "view", "path": "/etc/hosts"}) == "allow"
    declared = ToolSchema(name="player", parameters={"properties": {"command": {"enum": ["play", "stop"]}}})
    assert action(store, "player", {"command": "play"}, tools=[declared]) == "allow"


@pytest.mark.parametrize("sentence", ["Never delete files.", "Never delete .env"])
def test_deleting_is_stopped_by_whatever_tool_deletes(store: StoreFile, sentence: str) -> None:
    said(store, sentence, CODEX)

    gone = "*** Begin Patch\n*** Delete File: .env\n*** End Patch"
    for tool, given in (
        ("exec_command", {"cmd": "rm .env"}),
        ("apply_patch", {"input": gone}),
        ("delete_file", {"path": "/repo/.env"}),
        ("remove_note", {"path": "/repo/.env"}),
    ):
        assert action(store, tool, given) == "deny", tool
    for tool, given in (
        ("apply_patch", {"input": PATCH.format(".env")}),
        ("Write", {"file_path": "/repo/.env", "content": "x"}),
        ("delete_branch", {"name": ".env"}),
        ("exec_command", {"cmd": "ls .env"}),
    ):
        assert action(store, tool, given) == "allow", tool


def test_an_editor_that_only_views_writes_nothing(store: StoreFile) -> None:
    said(store, "Never write files.", CLAUDE)

    assert action(store, "str_replace_editor", {"command": "view", "path": "/x"}) == "allow"
    assert action(store, "str_replace_editor", {"command": "create", "path": "/x", "file_text": "x"}) == "deny"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("delete_file", {"file_id": "7"}),
        ("create", {"title": "a ticket", "labels": ["x"]}),
        ("patch", {"record": 7, "value": "x"}),
        ("replace", {"table": "x", "rows": []}),
        ("edit", {"message_id": 7, "body": "x"}),
        ("write_log_message", {"message": "x"}),
        ("player", {"command": "play"}),
        ("send_invoice", {"to": "x"}),
    ],
)
def test_a_tool_of_something_else_that_is_called_alike_is_of_no_class(tool: str, given: dict[str, Any]) -> None:
    assert scopes_of(tool, None, given) == ()


@pytest.mark.parametrize("sentence", ["Never use Bash.", "Never use the Bash tool.", "Do not ever call `Bash`."])
def test_a_sentence_that_names_one_tool_binds_that_tool_alone(store: StoreFile, sentence: str) -> None:
    rules = said(store, sentence, CLAUDE).rules

    assert [rule.tool_name for rule in rules] == ["Bash"]
    assert action(store, "Bash", {"command": "ls"}) == "deny"
    assert action(store, "run_shell_command", {"command": "ls"}) == "allow"


def test_a_rule_that_was_put_for_one_tool_binds_it_alone(store: StoreFile, tmp_path: Path) -> None:
    with ToolMem(tmp_path / "memory.db") as mem:
        mem.rules.put("Bash", "Never push to main")

    assert action(store, "Bash", {"command": "git push origin main"}) == "deny"
    assert action(store, "exec_command", {"cmd": "git push origin main"}) == "allow"


def test_without_classes_a_sentence_is_kept_for_the_tools_at_hand_as_before(store: StoreFile) -> None:
    (rule,) = user_said(store, "Never push to main.", tools=["Bash", "Read"]).rules

    assert rule.tool_name == "Bash"


def test_it_is_taken_back_in_another_agent(store: StoreFile) -> None:
    said(store, "Never push to main.", CLAUDE)
    captured = said(store, "You can push to main again.", CODEX, turn=2)

    assert [rule.tool_name for rule in captured.withdrawn] == ["@shell"]
    assert "every tool that runs commands" in captured.notes[0]
    for tool, given in SHELLS:
        assert action(store, tool, given("git push origin main")) == "allow", tool


def test_said_again_in_another_agent_it_is_one_rule(store: StoreFile) -> None:
    (first,) = said(store, "Never push to main.", CLAUDE).rules
    (again,) = said(store, "never push to main", GEMINI, turn=2).rules

    assert first.id == again.id


def test_a_newer_instruction_in_another_agent_replaces_the_older_one(store: StoreFile) -> None:
    said(store, "Never push to main.", CLAUDE)
    said(store, "Ask me before you push to main.", CODEX, turn=2)

    assert action(store, "run_shell_command", {"command": "git push origin main"}) == "ask"


@pytest.mark.parametrize("tools", [["exec_command"], ["run_shell_command"], ["Bash"]])
def test_the_prompt_of_every_agent_tells_it_in_plain_words(store: StoreFile, tools: list[str]) -> None:
    said(store, "Never push to main.", CLAUDE)

    prompt = prompt_for(store, tools)
    assert "### every tool that runs commands\n- **[critical]** Never push to main" in prompt
    assert "### 所有运行命令的工具" in prompt_for(store, tools, language="zh")
    assert "push" not in prompt_for(store, ["get_weather"])


def test_a_rule_for_a_class_can_be_put_and_listed_by_hand(tmp_path: Path) -> None:
    with ToolMem(tmp_path / "memory.db") as mem:
        rule = mem.rules.put("@shell", "Never run `git push --force`")
        assert rule.checked
        assert mem.check_tool_call("exec_command", {"cmd": "git push --force origin dev"}).action == "deny"


@pytest.mark.parametrize("scope", SCOPES)
def test_the_tool_that_stands_for_a_class_is_of_it(scope: str) -> None:
    like = class_schema(scope)

    named = {
        "@shell": "x",
        "@read": "read_it",
        "@write": "write_it",
        "@fetch": "fetch_it",
        "@web": "web_search_it",
        "@delete": "delete_it",
    }
    name = named.get(scope, "send_an_email" if scope == "@mail" else "send_a_message")
    assert scopes_of(name, like.parameters) == (scope,)


@pytest.mark.parametrize(
    ("tool", "parameters"),
    [
        ("search_emails", {"query": {}}),
        ("read_email", {"id": {}}),
        ("create_bookmark", {"url": {}, "text": {}}),
        ("post_webpage", {"url": {}, "content": {}}),
        ("text_viewer", {"command": {"enum": ["view"]}}),
        ("search_flights", {"query": {}}),
        ("delete_branch", {"name": {}}),
        ("list_files", {"path": {}}),
    ],
)
def test_a_tool_that_only_comes_near_a_class_is_of_none(tool: str, parameters: dict[str, Any]) -> None:
    assert scopes_of(tool, {"properties": parameters}) == ()


def test_a_replay_holds_rules_of_a_class_against_its_tools(tmp_path: Path) -> None:
    rules, reminders = read_rules([("line 1", {"rule": "Never push to main", "tool_name": "@shell"})], [])
    assert reminders == []

    calls: list[Any] = [ToolCall(tool_name=tool, input=given("git push origin main")) for tool, given in SHELLS]
    calls.append(ToolCall(tool_name="search", input={"query": "git push origin main"}))
    found = replay(enumerate(calls), rules)
    assert [flag.index for flag in found.flags] == list(range(len(SHELLS)))


@pytest.mark.parametrize("sentence", ["Never post in #general", "Never write to Bob"])
def test_whom_somebody_writes_to_is_no_file(store: StoreFile, sentence: str) -> None:
    assert {rule.tool_name for rule in said(store, sentence, CLAUDE).rules} <= {"@mail", "@chat"}

    for name in ("general", "bob", "bob.md"):
        assert action(store, "Write", {"file_path": name, "content": "x"}) == "allow"


@pytest.mark.parametrize("row", rows("guard_neighbours.jsonl"), ids=lambda row: str(row["said"])[:60])
def test_kept_by_class_a_sentence_stops_what_it_stops_by_tool(store: StoreFile, row: dict[str, Any]) -> None:
    user_said(store, row["said"], tools=TOOLS, session_id="s", turn=1, by_class=True)

    for tool, given in [row["stopped"]] if row.get("stopped") else []:
        assert action(store, tool, given, tools=TOOLS, cwd=row.get("directory", "")) != "allow"
    for tool, given in row["passed"]:
        assert action(store, tool, given, tools=TOOLS, cwd=row.get("directory", "")) == "allow", given


def test_a_rule_of_no_tool_with_a_condition_is_checked_on_every_call(store: StoreFile, tmp_path: Path) -> None:
    when = {
        "type": "object",
        "required": ["values"],
        "properties": {"values": {"type": "array", "contains": {"const": "prod"}}},
    }
    with ToolMem(tmp_path / "memory.db") as mem:
        mem.rules.put("__unscoped__", "Never touch prod", effect="deny", when=when)

    for tool in ("Bash", "exec_command", "deploy", "a tool of tomorrow"):
        assert action(store, tool, {"target": "prod"}) == "deny"
        assert action(store, tool, {"target": "dev"}) == "allow"
