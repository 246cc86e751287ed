"""Note in the user's state folder what was installed, so that it can be removed again."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import tzinfo
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from toolmem.errors import StoreUnavailable
from toolmem.files import replace_file
from toolmem.store.sqlite.trust import state_folder

Note = TypeVar("Note")
INSTALLS = "installs.json"
MAX_SETTINGS = 1_000_000  # characters of a settings file that are read


class FileNote(Struct, frozen=True):
    """How to undo what an install wrote to one file."""

    digest: str  # of the file as it was written
    spans: list[tuple[int, int]] = []  # (start, end) of characters to cut; []: remove the file
    folders: list[str] = []  # made for it


class Install(Struct, frozen=True):
    """One install. `project`: its folder; "" for every project of the user."""

    agent: str
    project: str
    command: list[str]
    files: dict[str, FileNote] = {}

    def option(self, name: str) -> str:
        """The value of an option of the command; "" if it is not given."""
        return dict(pairwise(self.command)).get(name, "")


def installed() -> list[Install]:
    """The installs of this user."""
    return read_notes(INSTALLS, list[Install])


def zone_of(config: str) -> tzinfo | None:
    """Read the `time_zone` of a settings file; None if it is not set.

    A file that no install of this user names is not read.
    """
    if not config or not any(config in install.command for install in installed()):
        return None
    with suppress(OSError, ValueError, KeyError):
        text = Path(config).read_text(encoding="utf-8")[:MAX_SETTINGS]
        if found := re.search(r"""^time_zone:[ \t]{1,9}(["']?)([\w/+-]{1,60})\1""", text, re.M):
            from zoneinfo import ZoneInfo

            return ZoneInfo(found[2])
    return None


def read_notes(name: str, kind: type[list[Note]]) -> list[Note]:
    """Read the notes in a file of the state folder; [] if it is missing or unreadable."""
    try:
        return msgspec.json.decode((state_folder() / name).read_bytes(), type=kind)
    except (OSError, ValueError):
        return []


def write_notes(name: str, notes: list[Any]) -> None:
    """Write notes to a file that only this user can read. Raises StoreUnavailable."""
    try:
        path = state_folder() / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, msgspec.json.format(msgspec.json.encode(notes)), mode=0o600)
    except OSError as error:
        raise StoreUnavailable(f"cannot note the install: {error}") from error
