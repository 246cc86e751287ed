"""Files in the user's state folder: notes of installs, and `hooks.log`, a line for each failure."""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from toolmem.errors import StoreUnavailable
from toolmem.files import replace_file
from toolmem.store.sqlite.trust import state_folder

Note = TypeVar("Note")
INSTALLS = "installs.json"
MAX_BYTES = 1_000_000  # of hooks.log; then it becomes hooks.log.1
MAX_LINE = 500  # characters


def write_line(text: str) -> None:
    """Append to `hooks.log`. Raises OSError."""
    path = state_folder() / "hooks.log"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        if path.lstat().st_size > MAX_BYTES:
            os.replace(path, f"{path}.1")
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * MAX_LINE]).split())
    entry = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {line[:MAX_LINE]}\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(entry.encode("utf-8", "replace"))


class _LogFile(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            write_line(record.getMessage())


def log_to_file() -> None:
    """Send toolmem's warnings to `hooks.log`: some agents show what a hook writes to stderr."""
    logger = logging.getLogger("toolmem")
    logger.addHandler(_LogFile(logging.WARNING))
    logger.propagate = False


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


def installed() -> list[Install]:
    """What this user has installed."""
    return read_notes(INSTALLS, list[Install])


def zone_of(config: str) -> tzinfo | None:
    """The `time_zone` in the settings that one of this user's installs names.

    None, the machine's, where it has none; a file that no install names is not read.
    """
    if not config or not any(config in install.command for install in installed()):
        return None
    with suppress(OSError, ValueError, KeyError):
        text = Path(config).read_text(encoding="utf-8")[:1_000_000]
        if found := re.search(r"""^time_zone:[ \t]{1,9}(["']?)([\w/+-]{1,60})\1""", text, re.M):
            from zoneinfo import ZoneInfo

            return ZoneInfo(found[2])
    return None


def read_notes(name: str, kind: type[list[Note]]) -> list[Note]:
    """The notes in a file of the state folder; [] where it is missing or cannot be read."""
    try:
        return msgspec.json.decode((state_folder() / name).read_bytes(), type=kind)
    except (OSError, ValueError):
        return []


def write_notes(name: str, notes: list[Any]) -> None:
    """Only this user can read them. Raises StoreUnavailable."""
    try:
        path = state_folder() / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, msgspec.json.format(msgspec.json.encode(notes)), mode=0o600)
    except OSError as error:
        raise StoreUnavailable(f"cannot note the install: {error}") from error
