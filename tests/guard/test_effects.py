"""What a call may change and whether it asks outside is read of the arguments that agents really send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolmem.guard.conversation import ConversationGuard
from toolmem.guard.effects import asks_outside, may_write, names_text, starts_background

HOSTS: dict[str, tuple[str, Callable[[str], dict[str, Any]]]] = {
    "Claude Code": ("Bash", lambda line: {"command": line, "description": "Update the list of checks"}),
    "Claude Code, all of it": (
        "Bash",
        lambda line: {"command": line, "description": "Look", "timeout": 120000, "run_in_background": False},
    ),
    "Claude Code on Windows": ("PowerShell", lambda line: {"command": line, "description": "Delete old logs from x"}),
    "Codex": ("Bash", lambda line: {"command": line, "workdir": "/srv/app"}),
    "Codex, in words": ("shell", lambda line: {"command": ["bash", "-lc", line], "workdir": "/srv/app"}),
    "Codex, local shell": ("local_shell", lambda line: {"command": line.split(), "timeout_ms": 1000}),
    "Codex, exec": ("exec_command", lambda line: {"cmd": line, "workdir": "/srv", "yield_time_ms": 250}),
    "Codex, typed": ("write_stdin", lambda line: {"session_id": 4, "chars": line + "\n"}),
    "Gemini": ("run_shell_command", lambda line: {"command": line, "description": "Look", "directory": "app"}),
    "OpenCode": ("bash", lambda line: {"command": line, "description": "Check the build", "timeout": 1000}),
    "Cursor": ("Shell", lambda line: {"command": line, "working_directory": "/srv", "block_until_ms": 3000}),
    "Cline": ("execute_command", lambda line: {"command": line, "requires_approval": False}),
    "Cline, several": ("run_commands", lambda line: {"commands": [line], "description": "Look"}),
    "Goose": ("developer__shell", lambda line: {"command": line}),
    "Copilot": ("bash", lambda line: {"command": line, "description": "Insert it", "sessionId": "a", "mode": "sync"}),
    "a framework's tool": ("my_terminal_tool", lambda line: {"command": line, "timeout": 3}),
    "a server of MCP": ("mcp__box__run_command", lambda line: {"command": line, "cwd": "/srv"}),
}
POLLS = [
    "gh run view 12 --exit-status",
    "pg_isready -h localhost",
    "curl -sf http://127.0.0.1:8000/health",
    "sudo systemctl status api",
    "sleep 5 && kubectl get pods",
    "TOKEN=x gh pr checks 4",
]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("line", POLLS)
def test_a_poll_is_one_in_every_agent_and_its_repeat_runs(host: str, line: str) -> None:
    tool, given = HOSTS[host]
    assert asks_outside(tool, given(line))
    guard = ConversationGuard(modes={"repeats": "enforce"})
    for _ in range(3):
        checked = guard.before(tool, given(line), force=None)
        assert not checked.stops
        guard.after(checked, failed=True, output="no response")


@pytest.mark.parametrize("host", HOSTS)
def test_what_a_command_changes_is_read_in_every_agent(host: str) -> None:
    tool, given = HOSTS[host]
    assert not asks_outside(tool, given("make test"))
    assert may_write(tool, given("make test"))
    assert may_write(tool, given("rm build.log"))
    assert not may_write(tool, given("cat build.log"))
    assert not may_write(tool, given("git log -3"))
    assert starts_background({**given("ls"), "run_in_background": True}, tool)
    assert "build.log" in names_text(given("cat build.log"), tool)


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "Codex, local shell"])  # runs no shell
def test_what_is_left_running_is_seen_in_every_agent(host: str) -> None:
    tool, given = HOSTS[host]
    assert starts_background(given("npm start &"), tool)
    assert starts_background(given("docker compose up -d"), tool)
    assert not starts_background(given("npm test"), tool)


@pytest.mark.parametrize("host", HOSTS)
def test_a_failed_call_that_is_no_poll_is_not_repeated_in_any_agent(host: str) -> None:
    tool, given = HOSTS[host]
    guard = ConversationGuard(modes={"repeats": "enforce"})
    checked = guard.before(tool, given("make test"), force=None)
    guard.after(checked, failed=True, output="make: *** No rule to make target 'test'.  Stop.")
    assert guard.before(tool, given("make test"), force=None).stops


@pytest.mark.parametrize(
    ("tool", "arguments", "writes"),
    [
        ("get_page", {"url": "https://a.org", "description": "sudo make me a sandwich"}, False),
        ("search_files", {"query": "rm build.log", "path": "src"}, False),
        ("read_note", {"title": "git push", "n": 3}, False),
    ],
)
def test_prose_beside_other_arguments_is_no_command(tool: str, arguments: dict[str, Any], writes: bool) -> None:
    assert names_text(arguments, tool) == ""
    assert may_write(tool, arguments) is writes


PAGE = {"url": "https://a.org/orders"}


@pytest.mark.parametrize(
    ("tool", "arguments", "writes"),
    [
        *(
            (tool, PAGE, False)
            for tool in ("http_request", "httpRequest", "fetch", "web_fetch", "curl", "make_request")
        ),
        *((tool, {**PAGE, "method": "get"}, False) for tool in ("http_request", "call_api", "crm")),
        *((tool, {**PAGE, "method": "POST"}, True) for tool in ("http_request", "fetch", "WebFetch", "get_url")),
        ("call_api", {"method": "GET", "path": "/orders/1"}, False),
        ("call_api", {"verb": "PATCH", "path": "/orders/1"}, True),
        ("http_request", {**PAGE, "method": "PURGE"}, True),
        ("http_request", {**PAGE, "method": None, "body": "", "headers": {"Accept": "*/*"}, "timeout": 3}, False),
        ("http_request", {**PAGE, "body": "x"}, True),
        ("http_request", {**PAGE, "data": {"a": 1}}, True),
        ("fetch", {**PAGE, "json": {"a": 1}}, True),
        ("httpRequest", {"uri": "https://a.org", "formData": "a=1"}, True),
        ("curl", {**PAGE, "options": "-X DELETE"}, True),
        ("http_request", {**PAGE, "method": "GET", "body": '{"query": {}}'}, False),
        ("http_get", PAGE, False),
        ("requests_post", PAGE, True),
        ("http_delete", PAGE, True),
        # no requests over HTTP, or nothing tells that they only read
        ("request_refund", PAGE, True),
        ("send_webhook", PAGE, True),
        ("publish", PAGE, True),
        ("http_request", {}, True),
        ("curl", {"command_line": "-X POST https://a.org"}, True),
    ],
)
def test_a_request_over_http_reads_unless_its_method_or_what_it_sends_says_otherwise(
    tool: str, arguments: dict[str, Any], writes: bool
) -> None:
    assert may_write(tool, arguments) is writes


def test_what_a_tool_declares_of_itself_is_believed_before_its_method() -> None:
    assert may_write("http_request", PAGE, {"destructiveHint": True})
    assert not may_write("http_request", {**PAGE, "method": "POST"}, {"readOnlyHint": True})
