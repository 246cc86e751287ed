"""The main worktree of a linked one, read from git's own files: no process is started, and nothing is made.

    TREE/.git                       gitdir: MAIN/.git/worktrees/NAME
    MAIN/.git/worktrees/NAME/commondir    ../..
    MAIN/.git/worktrees/NAME/gitdir       TREE/.git

A folder that somebody else made may hold any `.git`: it counts where the repository names the worktree as well, and all
of it is this user's.
"""

from __future__ import annotations

import os
import stat

_LONGEST = 4096  # bytes of a file that names a folder
_NAMES = b"gitdir:"


def main_worktree(root: str) -> str:
    """The folder that the repository of a linked worktree was made in; "" where `root` is none, or nothing is sure.

    `root`: the worktree's folder, a real path. Raises nothing.
    """
    try:
        own = os.path.join(root, ".git")
        if stat.S_ISDIR(os.lstat(own).st_mode):
            return ""
        told = _content(own)
        if not told.startswith(_NAMES):
            return ""
        notes = _folder(root, told[len(_NAMES) :])
        common = _folder(notes, _content(os.path.join(notes, "commondir")))
        back = os.fsdecode(_content(os.path.join(notes, "gitdir")))
        named = os.path.realpath(os.path.join(notes, os.path.dirname(back))) == root
        main = os.path.dirname(common)
        is_main = os.path.basename(common) == ".git" and os.path.dirname(notes) == os.path.join(common, "worktrees")
        return main if named and is_main and os.path.basename(back) == ".git" and _is_own(os.lstat(main)) else ""
    except (OSError, ValueError):
        return ""


def _content(path: str) -> bytes:
    """Of a small file of this user's. Raises OSError for any other."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LONGEST or not _is_own(found):
            raise OSError(f"{path} is no file of git's")
        return os.read(file, _LONGEST).strip()
    finally:
        os.close(file)


def _folder(beside: str, named: bytes) -> str:
    """A folder of this user's, as a file in another one names it. Raises OSError, ValueError."""
    found = os.path.realpath(os.path.join(beside, os.fsdecode(named.strip())))
    if not named.strip() or not stat.S_ISDIR(os.lstat(found).st_mode) or not _is_own(os.lstat(found)):
        raise OSError(f"{found} is no folder of git's")
    return found


def _is_own(found: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or found.st_uid == os.getuid()
