"""Stores that are gone or cannot be read: their rules hold as the journal keeps them, and the user is told."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from toolmem.config.own_folder import OWN
from toolmem.store.journal_changes import KeptStore, journal_here, store_key

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile

WORKSPACE = "default"


def kept_of(path: str | Path) -> KeptStore | None:
    """What the journal keeps of the store that is, or was, at a path; None where no rule holds from it."""
    kept = journal_here().store(store_key(str(path)), WORKSPACE)
    return kept if kept is not None and kept.rules else None


def gone() -> list[KeptStore]:
    """Those whose store is not there any more, though the folder that it was made for is."""
    known = journal_here().stores(WORKSPACE)
    return [each for each in known if each.rules and not os.path.isfile(each.path) and _folder_of(each.path).is_dir()]


def _folder_of(store: str) -> Path:
    folder = Path(store).parent
    return folder.parent if folder.name == OWN else folder


def told_of(kept: KeptStore) -> str:
    """A store that is gone or cannot be read, in words."""
    day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(kept.at))
    rules = f"{kept.rules:,} rule{'' if kept.rules == 1 else 's'}"
    missing = f" ({kept.left_out:,} found no room)" if kept.left_out else ""
    return (
        f"the store {kept.path} is gone or cannot be read: its {rules} hold as they were on {day} UTC{missing}, and "
        "nothing is kept in it"
    )


def remedy_of(kept: KeptStore) -> str:
    """What the user can do about it."""
    return 'put the store back, or tell the agent "keep them" for a new one with these rules, or "let them go"'


def stand_in(path: str | Path) -> StoreFile | None:
    """A store in memory with the rules that were kept of the one at this path; None where none were.

    What is written to it is gone when it is closed.
    """
    kept = journal_here().rules(store_key(str(path)), WORKSPACE)
    if not kept:
        return None
    import json

    from toolmem.engine.store_file import StoreFile
    from toolmem.readers.weight import at_once

    store = StoreFile(":memory:")
    for each in kept:
        at_once(store.put(WORKSPACE, each.namespace, each.key, json.loads(each.text)))
    return store
