"""Words by which a user decides on rules that bind less, are to bind less, or are just gone: each a whole message.

    lift k7qm       accepts a proposal                          撤销 k7qm, 解除 k7qm
    restore k7qm    brings back what holds no longer            恢复 k7qm
    keep them       puts back what is gone from its store       保留
    let them go     lets that go                                放弃

What lets a rule bind less needs evidence that the user typed it; what restores one is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmem.engine import DEFAULT_WORKSPACE
from toolmem.engine.store_file import MachineClock
from toolmem.hosts.lifted_entries import lifted_at_once, rule_of, still_true
from toolmem.hosts.loosened import places
from toolmem.late import late_pattern
from toolmem.readers.plain_text import plain_line
from toolmem.rules.kept_rules import LostRule, rule_in
from toolmem.rules.words_after import has_chinese
from toolmem.store.journal_changes import Proposal, journal_here, store_key

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile
    from toolmem.hosts.event_stores import EventStores
    from toolmem.light_models import ToolMemoryRule
    from toolmem.rules.evidence import UserEvidence
    from toolmem.rules.rule_store import RuleStore

_LONGEST_WORD = 60  # characters of a message that may be one
_SHOWN = 200
_CODED = {"lift": "lift", "撤销": "lift", "解除": "lift", "restore": "restore", "恢复": "restore"}
_PLAIN = {"keep them": "keep", "keep it": "keep", "保留": "keep", "留着": "keep"}
_PLAIN |= {"let them go": "let go", "let it go": "let go", "放弃": "let go", "不要了": "let go"}
_MEANT = late_pattern(r"([a-z]{4,7}|[\u4e00-\u9fff]{2})[\s:\uff1a]*([2-9a-z]{4})")
_AROUND = " \t\r\n.!。！`\"'“”‘’「」"
_TAUGHT = {"undo", "撤销", "keep them", "let them go", "保留", "放弃"}  # words that are told as such
_NO_WORD = late_pattern(r"(?=.*\d)|[^aeiouy]+$")  # what may be a code, and is no word

_LINES: dict[str, tuple[str, str]] = {
    "unseen": (
        "Not accepted, as nobody was seen to type it: say it by itself, in an agent of yours",
        "未接受，因为无法确认是您输入的：请在您自己的代理中单独说这句话",
    ),
    "another": ("That rule is another by now, so nothing was changed", "该规则已有变动，因此未作任何更改"),
    "accepted": (
        "Accepted: “{rule}” holds no longer, or less. Say `restore {code}` to bring it back",
        "已同意：“{rule}”不再有效，或有所放宽。回复“恢复 {code}”即可恢复",
    ),
    "ended": ("That rule has ended, so it holds no longer", "该规则已到期，因此不再有效"),
    "restored": ("Restored: “{rule}” holds again", "已恢复：“{rule}”重新有效"),
    "kept": ("Kept, and put back into their store: {rules}", "已保留，并放回存储：{rules}"),
    "let go": ("Let go, so they hold no longer: {rules}", "已放弃，不再有效：{rules}"),
    "whole": ("Let go: the rules of {path} hold no longer", "已放弃：{path} 的规则不再有效"),
    "no undo": (
        "Nothing was kept of your last message, so there is nothing of toolmem's to undo",
        "上一条消息没有记住任何规则，因此没有可撤销的内容",
    ),
    "no lift": ("No proposal `{code}` is open: {open}", "没有待确认的提议 {code}：{open}"),
    "no restore": ("No rule `{code}` is to be restored: {open}", "没有可恢复的规则 {code}：{open}"),
    "none": ("there is none", "目前没有"),
    "no gone": (
        "No rule is gone from its store, so there is nothing to keep or to let go",
        "没有从存储中消失的规则，因此没有可保留或放弃的内容",
    ),
}

Work = Coroutine[Any, Any, "ToolMemoryRule | None"]


class UsersWord(NamedTuple):
    """`says`: lift, restore, keep or let go; `code`: which rule, of the first two."""

    says: str
    code: str = ""


def word_in(message: str) -> UsersWord | None:
    """The word that the message is; None where it is none."""
    if len(message) > _LONGEST_WORD:
        return None
    said = _said(message)
    if said in _PLAIN:
        return UsersWord(_PLAIN[said])
    coded = _MEANT.fullmatch(said)
    return UsersWord(_CODED[coded[1]], coded[2]) if coded and coded[1] in _CODED else None


def _said(message: str) -> str:
    return " ".join(message.casefold().strip(_AROUND).split())


def answered(stores: EventStores, message: str, evidence: UserEvidence | None) -> list[str] | None:
    """What came of the message, line by line; None where it is no such word, or nothing waits for it."""
    word = word_in(message)
    if word is None:
        return None
    deciding = _Deciding(stores, evidence, chinese=has_chinese(message))
    match word.says:
        case "lift":
            return deciding.lift(word.code)
        case "restore":
            return deciding.restore(word.code)
        case "keep":
            return deciding.keep()
    return deciding.let_go()


def nothing_to_do(stores: EventStores, message: str) -> list[str]:
    """A line on a word that nothing waits for; [] where the message may be about anything else."""
    if len(message) > _LONGEST_WORD:
        return []
    word, chinese = word_in(message), has_chinese(message)
    if _said(message) in _TAUGHT:
        return [_LINES["no undo" if word is None else "no gone"][chinese]]
    if word is None or not word.code or not _NO_WORD.match(word.code):
        return []
    open_ = _proposed(stores) if word.says == "lift" else _restorable(stores)
    shown = ", ".join(f"`{code}` (“{rule}”)" for code, rule in open_[:_MOST]) or _LINES["none"][chinese]
    return [_LINES[f"no {word.says}"][chinese].format(code=word.code, open=shown)]


def _proposed(stores: EventStores) -> list[tuple[str, str]]:
    """Code and sentence of each that waits."""
    found = [(each.code, _rule_of(each)) for at in places(stores) for each in _proposals(at)]
    return [(code, _shown(rule)) for code, rule in found if rule is not None]


def _rule_of(proposal: Proposal) -> ToolMemoryRule | None:
    return rule_in(proposal.place.namespace, proposal.place.key, proposal.before)


def _restorable(stores: EventStores) -> list[tuple[str, str]]:
    """Code and sentence of what was lifted and holds no longer, the newest first."""
    found: dict[str, str] = {}
    for at in places(stores):
        lifted = still_true(reversed(journal_here().lifted(store_key(at))), MachineClock().now())
        for each in reversed(lifted):
            if (rule := rule_of(each)) is not None and _shown(rule) not in found.values():
                found[each.code] = _shown(rule)
    return list(found.items())


class _Deciding:
    def __init__(self, stores: EventStores, evidence: UserEvidence | None, *, chinese: bool) -> None:
        self._stores = stores
        self._evidence = evidence
        self._chinese = chinese
        self._open = {store.location: store for store in stores.all}

    def lift(self, code: str) -> list[str] | None:
        from toolmem.rules.users_decisions import accept

        found = [(at, each) for at in places(self._stores) for each in _proposals(at) if each.code == code]
        if not found:
            return None
        if self._evidence is None:
            return [self._line("unseen")]
        path, proposal = found[0]
        done = self._done(path, proposal.place.workspace, partial(accept, proposal=proposal))
        if done is None:
            journal_here().changing(lambda changes: changes.settle(proposal.place), None)
            return [self._line("another", _rule_of(proposal))]
        return [self._line("accepted", done, code=code)]

    def restore(self, code: str) -> list[str] | None:
        from toolmem.rules.users_decisions import put_back

        found = [
            (at, each) for at in places(self._stores) if (each := journal_here().newest_lifted(store_key(at), code))
        ]
        if not found:
            return None
        path, entry = found[0]
        done = None
        for each in reversed(lifted_at_once(entry, MachineClock().now())):
            done = self._done(path, each.place.workspace, partial(put_back, place=each.place, text=each.text))
        if done is None:
            return [self._line("ended", rule_of(entry))]
        return [self._line("restored", done)]

    def keep(self) -> list[str] | None:
        from toolmem.rules.users_decisions import put_back
        from toolmem.store.journal_changes import Place

        lines = []
        for path, lost in self._lost():
            back = []
            for each in lost:
                place = Place(store_key(path), DEFAULT_WORKSPACE, each.kept.namespace, each.kept.key)
                back.append(self._done(path, DEFAULT_WORKSPACE, partial(put_back, place=place, text=each.kept.text)))
            lines += self._told("kept", back)
        return lines or None

    def let_go(self) -> list[str] | None:
        from toolmem.rules.users_decisions import let_go

        found = self._lost()
        if found and self._evidence is None:
            return [self._line("unseen")]
        lines = []
        for path, lost in found:
            if path in self._stores.gone:
                lines.append(self._end(path))
                continue
            gone = [self._done(path, DEFAULT_WORKSPACE, partial(let_go, lost=each)) for each in lost]
            lines += self._told("let go", gone)
        return lines or None

    def _end(self, path: str) -> str:
        from toolmem.store.journal_changes import dump

        evidence = dump(self._evidence._asdict()) if self._evidence is not None else ""
        journal_here().changing(lambda changes: changes.end(store_key(path), DEFAULT_WORKSPACE, evidence), None)
        return self._line("whole", path=path)

    def _lost(self) -> list[tuple[str, list[LostRule]]]:
        """Of each store, the rules that hold from the journal alone."""
        from toolmem.readers.weight import at_once

        found = []
        for path in places(self._stores):
            if path in self._stores.gone:
                kept = journal_here().rules(store_key(path), DEFAULT_WORKSPACE)
                lost = [LostRule(each, None) for each in kept]
            else:
                lost = at_once(self._rules(self._open[path], DEFAULT_WORKSPACE).records.lost())
            if lost:
                found.append((path, lost))
        return found

    def _done(self, path: str, workspace: str, work: Callable[[RuleStore], Work]) -> ToolMemoryRule | None:
        """Raises StoreError where the store of a gone one cannot be made anew."""
        from toolmem.readers.weight import at_once

        return at_once(work(self._rules(self._store_at(path), workspace)))

    def _store_at(self, path: str) -> StoreFile:
        if path not in self._open:
            from toolmem.engine.store_file import StoreFile

            self._open[path] = StoreFile(Path(path))
            self._open[path].held = True
        return self._open[path]

    def _rules(self, store: StoreFile, workspace: str) -> RuleStore:
        from toolmem.rules.rule_store import RuleStore

        return RuleStore(store.protocol, workspace, clock=store.clock, evidence=self._evidence)

    def _line(self, what: str, rule: ToolMemoryRule | None = None, **told: str) -> str:
        """In the language of the message or, as a code is in none, of the rule."""
        chinese = self._chinese or (rule is not None and has_chinese(rule.rule))
        return _LINES[what][chinese].format(rule="" if rule is None else _shown(rule), **told)

    def _told(self, what: str, rules: Iterable[ToolMemoryRule | None]) -> list[str]:
        shown = list(dict.fromkeys(f"“{_shown(rule)}”" for rule in rules if rule is not None))
        more = f" (+{len(shown) - _MOST})" if len(shown) > _MOST else ""
        return [self._line(what, rules=", ".join(shown[:_MOST]) + more)] if shown else []


def _proposals(path: str) -> list[Proposal]:
    return journal_here().proposals(store_key(path))


_MOST = 5  # rules that a line names


def _shown(rule: ToolMemoryRule) -> str:
    return plain_line(rule.rule, _SHOWN)
