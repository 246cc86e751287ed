"""What was kept where nothing is shown to the user (a run without a terminal) is told as the next session begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from toolmem.engine import DEFAULT_WORKSPACE
from toolmem.hosts.unasked import is_headless
from toolmem.late import late_pattern
from toolmem.readers.plain_text import plain_line

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile
    from toolmem.hosts.events import EventKind, HookEvent
    from toolmem.hosts.host import Host
    from toolmem.hosts.receipts import Receipts
    from toolmem.light_models import ToolMemoryRule

_MOST, _SHOWN = 3, 100  # rules of a line, characters of each
_CJK = late_pattern("[\u3400-\u9fff]")
_WORDS = {
    False: "toolmem: kept since the last session: {rules}. `toolmem rules list` shows all. {tell}",
    True: "toolmem：上次会话以来已记住：{rules}。`toolmem rules list` 可查看全部。{tell}",
}
_TELL = {False: "Tell the user so.", True: "请告知用户。"}


def shows(host: Host, at: EventKind) -> bool:
    """Does the user see what is told at such an event?"""
    return at in host.notices_at and not is_headless(host)


class KeptSince(NamedTuple):
    """One line, for whoever reads it."""

    notice: str = ""  # for the user
    context: str = ""  # for the model, where the user would see no notice
    tokens: int = 0  # of `context`


def kept_since(event: HookEvent, host: Host, stores: Sequence[StoreFile], receipts: Receipts) -> KeptSince:
    """What these stores keep of it, told once, as another session begins."""
    if event.kind != "session_start" or event.origin == "compact":
        return KeptSince()
    waiting = receipts.untold(event.session_id)
    rules = _rules(waiting, stores) if waiting else []
    if not rules:
        return KeptSince()
    receipts.told(rule.id for rule in rules)
    shown = shows(host, event.kind)
    line = _line([plain_line(rule.rule, _SHOWN) for rule in rules], shown=shown)
    if shown:
        return KeptSince(notice=line)
    from toolmem.providers.tokenizer import estimated_tokens

    return KeptSince(context=line, tokens=estimated_tokens(line))


def _rules(ids: Sequence[str], stores: Sequence[StoreFile]) -> list[ToolMemoryRule]:
    from toolmem.readers.weight import at_once
    from toolmem.rules.rule_store import RuleStore

    opened = (RuleStore(store.protocol, DEFAULT_WORKSPACE, clock=store.clock) for store in stores)
    return [rule for rules in opened for rule in at_once(rules.all_rules())[0] if rule.id in ids]


def _line(texts: Sequence[str], *, shown: bool) -> str:
    each = list(dict.fromkeys(texts))
    chinese = bool(_CJK.search(each[0]))
    more = f" (+{len(each) - _MOST})" if len(each) > _MOST else ""
    rules = ", ".join(f"“{text}”" for text in each[:_MOST]) + more
    return _WORDS[chinese].format(rules=rules, tell="" if shown else _TELL[chinese]).strip()
