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
    """A file that takes the place of `target` where the block ends without an error.

    Else the old file stays as it is, and nothing is left beside it. A machine that stops may lose
    the new file: data is not forced to the disk. Raises OSError.

    `mode`: of a new file. `keeps_mode`: one that is there keeps its mode and owner.
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
    """Replace the whole content of a file, as `replacing` does. Raises OSError."""
    with replacing(target, mode) as file:
        file.write(data)
