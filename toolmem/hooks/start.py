"""What stands before the model when a session or a subagent begins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from toolmem.errors import ToolMemError
from toolmem.guard.stores import WORKSPACE, Stores, open_user_store
from toolmem.guidance.shown import guidance_section
from toolmem.hooks.agents import Agent
from toolmem.hooks.ledger import NAMESPACE, Ledger, forget_old_sessions
from toolmem.hooks.notes import command_shown
from toolmem.hooks.protocol import Answer, Event
from toolmem.hooks.state import write_line
from toolmem.llm.tokens import estimated_tokens
from toolmem.rules import notes
from toolmem.rules.prompt import choose, render_rules

MAX_TOKENS = 1_500  # rules, cards and the contract of notes; critical rules may pass it


def begin(agent: Agent, stores: Stores, event: Event, ledger: Ledger) -> Answer:
    """Rules and guidance, and how to note a demand. A subagent gets the rules alone."""
    listing = stores.listing(event.session)
    pinned = choose(listing)
    rules = render_rules(pinned.rules, not_shown=pinned.not_shown)
    if event.kind == "subagent_start":
        return Answer(context=rules)
    stores.mark_guarded(agent.name)
    contract = ""  # how the model notes a demand
    if agent.context_at:
        shell = next(name for name, kind in agent.tools.items() if kind == "shell")
        text = Path(notes.__file__).with_name("short.md").read_text(encoding="utf-8").strip()
        contract = text.replace("{command}", command_shown()).replace("{tool}", shell)
    left = MAX_TOKENS - estimated_tokens(rules) - estimated_tokens(contract)
    records = stores.main.records(WORKSPACE) if left > 0 else []
    cards = guidance_section(records, left) if records else ""
    untrusted = stores.untrusted
    notices = [
        untrusted and f"{untrusted}; its rules do not bind. To trust it: toolmem store trust",
        _gone(stores, sum(rule.is_users for rule in listing.rules)),
    ]
    parts = (rules, cards, contract)
    told = "\n".join(f"toolmem: {line}" for line in notices if line)
    return Answer(context="\n\n".join(filter(None, parts)), notice=told)


def _gone(stores: Stores, number: int) -> str:
    """The user's store remembers how many rules a project has, so that a deleted store is told."""
    path = os.path.realpath(stores.main.location)
    with open_user_store() as users:
        if stores.untrusted or path == os.path.realpath(users.location):
            return ""
        place = (WORKSPACE, NAMESPACE, f"project/{path}"[:500])
        record = users.get(*place)
        before = 0 if record is None else record.read(int)
        if number != before and (number or record):
            users.put(*place, number)
    if number or not before:
        return ""
    return f"the {before} rule(s) of this project are gone: {path} was deleted or emptied"


def start(store: str, config: str) -> None:
    """Begin it in a session of its own: it holds nothing of the agent's. Raises OSError."""
    isolated = ["-E"] if sys.flags.ignore_environment else []
    command = [sys.executable, "-P", *isolated, "-m", __name__, store, config]
    nothing = subprocess.DEVNULL
    subprocess.Popen(
        command, stdin=nothing, stdout=nothing, stderr=nothing, cwd="/", start_new_session=True
    )


def main(store: str, config: str) -> None:
    """`config`: a file of settings, "" for the defaults: judged by rules, without a model."""
    from toolmem.memory.toolmem import ToolMem

    path = f"vector_store.default.params.path={json.dumps(store)}"
    with ToolMem(config or None, overrides=[path]) as memory:
        memory.run("retry_evaluations")
        memory.run("summary_tool_memory")
        kept = memory.services.store()
        forget_old_sessions(kept, memory.services.clock.now())


if __name__ == "__main__":
    with suppress(OSError):
        try:
            main(*sys.argv[1:3])
        except ToolMemError as error:
            write_line(f"after a session: {error}")
