"""`hooks.log` in the user's state folder: what went wrong in hooks, a line each, bounded."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from datetime import UTC, datetime

from toolmem.store.sqlite.trust import state_folder

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
