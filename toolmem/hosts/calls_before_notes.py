"""Calls that ran before a note was kept, in the same reply of the model: the note holds from the next call on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from toolmem.hosts.events import SILENT, HookAnswer, HookEvent, call_id_of
from toolmem.hosts.kept_prompts import prompts_here
from toolmem.hosts.noted_by_hook import NoteRoad
from toolmem.hosts.recorded_replies import calls_before

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile
    from toolmem.hosts.host import Host
    from toolmem.hosts.note_command import NoteCommand
    from toolmem.hosts.receipts import Receipts


def let_through_before(
    command: NoteCommand,
    event: HookEvent,
    host: Host,
    stores: Sequence[StoreFile],
    tools: Sequence[str],
    receipts: Receipts,
) -> HookAnswer:
    """What is told as a note's command ends: calls of the same reply that it would have stopped, and that it came
    after. Silent where there are none, or the agent's recording does not show them.
    """

    def ran(call_id: str) -> bool:
        decided = receipts.decided(event.session_id, call_id_of(event.session_id, call_id))
        return isinstance(decided, Mapping) and decided.get("action") not in {"deny", "ask"}

    calls = [(tool, given) for of, tool, given in calls_before(event, host) if isinstance(given, Mapping) and ran(of)]
    if not calls or command.lifts:
        return SILENT
    stopped, example = NoteRoad(event, host, stores, tools, None, prompts_here(), None).would_stop(command, calls)
    if not stopped:
        return SILENT
    others = f" and {stopped - 1} more" if stopped > 1 else ""
    told = f"toolmem: let through before this was kept, in the same reply: `{example}`{others}; it holds from now on"
    return HookAnswer(action="advise", context=told, notice=told)
