"""Folders and files that only this user may read, and the folder `.toolmem` of a working directory.

A cloned or unpacked folder may hold a `.toolmem` of its own: a symbolic link in it would have toolmem write, or read,
wherever its author likes.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

OWN = ".toolmem"


def state_folder() -> Path:
    """Where this platform keeps what a program remembers for a user. Raises OSError where the user has no home."""
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_STATE_HOME", "")
    if not os.path.isabs(base):  # a relative one is to be ignored, says the standard
        base = os.path.expanduser("~/Library/Application Support" if sys.platform == "darwin" else "~/.local/state")
    if not os.path.isabs(base):
        raise OSError("this user has no home folder")
    return Path(base) / "toolmem"


def refuse_links(path: Path) -> None:
    """Raises OSError where `path`, or a part of it from `.toolmem` on, is a symbolic link."""
    parts = [path]
    if OWN in path.parts:
        at = len(path.parts) - path.parts[::-1].index(OWN)
        parts = [Path(*path.parts[:end]) for end in range(at, len(path.parts) + 1)]
    for part in parts:
        if part.is_symlink():
            raise OSError(f"{part} is a symbolic link, which is not followed; give the path that it leads to")


def make_folder(folder: Path) -> None:
    """Make what is missing, for this user alone; `.toolmem` gets a `.gitignore` that keeps all of it out of git.

    Raises OSError, also where a part from `.toolmem` on is a symbolic link.
    """
    refuse_links(folder)
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):
            each.mkdir()
            each.chmod(0o700)  # whatever the umask says
    for each in (folder, *folder.parents):
        if each.name == OWN:
            _keep_private(each)


def _keep_private(own: Path) -> None:
    """What another program made is closed to others as well, where it is this user's."""
    with suppress(PermissionError):
        if stat.S_IMODE(own.stat().st_mode) & 0o077:
            own.chmod(0o700)
        with suppress(FileExistsError):
            write_new(own / ".gitignore", b"*\n")


def write_new(path: Path, content: bytes = b"") -> None:
    """A file that was not there, for this user alone. Raises FileExistsError, for a link that leads nowhere as well."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    with os.fdopen(file, "wb") as out:
        if hasattr(os, "fchmod"):
            os.fchmod(file, 0o600)
        out.write(content)
