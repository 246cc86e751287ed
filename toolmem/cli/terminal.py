"""The question of a command that lets rules bind less: asked of the person at the terminal, and answered there."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from toolmem.cli.console import counted, say
from toolmem.readers.plain_text import escaped, plain

if TYPE_CHECKING:
    from toolmem.errors import LiftProposed
    from toolmem.models import ToolMemoryRule
    from toolmem.rules.evidence import UserEvidence
    from toolmem.rules.rule_store import RuleStore
    from toolmem.stored import LoggedDecision

_YES = frozenset(("y", "yes", "j", "ja", "oui", "si", "是", "好"))
_SHOWN = 500  # characters of a sentence
_CALLS = 3  # of each rule
_LOOKED_AT = 1000  # decisions, the newest


def is_below_an_agent() -> bool:
    """Was this command started by an agent that hooks hold, or does its environment say that an agent started it?"""
    from toolmem.hosts.ancestry import ancestors, is_below, mark_in
    from toolmem.hosts.receipts import Receipts

    if mark_in(os.environ, of_command=True):
        return True
    receipts = Receipts(busy_timeout=1.0)
    try:
        return is_below(ancestors(), lambda each: receipts.is_agent(each.pid, each.began))
    finally:
        receipts.close()


def refuse_agents(why: str) -> None:
    """Exits with code 1 where an agent started this command."""
    if is_below_an_agent():
        say(f"toolmem: an agent started this, {why}: run it in a terminal of your own")
        raise typer.Exit(1)


def has_person() -> bool:
    """Is a person at the terminal of this command, as far as can be told?"""
    return sys.stdin.isatty() and sys.stdout.isatty() and not is_below_an_agent()


def evidence_at_terminal(question: str) -> UserEvidence | None:
    """What the person at the terminal answered; None where nobody can be asked. Exits with code 1 for a no."""
    from toolmem.rules.evidence import UserEvidence

    if not has_person():
        return None
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:  # none controls this process
        return None
    with os.fdopen(terminal, "r+b", buffering=0) as tty:
        tty.write(escaped(f"{question} [y/N] ").encode("utf-8", "replace"))
        answer = tty.readline(1000).decode("utf-8", "replace").strip()
    if answer.lower() not in _YES:
        say("toolmem: nothing was changed")
        raise typer.Exit(1)
    return UserEvidence("terminal", plain(answer, 40))


async def as_its_user(rules: RuleStore, changes: Sequence[tuple[ToolMemoryRule, ToolMemoryRule | None]]) -> RuleStore:
    """The rules, changed by the user where one says so at the terminal.

    Asked only where agents are held to them, and a change (a rule before and after it) lets one bind less.
    """
    from toolmem.rules.loosening import binds_less
    from toolmem.store.holding import holds_agents

    now = rules.clock.now()
    loosened = [before for before, after in changes if binds_less(before, after, now)]
    if not loosened or not holds_agents(rules.store) or not has_person():
        return rules
    return rules.with_evidence(evidence_at_terminal(await _question(rules, loosened)))


async def put_as_its_user(rules: RuleStore, proposed: LiftProposed, given: Mapping[str, Any]) -> ToolMemoryRule:
    """A rule that was put again to bind less, where the person at the terminal wants it. Raises LiftProposed."""
    known, _ = await rules.all_rules()
    before = [rule for rule in known if rule.id == proposed.rule_id]
    evidence = evidence_at_terminal(await _question(rules, before)) if has_person() else None
    if evidence is None:
        raise proposed
    asked = {name: value for name, value in given.items() if name != "workspace_id"}
    return await rules.with_evidence(evidence).put_rule(**{**asked, "id": asked["id"] or ""})


async def _question(rules: RuleStore, loosened: Sequence[ToolMemoryRule]) -> str:
    decisions = await rules.store.decisions(rules.workspace, limit=_LOOKED_AT)
    told = [line for rule in loosened for line in _told(rule, decisions)]
    what = "This rule would bind" if len(loosened) == 1 else "These rules would bind"
    return "\n".join([*told, f"{what} your agents no longer, or less. Do you want that?"])


def _told(rule: ToolMemoryRule, decisions: Sequence[LoggedDecision]) -> list[str]:
    said = rule.said.sentence if rule.said is not None and rule.said.sentence else rule.rule
    stopped = [each for each in decisions if any(source.get("rule_id") == rule.id for source in each.sources)]
    lines = [f"{plain(said, _SHOWN)}  ({_since(rule)})"]
    if stopped:
        lines.append(f"  would run again, of {counted(len(stopped), 'call')} that it stopped or had asked about:")
        lines += [f"    {each.time:%Y-%m-%d %H:%M}  {_call(each)}" for each in stopped[:_CALLS]]
    return lines


def _call(decision: LoggedDecision) -> str:
    return f"{plain(decision.tool_name, 60)} {plain(decision.input, 120)}"


def _since(rule: ToolMemoryRule) -> str:
    said = rule.said.time if rule.said is not None and rule.said.time else rule.created_at
    return f"{rule.by}, {said:%Y-%m-%d %H:%M} UTC"
