"""A hook at work: a home and a project of the test's own, events in, answers out."""

from __future__ import annotations

import json
from contextlib import closing, contextmanager

import apsw
import pytest

from toolmem.hooks.__main__ import answer_event
from toolmem.hooks.agents import AGENTS
from toolmem.models.calls import SystemClock
from toolmem.rules.store import ToolMemoryStore
from toolmem.store.sqlite import SqliteStore

NOTE = {
    "quote": "leave the vendor folder alone",
    "effect": "deny",
    "tools": ["@shell"],
    "when": [{"command": "\\bvendor\\b"}],
    "stops": [{"tool": "@shell", "arguments": {"command": "rm vendor/a"}}],
    "passes": [{"tool": "@shell", "arguments": {"command": "ls src"}}],
}


class Host:
    """One agent, as it talks to its hook."""

    def __init__(self, agent, project, options=()):
        self.agent, self.project, self.options = AGENTS[agent], project, list(options)
        self.number = 0

    def payload(self, event, session="s1", **fields):
        """As the agent writes it; `event` and fields in Claude Code's words."""
        self.number += 1
        own = next(own for own, name in self.agent.events.items() if name == event)
        told = {"hook_event_name": own, "session_id": session, "cwd": str(self.project), **fields}
        back = {theirs: ours for ours, theirs in self.agent.rename.items()}
        back |= {"hook_event_name": back.get("hook_event_name", "hook_event_name")}
        if not self.agent.call_ids:
            told["timestamp"] = f"2026-11-27T10:00:{self.number:02}Z"
        return {back.get(name, name): value for name, value in told.items()}

    def send(self, event, session="s1", **fields):
        payload = self.payload(event, session, **fields)
        return self.raw(json.dumps(payload).encode())

    def raw(self, data, environment=None):
        said = answer_event([self.agent.name, *self.options], data, environment or {})
        return json.loads(said) if said else {}

    def prompt(self, text, session="s1"):
        self.number += 1
        return self.send("UserPromptSubmit", session, prompt=text, prompt_id=f"p{self.number}")

    @property
    def shell(self):
        return next(name for name, kind in self.agent.tools.items() if kind == "shell")

    def before(self, command, session="s1", key="call_1", **fields):
        """Why the call is stopped; "" where it runs."""
        return stopped(self.send("PreToolUse", session, **self._call(command, key), **fields))

    def decision(self, command, key="call_1", **fields):
        """What is decided about the call; "" where nothing is."""
        return decided(self.send("PreToolUse", **self._call(command, key), **fields))

    def after(self, command, output, session="s1", key="call_1", **fields):
        told = {"tool_response": self._response(output), **fields}
        return self.send("PostToolUse", session, **self._call(command, key), **told)

    def failed(self, command, error, session="s1", key="call_1"):
        return self.send("PostToolUseFailure", session, **self._call(command, key), error=error)

    def _call(self, command, key):
        given = {"commands": [command]} if self.agent.name == "cline" else {"command": command}
        return {"tool_name": self.shell, "tool_input": given, "tool_use_id": key}

    def _response(self, output):
        if self.agent.name == "copilot":
            return {"result_type": "success", "text_result_for_llm": output}
        if self.agent.name == "gemini":
            return {"llmContent": output}
        return {"stdout": output} if self.agent.name == "claude-code" else output

    def store(self):
        return SqliteStore(str(self.project / ".toolmem" / "memory.db"))

    @contextmanager
    def locked(self):
        """Another process writes to the store, and goes on writing."""
        with closing(apsw.Connection(self.store().location)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield

    def calls(self):
        """The recorded calls, by tool."""
        with self.store() as store:
            return [call for window in store.windows("default") for call in window.calls]

    @contextmanager
    def rule_store(self):
        with self.store() as store:
            yield ToolMemoryStore(store, "default", SystemClock())

    def rules(self):
        with self.rule_store() as rules:
            return rules.all_rules("s1").rules


def decided(told):
    return told.get("hookSpecificOutput", {}).get("permissionDecision", "")


def stopped(answer):
    """The reason of a denial or a question, in any agent's answer."""
    told = answer.get("hookSpecificOutput", {})
    if told.get("permissionDecision") in ("deny", "ask"):
        return told["permissionDecisionReason"]
    is_denied = answer.get("decision") in ("deny", "block") or answer.get("permission") == "deny"
    return answer.get("stop") or (
        answer.get("reason") or answer["agent_message"] if is_denied else ""
    )


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.delenv(f"XDG_{name}_HOME", raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def host(project):
    return Host("claude-code", project)


@pytest.fixture
def strangers_host(host, own_home, monkeypatch):
    """In a project that came with the rules of somebody else."""
    with monkeypatch.context() as somebody:
        somebody.setenv("HOME", str(own_home.parent / "stranger"))
        host.prompt("Never push to main.")
    return host


@pytest.fixture(params=AGENTS)
def every_host(request, project):
    return Host(request.param, project)
