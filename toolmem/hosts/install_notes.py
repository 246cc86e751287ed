"""How an install of hooks is undone to the byte: what stood where it wrote, in the user's state folder."""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from toolmem.config.own_folder import make_folder, state_folder, write_new
from toolmem.errors import StoreError
from toolmem.store.holding import INSTALLS


@dataclass(frozen=True, slots=True)
class InstallNote:
    """What an install changed in one file: only what it took out is kept, not what the file holds."""

    path: str
    digest: str  # of the file as it was written
    start: int  # where what was written begins to differ from what was there
    end: int  # and where that ends
    taken: str | None  # what was there, in base64; None: there was no file
    folders: tuple[str, ...]  # which were made for it

    @classmethod
    def between(cls, path: Path, old: bytes | None, new: bytes, folders: Sequence[str]) -> InstallNote:
        was = old or b""
        start = _alike(was, new)
        tail = _alike(was[start:][::-1], new[start:][::-1])
        taken = None if old is None else b64encode(was[start : len(was) - tail]).decode()
        return cls(str(path), _digest(new), start, len(new) - tail, taken, tuple(folders))

    def wrote(self, data: bytes) -> bool:
        """Is this the file as it was written?"""
        return _digest(data) == self.digest

    def undone(self, data: bytes) -> bytes | None:
        """The file as it was before; None where there was none."""
        return None if self.taken is None else data[: self.start] + b64decode(self.taken) + data[self.end :]


def note_of(host: str, path: Path) -> InstallNote | None:
    """None where nothing was noted, or it cannot be read."""
    with suppress(OSError, ValueError, TypeError):
        told = json.loads(_entry(host, path).read_bytes())
        note = InstallNote(**{**told, "folders": tuple(told["folders"])})
        return note if note.path == str(path) else None
    return None


def keep_note(host: str, path: Path, note: InstallNote) -> None:
    """Raises StoreError where the state folder cannot be written."""
    try:
        entry = _entry(host, path)
        make_folder(entry.parent)
        unfinished = entry.with_name(f"{entry.name}.{os.urandom(4).hex()}.part")
        write_new(unfinished, json.dumps(asdict(note)).encode())
        unfinished.replace(entry)
    except OSError as error:
        raise StoreError(f"cannot note how the install is undone: {error}") from error


def forget_note(host: str, path: Path) -> None:
    """Nothing is left to undo."""
    with suppress(OSError):
        _entry(host, path).unlink(missing_ok=True)


def _entry(host: str, path: Path) -> Path:
    name = sha256(f"{host}\n{path}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return state_folder() / INSTALLS / f"{name}.json"


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
