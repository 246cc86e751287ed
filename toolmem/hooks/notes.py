"""Store the notes of demands that a model writes through its shell, and deny the shell call.

    /venv/bin/python -P -m toolmem note [--lift] <<'TOOLMEM'
    {"quote": "...", ...}
    TOOLMEM

A note is one simple command with one heredoc whose end word is quoted, and nothing before or after
it. Any other text is an ordinary command.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from toolmem.errors import RequestError
from toolmem.hooks.agents import Agent
from toolmem.hooks.protocol import Answer, Event, own_tool
from toolmem.hooks.session_state import Session
from toolmem.models.tools import ToolSchema
from toolmem.rules.replies import without_ways_out
from toolmem.rules.store import ToolMemoryStore
from toolmem.rules.turn import Turn
from toolmem.text.masking import Masker
from toolmem.text.patterns import late_pattern
from toolmem.view.tool_classes import CLASSES

MAX_CHARACTERS = 40_000
_BEGINNING = late_pattern(
    r"[ \t\n]{0,20}(?P<words>[\w./:@%+=,'\" -]{1,1000}?)[ \t]{1,9}"
    r"<<[ \t]?(?P<mark>['\"])(?P<end>[A-Za-z_]\w{0,40})(?P=mark)[ \t]{0,9}\n"
)
_CONTROL = late_pattern(r"[\x00-\x08\x0b-\x1f\x7f]")
_FLAGS = frozenset(("-P", "-E", "-s", "-B", "-u"))


class NoteCommand(NamedTuple):
    """The content of a note command."""

    text: str  # the heredoc: JSON
    lifts: bool  # --lift: the user takes a demand back


def note_command() -> str:
    """The command by which a model notes a demand: `PYTHON -P -m toolmem note`."""
    return shlex.join([sys.executable, "-P", "-m", "toolmem", "note"])


def note_in(agent: Agent, event: Event) -> NoteCommand | None:
    """The note in a call of the shell; None for any other call."""
    if agent.tools.get(event.tool) != "shell" or not isinstance(event.input, dict):
        return None
    text = event.input.get("command")
    commands = event.input.get("commands")
    if text is None and isinstance(commands, list) and len(commands) == 1:
        (text,) = commands
    if not isinstance(text, str) or "<<" not in text or len(text) > MAX_CHARACTERS:
        return None
    beginning = None if _CONTROL.search(text) else _BEGINNING.match(text)
    lifts = _lifts(beginning["words"]) if beginning else None
    if beginning is None or lifts is None:
        return None
    lines = f"\n{text[beginning.end() :]}\n"
    heredoc, end, rest = lines.partition(f"\n{beginning['end']}\n")
    return NoteCommand(heredoc[1:], lifts) if end and not rest.strip(" \t\n") else None


def _lifts(command: str) -> bool | None:
    """True for `... note --lift`, False for `... note`, None for any other command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    words = [word for word in words if word not in _FLAGS]
    if words[:2] == [sys.executable, "-m"]:
        words = words[2:]
    return {("toolmem", "note"): False, ("toolmem", "note", "--lift"): True}.get(tuple(words))


def answer_note(
    rules: ToolMemoryStore,
    agent: Agent,
    note: NoteCommand,
    session: Session,
    event: Event,
    turn: Turn,
) -> Answer:
    """Store a note. Returns a denial of the shell call, which says what was kept or is wrong.

    The note has to quote what the user typed: in `session.prompts`, or in the transcript. As an
    agent can write to the transcript, a quote from it can make a rule, but not loosen one.
    """
    from toolmem.rules.changes import Actor
    from toolmem.rules.notes import keep
    from toolmem.rules.notes.quotes import newest_message_with
    from toolmem.rules.notes.verify import NoteContext

    try:
        fields = _read_note(note.text)
    except RequestError as error:
        return Answer(action="deny", reason=f"toolmem: refused. {error}")
    masked = Masker(rules.store.secret_key()).text  # stored prompts hold no secrets
    if isinstance(fields.get("quote"), str):
        fields["quote"] = masked(fields["quote"])
    named = _use_own_names(agent, fields)
    context = NoteContext(
        user_messages=session.prompts,
        said_at=session.said_at,
        stopped_by=turn.stopped_by,
        tools=[*tools_of(agent, named), *map(ToolSchema, agent.tools)],
        session=turn.conversation_id,
        turn=turn.mark,
        noted_by=agent.title,
        evidence="typed",
    )
    quote = str(fields.get("quote", ""))
    if not note.lifts and newest_message_with(quote, session.prompts) < 0:
        from toolmem.hooks.prompts import rejection_replies

        replies = list(map(masked, rejection_replies(agent, event)))
        if newest_message_with(quote, replies) >= 0:
            context.user_messages = replies
            context.said_at = ()
            context.by = "program"
            context.evidence = ""
            fields.pop("replaces", None)
    if note.lifts:
        lifted = str(fields.get("lifted", ""))
        actor = Actor("user", "typed", quote, turn.conversation_id, agent.title)
        done = keep.lift_demand(rules, quote, lifted, context, actor)
    else:
        done = keep.note_demand(rules, fields, context)
    word = {"kept": "kept", "request": "proposed"}.get(done.outcome, "refused")
    message = without_ways_out(done.told) if word == "kept" else ""
    texts = [message, *(f"{each.field}: {each.problem}" for each in done.problems)]
    reason = f"toolmem: {word}. {'; '.join(filter(None, texts))}".rstrip(" .") + "."
    if word != "refused":
        reason += " Nothing ran, and nothing more is to be done for it: go on with the task."
    return Answer(action="deny", reason=reason, notice=done.told)


def _read_note(text: str) -> dict[str, Any]:
    """The fields of a note. Raises RequestError."""
    from toolmem.formats.files import read_json

    try:
        fields = read_json(text.encode("utf-8", "replace"))
    except RequestError as error:
        raise RequestError(f"The note cannot be read: {error}") from error
    if not isinstance(fields, dict):
        raise RequestError("The note is no JSON object.")
    return fields


def _use_own_names(agent: Agent, note: dict[str, Any]) -> list[str]:
    """Replace the names of MCP tools in a note by those at their servers, which checks use.

    Returns these names: only the agent knows which MCP tools there are.
    """
    found: dict[str, None] = {}

    def own(name: Any) -> Any:
        if not isinstance(name, str) or name in agent.tools or name.startswith("@"):
            return name
        tool, _ = own_tool(agent, name, {})
        found[tool] = None
        return tool

    if isinstance(note.get("tools"), list):
        note["tools"] = [own(name) for name in note["tools"]]
    for examples in (note.get("stops"), note.get("passes")):
        for each in examples if isinstance(examples, list) else ():
            if isinstance(each, dict):
                each["tool"] = own(each.get("tool"))
    return list(found)


def tools_of(agent: Agent, known: Sequence[str] = ()) -> list[ToolSchema]:
    """Tools that a demand may name: the agent's as classes (`@shell`), others from `known`."""
    kinds = dict.fromkeys(agent.tools.values())
    classes = [f"@{kind}" for kind in kinds if f"@{kind}" in CLASSES]
    others = [name for name in known if name not in agent.tools]
    return [*map(ToolSchema, (*classes, *others))]
