"""The active rules of a store as a hook last saw them, kept in the user's state folder.

A store that was deleted, or cannot be read any more, is answered from there: to delete the store lifts no rule. One
file for each store, only the user's to read, written anew when the store's rules changed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmem.config.own_folder import OWN, make_folder, state_folder, write_new
from toolmem.engine.protected_paths import KEPT_RULES, kept_rules_file
from toolmem.late import late_logger

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile
    from toolmem.stored import RawRecord

logger = late_logger("toolmem.hosts")

MAX_BYTES = 8_000_000  # of the rules of one store; those that only remind are left out first
_VERSION = 1


class Snapshot(NamedTuple):
    """Of which store, of when, and how many of its rules."""

    store: str
    at: float  # seconds since 1970
    rules: int
    left_out: int  # that found no room
    file: Path


def keep_rules(store: StoreFile, workspace: str = "default") -> bool:
    """Keep the active rules of an open store, where they changed since; whether they did. Never raises."""
    try:
        file = kept_rules_file(store.location)
        stamp = _at_once(store.read_stamped(workspace, [])).stamp
        known = _head(file)
        if known is not None and (known.get("stamp"), known.get("workspace")) == (stamp, workspace):
            return False
        _write(file, store, workspace, stamp)
        return True
    except Exception as error:  # of a store or a disk: the agent goes on
        logger.warning("the rules of %s could not be kept for when it is gone: %s", store.location, error)
        return False


def snapshot_of(path: str | Path) -> Snapshot | None:
    """What is kept of the store that is, or was, at a path; one file is looked at, so that it may be asked often."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        file = kept_rules_file(str(path))
        if (head := _head(file)) is not None:
            return Snapshot(head["store"], float(head["at"]), int(head["rules"]), int(head["left_out"]), file)
    return None


def snapshots() -> list[Snapshot]:
    """All that are kept."""
    files = []
    with suppress(OSError):
        files = sorted((state_folder() / KEPT_RULES).glob("*.jsonl"))
    heads = ((file, _head(file)) for file in files)
    return [found for _, head in heads if head is not None and (found := snapshot_of(str(head["store"])))]


def gone() -> list[Snapshot]:
    """Those whose store is not there any more, though the folder that it was made for is."""
    return [each for each in snapshots() if not os.path.isfile(each.store) and _folder_of(each.store).is_dir()]


def _folder_of(store: str) -> Path:
    folder = Path(store).parent
    return folder.parent if folder.name == OWN else folder


def told_of(kept: Snapshot) -> str:
    """A store that is gone or cannot be read, in words."""
    day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(kept.at))
    rules = f"{kept.rules:,} rule{'' if kept.rules == 1 else 's'}"
    return (
        f"the store {kept.store} is gone or cannot be read: its {rules} hold as they were kept on {day} UTC, and "
        "nothing is kept in it"
    )


def remedy_of(kept: Snapshot) -> str:
    """What the user can do about it."""
    return f"put the store back, or delete {kept.file} to let its rules go"


def stand_in(path: str | Path) -> StoreFile | None:
    """A store in memory with the rules that were kept of the one at this path; None where none were.

    What is written to it is gone when it is closed.
    """
    from toolmem.engine.store_file import StoreFile

    try:
        file = kept_rules_file(str(path))
        head = _head(file)
        if head is None:
            return None
        values = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()[1:]]
        store = StoreFile(":memory:")
        for namespace, key, value in values:
            _at_once(store.put(head["workspace"], namespace, key, value))
        return store
    except Exception as error:  # damaged: as good as none
        logger.error("what was kept of the rules of %s cannot be read: %s", path, error)
        return None


def _write(file: Path, store: StoreFile, workspace: str, stamp: str) -> None:
    kept, left_out = _fitting(_active(store, workspace))
    head = {"version": _VERSION, "store": _real(store.location), "workspace": workspace, "stamp": stamp}
    head |= {"at": time.time(), "rules": len(kept), "left_out": left_out}
    text = "\n".join([json.dumps(head, ensure_ascii=True), *kept]) + "\n"
    make_folder(file.parent)
    unfinished = file.with_name(f"{file.name}.{os.urandom(4).hex()}.part")
    try:
        write_new(unfinished, text.encode("utf-8", "surrogatepass"))
        unfinished.replace(file)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _active(store: StoreFile, workspace: str) -> Iterator[tuple[bool, str]]:
    """(whether it is checked, the record as a line) of each active rule."""
    from toolmem.rules.identity import RULE_PREFIX, TOOL_PREFIX
    from toolmem.rules.stored_rules import read_stored

    records: list[RawRecord] = _at_once(store.list_raw(workspace, None, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX))
    active = {rule.id for rule in read_stored(records).active(store.clock.now())}
    for record in records:
        if record.key.removeprefix(RULE_PREFIX) in active:
            value = json.loads(record.text)
            checked = isinstance(value, dict) and value.get("when") is not None
            yield checked, json.dumps([record.namespace, record.key, value], ensure_ascii=True)


def _fitting(lines: Iterable[tuple[bool, str]]) -> tuple[list[str], int]:
    """As many as there is room for, those that are checked first; and how many are left out."""
    kept: list[str] = []
    size = left_out = 0
    for _, line in sorted(lines, key=lambda each: not each[0]):
        if size + len(line) > MAX_BYTES:
            left_out += 1
        else:
            size += len(line) + 1
            kept.append(line)
    return kept, left_out


def _head(file: Path) -> dict[str, Any] | None:
    """The first line of a snapshot; None where there is none, or it is damaged."""
    with suppress(OSError, ValueError), file.open(encoding="utf-8") as text:
        head = json.loads(text.readline(20_000))
        if isinstance(head, dict) and head.get("version") == _VERSION:
            return head
    return None


def _real(location: str) -> str:
    return os.path.realpath(location)


def _at_once(work: Any) -> Any:
    from toolmem.readers.weight import at_once

    return at_once(work)
