"""Files in the user's state folder: notes of installs, and `hooks.log`, a line for each failure."""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from toolmem.errors import StoreUnavailable
from toolmem.store.sqlite.trust import state_folder

Noted = TypeVar("Noted")
INSTALLS = "installs.json"
MAX_BYTES = 1_000_000  # then it becomes hooks.log.1
MAX_LINE = 500


def write_line(text: str) -> None:
    """Raises OSError."""
    path = state_folder() / "hooks.log"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        if path.lstat().st_size > MAX_BYTES:
            os.replace(path, f"{path}.1")
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * MAX_LINE]).split())
    told = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {line[:MAX_LINE]}\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(told.encode("utf-8", "replace"))


class _ToFile(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            write_line(record.getMessage())


def take_warnings() -> None:
    """Warnings of toolmem go to the file: some agents show what a hook writes to stderr."""
    logger = logging.getLogger("toolmem")
    logger.addHandler(_ToFile(logging.WARNING))
    logger.propagate = False


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
    """What this user has installed."""
    return read_notes(INSTALLS, list[Install])


def read_notes(name: str, kind: type[list[Noted]]) -> list[Noted]:
    """[] where nothing is noted, or the notes cannot be read."""
    try:
        return msgspec.json.decode((state_folder() / name).read_bytes(), type=kind)
    except (OSError, ValueError):
        return []


def write_notes(name: str, notes: list[Any]) -> None:
    """For this user alone to read. Raises StoreUnavailable."""
    try:
        path = state_folder() / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, msgspec.json.format(msgspec.json.encode(notes)), mode=0o600)
    except OSError as error:
        raise StoreUnavailable(f"cannot note the install: {error}") from error


def replace_file(target: Path, data: bytes, mode: int = 0o666) -> None:
    """In one step, with the mode and the owner of the file that is there. Raises OSError."""
    partial = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT, mode), "wb") as file:
            file.write(data)
        if target.exists():
            told = target.stat()
            partial.chmod(stat.S_IMODE(told.st_mode))
            with suppress(PermissionError):
                os.chown(partial, told.st_uid, told.st_gid)
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
