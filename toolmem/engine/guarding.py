"""The guard of a workspace: what memory knows decides before a call runs, whichever process asks.

    guard = CallGuard(store, "default", clock=clock)
    decision = await guard.before("send_email", {"to": "sarah@example.com"}, conversation_id="c1")
    if not decision.stops:
        ...
    await guard.after(decision, call)

Rules are those of the store at this moment: one read per decision tells whether they changed. What a conversation
remembers lies in the store too (`guard_records`), so that several processes guard one conversation. A plain `allow`
writes nothing. The guard's own trouble is logged and never reaches the agent.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from toolmem.engine.ended_calls import TaughtCalls, call_of, field_of, new_id, problems_of, with_names
from toolmem.engine.guard_records import GuardRecords, Places, Remembered
from toolmem.engine.guarded_histories import GuardedHistories
from toolmem.engine.guarded_rules import GuardedRules
from toolmem.engine.kept_decisions import DecisionLog, StorePatience
from toolmem.engine.lessons import Lessons, ToldCall, append_each, left_out
from toolmem.engine.protected_paths import protected_paths
from toolmem.guard.conversation import CheckedCall, ConversationGuard, identity_of
from toolmem.guard.decision import MODES, CallMark, CheckedRule, Finding, GuardDecision, Mode, against_repeat, decide
from toolmem.guard.repeats import StandingFailures
from toolmem.guard.tool_classes import scopes_of
from toolmem.late import late_logger
from toolmem.late_dataclasses import replace
from toolmem.light_models import ToolSchema, conversation_told
from toolmem.readers.written_arguments import opened_arguments
from toolmem.store.masked import commits_records, masked_calls, store_key, unmasked

if TYPE_CHECKING:
    from toolmem.guard.histories import History
    from toolmem.protocols import Clock, MemoryStore
    from toolmem.stored import Appended, LoggedDecision

logger = late_logger("toolmem.guard")
OnError = Literal["open", "closed"]

KEEP_CALLS = 100
TIMEOUT = 2.0  # seconds that a decision waits for the store
_MOST_MOVED = 1000  # conversations whose changes this process counts
_NOTHING = "calls taught the guard nothing"


class CallGuard:
    """Decides before each call of a workspace, and learns from how it ended.

    `store`: as calls are kept in it; where it masks secrets, so does what is logged here. `rules_workspace_id`: whose
    rules bind, where it is another. `modes`, `on_error`: as in the configuration's section `guard`. `context_key`: the
    field of a record that names what its call ran against. `timeout`: seconds that a decision waits for the store;
    then it is made by what was read last. `taught`: shared with the other guards of a process. `protected`: further
    files and folders that only the user changes, such as those that hooks stand in. `of_called`: read only rules of
    tools that are called. For one event loop.
    """

    def __init__(
        self,
        store: MemoryStore,
        workspace_id: str = "default",
        *,
        clock: Clock,
        rules_workspace_id: str = "",
        modes: Mapping[str, Mode] = MODES,
        on_error: OnError = "open",
        context_key: str = "",
        keep_calls: int = KEEP_CALLS,
        timeout: float = TIMEOUT,
        taught: TaughtCalls | None = None,
        protected: Sequence[str] = (),
        of_called: bool = False,
    ) -> None:
        self.store = store
        self.workspace_id = workspace_id
        self.rules_workspace_id = rules_workspace_id or workspace_id
        self.modes: dict[str, Mode] = {**MODES, **modes}
        self.on_error = on_error
        self._clock = clock
        self.context_key = context_key
        self._keep_calls = keep_calls
        self._patience = StorePatience(clock, timeout)
        self._log = DecisionLog(store, workspace_id, clock, self._patience)
        self._rules = GuardedRules(store, self.rules_workspace_id, clock, of_called=of_called)
        self._records = GuardRecords(store, workspace_id, clock)
        self._histories = GuardedHistories(store, workspace_id, clock, self._patience, self._records, self.modes)
        self._taught = taught or TaughtCalls()
        self._protected = (*protected_paths(store), *protected)
        self._key: bytes | None = None
        self._moved: OrderedDict[str, int] = OrderedDict()  # changes that this process has seen, by conversation
        self._is_down = False  # the store did not answer when it was last asked

    def log_no_inputs(self) -> None:
        """Decisions are logged without what their calls were given."""
        self._log.with_inputs = False

    @property
    def is_off(self) -> bool:
        """Nothing is held against any call, and nothing is learned."""
        return all(mode == "off" for mode in self.modes.values())

    # -- before

    async def before(
        self,
        tool_name: str,
        arguments: Any,
        *,
        conversation_id: str = "",
        force: bool | None = False,
        tools: Sequence[ToolSchema] = (),
        cwd: str = "",
        context: str = "",
        demands: Sequence[CheckedRule] = (),
        lifted: Collection[str] = (),
        classes: Sequence[str] = (),
        final: Collection[str] = (),
    ) -> GuardDecision:
        """What is to become of a call. Never raises.

        `force`: the agent repeats a call that was stopped though it knows why; None: its host cannot say so. It lifts
        everything but rules. `tools`: as they are declared, where the host knows. `cwd`: where the call would run.
        `context`: the value of `context_key`, if the call tells none. `demands`: what binds it beside the stored rules.
        `lifted`: ids of rules that the user takes back in the message that it answers. `classes`: of the tool (shell,
        read, write, fetch, ...), where its agent says so; else they are told by its name, schema and arguments.
        `final`: actions after which nobody tells that the call did not run, so that the log says it at once.
        """
        if self.is_off:
            return decide(new_id(), ())
        arguments = opened_arguments(arguments)
        moved = self._moved.get(conversation_id, 0)
        told = {"input": arguments, "conversation_id": conversation_id, "metadata": {"cwd": cwd}}
        context = context or field_of(told, self.context_key)
        mark = CallMark(tool_name, "", conversation_id, None, moved, cwd, context)
        try:
            schema = next((tool.parameters for tool in tools if tool.name == tool_name), None)
            scopes = scopes_of(tool_name, schema, arguments, classes)
            known = await self._known(places := _places(mark), tool_name, scopes)
            remembered = known or self._records.remembered(places, None)
            rules = [*demands, *(rule for rule in self._rules.of(tool_name, scopes) if rule.id not in lifted)]
            rules = [rule for rule in rules if rule.session in ("", conversation_id)]
            history = await self._histories.asked(remembered, rules, conversation_id, is_down=self._is_down)
            guard = self._guard(tool_name, remembered, tools, await self._store_key(), rules, history)
            folder = Path(cwd) if cwd else None
            checked = guard.weigh(tool_name, arguments, force=force, directory=folder)
            if known is None and not checked.stops:
                return await self._undecided("the rules cannot be read", arguments, mark, final)
            if not self._is_down and self.modes["rules"] != "off":
                of_call = (tools, folder, guard.view)
                checked = await self._histories.weighed(checked, remembered, history, places, rules, of_call)
            began, forced, hints = checked.began, checked.forced, checked.hints
            mark = replace(mark, identity=checked.identity, state=began, forced=forced, hints=hints)
            if checked.decision.sources:
                await self._remember(checked, places)
                await self._log.add(checked.decision, arguments, mark, final)
            if not self._is_down:
                await self._log.write()
            return replace(checked.decision, mark=mark, reminders=tuple(each for each in rules if each.reminds))
        except Exception:
            logger.exception("the guard failed on a call of %r", tool_name)
            return await self._undecided("the guard failed on it", arguments, mark, final)

    async def _known(self, places: Places, tool_name: str, scopes: Sequence[str]) -> Remembered | None:
        """What is known at this moment, or was when the store last answered. None: rules were never read."""
        try:
            known = await self._patience.within(self._read(places, tool_name, scopes))
            self._is_down = False
            return known
        except Exception as error:  # of whatever store: its trouble is none of the agent's
            self._is_down = True
            if not self._rules.known(tool_name, scopes):
                self._patience.tell("the store cannot be read", error)
                return None
            self._patience.tell("the store cannot be read; calls are held against what was read last", error)
            return self._records.remembered(places, None)

    async def _read(self, places: Places, tool_name: str, scopes: Sequence[str]) -> Remembered:
        keys = places.keys()
        stamped = await self.store.read_stamped(self.workspace_id, keys)
        stamp = stamped.stamp
        if self.rules_workspace_id != self.workspace_id:
            stamp = (await self.store.read_stamped(self.rules_workspace_id, [])).stamp
        await self._rules.read_at(stamp, tool_name, scopes)
        return self._records.remembered(places, dict(zip(keys, stamped.records, strict=True)))

    def _guard(
        self,
        tool_name: str,
        known: Remembered,
        tools: Sequence[ToolSchema],
        key: bytes,
        rules: Sequence[CheckedRule],
        history: History | None,
    ) -> ConversationGuard:
        declared = [tool for tool in tools if tool.name == tool_name]
        return ConversationGuard(
            {tool_name: rules},
            tools=declared,
            modes=self.modes,
            standing=known.standing,
            names=known.names,
            problems=problems_of if declared else None,
            watch=known.watch,
            key=key,
            protected=self._protected,
            history=history,
        )

    async def _remember(self, checked: CheckedCall, places: Places) -> None:
        """What a decision on a repeat leaves for the next one, in the conversation's record."""
        repeat = any(each.kind == "repeat" for each in checked.decision.sources)
        if repeat and not self._is_down and (checked.forced or checked.stops):
            work = self._records.remember(checked, places.conversation)
            await self._patience.attempt("a decision cannot be remembered", work)

    async def _undecided(self, why: str, arguments: Any, mark: CallMark, final: Collection[str] = ()) -> GuardDecision:
        """On a call that nobody could decide on; logged when the store answers again."""
        told = f"This call could not be checked, because {why}."
        if self.on_error == "closed":
            told = f"{told} guard.on_error is closed: try again later."
            decision = decide(new_id(), (Finding("rule", "deny", told),))
            await self._log.add(decision, arguments, mark, final)
        else:
            self._patience.tell(f"calls run unchecked, because {why}: guard.on_error is open")
            decision = decide(new_id(), (Finding("rule", "deny", told, "shadow"),))
            await self._log.add(replace(decision, advice=told), arguments, mark)
        return replace(decision, mark=mark)

    # -- after

    async def after(self, decision: GuardDecision | str | None, call: Any, *, keep: int | None = None) -> Appended:
        """Keep a call that has ended, learn from it, and note in the log what became of the decision.

        `decision`: what `before` answered, or its id. `call`: a record, or a ToolCallResult. A call that was stopped
        teaches nothing. `keep`: calls that stay of its tool. Raises RecordError, RequestError, StoreError where the
        call cannot be kept.
        """
        read = with_names(call_of(call, self._clock), decision)
        most = self._keep_calls if keep is None else keep
        return (await self._keep([(read, decision)], most, self.store, None))[read.tool_name]

    async def keep(self, calls: Sequence[tuple[Any, str]], keep: int, store: MemoryStore) -> dict[str, Appended]:
        """Keep calls, each with the id of the decision about it ("": none is known), and learn from them; by tool.

        One that taught already teaches nothing again. `store`: where they are kept, if that is another one than the
        guard's. Raises as `after`.
        """
        return await self._keep(calls, keep, store, self._taught)

    async def ended(self, decision: GuardDecision | str, call: Any) -> None:
        """As `after`, of a call that is kept in another way. Never raises."""
        await self._learn([(call, decision)])

    async def advice_on_retry(self, tool_name: str, arguments: Any, *, conversation_id: str, cwd: str = "") -> str:
        """What to know before a call that has just failed is sent again; "" where that is nothing. Never raises."""
        places = Places(conversation_id, cwd)
        identity = identity_of(tool_name, arguments, await self._store_key())
        try:
            keys = places.keys()
            records = (await self._patience.within(self.store.read_stamped(self.workspace_id, keys))).records
        except Exception as error:
            self._patience.tell("the store cannot be read", error)
            return ""
        held = self._records.remembered(places, dict(zip(keys, records, strict=True))).standing.before(identity)
        found = against_repeat(held, "advise") if held is not None and held.wait is not None else []
        return " ".join(each.text for each in found)

    async def learn(self, calls: Sequence[Any], conversation_id: str = "") -> None:
        """What calls teach that are kept in another way; one conversation after the other, while the store answers.

        Never raises.
        """
        await self._learn([(call, None) for call in calls], conversation_id)

    async def user_spoke(self, conversation_id: str) -> None:
        """A message of the user: what failed before in this conversation may be tried again. Never raises."""
        if conversation_id and not self.is_off:
            self._has_moved(conversation_id)
            work = self._records.change_standing(conversation_id, StandingFailures.user_spoke)
            await self._patience.attempt("a message of the user resets no failure", work)

    async def decisions(
        self, *, conversation_id: str | None = None, tool_name: str | None = None, limit: int = 100
    ) -> list[LoggedDecision]:
        """What was decided, newest first. A day later, what became of a call is `unknown`. Raises StoreError."""
        return await self._log.newest(conversation_id, tool_name, limit)

    async def _keep(
        self,
        calls: Sequence[tuple[Any, GuardDecision | str | None]],
        keep: int,
        store: MemoryStore,
        taught: TaughtCalls | None,
    ) -> dict[str, Appended]:
        """In one commit with what they teach, where the store has such commits."""
        kept = [call for call, _ in calls]
        lessons = await self._told(calls, taught)
        if lessons is None or store is not self.store or not commits_records(store):
            appended = await append_each(store, self.workspace_id, kept, keep)
            await self._teach(lessons, left_out(kept, appended))
            return appended
        both: Any = store
        try:
            together: dict[str, Appended] = await both.append_with(self.workspace_id, kept, keep, lessons)
        except Exception:
            lessons.take_back()
            raise
        await self._taught_all(lessons)
        return together

    async def _learn(self, calls: Sequence[tuple[Any, GuardDecision | str | None]], conversation: str = "") -> None:
        try:
            read = [(self._named(call, decision), decision) for call, decision in calls]
        except Exception as error:
            self._patience.tell(_NOTHING, error)
            return
        await self._teach(await self._told(read, self._taught, conversation))

    def _named(self, call: Any, decision: GuardDecision | str | None) -> Any:
        read = call_of(call, self._clock)
        return with_names(read, decision) if decision else read

    async def _told(
        self,
        calls: Sequence[tuple[Any, GuardDecision | str | None]],
        taught: TaughtCalls | None,
        conversation: str = "",
    ) -> Lessons | None:
        """None: nothing is to be learned, or the store does not tell what was decided about them."""
        if not calls or self.is_off:
            return None
        told: list[ToldCall] = []
        try:
            key = await self._store_key()
            for index, (call, decision) in enumerate(calls):
                told.append(await self._told_call(index, call, decision, conversation))
        except Exception as error:
            self._patience.tell(_NOTHING, error)
            return None
        return Lessons([call for call, _ in calls], told, self._records, key, self.context_key, taught)

    async def _told_call(
        self, index: int, call: Any, decision: GuardDecision | str | None, conversation: str
    ) -> ToldCall:
        mark = decision.mark if isinstance(decision, GuardDecision) else None
        entry = await self._patience.within(self._log.entry(decision)) if decision else None
        if mark is None and entry is not None:
            forced = tuple(str(each["kind"]) for each in entry.sources if each.get("forced"))
            moved = self._moved.get(entry.conversation_id, 0)
            mark = CallMark(call.tool_name, "", entry.conversation_id, moved=moved, forced=forced)
        conversation = conversation or (mark.conversation_id if mark else "") or conversation_told(call.metadata) or ""
        decided = decision.id if isinstance(decision, GuardDecision) else decision or ""
        return ToldCall(index, call, mark, conversation, entry, self._moved.get(conversation, 0), decided)

    async def _teach(self, lessons: Lessons | None, out: Collection[int] = ()) -> None:
        """What calls teach that are kept already; `out`: those that are not. Never raises."""
        if lessons is None:
            return
        try:
            lessons.prepare([call for call, _ in await masked_calls(self.store, lessons.calls)])
        except Exception as error:
            lessons.error = error
        if lessons.error is None:
            for changes in lessons.changes(out):
                if not await self._patience.attempt(_NOTHING, self._records.make_all(changes)):
                    break
        await self._taught_all(lessons)

    async def _taught_all(self, lessons: Lessons) -> None:
        if lessons.error is not None:
            self._patience.tell(_NOTHING, lessons.error)
        for conversation in lessons.moved:
            self._has_moved(conversation)
        for entry in lessons.ended_entries():
            await self._patience.attempt("what became of a decision is not logged", self._log.replace(entry))

    def _has_moved(self, conversation: str) -> None:
        self._moved[conversation] = self._moved.pop(conversation, 0) + 1
        if len(self._moved) > _MOST_MOVED:
            self._moved.popitem(last=False)

    async def _store_key(self) -> bytes:
        """Of the store, so that identities tell nothing about inputs; empty where it has none and takes none."""
        if self._key is None:
            try:
                self._key = await self._patience.within(store_key(unmasked(self.store)))
            except Exception as error:
                self._patience.tell("the store gives no key for the inputs of calls", error)
                return b""
        return self._key


def _places(mark: CallMark) -> Places:
    return Places(mark.conversation_id, mark.cwd, (mark.tool_name, mark.context) if mark.context else None)
