"""A command is found in whatever parts a call hands it over; what is only written or looked for is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolmem.guard.decision import CheckedRule, against_rules
from toolmem.guard.effects import may_write, names_text
from toolmem.guard.view import view_of
from toolmem.sentences.schemas import command

NO_PUSH = CheckedRule("r", "never push", "deny", command(("git",), {"const": "main"}, second=("push",)))

IN_PARTS: list[tuple[str, dict[str, Any]]] = [
    ("ci", {"argv": ["git", "push", "origin", "main"]}),
    ("x", {"program": "git", "args": ["push", "origin", "main"]}),
    ("x", {"program": "git", "args": "push origin main"}),
    ("x", {"script": "cd app\ngit push origin main"}),
    ("ci", {"steps": [{"run": "git push origin main"}]}),
    ("x", {"command": "git", "arguments": ["push", "origin", "main"]}),
    ("x", {"command": "git push", "args": ["origin", "main"], "env": {"A": "b"}}),
    ("x", {"commands": ["ls", "git push origin main"]}),
    ("x", {"cmd": ["git", "push", "origin", "main"]}),
    ("x", {"command": ["bash", "-lc", "git push origin main"]}),
    ("ci", {"jobs": {"a": {"steps": [{"name": "x", "run": "npm ci\nsudo git push origin main"}]}}}),
    ("x", {"executable": "/usr/bin/git", "params": ["push", "origin", "main"]}),
    ("x", {"tasks": [{"cmd": "git", "args": ["push", "origin", "main"]}], "name": "y"}),
    ("shell", {"args": ["git", "push", "origin", "main"]}),
    ("x", {"commands": [["git", "push", "origin", "main"]]}),
    ("x", {"commands": [{"command": "git push origin main"}]}),
    ("x", {"process": {"file": "git", "args": ["push", "origin", "main"]}}),
    ("run_job", {"steps": ["git push origin main"], "name": "release"}),
    ("terminal", {"text": "git push origin main", "session": 1}),
    ("x", {"bashCommand": "git push origin main", "cwd": "/a"}),
    ("x", {"exec": ["git", "push", "origin", "main"], "user": "me"}),
    ("x", {"stages": [[{"run": "FOO=1 git push origin main"}]]}),
]
PROSE: list[tuple[str, dict[str, Any]]] = [
    ("send_email", {"to": "a@b.org", "subject": "git push", "body": "git push origin main"}),
    ("search", {"query": "git push origin main"}),
    ("search", {"query": "git push origin main", "n": 3}),
    ("Task", {"prompt": "git push origin main", "description": "git push origin main"}),
    ("Bash", {"command": "ls", "description": "git push origin main"}),
    ("Bash", {"command": ["git", "commit", "-m", "git push origin main"]}),
    ("Grep", {"pattern": "git push origin main", "path": "/a"}),
    ("Write", {"file_path": "/a/x.sh", "content": "git push origin main"}),
    ("add_tasks", {"items": ["git push origin main"], "list": "work"}),
    ("ask", {"question": "git push origin main", "options": ["git push origin main"]}),
    ("ci", {"steps": [{"name": "git push origin main", "run": "make"}]}),
    ("slack_post_message", {"channel": "#dev", "text": "git push origin main"}),
    ("create_issue", {"title": "git push origin main", "labels": ["git push origin main"]}),
    ("x", {"program": "Doctor Who", "channel": "git push origin main"}),
]


@pytest.mark.parametrize(("tool", "arguments"), IN_PARTS, ids=[json.dumps(each[1]) for each in IN_PARTS])
def test_a_command_in_parts_is_read_as_one(tool: str, arguments: dict[str, Any]) -> None:
    assert [each.action for each in against_rules([NO_PUSH], view_of(tool, arguments), "enforce")] == ["deny"]


@pytest.mark.parametrize(("tool", "arguments"), IN_PARTS[:16], ids=[json.dumps(each[1]) for each in IN_PARTS[:16]])
def test_what_a_command_in_parts_changes_is_read_of_it(tool: str, arguments: dict[str, Any]) -> None:
    assert may_write(tool, arguments)
    assert not may_write(tool, json.loads(json.dumps(arguments).replace("push", "log").replace("npm ci", "ls")))


@pytest.mark.parametrize(("tool", "arguments"), PROSE, ids=[f"{each[0]} {json.dumps(each[1])}" for each in PROSE])
def test_what_is_only_written_or_looked_for_is_no_command(tool: str, arguments: dict[str, Any]) -> None:
    assert against_rules([NO_PUSH], view_of(tool, arguments), "enforce") == []
    assert "push" not in names_text(arguments, tool) or tool == "Bash"
