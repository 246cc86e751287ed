"""In the real programs: the model is told how to note a demand, its note is answered, and holds in the next session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from tests.hosts_live.agent_driver import AgentDriver
from tests.hosts_live.editions import DRIVERS, editions
from tests.hosts_live.test_whole_path import asked, started, stopped

pytestmark = pytest.mark.hosts
SAID = "Skipping hooks with --no-verify is cheating"


@pytest.fixture(params=editions(*DRIVERS), ids=lambda edition: edition.name)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentDriver]:
    yield from started(request.param, tmp_path)


def test_a_note_is_answered_and_holds_in_the_next_session(agent: AgentDriver) -> None:
    agent.git("init", "--quiet", "--initial-branch=main")
    agent.toolmem("hook", "install", agent.host, *agent.install_arguments())
    agent.after_install()
    begun = len(agent.server.turns)
    agent.server.then("Understood.")
    agent.prompt("Hello.")
    told = unescape(agent.server.turns[begun].text).splitlines()  # Gemini CLI writes `&lt;`
    line = next((each for each in told if each.endswith(" note <<'TOOLMEM'")), "")
    assert line, "how to note stands before the model"
    tool = agent.shell("true").tool
    note = {
        "quote": SAID,
        "effect": "deny",
        "lasting": "always",
        "tools": [tool],
        "when": [{"command": r"^git (commit|push)\b", "word": "--no-verify"}],
        "stops": [{"tool": tool, "arguments": {"command": "git commit --no-verify -m x"}}],
        "passes": [{"tool": tool, "arguments": {"command": "git commit -m wip"}}],
    }
    (answer,) = asked(agent, f"{SAID}.", agent.shell(f"{line}\n{json.dumps(note)}\nTOOLMEM"))
    assert "Kept: " in answer.text, answer.text
    assert SAID in answer.text
    (denied,) = asked(agent, "Commit it.", agent.shell("git commit --no-verify --allow-empty -m wip"))
    stopped(denied, SAID.lower())
