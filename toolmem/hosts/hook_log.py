"""`hooks.log` in the user's state folder: what went wrong in hooks, a line each, bounded."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

FILE = "hooks.log"
_MOST_BYTES = 1_000_000  # then it becomes `hooks.log.1`, in the place of the one before
_LONGEST_LINE = 500


def log_file() -> Path:
    """Raises OSError where the user has no home folder."""
    from toolmem.config.own_folder import state_folder

    return state_folder() / FILE


def write_line(text: str) -> None:
    """Raises OSError."""
    from toolmem.config.own_folder import make_folder

    path = log_file()
    if not path.parent.is_dir():
        make_folder(path.parent)
    with suppress(FileNotFoundError):
        if path.lstat().st_size > _MOST_BYTES:
            os.replace(path, f"{path}.1")
    line = " ".join("".join(each if each.isprintable() else " " for each in text[: 4 * _LONGEST_LINE]).split())
    told = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {line[:_LONGEST_LINE]}\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    file = os.open(path, flags, 0o600)
    try:
        os.write(file, told.encode("utf-8", "replace"))
    finally:
        os.close(file)


class _IntoLog(logging.Handler):
    def __init__(self, host: str) -> None:
        super().__init__(logging.WARNING)
        self._host = host

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            error = record.exc_info[1] if record.exc_info else None
            told = f" ({type(error).__name__}: {error})" if error is not None else ""
            write_line(f"{self._host} {record.getMessage()}{told}")


def take_warnings(host: str) -> None:
    """From now on what toolmem warns of in this process is written there."""
    logger = logging.getLogger("toolmem")
    if not any(isinstance(each, _IntoLog) for each in logger.handlers):
        logger.addHandler(_IntoLog(host))
        logger.propagate = False
