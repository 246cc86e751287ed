"""Replace a file in one step.

Readers see the old file or the whole new one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(target: Path, mode: int = 0o666, *, keeps_mode: bool = True) -> Iterator[BinaryIO]:
    """Open a file that replaces `target` once the block ends without an error.

    After an error the old file is unchanged, and no other file is left. Data is not forced to the
    disk: a power failure may lose the new file. Raises OSError.

    `mode`: of a new file. `keeps_mode`: an existing file keeps its mode and owner.
    """
    partial = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
        if keeps_mode and target.exists():
            status = target.stat()
            partial.chmod(stat.S_IMODE(status.st_mode))
            with suppress(PermissionError):
                os.chown(partial, status.st_uid, status.st_gid)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def replace_file(target: Path, data: bytes, mode: int = 0o666) -> None:
    """Replace the whole content of a file in one step. Raises OSError."""
    with replacing(target, mode) as file:
        file.write(data)
