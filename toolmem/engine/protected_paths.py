"""What only the user changes, beside every folder `.toolmem`: the store of a guard, toolmem's notes on a user, and what
was installed in the settings of agents.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from toolmem.config.own_folder import OWN, state_folder
from toolmem.store.masked import unmasked

if TYPE_CHECKING:
    from toolmem.protocols import MemoryStore

INSTALLS = "hook-installs"  # folder of the state folder: a note on each file that an install wrote
KEPT_RULES = "rules"  # folder of the state folder: the rules of each store that hooks saw
_LONGEST_NOTE = 4_000_000  # bytes


def protected_paths(store: MemoryStore) -> tuple[str, ...]:
    """The store's file or the addresses of its servers, the user's state folder, and what hooks stand in."""
    location = str(getattr(unmasked(store), "location", ""))
    places = [each.strip() for each in location.split(",")] if "://" in location else [location]
    with suppress(OSError):  # a user without a home
        folder = state_folder()
        places += [str(folder), *installed_files(folder / INSTALLS)]
    return tuple(each for each in places if each and each != ":memory:")


def has_installs() -> bool:
    """Does a hook or a proxy of this user's stand in an agent's settings? Not in a file that is gone."""
    with suppress(OSError):
        return any(map(os.path.exists, _noted(state_folder() / INSTALLS)))
    return False


def is_held(location: str) -> bool:
    """Do hooks or a proxy of this user's hold agents to the rules of a store? One of a project, or that a hook saw."""
    if "://" in location or not os.path.isabs(location) or not has_installs():
        return False
    if Path(location).parts[-2:] == (OWN, "memory.db"):
        return True
    with suppress(OSError):
        return kept_rules_file(location).exists()
    return False


def kept_rules_file(location: str) -> Path:
    """Where hooks keep the rules of a store that they saw. Raises OSError where the user has no home folder."""
    name = hashlib.blake2s(os.fsencode(os.path.realpath(location)), digest_size=16).hexdigest()
    return state_folder() / KEPT_RULES / f"{name}.jsonl"


def installed_files(notes: Path) -> list[str]:
    """The files that installs wrote, which are protected whole, and what runs there: this interpreter and toolmem."""
    found = sorted(set(_noted(notes)))
    if not found:
        return []
    package = Path(__file__).parent.parent
    code = [str(package)] if "site-packages" in package.parts else []  # not where somebody works on toolmem itself
    return [*found, *({path, os.path.realpath(path)} if (path := sys.executable) else ()), *code]


def _noted(notes: Path) -> Iterator[str]:
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
