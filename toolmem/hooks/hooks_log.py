"""Write `hooks.log` in the user's state folder: a line for each failure of a hook."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from datetime import UTC, datetime

from toolmem.store.sqlite.trust import state_folder

MAX_BYTES = 1_000_000  # of hooks.log; then it becomes hooks.log.1
MAX_LINE = 500  # characters


def write_line(text: str) -> None:
    """Append to `hooks.log`. Raises OSError."""
    path = state_folder() / "hooks.log"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        if path.lstat().st_size > MAX_BYTES:
            os.replace(path, f"{path}.1")
    printable = "".join(c if c.isprintable() else " " for c in text[: 4 * MAX_LINE])
    line = " ".join(printable.split())[:MAX_LINE]
    entry = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {line}\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(entry.encode("utf-8", "replace"))


class _LogFile(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            write_line(record.getMessage())


def log_to_file() -> None:
    """Send toolmem's warnings to `hooks.log`, because some agents show a hook's stderr."""
    logger = logging.getLogger("toolmem")
    logger.addHandler(_LogFile(logging.WARNING))
    logger.propagate = False
