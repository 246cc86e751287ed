"""The programs that are tried: each at the version of package.json, and at the newest where npm serves another one.

`python -m tests.hosts_live.editions` asks npm for the newest and installs it beside, in .hosts/newest.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.hosts_live.agent_driver import PINNED, ROOT, AgentDriver
from tests.hosts_live.claude_code_driver import ClaudeCodeDriver
from tests.hosts_live.cline_driver import ClineDriver
from tests.hosts_live.codex_driver import CodexDriver
from tests.hosts_live.copilot_driver import CopilotDriver
from tests.hosts_live.gemini_driver import GeminiDriver
from tests.hosts_live.opencode_driver import OpenCodeDriver

DRIVERS: tuple[type[AgentDriver], ...] = (
    ClaudeCodeDriver,
    CodexDriver,
    GeminiDriver,
    CopilotDriver,
    OpenCodeDriver,
    ClineDriver,
)
FOLDER = ROOT / ".hosts" / "newest"
NEWEST = FOLDER / "node_modules" / ".bin"
SERVED = FOLDER / "served.json"  # what npm answered last: package -> version


class Edition(NamedTuple):
    """A program at one of its versions."""

    driver: type[AgentDriver]
    programs: Path

    @property
    def is_newest(self) -> bool:
        return self.programs == NEWEST

    @property
    def name(self) -> str:
        return f"{self.driver.host}-newest" if self.is_newest else self.driver.host


def editions(*drivers: type[AgentDriver]) -> list[Edition]:
    """Of these agents: the pinned version of each, and the newest where that is another one."""
    newer = [Edition(each, NEWEST) for each in drivers if (NEWEST / each.program).exists()]
    return [*(Edition(each, PINNED) for each in drivers), *newer]


def served(package: str) -> str:
    """The newest version that npm served when it was asked last; "" where it was not."""
    known = json.loads(SERVED.read_text(encoding="utf-8")) if SERVED.is_file() else {}
    return str(known.get(package, ""))


def install_newest() -> None:
    """npm keeps exactly what is named: what is no longer newer than its pinned version goes."""
    pinned = json.loads((ROOT / "tests" / "hosts_live" / "package.json").read_text(encoding="utf-8"))["dependencies"]
    newest = {each.package: _asked(each.package) for each in DRIVERS}
    newer = {name: version for name, version in newest.items() if version != pinned[name]}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "package.json").write_text(json.dumps({"private": True, "dependencies": newer}), encoding="utf-8")
    install = ["npm", "install", "--prefix", str(FOLDER), "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(install, check=True, stdout=sys.stderr)
    SERVED.write_text(json.dumps(newest, indent=2) + "\n", encoding="utf-8")


def _asked(package: str) -> str:
    asked = subprocess.run(["npm", "view", package, "version"], check=True, stdout=subprocess.PIPE, text=True)
    return asked.stdout.strip()


if __name__ == "__main__":
    install_newest()
