"""What stands before the model when a session or a subagent begins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolmem.guard.stores import WORKSPACE, users_store
from toolmem.guidance.prompt import guidance_section
from toolmem.hooks.ledger import NAMESPACE, Ledger
from toolmem.hooks.notes import command_shown
from toolmem.hooks.protocol import Answer, Event
from toolmem.llm.tokens import estimated_tokens
from toolmem.rules import notes
from toolmem.rules.prompt import choose, render_rules

if TYPE_CHECKING:
    from toolmem.hooks.handle import Hook

MAX_TOKENS = 1_500  # rules, cards and the contract of notes; critical rules may pass it


def begin(hook: Hook, event: Event, ledger: Ledger) -> Answer:
    """Rules and guidance, and how to note a demand. A subagent gets the rules alone."""
    listing = hook.stores.listing(event.session)
    pinned = choose(listing)
    rules = render_rules(pinned.rules, not_shown=pinned.not_shown)
    if event.kind == "subagent_start":
        return Answer(context=rules)
    hook.stores.mark_guarded(hook.agent.name)
    contract = _contract(hook) if hook.agent.context_at else ""
    left = MAX_TOKENS - estimated_tokens(rules) - estimated_tokens(contract)
    records = hook.stores.main.records(WORKSPACE) if left > 0 else []
    cards = guidance_section(records, left) if records else ""
    notices = [_untrusted(hook), _gone(hook, sum(rule.is_users for rule in listing.rules))]
    parts = (rules, cards, contract)
    told = "\n".join(f"toolmem: {line}" for line in notices if line)
    return Answer(context="\n\n".join(filter(None, parts)), notice=told)


def _contract(hook: Hook) -> str:
    """How the model notes a demand; "" where it has no shell."""
    shells = [name for name, kind in hook.agent.tools.items() if kind == "shell"]
    text = Path(notes.__file__).with_name("short.md").read_text(encoding="utf-8").strip()
    return text.replace("{command}", command_shown()).replace("{tool}", shells[0])


def _untrusted(hook: Hook) -> str:
    if not hook.stores.untrusted:
        return ""
    return f"{hook.stores.untrusted}; its rules do not bind. To trust it: toolmem store trust"


def _gone(hook: Hook, number: int) -> str:
    """The user's store remembers how many rules a project has, so that a deleted store is told."""
    path = os.path.realpath(hook.stores.main.location)
    with users_store() as users:
        if hook.stores.untrusted or path == os.path.realpath(users.location):
            return ""
        place = (WORKSPACE, NAMESPACE, f"project/{path}"[:500])
        record = users.get(*place)
        before = 0 if record is None else record.read(int)
        if number != before and (number or record):
            users.put(*place, number)
    if number or not before:
        return ""
    return f"the {before} rule(s) of this project are gone: {path} was deleted or emptied"
