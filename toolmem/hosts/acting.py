"""What is done at each event of an agent, by the engine, over the project's store and the user's.

prompt        the user's demands are kept, and told; what failed before may be tried again
before_call   the rules of both stores, the session's demands and earlier failures decide
after_call    the call is kept, to be judged later, and its decision learns how it ended
session_start, subagent_start   the pinned rules and what is known of the tools go before the model
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmem.engine import DEFAULT_WORKSPACE
from toolmem.hosts.decision_notes import advice_with_result, decision_of, noted_of
from toolmem.hosts.events import SILENT, HookAnswer, HookEvent
from toolmem.hosts.note_command import asks_how_to_note, note_command
from toolmem.hosts.receipts import ONCE, Receipts, SaidHere
from toolmem.hosts.told import captured_lines, told_of_prompt

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile
    from toolmem.guard.decision import CheckedRule, GuardDecision
    from toolmem.hosts.event_stores import EventStores
    from toolmem.hosts.host import Host
    from toolmem.hosts.user_replies import CallPass
    from toolmem.rules.capture.hook import Captured, SessionRule
    from toolmem.rules.evidence import UserEvidence

GUIDANCE_TOKENS = 500
MOST_TOKENS = 1150  # of rules and guidance; how to note demands stands before them
CAPS = (30, 4500, 6000)  # of the pinned rules: agents cut what a hook adds at some 10,000 characters
_MOST_TOOLS = 200  # that the store knows
_ENFORCED = {"repeats": "enforce"}
_GONE = ("its store is gone, or cannot be opened", "其存储已不存在，或无法打开")


class Acted(NamedTuple):
    """What one event came to."""

    answer: HookAnswer = SILENT
    note: Mapping[str, Any] | None = None  # for the event that ends what this one began


class Acting:
    """One event's work. `on_error`: what becomes of a call that nobody could decide on: open or closed."""

    def __init__(
        self, host: Host, stores: EventStores, receipts: Receipts, *, on_error: str = "open", guard_on: bool = True
    ) -> None:
        self._host = host
        self._stores = stores
        self._receipts = receipts
        self._on_error = on_error
        self._guard_on = guard_on

    def act(self, event: HookEvent, decided: Mapping[str, Any] | None = None) -> Acted:
        """`decided`: what was noted of the call: before it ran, or by who was told of the same event before. Raises
        what the stores raise.
        """
        match event.kind:
            case "session_start" | "subagent_start":
                return Acted(self._begin(event))
            case "prompt":
                return self._hear(event)
            case "before_call":
                return self._noted(event, decided) or self._decide(event, decided)
            case "after_call":
                return Acted(self._keep(event, decided))
            case "session_end":
                self._receipts.session_ended(event.session_id)
        return Acted()

    # -- before the model

    def _begin(self, event: HookEvent) -> HookAnswer:
        from toolmem.hosts.told import rules_and_guidance
        from toolmem.hosts.untold_notes import kept_since

        demands = [each for each in self._receipts.demands(event.session_id) if not each.effect]
        new = kept_since(event, self._host, self._stores.all, self._receipts)
        most = MOST_TOKENS - new.tokens
        text = rules_and_guidance(self._stores.all, self._tools(), demands, CAPS, GUIDANCE_TOKENS, most)
        text = "\n\n".join(filter(None, (text, new.context)))
        store = self._stores.main
        if event.kind == "session_start" and store is not None and store.location != ":memory:":
            from toolmem.hosts.noted_by_hook import how_to_note

            text = "\n\n".join(filter(None, (how_to_note(event, self._host, self._receipts), text)))
        if event.kind != "session_start" or event.origin == "compact":
            return HookAnswer(context=text)
        from toolmem.hosts.loosened import bring_up_to_date, to_tell, unwritten

        bring_up_to_date(self._stores)
        told = [_untrusted(self._stores.untrusted)] if self._stores.untrusted else []
        told += [new.notice] if new.notice else []
        told += [f"toolmem: {each}" for each in (*to_tell(self._stores).lines, *unwritten())]
        return HookAnswer(context=text, notice="\n".join(told))

    def _tools(self) -> list[str]:
        """The agent's own, and those that the stores know."""
        known = (name for store in self._stores.all for name in store.tool_names(DEFAULT_WORKSPACE, _MOST_TOOLS))
        return list(dict.fromkeys([*self._host.tools, *known]))

    # -- what the user says

    def _hear(self, event: HookEvent) -> Acted:
        store = self._stores.main
        if not event.prompt or store is None:
            return Acted()
        from toolmem.engine import user_spoke
        from toolmem.hosts.kept_prompts import prompts_here
        from toolmem.hosts.loosened import as_it_is_now, bring_up_to_date, note_told, to_tell
        from toolmem.hosts.typed_prompts import evidence_of
        from toolmem.hosts.user_replies import note_of_prompt, replied
        from toolmem.hosts.users_words import answered, nothing_to_do

        evidence = evidence_of(event, self._host, self._receipts)
        prompts_here().keep_prompt(event.session_id, event.prompt, evidence)
        turn = self._receipts.new_turn(event.session_id)
        user_spoke(store, event.session_id)
        bring_up_to_date(self._stores)
        telling = to_tell(self._stores)  # not of what this very event lets go: that is told at the next
        lines = replied(self._stores, event, turn, evidence, self._receipts)
        if lines is None:
            lines = answered(self._stores, event.prompt, evidence)
        captured = None
        if lines is None:
            captured = self._captured(event, store, turn, evidence)
            lines = captured_lines(captured, event.prompt)
        nothing = nothing_to_do(self._stores, event.prompt) if not lines else []
        telling = as_it_is_now(self._stores, telling)
        if evidence is not None:
            note_told(telling)
        return Acted(told_of_prompt(lines, telling.lines, nothing), note_of_prompt(event.prompt, turn, captured))

    def _captured(
        self, event: HookEvent, store: StoreFile, turn: int | None, evidence: UserEvidence | None
    ) -> Captured:
        """What the message demands and takes back."""
        from toolmem.engine import user_said, user_took_back
        from toolmem.rules.capture.hook import SessionRule
        from toolmem.rules.words_after import has_chinese

        said = [each for each in self._receipts.demands(event.session_id) if not each.effect]
        newest = max((each.turn for each in said), default=0)
        # What an agent has for itself (plans, helpers) no sentence on calls is about, unless it says its name.
        tools = [name for name in self._tools() if self._host.tools.get(name) != () or name in event.prompt]
        spoken: dict[str, Any] = {
            "tools": tools,
            "session_id": event.session_id,
            "turn": turn,
            "by_class": True,
            "evidence": evidence,
        }
        captured = user_said(
            store,
            event.prompt,
            **spoken,
            holding=[SessionRule(each.tool, each.rule) for each in said] if evidence else [],
            offered=[SessionRule(each.tool, each.rule) for each in said if each.turn == newest],
        )
        if self._stores.further is not None:
            back = user_took_back(self._stores.further, event.prompt, **spoken)
            captured.withdrawn += back.withdrawn
            captured.told += back.told
            captured.failures += back.failures
        if store.location == ":memory:" and (captured.rules or captured.withdrawn):
            captured.failures.append(_GONE[has_chinese(event.prompt)])
            captured.rules, captured.withdrawn, captured.told = [], [], []
        self._bind(event, captured, said, turn or newest + 1, tools)
        return captured

    def _bind(
        self, event: HookEvent, captured: Captured, said: Sequence[SaidHere], turn: int, tools: Sequence[str]
    ) -> None:
        """What holds in this session from now on: also what could not be kept."""
        from toolmem.rules.capture.durations import without_duration
        from toolmem.rules.capture.hook import SessionRule

        held = {SessionRule(each.tool, each.rule): each.turn for each in said}
        fresh = list(captured.session)
        if captured.failures:
            fresh += _all_demanded(event, tools)
        kept = {rule.rule for rule in captured.rules}  # "always" keeps what held for the session
        demands = {**held, **dict.fromkeys(fresh, turn)}
        left = {
            each: at
            for each, at in demands.items()
            if each not in captured.lifted and without_duration(each.rule) not in kept
        }
        if left != held:
            self._receipts.set_demands(event.session_id, _with_checks(left, tools))
        if captured.failures and event.session_id and not self._receipts.trouble:
            captured.session += [each for each in left if each not in held and each not in captured.session]

    # -- before and after a call

    def _noted(self, event: HookEvent, first: Mapping[str, Any] | None) -> Acted | None:
        """A note of a demand, which no rule stops; None where it is another call."""
        if (command := note_command(self._host, event.tool, event.arguments)) is None:
            return Acted() if asks_how_to_note(self._host, event.tool, event.arguments) else None
        if first is not None and "noted" in first:
            return Acted(HookAnswer(**first["answer"]), first)
        from toolmem.hosts.event_stores import users_own
        from toolmem.hosts.noted_by_hook import answered_note

        known = self._receipts.session(event.session_id)
        turn = known.turns if known is not None else None
        stores, users = self._stores.all, users_own(self._stores)
        try:
            noted = answered_note(command, event, self._host, stores, self._tools(), self._receipts, turn, users)
            return Acted(*noted)
        finally:
            if users is not None and users not in stores:
                users.close()

    def _decide(self, event: HookEvent, first: Mapping[str, Any] | None) -> Acted:
        if not self._guard_on:
            return Acted()
        said = self._receipts.demands(event.session_id)
        stamp = self._stamp(said)
        if stamp and first is not None and first.get("stamp") == stamp:
            return Acted(HookAnswer(**first["answer"]), first)
        store = self._stores.main
        if store is None or (self._stores.trouble and self._on_error == "closed"):  # some rules cannot be read
            raise OSError(self._stores.trouble or "no store can be opened")
        from toolmem.engine import before
        from toolmem.hosts.unasked import asks_a_person

        classes = self._host.tools.get(event.tool, ())
        once = self._pass(event, store, said)
        lifted = once.lifts if once is not None else frozenset()
        decision = before(
            store,
            {"tool_name": event.tool, "input": {} if event.arguments is None else event.arguments},
            conversation_id=event.session_id,
            force=None,
            cwd=event.cwd,
            modes=_ENFORCED,  # type: ignore[arg-type]
            on_error="closed" if self._on_error == "closed" else "open",
            classes=classes,
            demands=[each for each in self._demands(event, classes, said) if each.id not in lifted],
            lifted=lifted,
            final=("deny",) if asks_a_person(self._host) else ("deny", "ask"),
        )
        advice = decision.advice if decision.action == "advise" else ""
        later = ""
        if "after_call" in self._host.context_at:  # what comes while the call runs comes too late for it
            advice, later = "", advice_with_result(decision)
        if decision.reminders and not decision.stops and "before_call" in self._host.context_at:
            advice = "\n".join(filter(None, (advice, self._reminder(event, decision))))
        action = "advise" if advice and decision.action == "allow" else decision.action
        reason = decision.reason
        if action == "deny" or (action == "ask" and not asks_a_person(self._host)):
            from toolmem.hosts.user_replies import once_offered_in

            reason = " ".join(filter(None, (reason, once_offered_in(event, decision))))
        answer = {"action": action, "reason": reason, "context": advice}
        note = {**noted_of(decision), "advice": later} if later else noted_of(decision)
        if once is not None and decision.stops:
            once.give_back(self._receipts)
        if decision.sources or once is not None:  # to decide twice would count as two
            note |= {"answer": answer, "stamp": stamp}
        return Acted(HookAnswer(**answer), note)  # type: ignore[arg-type]

    def _reminder(self, event: HookEvent, decision: GuardDecision) -> str:
        from toolmem.hosts.reminders_again import reminder_due

        return reminder_due(self._receipts, event.session_id, decision.reminders)

    def _pass(self, event: HookEvent, store: StoreFile, said: Sequence[SaidHere]) -> CallPass | None:
        """By which the user lets this very call run once; taken away."""
        if not any(each.effect == ONCE for each in said):
            return None
        from toolmem.hosts.user_replies import taken_pass

        return taken_pass(event, store, said, self._receipts)

    def _stamp(self, said: Sequence[SaidHere]) -> str:
        """What it is decided by, which changes with the rules; "" where a store cannot be asked."""
        from toolmem.errors import StoreError
        from toolmem.readers.weight import at_once

        try:
            stamps = [at_once(store.read_stamped(DEFAULT_WORKSPACE, [])).stamp for store in self._stores.all]
        except (StoreError, OSError):
            return ""
        return repr([*stamps, [each for each in said if each.effect != ONCE]])

    def _demands(self, event: HookEvent, classes: Sequence[str], said: Sequence[SaidHere]) -> list[CheckedRule]:
        """What binds beside the rules of the main store."""
        from toolmem.engine import rules_on

        here = [each for each in said if each.effect]
        found = _checked(here, event, classes) if here else []
        if self._stores.further is not None:
            found += rules_on(self._stores.further, event.tool, event.arguments, classes=classes)
        return found

    def _keep(self, event: HookEvent, decided: Mapping[str, Any] | None) -> HookAnswer:
        store = self._stores.main
        if decided is not None and decided.get("noted") == "asked":
            from toolmem.hosts.asked_lifts import lifted_by_answer

            return lifted_by_answer(event, decided, self._host, self._stores.all, self._receipts)
        if store is None or event.interrupted or not event.tool:
            return SILENT
        if (command := note_command(self._host, event.tool, event.arguments)) is not None:
            if decided is None or decided.get("noted") != "kept":
                return SILENT
            from toolmem.hosts.calls_before_notes import let_through_before

            return let_through_before(command, event, self._host, self._stores.all, self._tools(), self._receipts)
        from toolmem.readers.denied_calls import is_denied

        if is_denied(event.output):  # it never ran
            return SILENT
        from toolmem.engine import after
        from toolmem.hosts.kept_records import kept_record

        record = kept_record(
            self._host.name,
            event.session_id,
            event.call_id,
            event.tool,
            event.arguments,
            event.output,
            event.failed,
            event.seconds,
            mcp_server=event.server,
            cwd=event.cwd,
        )
        after(store, record, decision=decision_of(decided, event) if decided else None)
        advice = self._advice(event, decided) if event.failed is not False and self._guard_on else ""
        return HookAnswer(action="advise", context=advice) if advice else SILENT

    def _advice(self, event: HookEvent, decided: Mapping[str, Any] | None) -> str:
        """What a model reads beside a failure: how long to wait, or what was known before."""
        from toolmem.engine import advice_on_retry, told_of_failure

        store, told = self._stores.main, decided.get("advice") if decided else ""
        given = {} if event.arguments is None else event.arguments
        wait, shown = "", ""
        if store is not None and event.failed:
            wait = advice_on_retry(store, event.tool, given, conversation_id=event.session_id, cwd=event.cwd)
            shown = told_of_failure(store, event.tool, given, event.output or "", conversation_id=event.session_id)
        return "\n".join(filter(None, (wait or (told if isinstance(told, str) else ""), shown)))


# ---------------------------------------------------------------- demands of a session


def _all_demanded(event: HookEvent, tools: Sequence[str]) -> list[SessionRule]:
    from toolmem.engine.demanded_rules import demanded
    from toolmem.rules.capture.hook import extract
    from toolmem.rules.turns import Turn

    spoken = Turn(event.prompt, (), event.session_id, tuple(tools), by_class=True)
    return [each for step in extract(spoken).said for each in demanded(step)]


def _with_checks(demands: Mapping[SessionRule, int], tools: Sequence[str]) -> list[SaidHere]:
    """The demands, then what is checked of them: the grammar that reads them takes too long before a call."""
    from toolmem.engine.demanded_rules import checked_demands
    from toolmem.engine.store_file import MachineClock
    from toolmem.guard.tool_classes import by_class

    checks = checked_demands(list(demands), tuple(by_class(tools)), MachineClock().now())
    rows = [SaidHere(turn, each.tool_name, each.rule) for each, turn in demands.items()]
    for tool, rules in checks.items():
        rows += [SaidHere(0, tool, rule.text, rule.effect, rule.when) for rule in rules]
    return rows


def _checked(said: Iterable[SaidHere], event: HookEvent, classes: Sequence[str]) -> list[CheckedRule]:
    from toolmem.guard.decision import CheckedRule
    from toolmem.guard.tool_classes import scopes_of
    from toolmem.rules.identity import UNSCOPED, folded_name

    places = {folded_name(event.tool), UNSCOPED, "", *scopes_of(event.tool, None, event.arguments, classes)}
    return [CheckedRule("", each.rule, each.effect, each.when, "user") for each in said if each.tool in places]


def _untrusted(path: str) -> str:
    from shlex import quote

    return (
        f"toolmem: the store {path} was found here, and you neither made nor trusted it: nothing of it is used. "
        f"If it is yours, run `toolmem store trust {quote(path)}` once."
    )
