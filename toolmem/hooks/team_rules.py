"""Offer the rules of the repository's file, and follow its changes.

They bind once the user typed `use team rules` after they were listed. From then on a change that
only restricts binds at once; one that loosens is a request on the rule, which the user accepts.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from hashlib import blake2b, new
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from toolmem.errors import RequestError
from toolmem.guard.stores import WORKSPACE, Stores, store_path
from toolmem.hooks.agents import Agent
from toolmem.hooks.protocol import Answer, Event
from toolmem.models.rules import TEAM_FILE, ToolMemoryRule
from toolmem.rules.changes import Actor
from toolmem.rules.replies import MIN_ID_LENGTH, excerpt
from toolmem.rules.store import ToolMemoryStore, read_or_new
from toolmem.text.display import plain
from toolmem.text.patterns import late_pattern

if TYPE_CHECKING:
    from toolmem.rules.team_file import Compared, Entry

log = logging.getLogger("toolmem.hooks")
NAMESPACE = ".team"
MAX_LINE = 100_000  # characters of a rule that is listed: a yes is for all that it says
GIT_WAIT = 3.0  # seconds
_YES = late_pattern(r"(?i)(?:please )?use (?:the )?team rules(?:,? please)?|(?:请)?使用团队规则")
_FILE = Actor("agent", name=TEAM_FILE)  # what it asks for is a request
_YES_TO_ALL = "They bind nothing until you type: use team rules"


class Followed(Struct):
    """What of the file the user agreed to, or has been told."""

    seen: str = ""  # digest of the file that was compared last; "": none was there
    answered: str = ""  # the agent's id of the event that was answered last
    offered: str = ""  # digest of the file whose rules were listed to the user
    agreed: dict[str, str] = {}  # rule id -> digest of its entry, also of a lifted rule; "": gone


def follow_team_file(agent: Agent, stores: Stores, event: Event) -> Answer:
    """What to tell of the file; nothing where it is as it was. Rules that bind so are put."""
    is_told = event.kind in agent.notice_at
    is_users_own = os.path.realpath(stores.main.location) == store_path(os.sep)
    if not stores.project or is_users_own or stores.untrusted or stores.copies:
        return Answer()  # the user's own store binds in every project
    if event.kind == "session_start" and not is_told:
        return Answer()  # the next prompt tells
    try:
        return _Follower(stores, event, is_told).answer()
    except Exception as error:  # whatever the file holds, the event is answered
        log.warning("%s is not followed: %r", TEAM_FILE, error)
    return Answer()


class _Follower:
    """One comparison of the file with the rules of the project's store."""

    def __init__(self, stores: Stores, event: Event, is_told: bool) -> None:
        self.stores, self.is_told = stores, is_told
        self.rules: ToolMemoryStore = stores.rules()
        self.path = Path(stores.project, TEAM_FILE)
        folder = os.path.relpath(stores.project, os.path.dirname(stores.main.location))
        self.place = (WORKSPACE, NAMESPACE, folder[:400])  # the same when both are moved
        self.state = read_or_new(stores.main.get(*self.place), Followed)
        words = " ".join(event.prompt.strip(" \t\r\n.!。！`\"'").split())
        self.reminders = 0  # entries that check no call
        came_before = bool(event.key) and event.key == self.state.answered  # from two installs
        self.says_yes = bool(_YES.fullmatch(words)) and not came_before
        self.key, self.is_prompt = event.key, event.kind == "prompt"
        self.user = Actor("user", "typed", words, event.session)

    def answer(self) -> Answer:
        data, problem = b"", ""
        if os.path.lexists(self.path):
            from toolmem.formats.files import read_reviewed

            try:
                data = read_reviewed(self.path)
            except RequestError as error:
                problem = str(error)
            digest = blake2b(problem.encode() or data, digest_size=12).hexdigest()
        else:
            digest = ""
        if digest == self.state.seen and not self.says_yes:
            return Answer()
        is_new = digest != self.state.seen
        self.state.seen, self.state.answered = digest, self.key
        answer = self._compare(data, digest, problem, is_new)
        self.stores.main.put(*self.place, self.state)
        lines = answer.notice.splitlines()
        answer.notice = "\n".join(f"toolmem: {plain(line, MAX_LINE)}" for line in lines)
        if not self.is_prompt:
            answer.context = ""  # the rules stand in the prompt
        elif not self.is_told and not answer.context:
            answer.context = answer.notice
        return answer

    def _compare(self, data: bytes, digest: str, problem: str, is_new: bool) -> Answer:
        binding = [rule for rule in self.rules.all_rules().rules if rule.id in self.state.agreed]
        if not digest and not binding:
            nothing = f"There is no {TEAM_FILE} in {self.stores.project}"
            return Answer(notice=nothing if self.says_yes else "")
        still = f"the {len(binding)} rule(s) of it that you agreed to bind on" if binding else ""
        if not digest:
            return Answer(notice=f"{TEAM_FILE} was deleted; {still}. To end one: lift CODE")
        try:
            if problem:
                raise RequestError(problem)
            found = self._compared(data)
        except RequestError as error:
            return Answer(notice=f"{error}. Nothing of it is followed; {still or 'no rule binds'}")
        if not self.state.agreed and not any(each.rule and each.rule.is_team for each in found):
            return self._offer(found, data, digest)
        told, bound = self._follow(found)
        told += self._ask_for_missing(found)
        if told:
            note = git_note(self.path, data)
            told.insert(0, f"{TEAM_FILE} changed{note and f'; {note}'}:")
        elif self.says_yes and not is_new:
            told = [f"The {len(binding)} rule(s) of {TEAM_FILE} are in use already"]
        return Answer(notice="\n".join(told), context=_rendered(bound))

    def _compared(self, data: bytes) -> list[Compared]:
        """The checked entries of the file. What the user said themselves stays as it is."""
        from toolmem.rules.team_file import compare, read_team_file

        entries = read_team_file(data, TEAM_FILE).entries
        checked = [each for each in entries if each.is_checked]
        self.reminders = len(entries) - len(checked)
        known = self.rules.all_rules().rules
        found = []
        for each in compare(checked, known, self.rules.clock.now()):
            rule = each.rule
            if rule is not None and not rule.is_team and each.kind != "same":
                is_its_own = rule.id == each.entry.stored_id  # the user said the same words later
                each = each._replace(kind="same" if is_its_own else "new", rule=None)
            found.append(each)
        return found

    def _offer(self, found: Sequence[Compared], data: bytes, digest: str) -> Answer:
        """List the rules, or let those bind that were listed before, as the user says yes."""
        new = [each for each in found if each.kind not in ("same", "ended")]
        if new and not (self.says_yes and self.state.offered == digest):
            about = f"This repository has {len(new)} rule(s) for agents in {TEAM_FILE}"
            note = git_note(self.path, data)
            told = [f"{about}{note and f'; {note}'}. {_YES_TO_ALL}"]
            if self.reminders:
                told.append(f"{self.reminders} more only remind, stop no call and are left out")
            if self.is_told:
                self.state.offered = digest
                return Answer(notice="\n".join([*told, *(f"- {each.entry}" for each in new)]))
            how = "In a terminal of yours: toolmem rules import"
            return Answer(notice=f"{about}. They bind nothing. {how} {TEAM_FILE}")
        bound = [self._put(each) for each in new]
        if self.says_yes:
            self.state.agreed = {each.entry.stored_id: each.entry.digest for each in found}
        if not bound:
            return Answer(notice=f"All rules of {TEAM_FILE} bind already" if self.says_yes else "")
        told = [f"{len(bound)} rule(s) of this repository bind from now on. To end one: lift CODE"]
        told += [f"- {_code(rule)}: {excerpt(rule.rule)}" for rule in bound]
        return Answer(notice="\n".join(told), context=_rendered(bound))

    def _put(self, each: Compared) -> ToolMemoryRule:
        if each.rule is not None and each.rule.request is not None:
            self.rules.reject(each.rule, self.user)
        actor = self.user if self.says_yes else Actor()
        return self.rules.put_rule(each.entry.as_input(each.rule), actor)

    def _follow(self, found: Sequence[Compared]) -> tuple[list[str], list[ToolMemoryRule]]:
        """What changed of the entries, and the rules that bind at once."""
        told: list[str] = []
        bound: list[ToolMemoryRule] = []
        for each in found:
            kind, entry, rule = each
            if self.state.agreed.get(entry.stored_id) == entry.digest:
                continue
            self.state.agreed[entry.stored_id] = entry.digest
            if kind in ("new", "stricter"):
                bound.append(self._put(each))
                before = f" (before: {_entry_of(rule)})" if rule else ""
                told.append(f"- binds now, to end it: lift {_code(bound[-1])}: {entry}{before}")
            elif kind == "looser" and rule is not None:
                self.rules.put_rule(entry.as_input(rule), _FILE)
                told += _question(rule, str(entry))
            elif kind == "same" and rule is not None and rule.is_team and rule.request:
                self.rules.reject(rule, self.user)
        return told, bound

    def _ask_for_missing(self, found: Sequence[Compared]) -> list[str]:
        """Ask for rules to be lifted that the file no longer holds, under any id."""
        told: list[str] = []
        there = {each.entry.stored_id for each in found} | {e.rule.id for e in found if e.rule}
        for rule in self.rules.all_rules().rules:
            if self.state.agreed.get(rule.id) and rule.id not in there and rule.is_team:
                self.rules.delete(rule, _FILE)
                told += _question(rule, "no such rule any more")
        gone = {rule_id: "" for rule_id in self.state.agreed if rule_id not in there}
        self.state.agreed |= gone
        return told


def _question(rule: ToolMemoryRule, new: str) -> list[str]:
    """The old and the new side by side, and how the user agrees."""
    return [
        f"- may ask for less than you agreed to, so the old holds. To agree: lift {_code(rule)}",
        f"  old: {_entry_of(rule)}",
        f"  new: {new}",
    ]


def _rendered(rules: Sequence[ToolMemoryRule]) -> str:
    from toolmem.rules.prompt import render_rules

    return render_rules(rules)


def _entry_of(rule: ToolMemoryRule) -> Entry:
    from toolmem.rules.team_file import entry_of

    return entry_of(rule)


def _code(rule: ToolMemoryRule) -> str:
    return rule.id[:MIN_ID_LENGTH]


def git_note(path: Path, data: bytes) -> str:
    """Say that git does not hold a file as it is; "" where it is the committed one.

    Git only looks up a hash: nothing that the repository configures is run, and nothing fetched.
    """
    from subprocess import DEVNULL, SubprocessError, run

    command = ["git", "--no-pager", "-C", str(path.parent), "ls-tree", "HEAD", "--", path.name]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean["GIT_ALLOW_PROTOCOL"] = "none"
    try:
        done = run(
            command, capture_output=True, stdin=DEVNULL, env=clean, timeout=GIT_WAIT, check=False
        )
    except (OSError, SubprocessError):
        return "no git answers here, so nothing says that anybody reviewed it"
    if done.returncode:
        return "git tells of no commit here, so nothing says that anybody reviewed it"
    committed = done.stdout.split()[2:3]
    if not committed:
        return "git does not hold it: it is not committed"
    kind = "sha256" if len(committed[0]) == 64 else "sha1"
    for text in (data, data.replace(b"\r\n", b"\n")):
        blob = new(kind, b"blob %d\0" % len(text) + text, usedforsecurity=False)
        if blob.hexdigest().encode() == committed[0]:
            return ""
    return "it differs from the one that is committed"
