"""The agent's own question to its user, whether a rule is to hold no longer, and what the answer is worth.

A model that takes a demand back in words that do not say so for sure has the user asked where the agent, its mode and
the place were tried to reach a person: the command that notes it needs a yes, and the question shows the rule, when it
was said and which calls would run. Where that very command has run, and the agent itself tells so, the user said yes.
Anywhere else it is a proposal. Whatever is not as it was when the question came changes nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmem.engine import DEFAULT_WORKSPACE
from toolmem.hosts.events import SILENT, HookAnswer, HookEvent
from toolmem.hosts.payloads import alike
from toolmem.late import late_pattern
from toolmem.readers.plain_text import plain_line

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile
    from toolmem.hosts.ancestry import Process
    from toolmem.hosts.host import Host
    from toolmem.hosts.note_command import NoteCommand
    from toolmem.hosts.receipts import Receipts
    from toolmem.light_models import ToolMemoryRule

LASTS = 600.0  # seconds in which an answer counts
_MOST_CALLS = 3
_LOOKED_AT = 200  # decisions in which calls are looked for that the rule stopped
_SHOWN, _CALL = 300, 100  # characters of a rule, of a call
_KIND = "lift_asked"  # of the receipt by which a rule is asked about once in a session
_CJK = late_pattern("[\u3400-\u9fff]")
_AT_THE_KEYS: Mapping[str, tuple[str, str]] = {"claude-code": ("CLAUDE_CODE_ENTRYPOINT", "cli")}
_WORDS = {
    False: (
        "toolmem: is this rule of yours to hold no longer?\n“{rule}” (said {day})\n{calls}Yes lifts it, no keeps it.",
        "It stopped, and would let run again: {calls}\n",
    ),
    True: (
        "toolmem：您的这条规则是否不再有效？\n“{rule}”（{day}）\n{calls}选“是”即解除，选“否”则保留。",
        "它拦下过、之后将可执行的调用：{calls}\n",
    ),
}


class AskedLift:
    """One command of a model that takes a demand back, and whether its user is asked about that."""

    def __init__(
        self, command: NoteCommand, event: HookEvent, host: Host, stores: Sequence[StoreFile], receipts: Receipts
    ) -> None:
        self._command = command
        self._event = event
        self._host = host
        self._stores = stores
        self._receipts = receipts
        self.question = ""  # "": nobody is asked
        self.waits: dict[str, Any] = {}  # for the event that ends the call

    def asks(self, store: StoreFile, meant: Sequence[ToolMemoryRule]) -> bool:
        """Is the user asked about these rules of one demand now?"""
        event, host = self._event, self._host
        asker = asking_agent(event, host, self._receipts) if self._can_be_asked() else None
        if asker is None or not self._receipts.begin(host.name, event.session_id, _KIND, meant[0].rule):
            return False
        self._receipts.end(event.session_id, _KIND, meant[0].rule)
        self.question = question_on(meant, self._stores)
        known = self._receipts.session(event.session_id)
        self.waits = {
            "call": alike(event.tool, event.arguments),
            "store": store.location,
            "rules": [_state_of(rule) for rule in meant],
            "at": time.time(),
            "turn": known.turns if known is not None else 0,
            "agent": [asker.pid, asker.began],
        }
        return True

    def _can_be_asked(self) -> bool:
        event, host = self._event, self._host
        name, value = _AT_THE_KEYS.get(host.name, ("", ""))
        if not name or os.environ.get(name) != value or event.mode not in host.question_modes or event.subagent:
            return False
        text = event.arguments.get("command") if isinstance(event.arguments, Mapping) else None
        if not self._command.is_installed or not event.call_id or not isinstance(text, str):
            return False
        folder = event.project or event.cwd
        return bool(folder) and not host.answers_itself(text, Path(folder), Path.home(), os.environ)


def asking_agent(event: HookEvent, host: Host, receipts: Receipts) -> Process | None:
    """The process of the agent that tells of this event itself; None where something that it started might."""
    from toolmem.hosts.ancestry import agent_of_hook, wrote_input
    from toolmem.hosts.typed_prompts import is_told_by_an_agent

    agent = agent_of_hook().process
    if agent is None or not wrote_input(agent) or is_told_by_an_agent(event, host, receipts):
        return None
    return agent if event.session_id in receipts.sessions_of(agent.pid, agent.began) else None


# ---------------------------------------------------------------- the question


def question_on(meant: Sequence[ToolMemoryRule], stores: Sequence[StoreFile]) -> str:
    """The user's own words, when they said them, and calls; nothing that the model wrote of its wish."""
    rule = meant[0]
    question, calls = _WORDS[bool(_CJK.search(rule.rule))]
    day = (rule.said.time if rule.said is not None and rule.said.time else rule.created_at).date()
    shown = ", ".join(f"`{each}`" for each in calls_stopped_by({each.id for each in meant}, stores))
    told = calls.format(calls=shown) if shown else ""
    return question.format(rule=plain_line(rule.rule, _SHOWN), day=day, calls=told)


def calls_stopped_by(rules: set[str], stores: Sequence[StoreFile]) -> list[str]:
    """The newest calls that these rules stopped or asked about, each once."""
    from toolmem.readers.weight import at_once
    from toolmem.rules.words_after import call_in

    found: dict[str, None] = {}
    for store in stores:
        for each in at_once(store.protocol.decisions(DEFAULT_WORKSPACE, limit=_LOOKED_AT)):
            if each.action in {"deny", "ask"} and any(of.get("rule_id") in rules for of in each.sources):
                found[plain_line(call_in(each), _CALL)] = None
    return list(found)[:_MOST_CALLS]


# ---------------------------------------------------------------- the answer


class _OpenQuestion(NamedTuple):
    """What was noted as the question came."""

    call: str  # with what it was given
    store: str
    rules: list[list[str]]
    at: float
    turn: int
    agent: list[Any]


def lifted_by_answer(
    event: HookEvent, noted: Mapping[str, Any], host: Host, stores: Sequence[StoreFile], receipts: Receipts
) -> HookAnswer:
    """What came of a question, as the command that needed the user's yes has run. Raises StoreError."""
    try:
        waiting = _OpenQuestion(**noted["waits"])
    except (KeyError, TypeError):
        return SILENT
    why = _not_answered(event, waiting, host, receipts)
    store = next((each for each in stores if each.location == waiting.store), None)
    gone = [] if why or store is None else _lift(store, waiting.rules, event, host)
    if not gone:
        told = f"toolmem: nothing was lifted: {why or 'the rule is another by now'}"
        return HookAnswer(action="advise", context=told, notice=told)
    shown, first = plain_line(gone[0].rule, _SHOWN), gone[0].id[:8]
    told = f"toolmem: Lifted, as you answered yes: “{shown}”; `toolmem rules approve {first}` lets it hold again"
    return HookAnswer(action="advise", context=told.replace("you answered", "your user answered"), notice=told)


def _not_answered(event: HookEvent, waiting: _OpenQuestion, host: Host, receipts: Receipts) -> str:
    """Why this is no answer of the user's; "" where it is."""
    if alike(event.tool, event.arguments) != waiting.call:
        return "another command ran in its place"
    if event.name != "PostToolUse" or event.failed is not False or event.interrupted:
        return "the command did not run to its end"
    known = receipts.session(event.session_id)
    ended = known is None or known.turns != waiting.turn or (known.ended or 0) > waiting.at
    if ended or not 0 <= time.time() - waiting.at <= LASTS:
        return "the question was over"
    asker = asking_agent(event, host, receipts)
    if asker is None or [asker.pid, asker.began] != waiting.agent:
        return "nobody was seen to answer it"
    return ""


def _lift(store: StoreFile, states: list[list[str]], event: HookEvent, host: Host) -> list[ToolMemoryRule]:
    """The rules that hold no longer; none where one of them is another than was asked about."""
    from toolmem.readers.weight import at_once
    from toolmem.rules.evidence import UserEvidence
    from toolmem.rules.replaced_demands import are_of_one_demand
    from toolmem.rules.rule_store import RuleStore

    evidence = UserEvidence("answered", "yes", event.session_id, host.name)
    rules = RuleStore(store.protocol, DEFAULT_WORKSPACE, clock=store.clock, evidence=evidence)
    held = at_once(rules.all_rules())[0]
    meant = [rule for rule in held if _state_of(rule) in states]
    if len(meant) != len(states):
        return []
    meant += [each for each in held if each not in meant and each.is_users and are_of_one_demand(each, meant[0])]
    return [gone for rule in meant if (gone := at_once(rules.withdraw(rule))) is not None]


def _state_of(rule: ToolMemoryRule) -> list[str]:
    return [rule.id, rule.updated_at.isoformat(), rule.rule]
