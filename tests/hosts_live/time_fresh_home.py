"""How long it takes from `pip install` to a Claude Code that stops what its user forbade, in a fresh home.

    python tests/hosts_live/time_fresh_home.py

A wheel of this tree is built first and is there already; what it depends on comes from the package registry, with an
empty cache of pip's. Claude Code itself is there already too (`make test-hosts` installs it), and its model is scripted
on loopback.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.hosts_live.claude_code_driver import ClaudeCodeDriver  # noqa: E402
from toolmem.testing.agent_server import AgentServer  # noqa: E402

GOAL = 120.0


class FreshHome(ClaudeCodeDriver):
    """Its toolmem is the one that was installed in it."""

    @property
    def python(self) -> Path:
        return self.home / "venv" / "bin" / "python"

    def toolmem(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self._run([str(self.python.with_name("toolmem")), *arguments], check)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Print how long it took."""
    began = time.monotonic()
    yield
    print(f"{time.monotonic() - began:6.1f} s  {name}")


def main() -> int:
    """1 where the goal was missed."""
    with tempfile.TemporaryDirectory() as folder, AgentServer(is_aside=lambda asked: agent.is_aside(asked)) as server:
        agent = FreshHome(server, Path(folder))
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, str(ROOT)]
        subprocess.run(build, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        subprocess.run([sys.executable, "-m", "venv", str(agent.home / "venv")], check=True)
        agent.prepare()
        began = time.monotonic()
        with step("pip install toolmem"):
            pip = [str(agent.python), "-m", "pip", "install", "--quiet", "--no-cache-dir", str(wheel)]
            subprocess.run(pip, check=True)
        with step("toolmem hook install claude-code"):
            agent.toolmem("hook", "install", "claude-code")
        with step("toolmem hook doctor claude-code"):
            agent.toolmem("hook", "doctor", "claude-code")
        with step('"Never push to main."'):
            server.then("Understood.")
            agent.prompt("Never push to main.")
        with step("git push origin main, stopped"):
            server.then(agent.shell("git push origin main"), "That is all.")
            agent.prompt("Publish it.")
        took = time.monotonic() - began
        (call,) = (call for request in server.turns if request.turn for call in request.turn.calls)
        answer = server.turns[-1].answer_to(call.id)
        assert answer is not None
        assert "never push to main" in answer.text.lower(), answer.text
    print(f"{took:6.1f} s  from `pip install` to a guarded Claude Code (goal: {GOAL:.0f} s)")
    return int(took > GOAL)


if __name__ == "__main__":
    sys.exit(main())
