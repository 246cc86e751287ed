"""Show rules and guidance when a session starts, and summarize its calls after its end.

`python -P -m toolmem.hooks.sessions STORE CONFIG` summarizes. `start_summary` starts it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from toolmem.config.sections import WORKSPACE
from toolmem.errors import StoreError, ToolMemError
from toolmem.guard import Guard
from toolmem.guard.rule_copies import forget_old_copies
from toolmem.guard.shown_guidance import permitted_records
from toolmem.guard.stores import Stores
from toolmem.guidance.shown import guidance_section
from toolmem.hooks.agents import Agent
from toolmem.hooks.hooks_log import write_line
from toolmem.hooks.notes import note_command
from toolmem.hooks.protocol import Answer, Event, joined, notice_of
from toolmem.hooks.session_state import SessionState, forget_old_sessions
from toolmem.llm.tokens import estimated_tokens
from toolmem.models.tools import ToolRecord
from toolmem.rules import notes
from toolmem.rules.prompt import choose, render_rules

MAX_TOKENS = 1_500  # of the context at the start; critical rules may exceed it


def answer_start(agent: Agent, stores: Stores, guards: Sequence[Guard], event: Event) -> Answer:
    """Answer with rules, guidance and how to note a demand; a subagent gets the rules alone."""
    listing = stores.listing(event.session)
    pinned = choose(listing)
    rules = render_rules(pinned.rules, not_shown=pinned.not_shown)
    if event.kind == "subagent_start":
        return Answer(context=rules)
    contract = ""  # how the model notes a demand
    if agent.context_at:
        shell = next(name for name, kind in agent.tools.items() if kind == "shell")
        text = Path(notes.__file__).with_name("short.md").read_text(encoding="utf-8").strip()
        contract = text.replace("{command}", note_command()).replace("{tool}", shell)
    left = MAX_TOKENS - estimated_tokens(rules) - estimated_tokens(contract)
    records: list[ToolRecord] = []
    try:
        stores.mark_guarded(agent.name)
        records = stores.main.records(WORKSPACE) if left > 0 else []
    except StoreError:
        if not stores.copies:  # copies bind without the store
            raise
    if records:
        asking = stores.asking_guards() if guards else []
        records = permitted_records(records, [*guards, *asking], "", event.session, event.cwd)
    cards = guidance_section(records, left) if records else ""
    if stores.warnings:
        with suppress(StoreError):
            SessionState(stores.main, event.session).set_told(stores.warnings)
    context = joined(rules, cards, contract, by="\n\n")
    return Answer(context=context, notice=notice_of([*stores.moved, *stores.warnings]))


def start_summary(store: str, config: str) -> None:
    """Start `summarize` in a process that shares nothing with the agent's. Raises OSError."""
    isolated = ["-E"] if sys.flags.ignore_environment else []
    command = [sys.executable, "-P", *isolated, "-m", __name__, store, config]
    nothing = subprocess.DEVNULL
    subprocess.Popen(
        command, stdin=nothing, stdout=nothing, stderr=nothing, cwd="/", start_new_session=True
    )


def summarize(path: str, config: str) -> None:
    """Judge and summarize the calls of a store file, and delete old copies and sessions.

    `config`: a file of settings; "" for the defaults, which use no model.
    """
    from toolmem.memory.toolmem import ToolMem

    setting = f"vector_store.default.params.path={json.dumps(path)}"
    with ToolMem(config or None, overrides=[setting]) as memory:
        memory.run("retry_evaluations")
        memory.run("summary_tool_memory")
        forget_old_copies()
        forget_old_sessions(memory.services.store(), memory.services.clock.now())


if __name__ == "__main__":
    with suppress(OSError):
        try:
            summarize(*sys.argv[1:3])
        except ToolMemError as error:
            write_line(f"after a session: {error}")
