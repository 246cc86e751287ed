"""Record what a real program tells its hooks: `python -m tests.hosts_live.record_payloads claude-code [newest]`.

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

from tests.hosts_live.agent_driver import PINNED, ROOT, AgentDriver
from tests.hosts_live.claude_code_driver import ClaudeCodeDriver
from tests.hosts_live.cline_driver import ClineDriver
from tests.hosts_live.codex_driver import CodexDriver
from tests.hosts_live.copilot_driver import CopilotDriver
from tests.hosts_live.editions import NEWEST
from tests.hosts_live.gemini_driver import GeminiDriver
from tests.hosts_live.opencode_driver import OpenCodeDriver
from toolmem.hosts.host import host_of
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
            detail = (
                payload.get("tool_name") or payload.get("source") or payload.get("trigger") or payload.get("tool") or ""
            )
            name = "-".join(filter(None, [f"{number:02}", _event(payload), detail]))
            (folder / f"{name}.json").write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
        for number, session in enumerate(sessions, 1):
            told = session.read_text(encoding="utf-8")
            lines = [json.loads(told)] if told.startswith("{\n") else [json.loads(line) for line in told.splitlines()]
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
            (NEWEST.parent, "/opt/programs"),
            (PINNED.parent, "/opt/programs"),
            (ROOT, "/opt/toolmem"),
        ):
            value = value.replace(str(path), name).replace(re.sub(r"\W", "-", str(path)), re.sub(r"\W", "-", name))
        value = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:80", value)
        return value if len(value) <= LONG else f"{value[:100]} ... ({len(value):,} characters)"


def _event(payload: dict[str, Any]) -> str:
    told = payload.get("hook_event_name") or payload.get("event") or payload.get("hookName")
    return str(told or ("SubagentStart" if "agentName" in payload else "Other"))


def claude_code(folder: Path, programs: Path) -> Path:
    with AgentServer(is_aside=lambda asked: agent.is_aside(asked)) as server:
        agent = ClaudeCodeDriver(server, folder, programs)
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
        try_compact_and_resume(agent, server)
        helper = {"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"}
        let_a_helper_look(agent, server, AskedCall("Agent", helper))
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


def codex(folder: Path, programs: Path) -> Path:
    with AgentServer() as server:
        agent = CodexDriver(server, folder, programs)
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
        try_compact_and_resume(agent, server)
        sessions = sorted((agent.home / ".codex" / "sessions").rglob("*.jsonl"))
        return recorder.write(sessions)


GEMINI_EVENTS = ["SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool"]
GEMINI_EVENTS += ["PreCompress", "Notification"]


def gemini(folder: Path, programs: Path) -> Path:
    with AgentServer() as server:
        agent = GeminiDriver(server, folder, programs)
        agent.prepare()
        recorder = Recorder(agent)
        hook = {"type": "command", "command": " ".join(recorder.command), "timeout": 10_000}
        hooks = {event: [{"hooks": [hook]}] for event in GEMINI_EVENTS}
        servers = {"mail": {"command": recorder.mail[0], "args": recorder.mail[1:], "trust": True}}
        agent.settings.write_text(json.dumps({"hooks": hooks, "mcpServers": servers}))
        shell, file = agent.shell, {"file_path": f"{agent.project}/a.txt"}
        server.then(
            shell("echo hello"),
            shell("ls /nowhere"),
            shell("echo 'Exit Code: 1'"),
            AskedCall("read_file", {"file_path": "missing.txt"}),
            AskedCall("write_file", {**file, "content": "one\n"}),
            AskedCall("replace", {**file, "instruction": "change", "old_string": "one", "new_string": "two"}),
            AskedCall("mcp_mail_send_email", {"to": "bob@example.com"}),
            AskedCall("mcp_mail_send_email", {"to": "bob@example.com", "fail": True}),
            [shell("echo one"), shell("echo two")],
            "It is done.",
        )
        try_compact_and_resume(agent, server)
        return recorder.write(sorted((agent.home / ".gemini" / "tmp").rglob("session-*.jsonl")))


def copilot(folder: Path, programs: Path) -> Path:
    with AgentServer(is_aside=lambda asked: agent.is_aside(asked)) as server:
        agent = CopilotDriver(server, folder, programs)
        recorder = Recorder(agent)
        hook = {"type": "command", "exec": recorder.command[0], "args": recorder.command[1:], "timeoutSec": 10}
        hooks = agent.home / ".copilot" / "hooks" / "record.json"
        hooks.parent.mkdir(parents=True)
        hooks.write_text(json.dumps({"version": 1, "hooks": {event: [hook] for event in CLAUDE_EVENTS}}))
        mail = {"type": "local", "command": recorder.mail[0], "args": recorder.mail[1:], "tools": ["*"]}
        (agent.home / ".copilot" / "mcp-config.json").write_text(json.dumps({"mcpServers": {"mail": mail}}))
        shell, file = agent.shell, f"{agent.project}/a.txt"
        server.then(
            shell("echo hello"),
            shell("ls /nowhere"),
            AskedCall("view", {"path": f"{agent.project}/missing.txt"}),
            AskedCall("create", {"path": file, "file_text": "one\n"}),
            AskedCall("edit", {"path": file, "old_str": "one", "new_str": "two"}),
            AskedCall("mail-send_email", {"to": "bob@example.com"}),
            AskedCall("mail-send_email", {"to": "bob@example.com", "fail": True}),
            [shell("echo one"), shell("echo two")],
            "It is done.",
        )
        try_compact_and_resume(agent, server)
        helper = {"agent_type": "explore", "prompt": "Look around.", "description": "look", "name": "looker"}
        let_a_helper_look(agent, server, AskedCall("task", helper))
        return recorder.write(sorted((agent.home / ".copilot" / "session-state").glob("*/events.jsonl")))


def opencode(folder: Path, programs: Path) -> Path:
    """What the plugin tells; the sessions lie in a database, which is not recorded."""
    with AgentServer() as server:
        agent = OpenCodeDriver(server, folder, programs)
        agent.prepare()
        recorder = Recorder(agent)
        plugin_files(agent, recorder)
        settings = agent.home / ".config" / "opencode" / "opencode.json"
        mail = {"mail": {"type": "local", "command": recorder.mail}}
        settings.write_text(json.dumps({**json.loads(settings.read_text()), "mcp": mail}))
        shell, file = agent.shell, f"{agent.project}/a.txt"
        server.then(
            shell("echo hello"),
            shell("ls /nowhere"),
            AskedCall("read", {"filePath": f"{agent.project}/missing.txt"}),
            AskedCall("write", {"filePath": file, "content": "one\n"}),
            AskedCall("edit", {"filePath": file, "oldString": "one", "newString": "two"}),
            AskedCall("mail_send_email", {"to": "bob@example.com"}),
            AskedCall("mail_send_email", {"to": "bob@example.com", "fail": True}),
            [shell("echo one"), shell("echo two")],
            "It is done.",
        )
        try_compact_and_resume(agent, server)
        helper = {"subagent_type": "general", "prompt": "Look around.", "description": "look"}
        let_a_helper_look(agent, server, AskedCall("task", helper))
        return recorder.write([])


def cline(folder: Path, programs: Path) -> Path:
    """What the plugin tells."""
    with AgentServer() as server:
        agent = ClineDriver(server, folder, programs)
        agent.prepare()
        recorder = Recorder(agent)
        plugin_files(agent, recorder)
        shell = agent.shell
        patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch"
        server.then(
            shell("echo hello"),
            shell("ls /nowhere"),
            AskedCall("read_files", {"files": [{"path": f"{agent.project}/missing.txt"}]}),
            AskedCall("apply_patch", {"input": patch}),
            [shell("echo one"), shell("echo two")],
            "It is done.",
        )
        agent.prompt("Try everything. Never push to main.")
        let_a_helper_look(agent, server, AskedCall("spawn_agent", {"task": "Look around."}))
        sessions = (agent.home / ".cline" / "data" / "sessions").glob("*/*.messages.json")
        return recorder.write(sorted(sessions))


def try_compact_and_resume(agent: AgentDriver, server: AgentServer) -> None:
    """What the model was told to do, a compaction, and the same session again."""
    session = agent.prompt("Try everything. Never push to main.")
    agent.compact(session)
    server.then(agent.shell("echo resumed"), "Resumed.")
    agent.prompt("Go on.", session=session)


def let_a_helper_look(agent: AgentDriver, server: AgentServer, spawn: AskedCall) -> None:
    server.then(spawn, agent.shell("echo below"), "Looked.", "All is done.")
    agent.prompt("Let a helper look.")


def plugin_files(agent: AgentDriver, recorder: Recorder) -> None:
    """Our own plugin, with the recorder in place of toolmem."""
    host = host_of(agent.host)
    for path, text in host.own_files("project", agent.project, agent.home, {}, recorder.command).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


RECORDERS = {"claude-code": claude_code, "codex": codex, "gemini": gemini, "copilot": copilot}
RECORDERS |= {"opencode": opencode, "cline": cline}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(RECORDERS[sys.argv[1]](Path(temporary), NEWEST if sys.argv[2:] == ["newest"] else PINNED))
