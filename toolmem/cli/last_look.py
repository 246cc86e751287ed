"""When a person last looked at the rules of a store, or agreed to a file of them: in the user's state folder, so that
looking changes no store.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolmem.config.own_folder import make_folder, state_folder, write_new

FILE = "rules-seen.json"
_MOST = 500  # stores; those looked at longest ago go
_LONGEST = 200_000  # bytes


def last_look(store: str, workspace: str, of: str = "") -> datetime | None:
    """None where nobody looked yet. `store`: its path; `of`: the digest of a file."""
    told = _looks().get(_place(store, workspace, of))
    with suppress(TypeError, ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(float(told), UTC)  # type: ignore[arg-type]  # None is no number
    return None


def note_look(store: str, workspace: str, at: datetime, of: str = "") -> None:
    """What changed before is no longer new. A state folder that cannot be written is left: all stays new."""
    looks = _looks()
    looks.pop(_place(store, workspace, of), None)
    newest = [*looks.items(), (_place(store, workspace, of), at.timestamp())][-_MOST:]
    with suppress(OSError):
        folder = state_folder()
        make_folder(folder)
        fresh = folder / f"{FILE}.{os.getpid()}"
        with suppress(FileNotFoundError):
            fresh.unlink()
        write_new(fresh, json.dumps(dict(newest)).encode())
        os.replace(fresh, folder / FILE)


def _place(store: str, workspace: str, of: str) -> str:
    return json.dumps([os.path.realpath(store), workspace, *filter(None, [of])])


def _looks() -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        path = Path(state_folder(), FILE)
        if path.stat().st_size <= _LONGEST:
            told = json.loads(path.read_bytes())
            return told if isinstance(told, dict) else {}
    return {}
