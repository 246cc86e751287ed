"""What several roads tell of one call is kept once: hooks of two installs, the proxy, the program's own recording."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts_live.agent_driver import AgentDriver
from tests.hosts_live.claude_code_driver import ClaudeCodeDriver
from tests.hosts_live.codex_driver import CodexDriver
from tests.hosts_live.editions import editions
from tests.hosts_live.test_whole_path import asked, started, told
from toolmem import ToolMem
from toolmem.models import ToolCallResult
from toolmem.testing.agent_server import AgentRequest, AskedCall

pytestmark = pytest.mark.hosts
MAIL = [sys.executable, str(Path(__file__).with_name("mail_server.py"))]


@pytest.fixture(params=editions(ClaudeCodeDriver, CodexDriver), ids=lambda edition: edition.name)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentDriver]:
    yield from started(request.param, tmp_path)


def kept(agent: AgentDriver, calls: int) -> list[ToolCallResult]:
    """The calls in the project's store, once a process that nobody waits for has read the recording."""
    with ToolMem(agent.project / ".toolmem" / "memory.db") as mem:
        for _ in range(100):
            found = mem.calls()
            if len(found) > calls or (len(found) == calls and all(call.success is not None for call in found)):
                break
            time.sleep(0.1)
        return found


def test_a_call_that_hook_proxy_and_recording_tell_is_one_call(agent: AgentDriver) -> None:
    agent.toolmem("hook", "install", agent.host)
    agent.after_install()
    store = str(agent.project / ".toolmem" / "memory.db")
    proxied = [sys.executable, "-P", "-m", "toolmem", "mcp", "proxy", "--store", store, "--", *MAIL]
    agent.add_server("mail", proxied)

    def once_connected(request: AgentRequest) -> AskedCall:
        return agent.shell("true" if any("mail" in tool for tool in request.tools) else "sleep 2")

    good = agent.server_call("mail", "send_email", {"to": "bob@example.com"})
    bad = agent.server_call("mail", "send_email", {"to": "eve@example.com", "fail": True})
    *_, first, second = asked(agent, "Send them.", *[once_connected] * 10, good, bad)
    assert "sent" in first.text
    assert "unavailable" in second.text
    found = kept(agent, 12)[10:]
    assert [(call.tool_name, call.success) for call in found] == [("send_email", True), ("send_email", False)]


def test_two_installs_tell_the_model_once(agent: AgentDriver) -> None:
    agent.toolmem("hook", "install", agent.host)
    agent.toolmem("hook", "install", agent.host, "--user")
    agent.after_install()
    agent.server.then("Understood.")
    agent.prompt("Never push to main.")
    asked(agent, "Say hello.", agent.shell("echo hello"))
    first = agent.server.turns[1]
    assert told(first)
    assert first.text.lower().count("never push to main") == 1
    assert [call.output.strip() for call in kept(agent, 1)] == ["hello"]
