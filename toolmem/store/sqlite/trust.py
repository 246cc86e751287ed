"""Remember which store files this user's toolmem made, or the user trusts.

A store in a cloned or unpacked folder holds rules and guidance of its author, not of the user. For
each trusted store there is a note: a small file, named after a hash of the store's path, in the
user's state folder, and a copy of it in `~/.toolmem`. It holds the random id of the store and the
inode of its file, so that a file that replaces a trusted one is not trusted.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from toolmem.config.sections import OWN_FOLDER
from toolmem.errors import StoreUnavailable
from toolmem.files import replace_file

_made_here: set[tuple[str, str]] = set()  # stores made by this process whose note cannot be written


def distrust_reason(path: str, store_id: str) -> str:
    """Why a store is not trusted; "" if it is trusted or does not exist yet.

    The store in the user's home is always trusted: whoever can write there can also write notes.
    """
    real = os.path.realpath(path)
    if not store_id or (real, store_id) in _made_here or os.path.dirname(real) == home_folder():
        return ""
    for note in _note_paths(path):
        with suppress(OSError):
            if note.read_bytes() == _content(path, store_id):
                return ""
    return f"the store {path} is not known to be made by this user's toolmem, and is not trusted"


def trusted_path(store_id: str, path: str) -> str:
    """Find by id and inode which path the store at `path` had when it was trusted; "": none."""
    with suppress(OSError):
        inode = os.stat(path).st_ino
        for folder in {note.parent for note in _note_paths(path)}:
            for note in folder.glob("*.json"):
                with suppress(OSError, ValueError, KeyError, TypeError):
                    found = json.loads(note.read_bytes())
                    if (found["id"], found["inode"]) == (store_id, inode):
                        return str(found["path"])
    return ""


def home_folder() -> str:
    """The folder of the user's own store; "" if this user has no home folder."""
    home = os.path.expanduser("~")
    return os.path.join(os.path.realpath(home), OWN_FOLDER) if os.path.isabs(home) else ""


def is_note_lost(path: str) -> bool:
    """Whether a store's note of trust is gone from the state folder, but not from the home."""
    with suppress(OSError):
        first, *others = _note_paths(path)
        return any(map(Path.exists, others)) and not first.exists()
    return False


def remember_made(path: str, store_id: str) -> None:
    """Trust a new store. Where no note can be written, only this process trusts it."""
    try:
        remember(path, store_id)
    except StoreUnavailable:
        _made_here.add((os.path.realpath(path), store_id))


def remember(path: str, store_id: str) -> None:
    """Trust a store. Raises StoreUnavailable where neither note can be written."""
    failures = []
    try:
        notes = _note_paths(path)
    except OSError as error:
        raise StoreUnavailable(f"cannot remember that {path} is trusted: {error}") from error
    for note in notes:  # one of them may be on a full disk
        try:
            note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(note, _content(path, store_id))
        except OSError as error:
            failures.append(error)
    if len(failures) == len(notes):
        raise StoreUnavailable(f"cannot remember that {path} is trusted: {failures[0]}")


def state_folder() -> Path:
    """The folder for toolmem's state on this platform. Raises OSError if there is no home."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):  # the standard: a relative one is ignored
        is_mac = sys.platform == "darwin"
        base = os.path.expanduser("~/Library/Application Support" if is_mac else "~/.local/state")
    if not os.path.isabs(base):
        raise OSError("this user has no home folder")
    return Path(base) / "toolmem"


def file_name(named: bytes) -> str:
    """Hash a path or key into a file name of 32 hex digits, the same in every version."""
    from hashlib import blake2b

    return blake2b(named, digest_size=16).hexdigest()


def _note_paths(path: str) -> list[Path]:
    """Return the paths of both notes: a store stays trusted if one of the notes is lost."""
    name = file_name(os.fsencode(os.path.realpath(path)))
    folders = (state_folder(), Path(os.path.expanduser("~"), OWN_FOLDER))
    absolute = (folder for folder in folders if folder.is_absolute())  # not in a project
    return [folder / "trusted-stores" / f"{name}.json" for folder in absolute]


def _content(path: str, store_id: str) -> bytes:
    real = os.path.realpath(path)
    shown = os.fsencode(real).decode("utf-8", "backslashreplace")
    return json.dumps({"path": shown, "id": store_id, "inode": os.stat(real).st_ino}).encode()
