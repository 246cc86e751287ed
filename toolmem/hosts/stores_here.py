"""Which stores bind in a folder, as the hooks that are installed for it find them; nothing is opened or made."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from toolmem.hosts.event_stores import store_place, users_store
from toolmem.hosts.receipts import Install


def stores_here(folder: Path, home: Path, known: Iterable[Install]) -> list[Path]:
    """The first is where calls go and what is said; () where no hook is installed for this folder.

    The user's own is the last of several: its rules bind everywhere.
    """
    real = os.path.realpath(folder)
    holding = sorted((each for each in known if _is_for(each, real)), key=lambda each: -len(each.place))
    found = [Path(store_place(real, option(each.command, "--store"), str(home))) for each in holding]
    users = users_store(str(home))
    own = [Path(os.path.realpath(users))] if found and users is not None and users.is_file() else []
    return list(dict.fromkeys([*found, *own]))


def _is_for(install: Install, folder: str) -> bool:
    place = os.path.realpath(install.place) if install.place else ""
    return (not place or folder == place or folder.startswith(place.rstrip(os.sep) + os.sep)) and stands(install)


def stands(install: Install) -> bool:
    """Do its files still name toolmem?"""
    return all(map(_names_toolmem, install.files))


def _names_toolmem(path: str) -> bool:
    try:
        return b"toolmem" in Path(path).read_bytes()
    except OSError:
        return False


def option(command: Iterable[str], name: str) -> str:
    """The value that a command line gives to an option; "" where it gives none."""
    return next((value for key, value in pairwise(command) if key == name), "")
