"""The memory behind a proxy: it decides on calls, keeps how they ended, and says what is known of tools.

Nothing here fails a call: what the memory cannot do is told on stderr, and `guard.on_error` says what becomes of calls
that nobody could decide on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from toolmem.engine.advising import told_of_failure
from toolmem.engine.ended_calls import field_of
from toolmem.guard.decision import Finding, GuardDecision, decide
from toolmem.readers.long_values import shortened
from toolmem.server.proxy.called import CallEnd, ProxiedCall

if TYPE_CHECKING:
    from toolmem.app import AsyncToolMem
    from toolmem.engine.guarding import CallGuard
    from toolmem.engine.store_file import StoreFile
    from toolmem.guard.decision import CheckedRule
    from toolmem.light_models import Language, ToolSchema

log = logging.getLogger("toolmem.proxy")

T = TypeVar("T")

_PATIENCE = 5.0  # seconds that a message waits for the memory
_OPENING = 20.0  # seconds that the first messages wait until it is loaded and opened
_NOT_AGAIN = 0.5  # and those after one that waited in vain
_AGAIN = 15.0  # seconds between two tries to open a store
_TOLD_EVERY = 60.0
_SHADOW = tuple(f"guard.{source}=shadow" for source in ("rules", "repeats", "names", "schema"))


@dataclass(slots=True, kw_only=True)
class ProxyOptions:
    """What the command line says."""

    name: str = "mcp"  # of the server, in the records
    store: str | None = None  # a file, or a configuration (.yaml)
    workspace: str = "default"
    shadow: bool = False  # decide and log, change nothing
    arguments: bool = True  # keep them
    closed: bool = False  # deny what cannot be decided on
    overrides: Sequence[str] = ()
    beside: Sequence[StoreFile] = ()  # whose rules bind as well; used by the thread that opened them
    # What a hook of the host noted of its decision on a call: such a call is not decided on again.
    noted: Callable[[str, str], Mapping[str, Any] | None] = lambda session, key: None
    cwd: str = field(default_factory=os.getcwd)


class ProxyMemory:
    """One per process. Opened when it is first needed, and again later where that failed."""

    def __init__(self, options: ProxyOptions) -> None:
        self.options = options
        self._memory: AsyncToolMem | None = None
        self._opening: asyncio.Task[CallGuard] | None = None
        self._failed_at = -_AGAIN
        self._away_until = 0.0
        self._opening_limit = _OPENING
        self._told: dict[str, float] = {}

    # -- the store

    def warm_up(self) -> None:
        """Begin to open it: the first call waits less."""
        self._opening = self._opening or asyncio.create_task(self._opened())

    async def _guard(self) -> CallGuard:
        """Raises whatever the store raises, at once where it failed a moment ago."""
        if self._opening is None or self._opening.done():
            failed = self._opening is not None and (self._opening.cancelled() or self._opening.exception() is not None)
            if self._opening is None or (failed and time.monotonic() - self._failed_at > _AGAIN):
                self._opening = asyncio.create_task(self._opened())
        return await asyncio.shield(self._opening)

    async def _opened(self) -> CallGuard:
        try:
            if self._memory is None:
                self._memory = await asyncio.to_thread(self._loaded)
            guard = await self._memory.app.services.call_guard(self.options.workspace)
            if not self.options.arguments:
                guard.log_no_inputs()
            return guard
        except BaseException:
            self._failed_at = time.monotonic()
            raise

    def _loaded(self) -> AsyncToolMem:
        from toolmem.app import AsyncToolMem

        options = self.options
        modes = [*(["guard.on_error=closed"] if options.closed else ()), *(_SHADOW if options.shadow else ())]
        return AsyncToolMem(
            options.store, workspace=options.workspace, overrides=["guard.repeats=enforce", *options.overrides, *modes]
        )

    async def close(self) -> None:
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
        if self._memory is not None:
            await self._memory.app.close()

    # -- around a call

    async def decide(self, call: ProxiedCall, conversation: str, tool: ToolSchema | None) -> GuardDecision:
        """What is to become of a call. One that a hook of the host let through is let through here too."""
        if call.key and (noted := self.options.noted(call.session, call.key)) is not None:
            return GuardDecision(str(noted.get("id", "")), "allow")

        def work(guard: CallGuard) -> Awaitable[GuardDecision]:
            return guard.before(
                call.tool,
                call.arguments,
                conversation_id=conversation,
                force=None,
                tools=[tool] if tool is not None else [],
                cwd=self.options.cwd,
                demands=() if guard.is_off else self._demands(call),
            )

        try:
            return await self._asked(work)
        except Exception as error:
            return self._undecided(error)

    def _demands(self, call: ProxiedCall) -> list[CheckedRule]:
        from toolmem.engine import rules_on

        return [rule for store in self.options.beside for rule in rules_on(store, call.tool, call.arguments)]

    def _undecided(self, error: Exception) -> GuardDecision:
        closed = self._is_closed()
        becomes = "calls are denied" if closed else "calls pass unchecked"
        self._tell(f"the memory cannot be asked, so that {becomes} (guard.on_error)", error)
        if not closed:
            return decide("", ())
        text = "The rules cannot be read, and guard.on_error is closed: wait until the store answers."
        return decide("", (Finding("rule", "deny", text),))

    def _is_closed(self) -> bool:
        if self.options.shadow:
            return False
        return self.options.closed or (
            self._memory is not None and self._memory.app.settings.guard.on_error == "closed"
        )

    async def keep(self, call: ProxiedCall, conversation: str, decision: GuardDecision, end: CallEnd) -> None:
        """Keep how a call ended, and learn from it."""
        record = self._record(call, conversation, end)
        known = decision if decision.mark is not None else decision.id or None  # a hook's, by its id
        await self._attempt("a call cannot be kept", lambda guard: guard.after(known, record))

    async def told_of(self, call: ProxiedCall, conversation: str, end: CallEnd) -> str:
        """What earlier calls show of a failure, for the agent; "" for nothing."""

        def work(guard: CallGuard) -> Awaitable[str]:
            context = field_of(self._record(call, conversation, end), guard.context_key)
            asked = {"conversation_id": conversation, "context": context}
            return told_of_failure(guard, call.tool, call.arguments, end.output, **asked)

        try:
            return "" if self.options.shadow else await self._asked(work)
        except Exception as error:
            self._tell("nothing is told of a failure", error)
            return ""

    async def not_run(self, call: ProxiedCall, conversation: str, decision: GuardDecision) -> None:
        """Note that a call was stopped."""
        record = {**self._record(call, conversation, CallEnd(ending="answered")), "output": decision.reason}
        if decision.id:
            await self._attempt("a decision cannot be noted", lambda guard: guard.ended(decision, record))

    def _record(self, call: ProxiedCall, conversation: str, end: CallEnd) -> dict[str, Any]:
        more: dict[str, Any] = {"error_code": end.code} if end.code is not None else {}
        if not self.options.arguments:
            more["arguments"] = "not kept"
        return {
            "id": call.id,
            "tool_name": call.tool,
            "input": shortened(call.arguments) if self.options.arguments else {},
            "output": end.output,
            "success": end.success,
            "time_cost": time.perf_counter() - call.begun,
            "conversation_id": conversation,
            "metadata": {"mcp_server": self.options.name, "ending": end.ending, "cwd": self.options.cwd, **more},
        }

    # -- what is known of tools

    async def known_of(self, tools: Sequence[ToolSchema]) -> Mapping[str, str]:
        """What the descriptions of these tools say beside their own: the user's rules for each, and its guidance."""
        if self.options.shadow:
            return {}
        try:
            return await self._asked(lambda guard: self._known_of(tools), _PATIENCE)
        except Exception as error:
            self._tell("nothing is added to the descriptions of tools", error)
            return {}

    async def _known_of(self, tools: Sequence[ToolSchema]) -> Mapping[str, str]:
        from toolmem.engine.system_prompt import guidance_of
        from toolmem.server.proxy.tool_texts import known_texts

        assert self._memory is not None
        app, workspace = self._memory.app, self.options.workspace
        pinned = await (await app.rule_store(workspace)).rules_for_prompt(tools)
        records = await (await app.services.store_named()).records(workspace, [tool.name for tool in tools])
        language: Language = "zh" if app.settings.language == "zh" else ""
        return known_texts(tools, pinned.rules, guidance_of(records), self.options.beside, language)

    # -- its troubles

    async def _asked(self, work: Callable[[CallGuard], Awaitable[T]], limit: float | None = None) -> T:
        """Without a `limit`: of a decision, which has its own, and takes as long as what it looks at is."""
        try:
            async with asyncio.timeout(self._opening_limit):
                guard = await self._guard()
        except TimeoutError:
            self._opening_limit = _NOT_AGAIN
            raise
        if limit is None:
            return await work(guard)
        if time.monotonic() < self._away_until:
            raise TimeoutError("the store did not answer a moment ago")
        try:
            async with asyncio.timeout(limit):
                return await work(guard)
        except TimeoutError:
            self._away_until = time.monotonic() + _AGAIN
            raise

    async def _attempt(self, what_if_not: str, work: Callable[[CallGuard], Awaitable[object]]) -> None:
        try:
            await self._asked(work, _PATIENCE)
        except Exception as error:
            self._tell(what_if_not, error)

    def _tell(self, what: str, error: Exception) -> None:
        """Once a minute."""
        now = time.monotonic()
        if now - self._told.get(what, -_TOLD_EVERY) >= _TOLD_EVERY:
            self._told[what] = now
            log.warning("%s (%s)", what, f"{type(error).__name__}: {error}"[:500].rstrip(": "))
