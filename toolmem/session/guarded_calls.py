"""What holds the calls of a conversation before they run, for tools that an agent's own program runs."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from toolmem.app import AsyncToolMem, ToolMem, ToolMemApp
from toolmem.errors import ConfigError, StoreUntrusted
from toolmem.guard.conversation import CheckedCall, ConversationGuard
from toolmem.guard.decision import Finding, GuardDecision, Mode, decide
from toolmem.light_models import ToolSchema
from toolmem.models import ToolCallResult
from toolmem.rules.turns import Tools, read_tools
from toolmem.session.call_once import CallOnce
from toolmem.session.session_demands import Binding
from toolmem.session.session_reminders import SessionReminders

if TYPE_CHECKING:
    from toolmem.engine.guarding import CallGuard
    from toolmem.protocols import MemoryStore

log = logging.getLogger("toolmem.session")

T = TypeVar("T")
_MOST_UNDER_WAY = 1000
Record = Mapping[str, Any] | ToolCallResult
Work = Callable[["CallGuard"], Coroutine[Any, Any, T]]


class CallChecks(Protocol):
    """Decides on the calls of one conversation, and learns from how they ended."""

    async def before(self, tool_name: str, arguments: Any, *, force: bool | None = None) -> GuardDecision:
        """What is to become of a call. `force` None: the host cannot say it."""

    async def after(self, decision: GuardDecision, record: Record) -> None:
        """How it ended. `record`: as of `add_tool_call_result`."""

    def before_now(self, tool_name: str, arguments: Any, *, force: bool | None = None) -> GuardDecision:
        """`before`, for a synchronous tool, also in the thread of a running event loop."""

    def after_now(self, decision: GuardDecision, record: Record) -> None:
        """`after`, for a synchronous tool."""


class SessionChecks(CallChecks, Protocol):
    """The same, of an agent's session: it knows when the user speaks, and when the conversation was compressed."""

    once: CallOnce

    async def learn(self, calls: Sequence[Any]) -> None:
        """What calls teach that nobody decided on here. Those that taught already teach nothing again."""

    def user_spoke(self) -> None:
        """A message of the user: the guard is told before the next call."""

    def compacted(self) -> None:
        """What the user's reminders were shown in may be gone: they come again."""


class GuardedCalls:
    """Implements `CallChecks` by the guard of a memory's workspace.

    `by_portal`: the memory's work runs in a thread of its own (`ToolMem`), and not on the caller's loop. `demands`:
    what binds beside the stored rules. A guard that fails is logged and stops nothing, or everything where
    `guard.on_error` is closed; only a store that is not trusted and a wrong configuration raise.
    """

    def __init__(
        self,
        app: ToolMemApp,
        *,
        workspace_id: str,
        rules_workspace_id: str = "",
        conversation_id: str,
        tools: Tools = (),
        by_portal: bool = False,
        demands: Callable[[], Binding] = Binding,
    ) -> None:
        self.conversation_id = conversation_id
        self._app = app
        self._workspaces = workspace_id, rules_workspace_id
        self._tools = [tool for tool in tools if isinstance(tool, ToolSchema)]
        self._by_portal = by_portal
        self._demands = demands
        self._spoken = False  # a message of the user that the guard was not told of yet
        self.once = CallOnce()
        self.reminders = SessionReminders(app.clock.now())

    # -- where the guard's work runs

    async def _reached(self, work: Work[T]) -> T:
        if self._by_portal and not self._app.portal.is_here:
            return await self._app.portal.awaited(self._with_guard(work))
        return await self._with_guard(work)

    def _reached_now(self, work: Work[T]) -> T:
        if self._by_portal and not self._app.portal.is_here:
            return self._app.call(self._with_guard(work))
        return self._app.beside.call(lambda store: self._with_guard(work, store))

    async def _with_guard(self, work: Work[T], store: MemoryStore | None = None) -> T:
        return await work(await self._app.services.call_guard(*self._workspaces, beside=store))

    # -- around a call

    async def before(self, tool_name: str, arguments: Any, *, force: bool | None = None) -> GuardDecision:
        try:
            return await self._reached(self._decided(tool_name, arguments, force))
        except (StoreUntrusted, ConfigError):
            raise
        except Exception as error:
            return self._undecided(error)

    def before_now(self, tool_name: str, arguments: Any, *, force: bool | None = None) -> GuardDecision:
        try:
            return self._reached_now(self._decided(tool_name, arguments, force))
        except (StoreUntrusted, ConfigError):
            raise
        except Exception as error:
            return self._undecided(error)

    async def after(self, decision: GuardDecision, record: Record) -> None:
        try:
            await self._reached(self._taught(decision, record))
        except Exception as error:
            log.error("a call taught the guard nothing: %s", error)

    def after_now(self, decision: GuardDecision, record: Record) -> None:
        try:
            self._reached_now(self._taught(decision, record))
        except Exception as error:
            log.error("a call taught the guard nothing: %s", error)

    def _decided(self, tool_name: str, arguments: Any, force: bool | None) -> Work[GuardDecision]:
        async def work(guard: CallGuard) -> GuardDecision:
            await self._tell_spoken(guard)
            binding, taken = self._demands(), self.once.take(tool_name, arguments)
            decision = await guard.before(
                tool_name,
                arguments,
                conversation_id=self.conversation_id,
                force=force,
                tools=self._tools,
                demands=taken.left(binding.on(tool_name)),
                lifted=binding.lifted | taken.lifts,
            )
            if decision.stops:
                self.once.give_back(taken)
            return self.reminders.beside(decision)

        return work

    def _taught(self, decision: GuardDecision, record: Record) -> Work[None]:
        call = {"conversation_id": self.conversation_id, **record} if isinstance(record, Mapping) else record

        async def work(guard: CallGuard) -> None:
            await guard.ended(decision, call)

        return work

    def _undecided(self, error: Exception) -> GuardDecision:
        log.error("the guard could not be asked (guard.on_error): %s", error)
        if self._app.settings.guard.on_error == "open":
            return decide("", ())
        text = "The rules cannot be read, and guard.on_error is closed: wait until the store answers."
        return decide("", (Finding("rule", "deny", text),))

    # -- what the user says

    def user_spoke(self) -> None:
        self._spoken = True
        self.once.allow(None)

    def compacted(self) -> None:
        self.reminders.compacted()

    async def _tell_spoken(self, guard: CallGuard) -> None:
        if self._spoken:
            self._spoken = False
            await guard.user_spoke(self.conversation_id)

    async def learn(self, calls: Sequence[Any]) -> None:
        async def work(guard: CallGuard) -> None:
            await self._tell_spoken(guard)
            await guard.learn(calls)

        try:
            await self._reached(work)
        except Exception as error:
            log.error("calls taught the guard nothing: %s", error)


def guarded_calls(
    memory: ToolMem | AsyncToolMem | ToolMemApp,
    conversation_id: str,
    workspace_id: str | None,
    rules_workspace_id: str | None,
    tools: Sequence[str | ToolSchema | Mapping[str, Any]],
) -> GuardedCalls:
    """The guard of a memory's workspace, for a recorder."""
    app = memory if isinstance(memory, ToolMemApp) else memory.app
    own = "default" if isinstance(memory, ToolMemApp) else memory.workspace_id
    return GuardedCalls(
        app,
        workspace_id=workspace_id or own,
        rules_workspace_id=rules_workspace_id or "",
        conversation_id=conversation_id,
        tools=read_tools(tools),
        by_portal=isinstance(memory, ToolMem),
    )


class DemandsAlone:
    """Implements `SessionChecks` where nothing that the store holds is believed: by demands and failures, in memory."""

    def __init__(self, modes: Mapping[str, Mode], demands: Callable[[], Binding], tools: Tools = ()) -> None:
        known = [tool for tool in tools if isinstance(tool, ToolSchema)]
        self._guard = ConversationGuard(tools=known, modes=modes)
        self._demands = demands
        self._under_way: OrderedDict[str, CheckedCall] = OrderedDict()
        self._lock = threading.Lock()
        self.once = CallOnce()

    def before_now(self, tool_name: str, arguments: Any, *, force: bool | None = None) -> GuardDecision:
        with self._lock:
            taken = self.once.take(tool_name, arguments)
            self._guard.rules = {tool_name: taken.left(self._demands().on(tool_name))}
            checked = self._guard.before(tool_name, arguments, force=force)
            if checked.stops:
                self.once.give_back(taken)
            self._under_way[checked.decision.id] = checked
            if len(self._under_way) > _MOST_UNDER_WAY:
                self._under_way.popitem(last=False)
            return checked.decision

    def after_now(self, decision: GuardDecision, record: Record) -> None:
        call = record if isinstance(record, Mapping) else record.model_dump(include={"success", "output"})
        with self._lock:
            checked = self._under_way.pop(decision.id, None)
            if checked is not None and not decision.stops and call.get("success") is not None:
                self._guard.after(checked, failed=not call["success"], output=call["output"])

    async def before(self, tool_name: str, arguments: Any, *, force: bool | None = None) -> GuardDecision:
        return self.before_now(tool_name, arguments, force=force)

    async def after(self, decision: GuardDecision, record: Record) -> None:
        self.after_now(decision, record)

    async def learn(self, calls: Sequence[Any]) -> None:
        """Nothing: what was decided on here is known already, and the rest is told too late to matter."""

    def user_spoke(self) -> None:
        self.once.allow(None)
        with self._lock:
            self._guard.user_spoke()

    def compacted(self) -> None:
        """Nothing: no stored reminder is known here."""
