"""Which stores agents are held to: those whose rules bind less only where their user wants it.

A store is held while hooks or a proxy of this user's stand in an agent's settings, and it is one of a project, or one
that a hook saw. A store on a server is held by nobody.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolmem.config.own_folder import OWN, state_folder
from toolmem.store.masked import unmasked

INSTALLS = "hook-installs"  # folder of the state folder: a note on each file that an install wrote
_LONGEST_NOTE = 4_000_000  # bytes


def holds_agents(store: Any) -> bool:
    """Is it held: by the hook that opened it, or by what is installed?"""
    whole = unmasked(store)
    return bool(getattr(whole, "held", False)) or is_held(str(getattr(whole, "location", "")))


def is_held(location: str) -> bool:
    """Do hooks or a proxy of this user's hold agents to the rules of a store? One of a project, or that a hook saw."""
    if "://" in location or not os.path.isabs(location) or not has_installs():
        return False
    if Path(location).parts[-2:] == (OWN, "memory.db"):
        return True
    from toolmem.store.journal_changes import journal_here, store_key

    return journal_here().knows(store_key(location))


def has_installs() -> bool:
    """Does a hook or a proxy of this user's stand in an agent's settings? Not in a file that is gone."""
    with suppress(OSError):
        return any(map(os.path.exists, noted_files(state_folder() / INSTALLS)))
    return False


def noted_files(notes: Path) -> Iterator[str]:
    """The files that installs wrote, and where they lead."""
    try:
        entries = list(os.scandir(notes))
    except OSError:  # nothing was installed
        return
    for entry in entries:
        with suppress(OSError, ValueError, KeyError, TypeError):
            if entry.name.endswith(".json") and entry.stat().st_size <= _LONGEST_NOTE:
                path = str(json.loads(Path(entry.path).read_bytes())["path"])
                yield path
                yield os.path.realpath(path)
