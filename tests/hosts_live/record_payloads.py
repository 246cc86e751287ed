"""Record what a real program tells its hooks: `python -m tests.hosts_live.record_payloads claude-code`.

Writes tests/hosts/recorded/NAME-VERSION/: one JSON file per event (its payload, and the variables of the agent that its
hook got) in the order in which they came, and the program's own recordings of the sessions (*.jsonl). Paths of this
machine are written as /home/user, long texts (the agent's instructions) are cut.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.hosts_live.agent_driver import PROGRAMS, ROOT, AgentDriver
from tests.hosts_live.claude_code_driver import ClaudeCodeDriver
from tests.hosts_live.codex_driver import CodexDriver
from toolmem.testing.agent_server import AgentServer, AskedCall

HERE = Path(__file__).resolve().parent
RECORDED = ROOT / "tests" / "hosts" / "recorded"
LONG = 600  # characters
COMMON = ["SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest", "Stop"]
COMMON += ["StopFailure", "SubagentStart", "SubagentStop", "PreCompact", "PostCompact"]
CLAUDE_EVENTS = [*COMMON, "PostToolUseFailure", "PostToolBatch", "PermissionDenied", "Notification"]
CODEX_EVENTS = [*COMMON, "Interrupt"]


class Recorder:
    """The conversation that is recorded, and the files that come of it."""

    def __init__(self, agent: AgentDriver) -> None:
        self.agent = agent
        self.log = agent.home / "told.jsonl"
        self.command = [sys.executable, str(HERE / "recording_hook.py"), str(self.log)]
        self.mail = [sys.executable, str(HERE / "mail_server.py")]

    def write(self, sessions: list[Path]) -> Path:
        folder = RECORDED / f"{self.agent.host}-{re.search(r'[0-9][0-9.]*[0-9]', self.agent.version())[0]}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for number, line in enumerate(self.log.read_text(encoding="utf-8").splitlines(), 1):
            told = self.scrubbed(json.loads(line))
            payload = told["payload"]
            detail = payload.get("tool_name") or payload.get("source") or payload.get("trigger") or ""
            name = "-".join(filter(None, [f"{number:02}", payload["hook_event_name"], detail]))
            (folder / f"{name}.json").write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
        for number, session in enumerate(sessions, 1):
            lines = [json.loads(line) for line in session.read_text(encoding="utf-8").splitlines()]
            text = "\n".join(json.dumps(self.scrubbed(line), ensure_ascii=False) for line in lines)
            (folder / f"session-{number}.jsonl").write_text(text + "\n", encoding="utf-8")
        return folder

    def scrubbed(self, value: Any) -> Any:
        """Without paths of this machine and without long texts."""
        if isinstance(value, dict):
            return {self.scrubbed(key): self.scrubbed(each) for key, each in value.items() if key != "tools"}
        if isinstance(value, list):
            return [self.scrubbed(each) for each in value]
        if not isinstance(value, str):
            return value
        for path, name in (
            (self.agent.project, "/home/user/project"),
            (self.agent.home, "/home/user"),
            (self.agent.home.parent, "/home"),
            (PROGRAMS.resolve().parent, "/opt/programs"),
            (ROOT, "/opt/toolmem"),
        ):
            value = value.replace(str(path), name).replace(re.sub(r"\W", "-", str(path)), re.sub(r"\W", "-", name))
        value = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:80", value)
        return value if len(value) <= LONG else f"{value[:100]} ... ({len(value):,} characters)"


def claude_code(folder: Path) -> Path:
    with AgentServer(is_aside=lambda asked: agent.is_aside(asked)) as server:
        agent = ClaudeCodeDriver(server, folder)
        agent.prepare()
        recorder = Recorder(agent)
        hook = {"type": "command", "command": recorder.command[0], "args": recorder.command[1:], "timeout": 10}
        agent.settings.write_text(json.dumps({"hooks": {event: [{"hooks": [hook]}] for event in CLAUDE_EVENTS}}))
        agent.add_server("mail", recorder.mail)
        shell, project = agent.shell, agent.project
        server.then(
            shell("echo hello"),
            shell("ls /nowhere"),
            AskedCall("Read", {"file_path": f"{project}/missing.txt"}),
            AskedCall("Write", {"file_path": f"{project}/a.txt", "content": "one\n"}),
            AskedCall("Edit", {"file_path": f"{project}/a.txt", "old_string": "one", "new_string": "two"}),
            AskedCall("mcp__mail__send_email", {"to": "bob@example.com"}),
            AskedCall("mcp__mail__send_email", {"to": "bob@example.com", "fail": True}),
            [shell("echo one"), shell("echo two")],
            "It is done.",
        )
        session = agent.prompt("Try everything. Never push to main.")
        agent.compact(session)
        server.then(shell("echo resumed"), "Resumed.")
        agent.prompt("Go on.", session=session)
        helper = {"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"}
        server.then(AskedCall("Agent", helper), shell("echo below"), "Looked.", "All is done.")
        agent.prompt("Let a helper look.")
        server.then("Typed.", "Cleared.")
        (project / ".mcp.json").unlink()
        with agent.terminal() as terminal:
            terminal.type("What is typed at the keys.")
            terminal.wait_for("Typed.")
            terminal.type("/clear")
            terminal.type("And after it.")
            terminal.wait_for("Cleared.")
            terminal.type("/exit")
            terminal.settle()
        sessions = sorted((agent.home / ".claude" / "projects").rglob("*.jsonl"), key=lambda path: path.stat().st_mtime)
        return recorder.write(sessions)


def codex(folder: Path) -> Path:
    with AgentServer() as server:
        agent = CodexDriver(server, folder)
        agent.prepare()
        recorder = Recorder(agent)
        hook = {"type": "command", "command": " ".join(recorder.command), "timeout": 10}
        agent.settings.write_text(json.dumps({"hooks": {event: [{"hooks": [hook]}] for event in CODEX_EVENTS}}))
        agent.after_install()
        agent.add_server("mail", recorder.mail)
        shell = agent.shell
        patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch"
        mail = {"to": "bob@example.com"}
        server.then(
            shell("echo hello"),
            shell("ls /nowhere"),
            shell(f"apply_patch <<'EOF'\n{patch}\nEOF"),
            AskedCall("apply_patch", patch),
            AskedCall("send_email", mail, namespace="mcp__mail"),
            AskedCall("send_email", {**mail, "fail": True}, namespace="mcp__mail"),
            [shell("echo one"), shell("echo two")],
            "It is done.",
        )
        session = agent.prompt("Try everything. Never push to main.")
        agent.compact(session)
        server.then(shell("echo resumed"), "Resumed.")
        agent.prompt("Go on.", session=session)
        sessions = sorted((agent.home / ".codex" / "sessions").rglob("*.jsonl"))
        return recorder.write(sessions)


RECORDERS = {"claude-code": claude_code, "codex": codex}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(RECORDERS[sys.argv[1]](Path(temporary)))
