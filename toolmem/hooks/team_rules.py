"""Offer the rules of the repository's file, and follow its changes.

The rules bind once the user has seen them and typed `use team rules`. From then on a change that
only restricts binds at once. A change that loosens a rule is a request, which the user accepts.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from toolmem.config.sections import WORKSPACE
from toolmem.errors import RequestError, ToolMemError
from toolmem.guard.stores import Stores, store_path
from toolmem.hooks.protocol import Answer, Event, notice_of
from toolmem.models.rules import TEAM_FILE, ToolMemoryRule
from toolmem.rules.changes import Actor, way_to_agree
from toolmem.rules.identity import code_of
from toolmem.rules.prompt import render_rules
from toolmem.rules.store import ToolMemoryStore
from toolmem.store.storable import read_or_new, swap
from toolmem.text.display import counted
from toolmem.text.patterns import late_pattern

if TYPE_CHECKING:
    from toolmem.rules.team_file import Compared

log = logging.getLogger("toolmem.hooks")
_YES = late_pattern(r"(?i)(?:please )?use (?:the )?team rules(?:,? please)?|(?:请)?使用团队规则")


class Followed(Struct):
    """Which version of the file the user saw last, and which of its rules they agreed to."""

    seen: str = ""  # digest of the file that the user saw last; "": there was none
    agreed: dict[str, str] = {}  # rule id -> digest of its entry, also of a lifted rule


def follow_team_file(stores: Stores, event: Event) -> Answer:
    """If the file changed, follow it. Returns what the user and the model have to know."""
    if stores.copies or os.path.realpath(stores.main.location) == store_path(os.sep):
        return Answer()  # the user's own store binds in every project
    rules = stores.rules()
    path = Path(stores.project, TEAM_FILE)
    words = event.prompt.strip(" \t\r\n.!。！`\"'")
    user = Actor("user", "typed", words, event.session) if _YES.fullmatch(words) else None
    try:
        place = (".team", str(path)[:500])
        state = read_or_new(rules.store.get(WORKSPACE, *place), Followed)
        if not (path.is_file() or state.seen):
            return Answer()
        from toolmem.rules import team_file  # takes long to load

        data = team_file.read_bytes(path) if path.is_file() else b""
        digest = team_file.digest_of(data)
        if digest == state.seen and user is None:
            return Answer()
        change = _ChangedFile(rules, path, data, digest, user)
        with rules.store.transaction():
            lines = swap(rules.store, WORKSPACE, place, Followed, change.follow)
    except ToolMemError as error:
        log.warning("%s is not followed: %s", path, error)
        return Answer()
    return Answer(notice=notice_of(lines), context=render_rules(change.bound))


class _ChangedFile(Struct):
    """The file as it is now, and those of its rules that bind."""

    rules: ToolMemoryStore
    path: Path
    data: bytes  # b"": there is no file
    digest: str
    user: Actor | None  # the user, if this prompt agrees to the file
    bound: list[ToolMemoryRule] = []  # rules that bind from now on

    def follow(self, state: Followed) -> list[str]:
        """Apply the changes that the user agreed to. Returns messages for the user."""
        from toolmem.rules import team_file

        was_listed = state.seen == self.digest
        state.seen = self.digest
        if not self.data:
            gone = f"{TEAM_FILE} was deleted; its rules that you agreed to bind on"
            return [gone] if state.agreed else []
        try:
            entries, _ = team_file.read_team_file(self.data, TEAM_FILE)
        except RequestError as error:
            return [f"{error}. Nothing of it is followed; what you agreed to binds on"]
        found = team_file.compare(entries, self.rules, changes_own=False)
        note = _git_note(self.path, self.data)
        is_first = not state.agreed
        changes = [str(each) for each in found if each.kind in team_file.CHANGES]
        if is_first and changes and not (self.user and was_listed):
            about = f"{TEAM_FILE} has {counted(len(changes), 'rule')} for agents{note}"
            return [f"{about}. Nothing of it binds until you type: use team rules", *changes]
        lines = self._apply(found, state, self.user if is_first else None)
        if is_first:
            return [f"the rules of {TEAM_FILE} bind from now on:", *lines] if self.user else []
        return [f"{TEAM_FILE} changed{note}:", *lines] if lines else []

    def _apply(self, found: Sequence[Compared], state: Followed, user: Actor | None) -> list[str]:
        """Apply changed entries of the file. Returns a message on each changed rule."""
        from toolmem.rules import team_file

        lines: list[str] = []
        for each in found:
            before = state.agreed.pop(each.rule_id, "")
            now = "" if each.kind == "missing" else team_file.digest_of(str(each.entry).encode())
            if now:
                state.agreed[each.rule_id] = now
            if before == now:
                continue
            after = each.apply(self.rules, user)
            if each.kind == "same":
                continue
            if after.request:
                lines.append(f"{each}. The old binds until you type: {way_to_agree(after)}")
            else:
                lines.append(f"{each}. It binds; to end it: lift {code_of(after)}")
                self.bound.append(after)
        return lines


def _git_note(path: Path, data: bytes) -> str:
    """Return a note if the file differs from the last commit, else "". Git fetches nothing."""
    from subprocess import DEVNULL, SubprocessError, run

    command = ["git", "-C", str(path.parent), "cat-file", "blob", f"HEAD:./{path.name}"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean["GIT_ALLOW_PROTOCOL"] = "none"
    with suppress(OSError, SubprocessError):
        done = run(command, stdin=DEVNULL, capture_output=True, env=clean, timeout=3, check=True)
        if done.stdout.replace(b"\r\n", b"\n") == data.replace(b"\r\n", b"\n"):
            return ""
    return " (git does not hold this file as committed)"
