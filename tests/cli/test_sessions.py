"""Sessions of coding agents are learnt in the project that they belong to, and in no other."""

import gzip
import hashlib
import json
import re
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from toolmem import ToolMem
from toolmem.cli.hook import hook
from toolmem.cli.import_ import import_
from toolmem.cli.transcripts import find_sessions
from toolmem.errors import RequestError
from toolmem.hooks.__main__ import answer_event

PAYLOADS = Path(__file__).parents[1] / "formats" / "payloads"
SECRET = "JONES"  # stands in the sessions of project b alone


@pytest.fixture
def projects(tmp_path, monkeypatch):
    """Folders a and b in a home that holds a session of each of four agents in each of them."""
    home = tmp_path / "home"
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home if name == "HOME" else home / "data"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    database = home / "data" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    for name in ("a", "b"):
        project = home / name
        (project / ".git").mkdir(parents=True)
        digest = hashlib.sha256(str(project).encode()).hexdigest()
        start = {"type": "session_meta", "payload": {"id": name, "cwd": str(project)}}
        texts = {
            f".claude/projects/{name}/s.jsonl": "claude_code.jsonl",
            f".codex/sessions/2026/rollout-{name}.jsonl": "codex.jsonl",
            f".gemini/tmp/{name}/chats/session-1.jsonl": "gemini_cli.jsonl",
            name: "opencode.sql",
        }
        for place, payload in texts.items():
            text = (PAYLOADS / payload).read_text()
            for folder in ("claude-code", "codex", "gemini", "opencode"):
                text = text.replace(f"/home/u/{folder}/project", str(project))
            for marks in ("toolu_", "call_loop", "ses_", "msg_", "prt_"):
                text = text.replace(marks, f"{marks}{name}")
            text = re.sub('"projectHash":"[^"]*', f'"projectHash":"{digest}', text)
            text = text.replace("echo one", f"echo {SECRET}") if name == "b" else text
            if payload == "opencode.sql":
                with sqlite3.connect(database) as opened:
                    opened.executescript(text.replace("TABLE", "TABLE IF NOT EXISTS"))
                continue
            first = json.dumps(start) + "\n" if payload == "codex.jsonl" else ""
            (home / place).parent.mkdir(parents=True, exist_ok=True)
            (home / place).write_text(first + text)
            if name == "b":  # copies in places that no listing knows
                (home / ".codex" / "archived.jsonl").write_text(first + text)
                packed = home / ".claude" / "projects" / f"{payload}.gz"
                packed.parent.mkdir(parents=True, exist_ok=True)
                packed.write_bytes(gzip.compress((first + text).encode()))
    monkeypatch.chdir(home / "a")
    return home


def run(*arguments):
    return CliRunner().invoke(import_, arguments, catch_exceptions=True)


def words_of(store):
    with ToolMem(str(store)) as memory:
        return str([memory.calls(), memory.prompt()])


def test_an_import_takes_the_sessions_of_this_project_and_lists_the_others(projects):
    done = run("--from-agents", "--yes")
    assert done.exit_code == 0
    assert f"{projects / 'b'}  1 of Claude Code, 1 of Codex, 1 of Gemini CLI, 1 of" in done.output
    for source in ("claude_code", "codex", "gemini_cli", "opencode"):
        assert f"from {source}" in done.stdout
    assert SECRET not in words_of(projects / "a" / ".toolmem" / "memory.db")


@pytest.mark.parametrize("where", [".claude", ".", "data/opencode/opencode.db"])
def test_a_folder_of_agents_brings_the_sessions_of_this_project_alone(projects, where):
    path = str(projects / where)
    assert "--yes" in str(run(path).exception) or where.endswith(".db")
    assert run(path, "--yes").exit_code == 0
    assert SECRET not in words_of(projects / "a" / ".toolmem" / "memory.db")
    assert run(path, "--yes", "--into-shared").exit_code == 0
    assert SECRET in words_of(projects / "a" / ".toolmem" / "memory.db")


def test_another_project_is_chosen_by_name_and_learns_in_its_own_store(projects):
    assert run("--from-agents", "--project", "b", "--yes").exit_code == 0
    assert SECRET in words_of(projects / "b" / ".toolmem" / "memory.db")
    assert not (projects / "a" / ".toolmem").exists()
    assert "name a folder" in str(run("--from-agents", "--project", "c", "--yes").exception)


@pytest.mark.parametrize("store", ["team.db", "http://localhost:1/team"])
def test_a_store_that_others_use_takes_sessions_only_where_that_is_said(projects, store):
    refused = run("--from-agents", "--yes", "--store", store)
    assert isinstance(refused.exception, RequestError) and "--into-shared" in str(refused.exception)
    assert not Path("team.db").exists()


def test_installing_a_hook_offers_earlier_sessions_and_the_next_one_is_told(projects):
    offered = CliRunner().invoke(hook, ["install", "claude-code"])
    assert "earlier sessions of this project: 1 of Claude Code" in offered.stdout
    CliRunner().invoke(hook, ["uninstall", "claude-code"])
    assert not (projects / "a" / ".toolmem").exists()
    assert CliRunner().invoke(hook, ["install", "claude-code", "--learn"]).exit_code == 0
    event = {"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(projects / "a")}
    told = answer_event(["claude-code"], json.dumps(event).encode(), {}).decode()
    assert "cat: /nonexistent/file: No such file" in told and SECRET not in told


def test_sessions_are_found_where_a_variable_says(projects, tmp_path):
    given = {"GEMINI_CLI_HOME": str(projects), "XDG_DATA_HOME": "/nowhere"}
    found = find_sessions(Path("/x"), variables=given)
    assert [(each.agent, each.project) for each in found] == [
        ("Gemini CLI", str(projects / name)) for name in ("a", "b")
    ]
