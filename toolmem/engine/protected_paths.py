"""What only the user changes, beside every folder `.toolmem`: the store of a guard, toolmem's notes on a user, and what
was installed in the settings of agents.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from toolmem.config.own_folder import state_folder
from toolmem.store.holding import INSTALLS, noted_files
from toolmem.store.masked import unmasked

if TYPE_CHECKING:
    from toolmem.protocols import MemoryStore


def protected_paths(store: MemoryStore) -> tuple[str, ...]:
    """The store's file or the addresses of its servers, the user's state folder, and what hooks stand in."""
    location = str(getattr(unmasked(store), "location", ""))
    places = [each.strip() for each in location.split(",")] if "://" in location else [location]
    with suppress(OSError):  # a user without a home
        folder = state_folder()
        places += [str(folder), *installed_files(folder / INSTALLS)]
    return tuple(each for each in places if each and each != ":memory:")


def installed_files(notes: Path) -> list[str]:
    """The files that installs wrote, which are protected whole, and what runs there: this interpreter and toolmem."""
    found = sorted(set(noted_files(notes)))
    if not found:
        return []
    package = Path(__file__).parent.parent
    code = [str(package)] if "site-packages" in package.parts else []  # not where somebody works on toolmem itself
    return [*found, *({path, os.path.realpath(path)} if (path := sys.executable) else ()), *code]
