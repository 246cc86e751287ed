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
from toolmem.hosts.events import SILENT, HookAnswer, HookEvent
from toolmem.hosts.receipts import Receipts, SaidHere
from toolmem.hosts.told import captured_lines, told_of_prompt

if TYPE_CHECKING:
    from toolmem.guard.decision import CheckedRule, GuardDecision
    from toolmem.hosts.event_stores import EventStores
    from toolmem.hosts.host import Host
    from toolmem.rules.capture.hook import Captured, SessionRule

GUIDANCE_TOKENS = 500
CAPS = (30, 4500, 6000)  # of the pinned rules: agents cut what a hook adds at some 10,000 characters
_MOST_TOOLS = 200  # that the store knows
_ENFORCED = {"repeats": "enforce"}


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
        """`decided`: what was noted of the call before it ran. Raises what the stores raise."""
        match event.kind:
            case "session_start" | "subagent_start":
                return Acted(self._begin(event))
            case "prompt":
                return Acted(self._hear(event))
            case "before_call":
                return self._decide(event)
            case "after_call":
                return Acted(self._keep(event, decided))
            case "session_end":
                self._receipts.session_ended(event.session_id)
        return Acted()

    # -- before the model

    def _begin(self, event: HookEvent) -> HookAnswer:
        from toolmem.hosts.told import rules_and_guidance

        demands = [each for each in self._receipts.demands(event.session_id) if not each.effect]
        text = rules_and_guidance(self._stores.all, self._tools(), demands, CAPS, GUIDANCE_TOKENS)
        self._keep_rules()
        if event.kind != "session_start" or event.origin == "compact":
            return HookAnswer(context=text)
        told = [_untrusted(self._stores.untrusted)] if self._stores.untrusted else []
        return HookAnswer(context=text, notice="\n".join([*told, *map(_gone, self._stores.gone)]))

    def _keep_rules(self) -> None:
        """For when a store is gone."""
        from toolmem.hosts.rule_snapshots import keep_rules

        for store in self._stores.all:
            if store.location != ":memory:":
                keep_rules(store, DEFAULT_WORKSPACE)

    def _tools(self) -> list[str]:
        """The agent's own, and those that the stores know."""
        known = (name for store in self._stores.all for name in store.tool_names(DEFAULT_WORKSPACE, _MOST_TOOLS))
        return list(dict.fromkeys([*self._host.tools, *known]))

    # -- what the user says

    def _hear(self, event: HookEvent) -> HookAnswer:
        store = self._stores.main
        if not event.prompt or store is None:
            return SILENT
        from toolmem.engine import user_said, user_spoke, user_took_back
        from toolmem.rules.capture.hook import SessionRule

        turn = self._receipts.new_turn(event.session_id)
        user_spoke(store, event.session_id)
        said = [each for each in self._receipts.demands(event.session_id) if not each.effect]
        newest = max((each.turn for each in said), default=0)
        # What an agent has for itself (plans, helpers) no sentence on calls is about, unless it says its name.
        tools = [name for name in self._tools() if self._host.tools.get(name) != () or name in event.prompt]
        spoken: dict[str, Any] = {
            "tools": tools,
            "session_id": event.session_id,
            "turn": turn,
            "by_class": True,
        }
        captured = user_said(
            store,
            event.prompt,
            **spoken,
            holding=[SessionRule(each.tool, each.rule) for each in said],
            offered=[SessionRule(each.tool, each.rule) for each in said if each.turn == newest],
        )
        if self._stores.further is not None:
            back = user_took_back(self._stores.further, event.prompt, **spoken)
            captured.withdrawn += back.withdrawn
            captured.told += back.told
            captured.failures += back.failures
        if store.location == ":memory:" and (captured.rules or captured.withdrawn):
            captured.failures.append("its store is gone, or cannot be opened")
            captured.rules, captured.withdrawn, captured.told = [], [], []
        self._bind(event, captured, said, turn or newest + 1, tools)
        self._keep_rules()
        return told_of_prompt(captured_lines(captured))

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

    def _decide(self, event: HookEvent) -> Acted:
        if not self._guard_on:
            return Acted()
        store = self._stores.main
        if store is None or (self._stores.trouble and self._on_error == "closed"):  # some rules cannot be read
            raise OSError(self._stores.trouble or "no store can be opened")
        from toolmem.engine import before

        classes = self._host.tools.get(event.tool, ())
        decision = before(
            store,
            {"tool_name": event.tool, "input": {} if event.arguments is None else event.arguments},
            conversation_id=event.session_id,
            force=None,
            cwd=event.cwd,
            modes=_ENFORCED,  # type: ignore[arg-type]
            on_error="closed" if self._on_error == "closed" else "open",
            classes=classes,
            demands=self._demands(event, classes),
        )
        advice = decision.advice if decision.action == "advise" else ""
        later = advice if advice and "before_call" not in self._host.context_at else ""  # with its result, if anywhere
        note = {**_noted(decision), "advice": later} if later else _noted(decision)
        return Acted(HookAnswer(action=decision.action, reason=decision.reason, context=advice), note)

    def _demands(self, event: HookEvent, classes: Sequence[str]) -> list[CheckedRule]:
        """What binds beside the rules of the main store."""
        from toolmem.engine import rules_on

        here = [each for each in self._receipts.demands(event.session_id) if each.effect]
        found = _checked(here, event, classes) if here else []
        if self._stores.further is not None:
            found += rules_on(self._stores.further, event.tool, event.arguments, classes=classes)
        return found

    def _keep(self, event: HookEvent, decided: Mapping[str, Any] | None) -> HookAnswer:
        store = self._stores.main
        if store is None or event.interrupted or not event.tool:
            return SILENT
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
        after(store, record, decision=_decision(decided, event) if decided else None)
        advice = decided.get("advice") if decided else None
        return HookAnswer(action="advise", context=advice) if isinstance(advice, str) and advice else SILENT


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


# ---------------------------------------------------------------- decisions between two processes


def _noted(decision: GuardDecision) -> dict[str, Any]:
    """What the call's end needs to know of its decision, as JSON."""
    mark = decision.mark
    return {
        "id": decision.id,
        "action": decision.action,
        "sources": [each.kind for each in decision.sources],
        "forced": list(mark.forced) if mark else [],
        "identity": mark.identity if mark else "",
        "state": mark.state if mark else None,
        "hints": dict(mark.hints) if mark else {},
    }


def _decision(noted: Mapping[str, Any], event: HookEvent) -> GuardDecision | str | None:
    from toolmem.guard.decision import CallMark, Finding, GuardDecision

    try:
        mark = CallMark(
            event.tool,
            str(noted["identity"]),
            event.session_id,
            noted["state"],
            cwd=event.cwd,
            forced=tuple(noted["forced"]),
            hints=noted["hints"],
        )
        sources = tuple(Finding(kind, "allow", "") for kind in noted["sources"])
        return GuardDecision(str(noted["id"]), noted["action"], sources=sources, mark=mark)
    except (KeyError, TypeError):  # of another version
        return str(noted["id"]) if "id" in noted else None


def _gone(path: str) -> str:
    from toolmem.hosts.rule_snapshots import remedy_of, snapshot_of, told_of

    kept = snapshot_of(path)
    return f"toolmem: {told_of(kept)}; {remedy_of(kept)}." if kept is not None else ""


def _untrusted(path: str) -> str:
    from shlex import quote

    return (
        f"toolmem: the store {path} was found here, and you neither made nor trusted it: nothing of it is used. "
        f"If it is yours, run `toolmem store trust {quote(path)}` once."
    )
