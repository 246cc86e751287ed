"""Where coding agents keep the transcripts of their sessions, in the home of their user."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from toolmem.guard.self_protection import TRANSCRIPTS

_PATTERNS = {  # below an agent's folder of transcripts
    "Claude Code": "**/*.jsonl",
    "Codex": "**/rollout-*.jsonl",
    "Gemini CLI": "*/chats/session-*.json*",
    "OpenCode": "opencode.db",
}


class Transcripts(Struct, frozen=True):
    """The transcripts of one agent."""

    agent: str
    paths: list[Path]
    size: int  # bytes


def transcripts(home: Path, variables: Mapping[str, str] | None = None) -> list[Transcripts]:
    """Find the transcripts of each agent that has some. Symbolic links are not followed."""
    given = os.environ if variables is None else variables
    found = []
    for agent, (variable, folder, part) in TRANSCRIPTS.items():
        root = Path(given.get(variable) or home / folder) / part
        sizes = {path: _size(path) for path in sorted(root.glob(_PATTERNS[agent]))}
        paths = [path for path, size in sizes.items() if size is not None]
        if paths:
            found.append(Transcripts(agent, paths, sum(size or 0 for size in sizes.values())))
    return found


def _size(path: Path) -> int | None:
    """The size of a file with that of its SQLite log beside it; None: no file to read."""
    log = path.with_name(f"{path.name}-wal")
    try:
        if path.is_symlink() or not path.is_file():
            return None
        return path.stat().st_size + (log.stat().st_size if log.is_file() else 0)
    except OSError:  # removed meanwhile, or in a folder that may not be read
        return None
