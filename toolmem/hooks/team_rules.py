"""Offer the rules of the repository's file, and follow its changes.

They bind once the user typed `use team rules` after they were listed. From then on a change that
only restricts binds at once; one that loosens is a request on the rule, which the user accepts.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from toolmem.errors import RequestError, ToolMemError
from toolmem.guard.stores import WORKSPACE, Stores, store_path
from toolmem.hooks.protocol import Answer, Event
from toolmem.models.rules import TEAM_FILE, ToolMemoryRule
from toolmem.rules.changes import PROGRAM, Actor
from toolmem.rules.prompt import render_rules
from toolmem.rules.replies import MIN_ID_LENGTH
from toolmem.rules.store import ToolMemoryStore
from toolmem.rules.team_file import (
    CHANGES,
    Compared,
    compare,
    digest_of,
    read_bytes,
    read_team_file,
)
from toolmem.store.storable import read_or_new, swap
from toolmem.text.patterns import late_pattern

log = logging.getLogger("toolmem.hooks")
GIT_WAIT = 3.0  # seconds
_YES = late_pattern(r"(?i)(?:please )?use (?:the )?team rules(?:,? please)?|(?:请)?使用团队规则")
_FILE = Actor("agent", words=TEAM_FILE)  # what it asks for is a request


class Followed(Struct):
    """What of the file the user has been told, and agreed to."""

    seen: str = ""  # digest of the file that was told last; "": none was there
    agreed: dict[str, str] = {}  # rule id -> digest of its entry, also of a lifted rule


def follow_team_file(stores: Stores, event: Event) -> Answer:
    """What to tell of the file; nothing where it is as it was."""
    rules, path = stores.rules(), Path(stores.project, TEAM_FILE)
    is_users_own = os.path.realpath(stores.main.location) == store_path(os.sep)
    if is_users_own or stores.copies:  # the user's own store binds in every project
        return Answer()
    words = event.prompt.strip(" \t\r\n.!。！`\"'")
    user = Actor("user", "typed", words, event.session) if _YES.fullmatch(words) else None
    bound: list[ToolMemoryRule] = []

    def follow(state: Followed) -> list[str]:
        was_listed, state.seen = state.seen == digest, digest
        if not data:
            gone = f"{TEAM_FILE} was deleted; its rules that you agreed to bind on"
            return [gone] if state.agreed else []
        try:
            found = compare(read_team_file(data, TEAM_FILE)[0], rules, changes_own=False)
        except RequestError as error:
            return [f"{error}. Nothing of it is followed; what you agreed to binds on"]
        note, is_first = _git_note(path, data), not state.agreed
        changes = [str(each) for each in found if each.kind in CHANGES]
        if is_first and changes and not (user is not None and was_listed):
            about = f"{TEAM_FILE} has {len(changes)} rule(s) for agents{note}"
            return [f"{about}. They bind nothing until you type: use team rules", *changes]
        lines: list[str] = []
        for each in found:
            known, line = state.agreed.pop(each.rule_id, ""), digest_of(str(each.entry).encode())
            if each.kind != "missing":
                state.agreed[each.rule_id] = line
            if known if each.kind == "missing" else known != line:
                lines += _change(each, rules, user if is_first else None, bound)
        if user is not None and is_first:
            return [f"the rules of {TEAM_FILE} bind from now on", *lines]
        return [f"{TEAM_FILE} changed{note}:", *lines] if lines else []

    try:
        data = read_bytes(path) if path.is_file() else b""
        digest, place = digest_of(data), (".team", str(path)[:500])
        state = read_or_new(rules.store.get(WORKSPACE, *place), Followed)
        if state.seen == digest and user is None:
            return Answer()
        lines = swap(rules.store, WORKSPACE, place, Followed, follow)
    except ToolMemError as error:
        log.warning("%s is not followed: %s", path, error)
        return Answer()
    notice = "\n".join(f"toolmem: {line}" for line in lines)
    return Answer(notice=notice, context=render_rules(bound))


def _change(
    each: Compared, rules: ToolMemoryStore, user: Actor | None, bound: list[ToolMemoryRule]
) -> list[str]:
    """Let what only restricts bind, and ask for what loosens, unless the user said yes to it."""
    actor = PROGRAM if each.kind in ("new", "stricter") else _FILE
    if each.rule and each.rule.request and each.rule.request.words == TEAM_FILE:
        rules.reject(each.rule, PROGRAM)  # the file does not ask for it any more
    if each.kind == "same":
        return []
    if each.kind == "missing" and each.rule is not None:
        after = rules.delete(each.rule, actor)
    else:
        after = rules.put_rule(each.as_input(), user or actor)
    waits = after.request is not None
    bound += [] if waits else [after]
    how = "What you agreed to binds until you type" if waits else "It binds; to end it"
    return [f"{each}. {how}: lift {after.id[:MIN_ID_LENGTH]}"]


def _git_note(path: Path, data: bytes) -> str:
    """Say that git does not hold the file as it is; "" where it does.

    Git only prints what was committed: it runs no filter of the repository, and fetches nothing.
    """
    from subprocess import DEVNULL, SubprocessError, run

    command = ["git", "-C", str(path.parent), "cat-file", "blob", f"HEAD:./{path.name}"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean["GIT_ALLOW_PROTOCOL"] = "none"
    with suppress(OSError, SubprocessError):
        done = run(
            command, stdin=DEVNULL, capture_output=True, env=clean, timeout=GIT_WAIT, check=True
        )
        if done.stdout.replace(b"\r\n", b"\n") == data.replace(b"\r\n", b"\n"):
            return ""
    return " (git does not hold this file as committed)"
