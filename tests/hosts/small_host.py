"""A host as small as one can be, for tests of what is the same for all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from toolmem.hosts.events import HookAnswer, HookEvent
from toolmem.hosts.host import Host, RecordedCall, Scope


class SmallHost(Host):
    name, title, verified = "small", "Small", "1.0"
    tools = {"Bash": ("shell",)}

    def read(self, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent | None:
        return None

    def write(self, event: HookEvent, answer: HookAnswer) -> Mapping[str, Any]:
        return {}

    def settings_file(self, scope: Scope, project: Path, home: Path, environment: Mapping[str, str]) -> Path | None:
        return (project if scope == "project" else home) / ".small" / "settings.json"

    def add_hooks(self, settings: Mapping[str, Any], command: list[str]) -> dict[str, Any]:
        hooks = dict(settings.get("hooks", {}))
        for event in ("Before", "After"):
            hooks[event] = [*hooks.get(event, []), {"command": command[0], "args": command[1:]}]
        return {**settings, "hooks": hooks}

    def remove_hooks(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        if "hooks" not in settings:
            return dict(settings)
        hooks = {}
        for event, entries in settings["hooks"].items():
            left = [each for each in entries if not _is_ours(each)]
            if left or not any(map(_is_ours, entries)):
                hooks[event] = left
        rest = {key: value for key, value in settings.items() if key != "hooks"}
        return {**rest, "hooks": hooks} if hooks or not settings["hooks"] else rest

    def synthetic(self, session_id: str, cwd: str) -> Mapping[str, Any]:
        return {}

    def calls_of(self, transcript: Iterable[str]) -> Iterable[RecordedCall]:
        for line in transcript:
            yield RecordedCall(**json.loads(line))


class FileHost(SmallHost):
    name, title = "filed", "Filed"

    def settings_file(self, scope: Scope, project: Path, home: Path, environment: Mapping[str, str]) -> Path | None:
        return None

    def own_files(
        self, scope: Scope, project: Path, home: Path, environment: Mapping[str, str], command: list[str]
    ) -> dict[Path, str]:
        return {project / ".filed" / "hooks" / "before": "#!/bin/sh\nexec " + " ".join(command) + "\n"}


def _is_ours(entry: Any) -> bool:
    return isinstance(entry, dict) and "toolmem.hosts" in (entry.get("args") or ())
