"""What this user has installed, in `installs.json` of the user's state folder."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from toolmem.errors import StoreUnavailable
from toolmem.store.sqlite.trust import state_folder


class FileNote(Struct, frozen=True):
    """How what was written to a file is undone."""

    digest: str  # of the file as it was written
    spans: list[tuple[int, int]] = []  # characters to cut; none: the file is removed
    folders: list[str] = []  # that were made for it


class Install(Struct, frozen=True):
    """One install. `project`: "" for all that the user does."""

    agent: str
    project: str
    command: list[str]
    files: dict[str, FileNote] = {}


def installed() -> list[Install]:
    """What this user has installed; [] where nothing is noted, or the notes cannot be read."""
    try:
        return msgspec.json.decode(_notes_file().read_bytes(), type=list[Install])
    except (OSError, ValueError):
        return []


def write_notes(notes: list[Install]) -> None:
    """Raises StoreUnavailable."""
    try:
        path = _notes_file()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(notes)))
        partial.replace(path)
    except OSError as error:
        raise StoreUnavailable(f"cannot note the install: {error}") from error


def _notes_file() -> Path:
    return state_folder() / "installs.json"
