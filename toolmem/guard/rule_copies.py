"""Copies of the binding rules in the user's state folder, so that rules survive their store.

A store may be deleted, damaged or put back to an older state, also by an agent. So each change of a
rule is copied: one small file for each rule that binds, and a head that says which state of the
store was copied. If a store loses rules, its copy binds until the user writes the rules back
(`toolmem store restore`) or drops the copy.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from toolmem.config.sections import OWN_FOLDER, WORKSPACE
from toolmem.errors import StoreError
from toolmem.files import replace_file
from toolmem.models.protocols import Store
from toolmem.models.records import RULE_PREFIX, SESSION_RULES, TOOL_PREFIX, Record
from toolmem.models.rules import ToolMemoryRule
from toolmem.store.sqlite import SqliteStore, trust
from toolmem.store.sqlite.database import RulesChanged
from toolmem.store.sqlite.files import MEMORY, is_missing

log = logging.getLogger("toolmem.guard")
_read_rule = msgspec.json.Decoder(ToolMemoryRule).decode
HEAD = "head.json"
MAX_EARLIER = 200  # stamps that a copy remembers
KEPT_SECONDS = 90 * 24 * 3600  # that the copy of a deleted project is kept after its last change


class CopiedRule(Struct, frozen=True):
    """A rule's record as it is in a copy."""

    namespace: str
    key: str
    value: Raw


class RuleCopy(Struct, frozen=True):
    """The binding rules of a store at one version (`stamp`). On disk each rule has its own file."""

    path: str  # of the store
    stamp: str  # of the store's rules
    newest: datetime  # when a rule of the store was changed last
    rules: list[CopiedRule] = []
    earlier: list[str] = []  # stamps that the store had before
    store_id: str = ""
    project: int = 0  # inode of the folder that the store belongs to


def copy_folder(store: str, workspace: str = WORKSPACE) -> Path:
    """Return the folder of the copy of a store's rules. It is named after the store's path."""
    name = os.fsencode(_real_path(store))
    if workspace != WORKSPACE:
        name += b"\0" + workspace.encode()
    return trust.state_folder() / "rules" / trust.file_name(name)


def _real_path(store: str) -> str:
    """Return the real path of a store, without following links of the store and its own folder."""
    folder, name = os.path.split(os.path.abspath(store))
    above, own = os.path.split(folder)
    if own == OWN_FOLDER:
        return os.path.join(os.path.realpath(above), own, name)
    return os.path.join(os.path.realpath(folder), name)


def _project_of(store: str) -> str:
    """Return the folder that a store belongs to."""
    folder = os.path.dirname(_real_path(store))
    return os.path.dirname(folder) if os.path.basename(folder) == OWN_FOLDER else folder


def read_head(store: str, workspace: str = WORKSPACE) -> RuleCopy | None:
    """Read the copy of a store's rules, but with `rules` empty; None if it cannot be read."""
    with suppress(OSError, ValueError):
        return _head_in(copy_folder(store, workspace))
    return None


def _head_in(folder: Path) -> RuleCopy:
    """Read the head in the folder of a copy. Raises OSError and ValueError."""
    return msgspec.json.decode((folder / HEAD).read_bytes(), type=RuleCopy)


def read_copy(store: str, workspace: str = WORKSPACE) -> RuleCopy | None:
    """Read the copy of a store's rules; return None if it cannot be read."""
    head = read_head(store, workspace)
    return replace(head, rules=_rules_in(copy_folder(store, workspace))) if head else None


def _rules_in(folder: Path) -> list[CopiedRule]:
    rules = []
    for file in folder.glob("rule-*.json"):
        try:
            rules.append(msgspec.json.decode(file.read_bytes(), type=CopiedRule))
        except (OSError, ValueError) as error:
            log.warning("a copied rule cannot be read: %s: %s", file, error)
    return rules


def is_current(store: SqliteStore, head: RuleCopy | None, workspace: str) -> bool:
    """Whether the copy holds the store's rules as they are now. Raises StoreError."""
    if is_missing(store.location):
        return head is None
    return head is not None and store.get_many(workspace, []).rules_stamp == head.stamp


def describe_loss(store: SqliteStore, copy: RuleCopy, workspace: str) -> str:
    """Return how a store lost rules of the copy, for the user; "" if none. Raises StoreError.

    A rule that the user lifted is not lost: its record stays, and is newer.
    """
    emptied = f"{store.location} was deleted or emptied"
    if is_missing(store.location) or store.store_id() != copy.store_id:
        return emptied
    lasting = [each for each in copy.rules if each.namespace != SESSION_RULES]
    snapshot = store.get_many(workspace, [(each.namespace, each.key) for each in lasting])
    pairs = zip(snapshot.records, lasting, strict=True)
    lacks = [record is None or _is_older(record.value, each.value) for record, each in pairs]
    if not any(lacks) and snapshot.rules_stamp not in copy.earlier:
        return ""
    when = f"{copy.newest:%Y-%m-%d %H:%M} UTC"
    is_empty = all(record is None for record in snapshot.records)
    return emptied if is_empty else f"{store.location} was put back to a state before {when}"


def only_lost(store: SqliteStore, copy: RuleCopy, workspace: str) -> RuleCopy:
    """Return the copy without rules that the store still has or has newer. Raises StoreError."""
    if is_missing(store.location):
        return copy
    places = [(each.namespace, each.key) for each in copy.rules]
    pairs = zip(store.get_many(workspace, places).records, copy.rules, strict=True)
    lost = [each for record, each in pairs if record is None or not _holds(record.value, each)]
    return replace(copy, rules=lost or copy.rules)


def _holds(record: Raw, copied: CopiedRule) -> bool:
    rule = _rule(record)
    other = _rule(copied.value)
    if rule is None or other is None:
        return rule is not None
    return rule == other or rule.updated_at > other.updated_at


def is_replaced(copy: RuleCopy, store: SqliteStore) -> bool:
    """Whether the copy's project was replaced by another folder. The copied rules then only ask.

    A restored backup does not count: its inode differs, but its store has the same id. Nor does a
    folder with only a store in it, which toolmem made after the project was deleted.
    """
    with suppress(StoreError):
        if copy.store_id and store.store_id() == copy.store_id:
            return False
    with suppress(OSError):
        project = _project_of(copy.path)
        is_other = copy.project not in (0, os.stat(project).st_ino)
        return is_other and set(os.listdir(project)) != {OWN_FOLDER}
    return False


def watch(store: SqliteStore) -> None:
    """Copy each change of a rule in a store file as soon as it is committed, from now on."""
    if store.location != MEMORY:
        store.watch_rules(lambda store, change: keep_copy(store, change.workspace, change))


def keep_copy(store: Store, workspace: str, change: RulesChanged | None = None) -> str:
    """Bring the copy of a store's rules up to date. Returns "", or the problem if that fails.

    `change`: what was just committed. Only this is written if the copy has all earlier changes, or
    if the store has lost rules, which the copy keeps.
    """
    if store.location in ("", MEMORY) or not os.path.exists(store.location):
        return ""
    try:
        head = read_head(store.location, workspace)
        places = change.places if change else []
        snapshot = store.get_many(workspace, places)
        stamp = snapshot.rules_stamp
        records = snapshot.records
        if head is not None and head.stamp == stamp:
            return ""
        folder = copy_folder(store.location, workspace)
        changed = list(zip(places, records, strict=True))
        is_next = bool(change and head and (change.before, change.after) == (head.stamp, stamp))
        if not is_next and isinstance(store, SqliteStore):
            copy = read_copy(store.location, workspace)
            if copy is not None and copy.rules and describe_loss(store, copy, workspace):
                for place, record in changed:
                    _write_rule(folder, *place, record)
                return ""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_removed = any(place[0] != SESSION_RULES for place, record in changed if record is None)
        if head is not None and is_next and changed and not is_removed:
            newest = max(head.newest, _newest(list(filter(None, records))))
            for place, record in changed:
                _write_rule(folder, *place, record)
        else:
            every = _records(store, workspace)
            newest = _newest(every)
            kept = {_write_rule(folder, each.namespace, each.key, each) for each in every}
            for file in set(folder.glob("rule-*.json")) - kept:
                file.unlink(missing_ok=True)
        _write_head(folder, store, stamp, newest, head)
    except (OSError, StoreError) as error:
        log.warning("the copy of the rules is not up to date: %s", error)
        return f"the copy of the rules could not be written: {error}"
    return ""


def _write_head(
    folder: Path, store: Store, stamp: str, newest: datetime, old: RuleCopy | None
) -> None:
    earlier = [*old.earlier, old.stamp] if old else []
    head = RuleCopy(
        _real_path(store.location),
        stamp,
        newest,
        earlier=[each for each in earlier if each][-MAX_EARLIER:],
        store_id=store.store_id() if isinstance(store, SqliteStore) else "",
        project=os.stat(_project_of(store.location)).st_ino,
    )
    replace_file(folder / HEAD, msgspec.json.format(msgspec.json.encode(head)), mode=0o600)


def _write_rule(folder: Path, namespace: str, key: str, record: Record | None) -> Path:
    """Write the file of a rule, or remove the file if the rule does not bind."""
    name = trust.file_name(f"{namespace}\0{key}".encode())
    file = folder / f"rule-{name}.json"
    rule = _rule(record.value) if record else None
    if record is None or rule is None or rule.status != "active":
        file.unlink(missing_ok=True)
    else:
        body = msgspec.json.encode(CopiedRule(namespace, key, record.value))
        replace_file(file, msgspec.json.format(body), mode=0o600)
    return file


def drop_copy(store: str, workspace: str = WORKSPACE) -> None:
    """Delete the copy of a store's rules. Raises OSError."""
    from shutil import rmtree

    rmtree(copy_folder(store, workspace))


def forget_old_copies() -> None:
    """Delete copies of deleted projects that have not changed for 90 days."""
    from shutil import rmtree

    for folder in _copy_folders():
        with suppress(OSError, ValueError):
            is_old = time.time() - (folder / HEAD).stat().st_mtime > KEPT_SECONDS
            if is_old and not os.path.isdir(_project_of(_head_in(folder).path)):
                rmtree(folder)


def _copy_folders() -> Iterator[Path]:
    with suppress(OSError):
        yield from (trust.state_folder() / "rules").iterdir()


def recognize(store: SqliteStore, workspace: str = WORKSPACE) -> str:
    """Trust a store of this user that was moved, copied or put back, and say which happened.

    A store is recognized by its id and the inode of its file, or by a copy with the same id, stamp
    and rules. For a backup that is back in its old place, the same id and an earlier stamp of the
    copy are enough. Returns "" if the store is unknown. Raises StoreError.
    """
    store_id = store.store_id()
    stamp = store.get_many(workspace, []).rules_stamp
    here = _real_path(store.location)
    is_backup = False
    old = trust.trusted_path(store_id, store.location)
    for folder in _copy_folders() if stamp else ():
        with suppress(OSError, ValueError):
            head = _head_in(folder)
            if head.store_id != store_id:
                continue
            is_same = head.stamp == stamp and _same_rules(copy_records(store, workspace), folder)
            if is_same or (stamp in head.earlier and head.path == here):
                old = old or head.path
                is_backup |= head.path == here
    if not old:
        return ""
    store.trust()
    if is_backup:
        return f"{store.location} was put back in its place; its rules bind there"
    copy = read_head(old, workspace)
    is_left = os.path.isdir(_project_of(old))
    if copy is not None and is_replaced(copy, SqliteStore(old)):
        is_left = False
    if is_left or not is_missing(old):  # a project that lost its store keeps the copy
        return f"{store.location} is a copy of {old}; it keeps its rules and goes its own way"
    with suppress(OSError):
        drop_copy(old, workspace)
    return f"{old} was moved to {store.location}; its rules bind there"


def _same_rules(rules: Sequence[CopiedRule], folder: Path) -> bool:
    """Whether the copy in a folder holds these rules and no others."""

    def by_place(found: Sequence[CopiedRule]) -> dict[tuple[str, str], ToolMemoryRule | None]:
        return {(each.namespace, each.key): _rule(each.value) for each in found}

    return by_place(rules) == by_place(_rules_in(folder))


def pending_file(store: str, conversation_id: str) -> Path:
    """Return the file in which hooks keep demands of a conversation that a store could not take."""
    name = trust.file_name(os.fsencode(f"{store}\0{conversation_id}"))
    return pending_folder() / f"{name}.json"


def pending_folder() -> Path:
    """Return this user's folder of pending demands. A restart of the machine empties it."""
    folder = os.environ.get("TMPDIR") or "/tmp"
    return Path(folder, f"toolmem-{os.getuid() if hasattr(os, 'getuid') else 0}")


def put_records(rules: Sequence[CopiedRule], store: Store, workspace: str) -> int:
    """Write copied rules that a store lacks, or has in an older version. Returns their number.

    Raises StoreError.
    """
    number = 0
    with store.transaction():
        for each in rules:
            record = store.get(workspace, each.namespace, each.key)
            if record is None or _is_older(record.value, each.value):
                store.put(workspace, each.namespace, each.key, each.value)
                number += 1
    return number


def copy_as_store(copy: RuleCopy, workspace: str) -> SqliteStore:
    """Make a store in memory that holds the rules of a copy."""
    store = SqliteStore(MEMORY)
    put_records(copy.rules, store, workspace)
    return store


def copy_records(store: Store, workspace: str) -> list[CopiedRule]:
    """Return the records of the binding rules of a store. Raises StoreError."""
    found = []
    for record in _records(store, workspace):
        rule = _rule(record.value)
        if rule and rule.status == "active":
            found.append(CopiedRule(record.namespace, record.key, record.value))
    return found


def _records(store: Store, workspace: str) -> list[Record]:
    lasting = store.list_records(workspace, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX)
    return [*lasting, *store.list_records(workspace, SESSION_RULES, key_prefix=RULE_PREFIX)]


def _newest(records: Sequence[Record]) -> datetime:
    """Return when a rule last changed. Rules of a session do not count: they end by themselves."""
    lasting = (_rule(each.value) for each in records if each.namespace != SESSION_RULES)
    times = (rule.updated_at for rule in lasting if rule is not None)
    return max(times, default=datetime.min.replace(tzinfo=UTC))


def _is_older(record: Raw, than: Raw) -> bool:
    """Whether `record` is an older version of the rule `than`, or only `than` can be read."""
    rule = _rule(record)
    other = _rule(than)
    return other is not None and (rule is None or rule.updated_at < other.updated_at)


def _rule(value: Raw) -> ToolMemoryRule | None:
    try:
        return _read_rule(value)
    except ValueError:
        return None
