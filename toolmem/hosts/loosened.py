"""What the user is told of rules that bind less, are to bind less or are just gone, and the words that answer it.

Each loosening is told at the next prompt after the one that made it, with its evidence and the word that restores it.
A word is a whole message: `lift k7qm`, `restore k7qm`, `keep them`, `let them go`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from toolmem.engine import DEFAULT_WORKSPACE
from toolmem.hosts.lifted_entries import is_of_one_lift, rule_of, still_true
from toolmem.late import late_pattern
from toolmem.readers.plain_text import plain_line
from toolmem.rules.kept_rules import StoreNow, location_of, reconcile, rule_in
from toolmem.store.journal_changes import JournalEntry, Place, Proposal, journal_here, store_key

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile
    from toolmem.hosts.event_stores import EventStores
    from toolmem.light_models import ToolMemoryRule

_LONGEST = 200  # characters of a sentence that is told
_LONGEST_NAME = 40  # characters of an agent's
_NO_BRACKETS = str.maketrans("", "", "()（）“”")
_MOST = 5  # lines of one kind
_CJK = late_pattern("[\u3400-\u9fff]")

_WORDS = {
    "typed": ("you typed “{}”", "您输入了“{}”"),
    "answered": ("you answered “{}”", "您回答了“{}”"),
    "terminal": ("it was answered in a terminal", "已在终端确认"),
    "": ("nobody was seen to want it", "无法确认这是您的意思"),
}
_LINES = {
    "lifted": (
        "“{rule}” (said {day}) holds no longer, or less: {why}. Say `restore {code}` to bring it back",
        "“{rule}”（{day}）不再有效，或有所放宽：{why}。回复“恢复 {code}”即可恢复",
    ),
    "gone": (
        "“{rule}” ({day}) is gone from its store, or binds less there; it holds on: say `keep them` or `let them go`",
        "“{rule}”（{day}）已从存储中消失或被放宽，但仍然有效。回复“保留”可恢复此类规则，回复“放弃”则不再生效",
    ),
    "asked": (
        "{who} asks to {what} “{rule}” (said {day}), which holds on: say `lift {code}` to accept that",
        "{who}请求{what}“{rule}”（{day}），该规则仍然有效：回复“撤销 {code}”表示同意",
    ),
}
_WHO = {"agent": ("An agent", "代理"), "program": ("A program", "某个程序"), "user": ("A message", "一条消息")}
_MOVED = "the store that was at {} is here now, and its rules hold on"
_ENDED = "the rules of a whole store hold no longer: {}"
_DAMAGED = "the journal of your rules was damaged and put aside as {}: rules that left their store before are not known"


class Telling(NamedTuple):
    """What the user is to be told, and of what that is."""

    lines: tuple[str, ...] = ()
    entries: tuple[JournalEntry, ...] = ()
    proposals: tuple[Proposal, ...] = ()


def places(stores: EventStores) -> list[str]:
    """The files of an event's stores, those that are gone among them."""
    return list(dict.fromkeys([*(at for each in stores.all if (at := location_of(each))), *stores.gone]))


def bring_up_to_date(stores: EventStores) -> None:
    """The journal as the stores are, where their rules changed since."""
    for store in stores.all:
        if location_of(store) and store.is_made:
            _reconcile(store)


def _reconcile(store: StoreFile) -> None:
    from toolmem.readers.weight import at_once
    from toolmem.rules.identity import RULE_PREFIX, TOOL_PREFIX
    from toolmem.store.known_stores import id_at

    path, key = store.location, store_key(store.location)
    own = id_at(path)
    known = journal_here().store(key, DEFAULT_WORKSPACE)
    stamp = at_once(store.read_stamped(DEFAULT_WORKSPACE, [])).stamp
    if known is not None and (known.id, known.stamp) == (own, stamp):
        return

    def look() -> StoreNow:
        mark = at_once(store.read_stamped(DEFAULT_WORKSPACE, [])).stamp
        records = at_once(store.list_raw(DEFAULT_WORKSPACE, None, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX))
        return StoreNow(path, own, mark, records)

    reconcile(key, DEFAULT_WORKSPACE, look, store.clock.now())


# ---------------------------------------------------------------- telling


def to_tell(stores: EventStores) -> Telling:
    """What the user was not told yet."""
    keys = [store_key(each) for each in places(stores)]
    journal = journal_here()
    entries = {entry.number: entry for key in keys for entry in journal.untold(key)}
    proposals = [each for key in keys for each in journal.proposals(key) if not each.told]
    return _telling(entries.values(), proposals)


def as_it_is_now(stores: EventStores, telling: Telling) -> Telling:
    """The same, without what the user's message has settled or changed since."""
    keys = [store_key(each) for each in places(stores)]
    waiting = {(each.place, each.code) for key in keys for each in journal_here().proposals(key)}
    return _telling(telling.entries, [each for each in telling.proposals if (each.place, each.code) in waiting])


def _telling(entries: Iterable[JournalEntry], proposals: Iterable[Proposal]) -> Telling:
    told, asked = tuple(entries), tuple(proposals)
    from toolmem.engine.store_file import MachineClock

    now = MachineClock().now()
    lines = dict.fromkeys([*_of_entries(still_true(told, now)), *map(_asked, asked)])
    return Telling(tuple(filter(None, lines)), told, asked)


def note_told(telling: Telling) -> None:
    """The user was told this."""
    if telling.entries or telling.proposals:
        journal_here().changing(lambda changes: changes.told(telling.entries, telling.proposals), None)


def _of_entries(entries: Iterable[JournalEntry]) -> list[str]:
    by_kind: dict[str, list[str]] = {}
    demands: list[tuple[JournalEntry, ToolMemoryRule]] = []
    for each in entries:
        rule = rule_of(each)
        if rule is not None and any(is_of_one_lift(each, rule, *other) for other in demands):
            continue
        if rule is not None:
            demands.append((each, rule))
        by_kind.setdefault(each.what, []).append(_of_entry(each))
    lines = []
    for told in by_kind.values():
        lines += told[:_MOST] + ([f"(+{len(told) - _MOST})"] if len(told) > _MOST else [])
    return lines


def _of_entry(entry: JournalEntry) -> str:
    if entry.what == "moved":
        return _MOVED.format(plain_line(entry.text, _LONGEST))
    if entry.what == "ended":
        return _ENDED.format(_why(entry.evidence, chinese=False))
    if entry.what == "damaged":
        return _DAMAGED.format(plain_line(entry.text, _LONGEST))
    kind = "gone" if entry.what == "gone" else "lifted"
    return _line(kind, rule_of(entry), entry.code, entry.evidence)


def _asked(proposal: Proposal) -> str:
    rule = _rule_at(proposal.place, proposal.before)
    after = None if proposal.after is None else _rule_at(proposal.place, proposal.after)
    changes = after is not None and after.status == "active"
    return _line("asked", rule, proposal.code, who=proposal.speaker, changed=after if changes else None)


def _line(
    kind: str,
    rule: ToolMemoryRule | None,
    code: str,
    evidence: str = "",
    *,
    who: str = "",
    changed: ToolMemoryRule | None = None,
) -> str:
    if rule is None:
        return ""
    chinese = bool(_CJK.search(rule.rule))
    day = (rule.said.time if rule.said is not None and rule.said.time else rule.created_at).date()
    what = ("lift", "撤销") if changed is None else _narrowing(rule, changed)
    return _LINES[kind][chinese].format(
        rule=plain_line(rule.rule, _LONGEST),
        day=day,
        code=code,
        why=_why(evidence, chinese),
        who=_who(who, chinese=chinese),
        what=what[chinese],
    )


def _who(speaker: str, *, chinese: bool) -> str:
    """As `Changing.asks` writes it. An agent's name is data: it cannot be read as more than a name."""
    kind, _, name = speaker.partition(":")
    told = _WHO.get(kind, _WHO["program"])[chinese]
    shown = plain_line(name, _LONGEST_NAME).translate(_NO_BRACKETS)
    return told + (f"（{shown}）" if chinese else f" ({shown})") if shown else told


def _narrowing(rule: ToolMemoryRule, changed: ToolMemoryRule) -> tuple[str, str]:
    if rule.rule != changed.rule:
        to = plain_line(changed.rule, _LONGEST)
        return f"change to “{to}”", f"改为“{to}”："
    return "narrow", "放宽"


def _why(evidence: str, chinese: bool) -> str:
    told = json.loads(evidence) if evidence else {}
    words = plain_line(str(told.get("words", "")), _LONGEST)
    return _WORDS.get(str(told.get("kind", "")), _WORDS[""])[chinese].format(words)


def _rule_at(place: Place, text: str) -> ToolMemoryRule | None:
    return rule_in(place.namespace, place.key, text)


def unwritten() -> list[str]:
    """A line where the journal cannot be written."""
    trouble = journal_here().trouble
    why = plain_line(trouble, _LONGEST)
    return [f"the journal of your rules cannot be used ({why}): what loosens them is not told"] if trouble else []


def still_gone(stores: EventStores) -> list[str]:
    """A line on each store that is gone or cannot be read."""
    from toolmem.hosts.gone_stores import kept_of, remedy_of, told_of

    kept = [found for path in stores.gone if (found := kept_of(path)) is not None]
    return [f"{told_of(each)}; {remedy_of(each)}" for each in kept]
