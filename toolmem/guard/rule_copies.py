"""Copies of the binding rules in the user's state folder, so that rules survive their store.

A store may be deleted, damaged or put back to an older state, by an agent too. Hooks update its
copy at each event. Where a store lost rules, its copy binds until the user writes the rules back
(`toolmem store restore`) or drops the copy.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from toolmem.errors import StoreError
from toolmem.models.protocols import Store
from toolmem.models.records import Record
from toolmem.models.rules import ToolMemoryRule
from toolmem.rules.identity import RULE_PREFIX, SESSION_RULES, TOOL_PREFIX
from toolmem.store.sqlite import SqliteStore
from toolmem.store.sqlite.files import MEMORY, OWN_FOLDER, is_missing
from toolmem.store.sqlite.trust import state_folder

log = logging.getLogger("toolmem.guard")
_read_rule = msgspec.json.Decoder(ToolMemoryRule).decode


class CopiedRule(Struct, frozen=True):
    """The record of one rule."""

    namespace: str
    key: str
    value: Raw


class RuleCopy(Struct, frozen=True):
    """The rules of one store that bind, as of a stamp."""

    path: str  # of the store: tells a person which copy this is
    stamp: str  # of the store's rules
    newest: datetime  # when a rule of the store was changed last
    rules: list[CopiedRule]


def copy_path(store: str) -> Path:
    """Where the copy of a store's rules is: named after the path, as the store may be gone."""
    from hashlib import blake2b

    name = blake2b(os.fsencode(_real_path(store)), digest_size=16).hexdigest()
    return state_folder() / "rules" / f"{name}.json"


def _real_path(store: str) -> str:
    """The path of a store, which may have become a symbolic link, as may its own folder."""
    folder, name = os.path.split(os.path.abspath(store))
    above, own = os.path.split(folder)
    if own == OWN_FOLDER:
        return os.path.join(os.path.realpath(above), own, name)
    return os.path.join(os.path.realpath(folder), name)


def read_copy(store: str) -> RuleCopy | None:
    """The copy of a store's rules; None where there is none that can be read."""
    with suppress(OSError, ValueError):
        return msgspec.json.decode(copy_path(store).read_bytes(), type=RuleCopy)
    return None


def is_current(store: SqliteStore, copy: RuleCopy | None, workspace: str) -> bool:
    """Whether a copy holds the store's rules as they are now. Raises StoreError."""
    if is_missing(store.location):
        return copy is None or not copy.rules
    return copy is not None and store.get_many(workspace, []).rules_stamp == copy.stamp


def lost_rules(store: SqliteStore, copy: RuleCopy, workspace: str) -> str:
    """What the store lost, so that its copy binds; "" where it lost nothing. Raises StoreError."""
    emptied = f"{store.location} was deleted or emptied"
    if is_missing(store.location):
        return emptied
    records = _records(store, workspace)
    if _newest(records) >= copy.newest:
        return ""
    return f"{store.location} was put back to an older state" if records else emptied


def keep_copy(store: Store, workspace: str) -> None:
    """Bring the copy of a store's rules up to date. A failure is logged."""
    if store.location in ("", MEMORY) or not os.path.exists(store.location):
        return
    from toolmem.formats.files import replace_file

    try:
        stamp = store.get_many(workspace, []).rules_stamp
        copy = read_copy(store.location)
        if copy is not None and copy.stamp == stamp:
            return
        records = _records(store, workspace)
        bind = [(r, rule) for r in records if (rule := _rule(r.value)) and rule.status == "active"]
        rules = [CopiedRule(r.namespace, r.key, r.value) for r, _ in bind]
        new = RuleCopy(_real_path(store.location), stamp, _newest(records), rules)
        path = copy_path(store.location)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, msgspec.json.format(msgspec.json.encode(new)), mode=0o600)
    except (OSError, StoreError) as error:
        log.warning("the copy of the rules is not up to date: %s", error)


def put_copy(copy: RuleCopy, store: Store, workspace: str) -> int:
    """Write the rules of a copy that a store lacks, or holds in an older version; count them.

    Raises StoreError.
    """
    number = 0
    with store.transaction():
        for each in copy.rules:
            record = store.get(workspace, each.namespace, each.key)
            if record is None or _is_older(record.value, each.value):
                store.put(workspace, each.namespace, each.key, each.value)
                number += 1
    return number


def copy_as_store(copy: RuleCopy, workspace: str) -> SqliteStore:
    """A store in memory with the rules of a copy."""
    store = SqliteStore(MEMORY)
    put_copy(copy, store, workspace)
    return store


def _records(store: Store, workspace: str) -> list[Record]:
    of_session = store.list_records(workspace, SESSION_RULES, key_prefix=RULE_PREFIX)
    return [*store.list_records(workspace, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX), *of_session]


def _newest(records: list[Record]) -> datetime:
    """When a rule was changed last. Those of a session do not count: they end by themselves."""
    lasting = (_rule(each.value) for each in records if each.namespace != SESSION_RULES)
    times = (rule.updated_at for rule in lasting if rule is not None)
    return max(times, default=datetime.min.replace(tzinfo=UTC))


def _is_older(record: Raw, than: Raw) -> bool:
    """Whether a rule is an older version of another, or cannot be read while the other can."""
    rule, other = _rule(record), _rule(than)
    return other is not None and (rule is None or rule.updated_at < other.updated_at)


def _rule(value: Raw) -> ToolMemoryRule | None:
    try:
        return _read_rule(value)
    except ValueError:
        return None
