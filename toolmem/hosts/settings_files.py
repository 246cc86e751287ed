"""Hooks in a user's settings files: what would change is planned, shown, and written in one step.

Everything else in a file stays byte for byte, and taking the hooks out again leaves the file that was there before:
what an install changed is noted, and where somebody changed the file since, our entries alone are taken out.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

from toolmem.errors import RequestError, StoreError
from toolmem.hosts.host import Host, Scope
from toolmem.hosts.install_notes import InstallNote, forget_note, keep_note, note_of
from toolmem.hosts.json_edits import JsonText, changed, laid_out

_BOM = b"\xef\xbb\xbf"
_LARGEST = 10_000_000  # bytes of a settings file


@dataclass(frozen=True, slots=True)
class HookPlace:
    """Whose settings: of which agent, in a project or for all that the user does."""

    host: Host
    scope: Scope
    project: Path
    home: Path
    environment: Mapping[str, str]

    @property
    def settings(self) -> Path | None:
        return self.host.settings_file(self.scope, self.project, self.home, self.environment)

    def own_files(self, command: Sequence[str]) -> dict[Path, str]:
        return self.host.own_files(self.scope, self.project, self.home, self.environment, list(command))

    @property
    def where(self) -> str:
        """As installs are noted: the project's folder, "" for the user's."""
        return str(self.project) if self.scope == "project" else ""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """What becomes of a file. None: it is not there."""

    path: Path
    before: bytes | None
    after: bytes | None
    origin: bytes | None = None  # what uninstalling brings back

    @property
    def changes(self) -> bool:
        return self.before != self.after

    def difference(self) -> str:
        """As a unified diff."""
        old, new = (_lines(each) for each in (self.before, self.after))
        was, becomes = (str(self.path) if each is not None else os.devnull for each in (self.before, self.after))
        return "\n".join(unified_diff(old, new, was, becomes, lineterm=""))

    def write(self) -> None:
        """Replace the file in one step. Raises RequestError where it changed since it was planned, StoreError."""
        target = Path(os.path.realpath(self.path))
        try:
            if _bytes(target) != self.before:
                raise RequestError(f"{self.path} was changed meanwhile: run this again", field="settings")
            if self.after is None:
                target.unlink(missing_ok=True)
            elif self.changes:
                _replace(target, self.before, self.after)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror or error}") from error


def plan_install(place: HookPlace, command: Sequence[str]) -> list[PlannedFile]:
    """The files with our hooks in them. Raises RequestError where one cannot be read, or is somebody else's."""
    planned = []
    if place.settings is not None:
        planned.append(_with_hooks(place, place.settings, command))
    planned += [_own_file(place, path, text) for path, text in place.own_files(command).items()]
    return planned


def plan_uninstall(place: HookPlace, command: Sequence[str]) -> tuple[list[PlannedFile], list[Path]]:
    """The files without our hooks, and own files that were changed since and stay. `command`: as it was installed."""
    planned, kept = [], list[Path]()
    if place.settings is not None:
        before = _bytes(place.settings)
        planned.append(PlannedFile(place.settings, before, _without_hooks(place, place.settings, before)))
    for path, text in place.own_files(command).items():
        before, note = _bytes(path), note_of(place.host.name, path)
        if before is None or before == text.encode() or (note is not None and note.wrote(before)):
            planned.append(PlannedFile(path, before, None))
        else:
            kept.append(path)
    return planned, kept


def write_all(host: Host, planned: Iterable[PlannedFile], *, installs: bool) -> None:
    """Write what was planned, and note how it is undone (or that nothing is left to undo)."""
    emptied = set[str]()
    for each in planned:
        known = note_of(host.name, each.path)
        if not installs:
            each.write()
            emptied.update(known.folders if known else ())
            forget_note(host.name, each.path)
            continue
        folders = _missing_folders(each.path)
        note = InstallNote.between(
            each.path, each.origin, each.after or b"", folders or (known.folders if known else ())
        )
        keep_note(host.name, each.path, note)  # first: killed here, it fits no file, and changes nothing
        each.write()
    _remove_folders(emptied)


def settings_value(data: bytes, path: Path, *, comments: bool = False) -> dict[str, Any]:
    """What a settings file says. Raises RequestError with the file, line and column."""
    return _read(_text(data, path), path, comments)


# ---------------------------------------------------------------- settings


def _with_hooks(place: HookPlace, path: Path, command: Sequence[str]) -> PlannedFile:
    before = _bytes(path)
    origin = _without_hooks(place, path, before)
    text = _text(origin or b"", path)
    value = _read(text, path, place.host.comments)
    wanted = _translated(lambda: place.host.add_hooks(value, list(command)), path, place.host)
    after = _laid_out(text, wanted, place.host.comments, path)
    if before is not None and _read(_text(before, path), path, place.host.comments) == wanted:
        return PlannedFile(path, before, before, origin)
    return PlannedFile(path, before, _mark(origin) + after.encode(), origin)


def _without_hooks(place: HookPlace, path: Path, before: bytes | None) -> bytes | None:
    """What was there before the install; where somebody changed the file since, what is there without our entries."""
    if before is None:
        return None
    note = note_of(place.host.name, path)
    if note is not None and note.wrote(before):
        return note.undone(before)
    text = _text(before, path)
    value = _read(text, path, place.host.comments)
    wanted = _translated(lambda: place.host.remove_hooks(value), path, place.host)
    if wanted == value:
        return before
    return _mark(before) + _laid_out(text, wanted, place.host.comments, path).encode()


def _laid_out(text: str, wanted: Mapping[str, Any], comments: bool, path: Path) -> str:
    if not text.strip():
        return laid_out(wanted) if wanted else text
    try:
        return changed(text, wanted, comments=comments)
    except RequestError as error:
        raise RequestError(f"{path}: {error}", field="settings") from None


def _translated(work: Callable[[], dict[str, Any]], path: Path, host: Host) -> dict[str, Any]:
    try:
        return work()
    except (TypeError, AttributeError, KeyError, ValueError) as error:
        raise RequestError(
            f"{path}: its hooks are not as {host.title} lays them out ({error}); correct them first", field="settings"
        ) from error


def _read(text: str, path: Path, comments: bool) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        value = JsonText(text, comments=comments).root.value
    except RequestError as error:
        raise RequestError(f"{path}: {error}. Nothing was changed; correct the file first", field="settings") from None
    if not isinstance(value, dict):
        raise RequestError(f"{path}: line 1, column 1: expected an object; nothing was changed", field="settings")
    return value


def _text(data: bytes, path: Path) -> str:
    try:
        return data.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RequestError(
            f"{path}: line {line}: the file is not UTF-8 text; save it as UTF-8 first", field="settings"
        ) from None


def _mark(data: bytes | None) -> bytes:
    return _BOM if data is not None and data.startswith(_BOM) else b""


# ---------------------------------------------------------------- files


def _own_file(place: HookPlace, path: Path, text: str) -> PlannedFile:
    before, note = _bytes(path), note_of(place.host.name, path)
    if before is not None and before != text.encode() and not (note is not None and note.wrote(before)):
        raise RequestError(f"{path} is there, and it is not toolmem's: move it away first", field="settings")
    return PlannedFile(path, before, text.encode())


def _bytes(path: Path) -> bytes | None:
    """Raises RequestError for what is no file of a fitting size, or cannot be read."""
    try:
        told = path.stat()
        if not stat.S_ISREG(told.st_mode) or told.st_size > _LARGEST:
            raise RequestError(f"{path}: expected a file of at most {_LARGEST:,} bytes", field="settings")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror or error}", field="settings") from error


def _replace(target: Path, before: bytes | None, after: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    wanted = 0o777 if after.startswith(b"#!") else 0o666
    file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), wanted)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(after)
            out.flush()
            os.fsync(out.fileno())
        if before is not None:
            _like(unfinished, target)
            if target.read_bytes() != before:
                raise RequestError(f"{target} was changed meanwhile: run this again", field="settings")
        os.replace(unfinished, target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _like(unfinished: Path, target: Path) -> None:
    """With the mode and the owner of the file whose place it takes."""
    told = target.stat()
    unfinished.chmod(stat.S_IMODE(told.st_mode))
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(unfinished, told.st_uid, told.st_gid)


def _missing_folders(path: Path) -> tuple[str, ...]:
    """The folders that writing the file makes, the innermost first."""
    return tuple(str(each) for each in path.parents if not each.exists())


def _remove_folders(folders: Iterable[str]) -> None:
    """Those that an install made and that are empty now, the innermost first."""
    for each in sorted(folders, key=len, reverse=True):
        with suppress(OSError):
            os.rmdir(each)


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").removeprefix(_BOM).decode("utf-8", "replace").replace("\r\n", "\n").splitlines()
