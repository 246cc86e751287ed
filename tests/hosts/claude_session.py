"""A session that Claude Code recorded, told to hooks again in another folder, with as much left out as a test likes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

from toolmem.hosts.hook_process import answered

RECORDED = Path(__file__).parent / "recorded" / "claude-code-2.1.197"
AFTER_ITS_END = "toolu_0b083a73a33073ffb465222e"  # a call of the session as it was resumed
SESSION = "dc76722e-87aa-4968-816a-12dfdcd734e2"


class ClaudeSession:
    """`project`: where it takes place now. `home`: where Claude Code keeps its recording."""

    def __init__(self, project: Path, home: Path) -> None:
        self.project = project
        name = "".join(each if each.isascii() and each.isalnum() else "-" for each in str(project))
        self.transcript = home / ".claude" / "projects" / name / f"{SESSION}.jsonl"
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        told = (RECORDED / "session-1.jsonl").read_text().replace("/home/user/project", str(project))
        lines = [line for line in told.splitlines(keepends=True) if AFTER_ITS_END not in line]
        self.transcript.write_text("".join(lines))

    def payloads(self) -> Iterable[dict[str, Any]]:
        """Of its first part, from the start to the end."""
        for path in sorted(RECORDED.glob("*.json"))[:30]:
            text = path.read_text().replace("/home/user/project", str(self.project))
            yield {**json.loads(text)["payload"], "transcript_path": str(self.transcript)}

    def tell(self, wanted: Callable[[dict[str, Any]], bool] = lambda payload: True) -> None:
        """Hand the wanted payloads to the hook, in this process."""
        for payload in self.payloads():
            if payload["hook_event_name"] != "SessionEnd" and wanted(payload):
                tell(payload, self.project)

    def end(self) -> dict[str, Any]:
        """The payload of its end."""
        (payload,) = (each for each in self.payloads() if each["hook_event_name"] == "SessionEnd")
        return payload


def tell(payload: dict[str, Any], project: Path) -> dict[str, Any]:
    """What the hook answers."""
    environment = {"CLAUDE_PROJECT_DIR": str(project)}
    said = answered(["claude-code"], BytesIO(json.dumps(payload).encode()), environment)
    return json.loads(said) if said else {}
