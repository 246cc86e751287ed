"""What the user types in an agent: kept for quotes, read for demands, replies followed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from json import loads
from typing import Any

from toolmem.guard import Guard
from toolmem.guard.stores import WORKSPACE, Stores
from toolmem.hooks.agents import Agent
from toolmem.hooks.ledger import Ledger, Session
from toolmem.hooks.notes import tools_of
from toolmem.hooks.outputs import last_lines
from toolmem.hooks.protocol import Answer, Event, is_plain, typed
from toolmem.rules.capture import ToolMemoryCaptureHook
from toolmem.rules.changes import Actor
from toolmem.rules.turn import Captured, Turn
from toolmem.text.display import plain
from toolmem.text.masking import Masker

_REJECTED = "The user doesn't want to proceed with this tool use."  # Claude Code 2.1.330
_SAID = "the user said:\n"


def hear(
    agent: Agent, stores: Stores, guards: Sequence[Guard], event: Event, ledger: Ledger
) -> Answer:
    """Keep what was typed, then act on it. A prompt that is told twice acts once."""
    said = [event.prompt] if event.prompt else []
    replies = said_at_rejected(agent, event)
    masked = Masker(stores.main.secret_key()).text  # what is kept holds no secret

    def keep(held: Session) -> tuple[Session, list[str]] | None:
        if event.key and event.key in held.events:
            return None
        new = [*(each for each in replies if masked(each) not in held.prompts), *said]
        held.events += [event.key] if event.key else []
        held.turn += bool(new)
        held.prompts += map(masked, new)
        return held, new

    kept = ledger.change(keep)
    if kept is None:
        return Answer()
    session, new = kept
    told: list[str] = []
    for message in new:
        told += [g.user_spoke(event.session, message) for g in guards]
        told += _follow(agent, stores, event, session, message)
    told += _waiting(stores, ledger, session)
    lines = [f"toolmem: {line}" for line in dict.fromkeys(told) if line]
    return Answer(context="\n".join(lines), notice="\n".join(lines))


def _follow(
    agent: Agent, stores: Stores, event: Event, session: Session, message: str
) -> list[str]:
    """Demands become rules at once, `undo` and the like are done; what the user is to be told."""
    stores.mark_guarded(agent.name)
    turn = Turn(
        user_message=message,
        session_id=event.session,
        number=session.turn,
        tools=tools_of(agent, stores.main.tool_names(WORKSPACE)),
    )
    evidence: Any = "typed" if is_plain(message) else ""
    actor = Actor("user", evidence, session=event.session)
    captured = Captured()
    for store in stores.all:
        capture = ToolMemoryCaptureHook(stores.rules(store), actor=actor)
        is_main = store is stores.main
        captured.add(capture.after_turn(turn) if is_main else capture.follow(turn))
    return captured.told


def _waiting(stores: Stores, ledger: Ledger, session: Session) -> list[str]:
    """Requests of agents that the user was not told of yet."""
    new = [rule for rule in stores.rules().requests() if rule.id not in session.shown]
    if new:
        ledger.change(lambda held: held.shown.extend(rule.id for rule in new))
    return [
        f"An agent asks for a change of “{plain(rule.rule, 160)}”. To agree: lift {rule.id[:6]}"
        for rule in new[:3]
    ]


def said_at_rejected(agent: Agent, event: Event) -> list[str]:
    """What the user typed when they rejected a call, oldest first.

    Claude Code's recordings alone hold it, as the call's result. A tool of an MCP server may answer
    the same words; such a result is not taken.
    """
    found: list[str] = []
    names: dict[str, str] = {}
    for line in last_lines(event.transcript) if agent.name == "claude-code" else ():
        if "tool_use" not in line and _REJECTED not in line:
            continue
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            for block in loads(line)["message"]["content"]:
                if block["type"] == "tool_use":
                    names[block["id"]] = block["name"]
                elif block["type"] == "tool_result" and block.get("is_error") is True:
                    name, text = names.get(block["tool_use_id"], "mcp__"), block["content"]
                    if text.startswith(_REJECTED) and not name.startswith("mcp__"):
                        found.append(typed(text.partition(_SAID)[2]))
    return [each for each in found if each]
