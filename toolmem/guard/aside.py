"""Demands that their store cannot take now: told as not kept, and held for the session.

They bind from memory, and for hooks, each of which is a process of its own, from a file in the
temporary folder. As soon as the store takes them they are kept there.
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
from toolmem.guard.guard import HEAR_WAIT, Guard
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


class Aside:
    """The demands of one session that `rules` could not take. `file`: holds them, too."""

    def __init__(self, rules: ToolMemoryStore, file: Path | None = None) -> None:
        self.file = file
        self._target = rules
        self._given: list[ToolMemoryRule] = []
        self.rules = ToolMemoryStore(SqliteStore(MEMORY), rules.workspace, rules.clock, rules.zone)
        if file is not None:
            put_records(_read(file), self.rules.store, rules.workspace)

    def __bool__(self) -> bool:
        return bool(self.held)

    @property
    def held(self) -> list[ToolMemoryRule]:
        return self.rules.all_rules().rules

    def take(self, turn: Turn, error: StoreError, *, binds: bool = True) -> list[str]:
        """Hold the demands of a message; returns what to tell the user of each.

        `binds`: the session has a name, by which its calls are known.
        """
        bound: set[str] = set()
        with suppress(StoreError):
            bound = {rule.rule for rule in self._target.all_rules(turn.conversation_id).rules}
        bound |= {rule.rule for rule in self.held}
        kept = ToolMemoryCaptureHook(self.rules, actor=Actor("user")).after_turn(turn).kept
        missing = dict.fromkeys(plain(each.rule, 160) for each in kept if each.rule not in bound)
        if turn.user_message and not kept:
            return [f"this message is not kept, and no reply in it was followed: {error}"]
        checked = {plain(each.rule, 160) for each in kept if each.is_checked}
        is_held = binds and self._write()
        told = []
        for rule in missing:
            effect = "binds" if rule in checked else "is a reminder"
            what = f"it {effect} in this session alone" if is_held else "it does not bind"
            told.append(f"not kept: “{rule}”: {what}, as {str(error).partition(';')[0]}")
        return told

    def give_back(self) -> list[str]:
        """Put what is held into the store; returns what to tell the user. Raises StoreError.

        It is held on until `let_go`, as a transaction around this may still fail.
        """
        self._given = self.held
        target = self._target.store
        workspace = self.rules.workspace
        new = [
            each
            for each in copy_records(self.rules.store, workspace)
            if target.get(workspace, each.namespace, each.key) is None
        ]  # the file may be anybody's, and replaces no rule
        put_records(new, target, workspace)
        keys = {each.key for each in new}
        texts = dict.fromkeys(r.rule for r in self._given if rule_key(r.id) in keys)
        return [f"Kept now: “{plain(text, 160)}”" for text in texts]

    def let_go(self) -> None:
        """Hold no longer what was given back: the store has it for good."""
        for rule in self._given:
            self.rules.delete_rule(rule.tool_name, rule.id)
        if self._given and self.file is not None:
            with suppress(OSError):
                self.file.unlink(missing_ok=True)
        self._given = []

    def _write(self) -> bool:
        """Whether what is held binds in the processes that ask for it."""
        if self.file is None:
            return True
        try:
            self.file.parent.mkdir(mode=0o700, exist_ok=True)
            _require_own(self.file.parent)
            body = msgspec.json.encode(copy_records(self.rules.store, self.rules.workspace))
            replace_file(self.file, body, mode=0o600)
        except OSError:
            return False
        return True


def hear_in_time(guard: Guard, turn: Turn, hear: Callable[[], Captured]) -> Captured:
    """What `hear` makes of a message; it waits for others that write HEAR_WAIT at most.

    Where the store takes nothing, the message's demands bind in its session alone, and that is
    what the user is told.
    """
    aside = guard.asides.get(turn.conversation_id)
    heard = Captured()
    try:
        with guard.store.transaction(HEAR_WAIT):
            if aside is not None:
                heard.told += aside.give_back()
            heard.add(hear())
        if aside is not None:
            aside.let_go()
    except StoreError as error:
        aside = aside or Aside(guard.rules)
        heard = Captured(told=aside.take(turn, error, binds=bool(turn.conversation_id)))
        if turn.conversation_id:
            guard.asides[turn.conversation_id] = aside
        if turn.is_guests:
            tell_operator(turn.conversation_id, heard.told)
            heard.told = []
    return heard


def _read(file: Path) -> list[CopiedRule]:
    with suppress(OSError, ValueError):
        _require_own(file.parent)
        return msgspec.json.decode(file.read_bytes(), type=list[CopiedRule])
    return []


def _require_own(folder: Path) -> None:
    """Raises OSError for a folder that somebody else may write to."""
    state = folder.lstat()
    is_own = not hasattr(os, "getuid") or state.st_uid == os.getuid()
    if not (stat.S_ISDIR(state.st_mode) and is_own) or state.st_mode & 0o077:
        raise OSError(f"{folder} is not of this user alone")
