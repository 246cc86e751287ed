"""Offer the rules of the repository's file, and follow its changes.

They bind once the user typed `use team rules` after they were listed. From then on a change that
only restricts binds at once; one that loosens is a request on the rule, which the user accepts.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
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
from toolmem.rules.team_file import Compared, compare, digest_of, read_bytes, read_team_file
from toolmem.store.storable import read_or_new, swap
from toolmem.text.patterns import late_pattern

log = logging.getLogger("toolmem.hooks")
GIT_WAIT = 3.0  # seconds
_YES = late_pattern(r"(?i)(?:please )?use (?:the )?team rules(?:,? please)?|(?:请)?使用团队规则")
_FILE = Actor("agent", words=TEAM_FILE)  # what it asks for is a request
_CHANGED = {
    "new": "It binds from now on; to end it",
    "stricter": "It binds from now on; to end it",
    "looser": "The old one binds on, until you type",
    "missing": "It is not in the file any more, and binds on, until you type",
}


class Followed(Struct):
    """What of the file the user has been told, and agreed to."""

    seen: str = ""  # digest of the file that was told last; "": none was there
    agreed: dict[str, str] = {}  # rule id -> digest of its entry, also of a lifted rule


class _Told(Struct):
    lines: list[str] = []  # for the user
    bound: list[ToolMemoryRule] = []  # rules that bind from now on


def follow_team_file(stores: Stores, event: Event) -> Answer:
    """What to tell of the file; nothing where it is as it was."""
    rules, path = stores.rules(), Path(stores.project, TEAM_FILE)
    is_users_own = os.path.realpath(stores.main.location) == store_path(os.sep)
    if is_users_own or stores.copies:  # the user's own store binds in every project
        return Answer()
    words = event.prompt.strip(" \t\r\n.!。！`\"'")
    user = Actor("user", "typed", words, event.session) if _YES.fullmatch(words) else None
    place = (".team", str(path)[:500])
    try:
        data = read_bytes(path) if path.is_file() else b""
        state = read_or_new(rules.store.get(WORKSPACE, *place), Followed)
        if state.seen == digest_of(data) and user is None:
            return Answer()
        told = swap(
            rules.store, WORKSPACE, place, Followed, lambda s: _follow(s, rules, path, data, user)
        )
    except ToolMemError as error:
        log.warning("%s is not followed: %s", path, error)
        return Answer()
    notice = "\n".join(f"toolmem: {line}" for line in told.lines)
    return Answer(notice=notice, context=render_rules(told.bound))


def _follow(
    state: Followed, rules: ToolMemoryStore, path: Path, data: bytes, user: Actor | None
) -> _Told:
    """`user`: who says yes to what was listed."""
    was_listed, state.seen = state.seen == digest_of(data), digest_of(data)
    if not data:
        gone = f"{TEAM_FILE} was deleted; its rules that you agreed to bind on"
        return _Told([gone] if state.agreed else [])
    try:
        found = compare(read_team_file(data, TEAM_FILE).entries, rules, changes_own=False)
    except RequestError as error:
        return _Told([f"{error}. Nothing of it is followed; what you agreed to binds on"])
    if state.agreed:
        told = _follow_changes(state, rules, found)
        if told.lines:
            told.lines.insert(0, f"{TEAM_FILE} changed{_git_note(path, data)}:")
        elif user is not None:
            told.lines.append(f"the rules of {TEAM_FILE} that you agreed to are in use")
        return told
    changes = [each for each in found if each.is_change]
    if changes and not (user is not None and was_listed):
        about = f"{TEAM_FILE} has {len(changes)} rule(s) for agents{_git_note(path, data)}"
        how = f"{about}. They bind nothing until you type: use team rules"
        return _Told([how, *map(str, changes)])
    state.agreed = {each.rule_id: each.entry.digest for each in found if each.kind != "missing"}
    bound = [rules.put_rule(each.as_input(), user or PROGRAM) for each in changes]
    lines = [f"the rules of {TEAM_FILE} bind from now on"] if user is not None else []
    lines += [f"{each.entry} To end it: {_lift(each)}" for each in changes]
    return _Told(lines, bound)


def _follow_changes(state: Followed, rules: ToolMemoryStore, found: Sequence[Compared]) -> _Told:
    """Let what only restricts bind, and ask for what loosens."""
    told = _Told()
    for each in found:
        known = state.agreed.pop(each.rule_id, None)
        if each.kind == "missing" and each.rule is not None:
            if known is None:
                continue
            rules.delete(each.rule, _FILE)
        else:
            state.agreed[each.rule_id] = each.entry.digest
            if known == each.entry.digest:
                continue
            if each.rule is not None and each.rule.request is not None:
                rules.reject(each.rule, PROGRAM)  # what was asked for is not in the file any more
            if not each.is_change:
                continue
            rule = rules.put_rule(each.as_input(), _FILE if each.kind == "looser" else PROGRAM)
            told.bound += [] if each.kind == "looser" else [rule]
        told.lines.append(f"{each} {_CHANGED[each.kind]}: {_lift(each)}")
    return told


def _lift(each: Compared) -> str:
    return f"lift {each.rule_id[:MIN_ID_LENGTH]}"


def _git_note(path: Path, data: bytes) -> str:
    """Say that git does not hold the file as it is; "" where it does.

    Git only prints what was committed: it runs no filter of the repository, and fetches nothing.
    """
    from subprocess import DEVNULL, SubprocessError, run

    command = ["git", "-C", str(path.parent), "cat-file", "blob", f"HEAD:./{path.name}"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean["GIT_ALLOW_PROTOCOL"] = "none"
    try:
        done = run(
            command, capture_output=True, stdin=DEVNULL, env=clean, timeout=GIT_WAIT, check=True
        )
        if done.stdout.replace(b"\r\n", b"\n") == data.replace(b"\r\n", b"\n"):
            return ""
    except (OSError, SubprocessError):
        log.debug("git does not print %s", path)
    return " (git does not hold this file as committed)"
