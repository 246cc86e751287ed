"""The road of a note through an agent's hook: taken out of the shell tool's input, verified, kept, and answered.

The hook knows what the user typed in this session and stands outside the agent's sandbox; the program that the command
names only prints what was decided here. Where an agent lets a hook pass a call without a question, the command runs;
else it is answered by a denial that begins `toolmem: kept`, `toolmem: proposed` or `toolmem: refused`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from toolmem.engine import DEFAULT_WORKSPACE
from toolmem.errors import StoreDamaged, StoreError
from toolmem.hosts.events import HookAnswer, HookEvent
from toolmem.hosts.kept_prompts import KeptPrompt, PromptsFile, masked, prompts_here
from toolmem.hosts.note_command import NoteCommand, command_line
from toolmem.hosts.payloads import objects_in
from toolmem.late_dataclasses import replace
from toolmem.readers.plain_text import plain_line

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile
    from toolmem.hosts.asked_lifts import AskedLift
    from toolmem.hosts.host import Host
    from toolmem.hosts.receipts import Receipts
    from toolmem.light_models import Speaker, ToolMemoryRule
    from toolmem.rules.noted_demands import DemandContext, NotedDemand
    from toolmem.rules.rule_store import RuleStore

MOST_REFUSALS = 3  # of one quote, for its condition or examples; then it is kept as a reminder
_OF_CONDITION = ("tools", "when", "unless", "stops", "passes")
_LIFT = ("quote", "lifted")
_SHOWN = 160  # characters of a call


def answered_note(
    command: NoteCommand,
    event: HookEvent,
    host: Host,
    stores: Sequence[StoreFile],
    tools: Sequence[str],
    receipts: Receipts,
    turn: int | None = None,
    users: StoreFile | None = None,
) -> tuple[HookAnswer, dict[str, Any]]:
    """What the agent is answered, and what is noted of it.

    `stores`: a demand is kept in the first; one that is taken back may stand in any. `tools`: the agent's, as far as
    they are known; `users`: the user's own store, for what is to hold everywhere. Raises StoreDamaged.
    """
    from toolmem.hosts.asked_lifts import AskedLift
    from toolmem.hosts.untold_notes import shows

    heard = prompts_here()
    asked = AskedLift(command, event, host, stores, receipts)
    noted = NoteRoad(event, host, stores, tools, turn, heard, users, asked).decided(command)
    heard.keep_outcome(command.text, as_outcome(noted))
    if noted.outcome == "kept" and not command.lifts and not shows(host, "before_call"):
        receipts.note_untold(event.session_id, [rule.id for rule in noted.rules])
    if noted.outcome == "asked":
        answer = HookAnswer(action="ask", reason=asked.question)
        return answer, {"noted": noted.outcome, "waits": asked.waits, "answer": _written(answer)}
    runs = host.approves and command.is_installed and "powershell" not in event.tool.lower()  # it has no heredoc
    answer = _answer(noted, host, runs=runs)
    return answer, {"noted": noted.outcome, "answer": _written(answer)}


def how_to_note(event: HookEvent, host: Host, receipts: Receipts) -> str:
    """The short form of the contract, as a session begins or goes on after a compaction; "" where it has no place."""
    if "session_start" not in host.context_at or _switched_off():
        return ""
    begun = receipts.counts(session=event.session_id, host=host.name)
    if host.starts_anew and sum(count for (kind, _), count in begun.items() if kind == event.kind) > 1:
        return ""
    from toolmem.demands.contract import short_contract

    shell = next((name for name, classes in host.tools.items() if "shell" in classes), "")
    return short_contract(command_line(), shell)


def _switched_off() -> str:
    """The variable by which the user has nothing captured; "" for none."""
    if not any(name.endswith("TOOL_MEMORY_CAPTURE_ENABLED") for name in os.environ):
        return ""
    from toolmem.config.environment import capture_switch

    try:
        switch = capture_switch(os.environ)
    except ValueError:  # which is told elsewhere
        return ""
    return switch[1] if switch is not None and not switch[0] else ""


def as_outcome(noted: NotedDemand) -> dict[str, Any]:
    """What the model reads of a note, as JSON."""
    problems = [{"field": place, "problem": problem} for place, problem in noted.problems]
    told = {"told": noted.told, "why": noted.why, "problems": problems}
    return {"outcome": noted.outcome, **{name: each for name, each in told.items() if each}}


def read_given(text: str) -> dict[str, Any] | str:
    """The JSON object of a note, or what is wrong with it."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"no JSON: {str(error)[:200]}"
    return given if isinstance(given, dict) else "expected one JSON object"


class NoteRoad:
    """What this hook knows of one note."""

    def __init__(
        self,
        event: HookEvent,
        host: Host,
        stores: Sequence[StoreFile],
        tools: Sequence[str],
        turn: int | None,
        heard: PromptsFile,
        users: StoreFile | None,
        asked: AskedLift | None = None,
    ) -> None:
        self._event = event
        self._host = host
        self._stores = stores
        self._store = stores[0]
        self._tools = tools
        self._turn = turn
        self._users = users
        self._asked = asked
        self._servers: frozenset[str] = frozenset()  # tools of MCP servers that the note names
        self._file = heard
        self._heard = heard.prompts(event.session_id)

    def decided(self, command: NoteCommand) -> NotedDemand:
        """Raises nothing for what the note holds, or what becomes of the store."""
        given = read_given(command.text)
        if isinstance(given, str):
            return _refused("note", given)
        if variable := _switched_off():
            return _refused("note", f"{variable} is off: the user wants nothing kept")
        if self._store.location == ":memory:":
            return _refused("note", "the store is gone, or cannot be opened: nothing can be kept; tell the user")
        try:
            return self._lifted(given) if command.lifts else self._noted(given)
        except StoreDamaged:
            raise
        except (StoreError, OSError) as error:
            return _refused("note", f"the store cannot keep it; tell the user: {type(error).__name__}: {error}"[:300])

    # -- a demand

    def _noted(self, given: dict[str, Any]) -> NotedDemand:
        from toolmem.readers.weight import at_once
        from toolmem.rules.noted_demands import note_demand

        note = self._in_own_names({**given, "quote": _masked(given.get("quote"))})
        context = self._context(note)
        rules = self._rules(self._store, None, "user")
        noted = at_once(note_demand(rules, note, context))
        if self._is_given_up(noted, str(note["quote"])):
            reminded = at_once(note_demand(rules, _reminder(note), context))
            return replace(reminded, why=reminded.why or "its condition was refused three times: it only reminds")
        return noted

    def _is_given_up(self, noted: NotedDemand, quote: str) -> bool:
        """Was it refused for its condition or examples as often as such a note is tried?"""
        if noted.outcome != "refused" or not all(place.startswith(_OF_CONDITION) for place, _ in noted.problems):
            return False
        return self._file.refused(self._event.session_id, quote) >= MOST_REFUSALS

    def _context(self, note: Mapping[str, Any]) -> DemandContext:
        from toolmem.rules.noted_demands import DemandContext

        return DemandContext(
            [each.text for each in self._heard],
            [*self._tools, *filter(self._is_there, tools_named(note))],
            self._event.session_id,
            self._turn,
            noted_by=self._agent,
            kept=_calls_that_worked(self._store),
            beside=self._beside(str(note.get("quote"))),
            everywhere=None if self._users is None else self._rules(self._users, None, "user"),
        )

    @property
    def _agent(self) -> str:
        return f"{self._host.title}{' (subagent)' if self._event.subagent else ''}"

    def would_stop(self, command: NoteCommand, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[int, str]:
        """How many of these calls, and one of them."""
        from toolmem.demands.note import read_note
        from toolmem.demands.verification import verify
        from toolmem.errors import NoteRefused, RequestError
        from toolmem.rules.noted_demands import own_words

        given = read_given(command.text)
        if isinstance(given, str):
            return 0, ""
        note = self._in_own_names({**given, "quote": _masked(given.get("quote"))})
        told = self._context(note)
        now = self._store.clock.now().astimezone()
        try:
            verified = verify(
                read_note(note), told.heard, told.tools, now=now, own_words=own_words, kept=calls, beside=told.beside
            )
        except (NoteRefused, RequestError):
            return 0, ""
        return verified.would_stop[0], plain_line(verified.for_example, _SHOWN)

    def _beside(self, quote: str) -> list[str]:
        """What the recording alone shows that the user typed; looked at where no prompt has the quote."""
        from toolmem.demands.quotes import standing_of
        from toolmem.hosts.recorded_replies import replies_of

        if standing_of(quote, [each.text for each in self._heard], str) != "unsaid":
            return []
        return [masked(each) for each in replies_of(self._event, self._host)]

    def _is_there(self, tool: str) -> bool:
        """No hook knows all of an agent's tools: one of a server, or that agents are known to have, is believed."""
        from toolmem.guard.tool_classes import scopes_of

        return tool in self._servers or bool(scopes_of(tool))

    def _in_own_names(self, note: dict[str, Any]) -> dict[str, Any]:
        """The note with the tools of MCP servers, which no hook knows all of, as their calls are kept."""
        names = {name: self._host.kept_name(name, self._tools) for name in tools_named(note)}
        self._servers = frozenset(kept for name, kept in names.items() if kept != name)
        return {field: _renamed(field, value, names) for field, value in note.items()} if self._servers else note

    # -- a demand that is taken back

    def _lifted(self, given: Mapping[str, Any]) -> NotedDemand:
        from toolmem.readers.weight import at_once
        from toolmem.rules.lifted_demands import lift_demand
        from toolmem.rules.noted_demands import DemandContext

        unknown = [str(name)[:40] for name in given if name not in _LIFT]
        if unknown or not all(isinstance(given.get(name), str) and given[name].strip() for name in _LIFT):
            return _refused("note", 'expected {"quote": their words, "lifted": the earlier demand or its id}')
        quote, lifted = masked(given["quote"]), given["lifted"]
        store = next((each for each in self._stores if self._meant(each, lifted)), self._store)
        typed = self._taking_back(quote, self._meant(store, lifted))
        heard = self._heard if typed is None else [typed]
        rules = self._rules(store, typed)
        said = [each.text for each in heard]
        beside = self._beside(quote)
        context = DemandContext(said, self._tools, self._event.session_id, noted_by=self._agent, beside=beside)
        ask = partial(self._asked.asks, store) if self._asked is not None else None
        return at_once(lift_demand(rules, quote, lifted, context, ask))

    def _meant(self, store: StoreFile, lifted: str) -> list[ToolMemoryRule]:
        """The rules of this store that are to be lifted; [] where it is not clear which."""
        from toolmem.errors import NoteRefused
        from toolmem.readers.weight import at_once
        from toolmem.rules.lifted_demands import rule_meant

        try:
            return rule_meant(lifted, at_once(self._rules(store, None).all_rules())[0])
        except NoteRefused:
            return []

    def _taking_back(self, quote: str, meant: Sequence[ToolMemoryRule]) -> KeptPrompt | None:
        """The user's own plain message with these words, typed after what is taken back was said; None for none."""
        from toolmem.demands.quotes import standing_of
        from toolmem.rules.noted_demands import own_words

        newest = max((max(rule.updated_at, rule.created_at).timestamp() for rule in meant), default=0.0)
        typed = [each for each in self._heard if each.evidence is not None and each.at > newest]
        return next((each for each in reversed(typed) if standing_of(quote, [each.text], own_words) == "said"), None)

    @staticmethod
    def _rules(store: StoreFile, typed: KeptPrompt | None, speaker: Speaker = "program") -> RuleStore:
        from toolmem.rules.rule_store import RuleStore

        evidence = typed.evidence if typed is not None else None
        rules = RuleStore(store.protocol, DEFAULT_WORKSPACE, clock=store.clock, speaker=speaker, evidence=evidence)
        return rules.as_told_by(evidence)


def _refused(place: str, problem: str) -> NotedDemand:
    from toolmem.rules.noted_demands import NotedDemand

    return NotedDemand("refused", problems=[(place, problem)])


def _masked(quote: Any) -> Any:
    return masked(quote) if isinstance(quote, str) else quote


def _reminder(note: Mapping[str, Any]) -> dict[str, Any]:
    """The quote alone: it has no condition that holds."""
    kept = {name: note[name] for name in ("quote", "lasting", "rule", "where", "until") if name in note}
    return {**kept, "effect": "remind"}


# ---------------------------------------------------------------- names of tools


def tools_named(note: Mapping[str, Any]) -> list[str]:
    """Every tool that the note names."""
    tools = note.get("tools")
    listed = [tools] if isinstance(tools, str) else tools if isinstance(tools, list) else []
    for of in (note.get("stops"), note.get("passes")):
        listed = [*listed, *(each.get("tool") for each in objects_in(of))]
    return list(dict.fromkeys(each for each in listed[:40] if isinstance(each, str) and each))


def _renamed(field: str, value: Any, names: Mapping[str, str]) -> Any:
    """A field of a note with the names of tools as they are kept."""
    if field == "tools":
        return [names.get(each, each) for each in value] if isinstance(value, list) else names.get(value, value)
    if field in ("stops", "passes", "when", "unless") and isinstance(value, list):
        with_tool = _with_name if field in ("stops", "passes") else _with_names
        is_told = (isinstance(each, Mapping) and isinstance(each.get("tool"), str) for each in value)
        return [with_tool(each, names) if told else each for each, told in zip(value, is_told, strict=True)]
    return value


def _with_name(example: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {**example, "tool": names.get(example["tool"], example["tool"])}


def _with_names(tests: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The expression on a tool's name was written for the names that the model knows."""
    from re import escape

    from toolmem.errors import RequestError
    from toolmem.guard.alternatives import linear_matcher

    try:
        fits = linear_matcher(tests["tool"])
    except (RequestError, ValueError):  # which is told as the note is read
        return dict(tests)
    meant = {name: kept for name, kept in names.items() if fits(name)}
    if not any(kept != name for name, kept in meant.items()):
        return dict(tests)
    return {**tests, "tool": f"^({'|'.join(map(escape, dict.fromkeys(meant.values())))})$"}


def _calls_that_worked(store: StoreFile) -> list[tuple[str, Mapping[str, Any]]]:
    """The newest first."""
    from toolmem.demands.verification import REPLAYED
    from toolmem.readers.weight import at_once

    logged = at_once(store.protocol.call_log(DEFAULT_WORKSPACE, newest=True, limit=REPLAYED))
    calls = [each.call for each in reversed(logged)]
    return [(call.tool_name, call.input) for call in calls if call.failed is False and isinstance(call.input, Mapping)]


# ---------------------------------------------------------------- the answer


def _answer(noted: NotedDemand, host: Host, *, runs: bool) -> HookAnswer:
    shown = "before_call" in host.notices_at
    notice = f"toolmem: {noted.told}" if noted.told and shown else ""
    if runs:
        return HookAnswer(approved=True, reason="toolmem notes what the user demands", notice=notice)
    reason = f"toolmem: {noted.outcome}. "
    if noted.outcome == "refused":
        reason += f"Mend this and note it again: {noted}"
    else:
        reason += str(noted) if shown else f"Tell the user: {noted}"
        reason += f" ({noted.why})" if noted.why and noted.why not in noted.told else ""
    return HookAnswer(action="deny", reason=reason, notice=notice)


def _written(answer: HookAnswer) -> dict[str, Any]:
    """For a second install, which gives the same answer: the user is told once."""
    return {"action": answer.action, "reason": answer.reason, "approved": answer.approved}
