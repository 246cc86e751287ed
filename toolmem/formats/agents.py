"""Where coding agents keep the transcripts of their sessions, in the home of their user."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

# Agent: the variable that moves its folder, that folder in the home, and patterns below it.
_PLACES = {
    "Claude Code": ("CLAUDE_CONFIG_DIR", ".claude", ("projects/**/*.jsonl",)),
    "Codex": ("CODEX_HOME", ".codex", ("sessions/**/rollout-*.jsonl",)),
    "Gemini CLI": ("GEMINI_DIR", ".gemini", ("tmp/*/chats/session-*.json*",)),
    "OpenCode": ("XDG_DATA_HOME", ".local/share", ("opencode/opencode.db",)),
}


class Transcripts(Struct, frozen=True):
    """The files of one agent."""

    agent: str
    paths: list[Path]
    size: int  # bytes


def transcripts(home: Path, variables: Mapping[str, str] | None = None) -> list[Transcripts]:
    """Those of every agent that has some. Symbolic links are not followed."""
    given = os.environ if variables is None else variables
    found = []
    for agent, (variable, folder, patterns) in _PLACES.items():
        root = Path(given.get(variable) or home / folder)
        paths = sorted(path for pattern in patterns for path in root.glob(pattern))
        files = [path for path in paths if path.is_file() and not path.is_symlink()]
        if files:
            found.append(Transcripts(agent, files, sum(path.stat().st_size for path in files)))
    return found
