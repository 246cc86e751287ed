"""Hold the demands of a conversation that the store could not take, until it can.

They bind in their conversation alone, and the user is told so. They are kept in memory and, because
each hook is a process of its own, for hooks also in a file of the temporary folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from toolmem.errors import StoreError
from toolmem.files import replace_file
from toolmem.guard.guard import MESSAGE_WAIT, Guard
from toolmem.guard.rule_copies import CopiedRule, copy_records, put_records
from toolmem.models.rules import ToolMemoryRule
from toolmem.rules.capture import ToolMemoryCaptureHook
from toolmem.rules.changes import Actor
from toolmem.rules.identity import rule_key
from toolmem.rules.store import ToolMemoryStore
from toolmem.rules.turn import Captured, Turn, tell_operator
from toolmem.store.sqlite import SqliteStore
from toolmem.store.sqlite.files import MEMORY
from toolmem.text.display import plain


class PendingDemands:
    """Holds a conversation's demands, also in `file`, until they can be written to `rules`."""

    def __init__(self, rules: ToolMemoryStore, file: Path | None = None) -> None:
        self.file = file
        self._target = rules
        self._written: list[ToolMemoryRule] = []
        self.rules = ToolMemoryStore(SqliteStore(MEMORY), rules.workspace, rules.clock, rules.zone)
        if file is not None:
            put_records(_read_file(file), self.rules.store, rules.workspace)

    @property
    def demands(self) -> list[ToolMemoryRule]:
        return self.rules.all_rules().rules

    def hold(self, turn: Turn, error: StoreError, *, binds: bool = True) -> list[str]:
        """Hold the demands of a message. Returns a line for the user on each demand.

        `error`: why the store could not take them. `binds`: False if the conversation has no id,
        so that its later calls cannot be recognized and checked.
        """
        bound: set[str] = set()
        with suppress(StoreError):
            bound = {rule.rule for rule in self._target.all_rules(turn.conversation_id).rules}
        bound |= {rule.rule for rule in self.demands}
        kept = ToolMemoryCaptureHook(self.rules, actor=Actor("user")).after_turn(turn).kept
        missing = dict.fromkeys(plain(each.rule, 160) for each in kept if each.rule not in bound)
        if turn.user_message and not kept:
            return [f"this message is not kept, and no reply in it was followed: {error}"]
        checked = {plain(each.rule, 160) for each in kept if each.is_checked}
        is_held = binds and self._write_file()
        lines = []
        for rule in missing:
            effect = "binds" if rule in checked else "is a reminder"
            what = f"it {effect} in this session alone" if is_held else "it does not bind"
            lines.append(f"not kept: “{rule}”: {what}, as {str(error).partition(';')[0]}")
        return lines

    def write_to_store(self) -> list[str]:
        """Write the demands to the store. Returns lines for the user. Raises StoreError.

        They stay pending until `forget_written`, because a transaction around this may still fail.
        """
        self._written = self.demands
        target = self._target.store
        workspace = self.rules.workspace
        # Somebody else may have written the file, so it replaces no rule of the store.
        new = [
            each
            for each in copy_records(self.rules.store, workspace)
            if target.get(workspace, each.namespace, each.key) is None
        ]
        put_records(new, target, workspace)
        keys = {each.key for each in new}
        texts = dict.fromkeys(r.rule for r in self._written if rule_key(r.id) in keys)
        return [f"Kept now: “{plain(text, 160)}”" for text in texts]

    def forget_written(self) -> None:
        """Drop the demands that were written, once the store has committed them."""
        for rule in self._written:
            self.rules.delete_rule(rule.tool_name, rule.id)
        if self._written and self.file is not None:
            with suppress(OSError):
                self.file.unlink(missing_ok=True)
        self._written = []

    def _write_file(self) -> bool:
        """Write the demands to the file, for other hooks; return False if that fails."""
        if self.file is None:
            return True
        try:
            self.file.parent.mkdir(mode=0o700, exist_ok=True)
            _require_private(self.file.parent)
            body = msgspec.json.encode(copy_records(self.rules.store, self.rules.workspace))
            replace_file(self.file, body, mode=0o600)
        except OSError:
            return False
        return True


def capture_or_hold(guard: Guard, turn: Turn, capture: Callable[[], Captured]) -> Captured:
    """Run `capture`, which reads and stores what a turn demands, in a transaction.

    It waits at most MESSAGE_WAIT seconds while another process writes to the store. If the store
    fails, the demands of the turn are held as pending demands of its conversation.
    """
    pending = guard.pending.get(turn.conversation_id)
    captured = Captured()
    try:
        with guard.store.transaction(MESSAGE_WAIT):
            if pending is not None:
                captured.told += pending.write_to_store()
            captured.add(capture())
        if pending is not None:
            pending.forget_written()
            if not pending.demands:
                guard.pending.pop(turn.conversation_id, None)
    except StoreError as error:
        pending = pending or PendingDemands(guard.rules)
        captured = Captured(told=pending.hold(turn, error, binds=bool(turn.conversation_id)))
        if turn.conversation_id:
            guard.pending[turn.conversation_id] = pending
        if turn.is_guests:
            tell_operator(turn.conversation_id, captured.told)
            captured.told = []
    return captured


def _read_file(file: Path) -> list[CopiedRule]:
    with suppress(OSError, ValueError):
        _require_private(file.parent)
        return msgspec.json.decode(file.read_bytes(), type=list[CopiedRule])
    return []


def _require_private(folder: Path) -> None:
    """Raise OSError if somebody else may read or write in a folder."""
    state = folder.lstat()
    is_own = not hasattr(os, "getuid") or state.st_uid == os.getuid()
    if not (stat.S_ISDIR(state.st_mode) and is_own) or state.st_mode & 0o077:
        raise OSError(f"{folder} is not of this user alone")
