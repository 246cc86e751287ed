"""A decorator for the tools of an agent that runs them itself: holds each call against the rules, and records it."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, ParamSpec, TypeVar, cast, get_args

from toolmem.app import AsyncToolMem, ToolMem, ToolMemApp
from toolmem.errors import CallDenied, RequestError
from toolmem.guard.decision import GuardDecision
from toolmem.models import ToolSchema
from toolmem.session.consent import Consent, OnAsk
from toolmem.session.guarded_calls import CallChecks, guarded_calls
from toolmem.session.tool_functions import ToolFunction, as_text

P = ParamSpec("P")
R = TypeVar("R")

OnDenied = Literal["raise", "return"]
_KEPT = 1000  # decisions
_INTERRUPTS = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)


@dataclass(frozen=True, slots=True)
class DecidedCall:
    """A call that something stood against, and what was decided about it."""

    tool_name: str
    input: dict[str, Any]
    decision: GuardDecision
    call_id: str  # of its record


@dataclass(slots=True)
class _Call:
    """A call under way."""

    record: dict[str, Any]
    arguments: dict[str, Any]  # all that the function works with
    begun: float
    decision: GuardDecision | None = None

    @property
    def denied(self) -> bool:
        return self.decision is not None and self.decision.stops


class CallRecorder:
    """Keeps what decorated functions were called with and what came of it, until `take` hands it over.

        recorder = CallRecorder()

        @recorder.tool
        def send_email(to: str, text: str) -> str: ...

        send_email(to="bob@example.com", text="hi")
        await session.after_turn(calls=recorder.take(), user_message="write to Bob")

    A call that raises is recorded as failed, with the error as its output, and the error goes on to the caller.

    With a memory, `CallRecorder(mem)`, each call is held against the user's rules before it runs, and against what
    failed before in this conversation. One that is denied is not run: it raises CallDenied, or answers the reason
    (`on_denied="return"`), and is recorded as a call that did not run. `on_ask(decision) -> bool`, plain or async, asks
    the user about a call that a rule lets run only with their consent; without it such a call is not run, and its
    reason says to ask them. Advice stands in `decisions`.

    `conversation_id`: None makes one. `workspace_id`: where the memory's own is not meant; `rules_workspace_id`: rules
    may be private where the rest is shared. `tools`: their schemas, where they are known. Without a memory calls are
    recorded and nothing else.
    """

    def __init__(
        self,
        memory: ToolMem | AsyncToolMem | ToolMemApp | None = None,
        *,
        conversation_id: str | None = None,
        workspace_id: str | None = None,
        rules_workspace_id: str | None = None,
        tools: Sequence[str | ToolSchema | Mapping[str, Any]] = (),
        on_denied: OnDenied = "raise",
        on_ask: OnAsk | None = None,
    ) -> None:
        self.conversation_id = conversation_id or (uuid.uuid4().hex if memory is not None else "")
        checks = None
        if memory is not None:
            checks = guarded_calls(memory, self.conversation_id, workspace_id, rules_workspace_id, tools)
        self._start(checks, on_denied, on_ask)

    @classmethod
    def _of(cls, checks: CallChecks, on_denied: OnDenied = "raise", on_ask: OnAsk | None = None) -> CallRecorder:
        """One whose calls are held against `checks`, of a session that hears its user."""
        recorder = cls.__new__(cls)
        recorder.conversation_id = ""
        recorder._start(checks, on_denied, on_ask, hears_user=True)
        return recorder

    def _start(
        self, checks: CallChecks | None, on_denied: OnDenied, on_ask: OnAsk | None, *, hears_user: bool = False
    ) -> None:
        if on_denied not in get_args(OnDenied):
            raise RequestError(f"on_denied: expected 'raise' or 'return', got {on_denied!r}", field="on_denied")
        self.decisions: deque[DecidedCall] = deque(maxlen=_KEPT)
        self._checks = checks
        self._returns = on_denied == "return"
        self._consent = Consent(on_ask, hears_user)
        self._calls: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def tool(self, function: Callable[P, R]) -> Callable[P, R]:
        """Record the calls of `function`, a plain or an async one, under its name."""
        if isinstance(function, classmethod | staticmethod):
            return cast("Callable[P, R]", type(function)(self.tool(function.__func__)))
        tool = ToolFunction.of(function)
        recorded = self._async(tool, function) if tool.runs_async else self._plain(tool, function)
        functools.update_wrapper(recorded, function)
        recorded.__name__ = tool.name
        return cast("Callable[P, R]", recorded)

    def take(self, conversation_id: str | None = None) -> list[dict[str, Any]]:
        """The calls recorded since the last time, oldest first, as records of `add_tool_call_result`.

        `conversation_id`: the conversation that they were made in, where it is not the recorder's; an AgentSession
        gives its own to calls that name none.
        """
        with self._lock:
            taken, self._calls = self._calls, []
        told = conversation_id or self.conversation_id
        return [{**call, "conversation_id": told} for call in taken] if told else taken

    def _give_back(self, records: list[dict[str, Any]]) -> None:
        with self._lock:
            self._calls[:0] = records

    # -- around a call

    def _async(self, tool: ToolFunction, function: Callable[..., Any]) -> Callable[..., Any]:
        async def recorded_async(*args: Any, **kwargs: Any) -> Any:
            call = self._begin(tool, args, kwargs)
            if self._checks is not None:
                decision = await self._checks.before(tool.name, call.arguments)
                self._decide(call, await self._consent.settled(decision))
            if call.denied:
                await self._learn(call, self._not_run(call))
                return self._told(call)
            return await self._awaited(call, function, args, kwargs)

        return recorded_async

    async def _awaited(
        self, call: _Call, function: Callable[..., Awaitable[Any]], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        try:
            result = await function(*args, **kwargs)
        except BaseException as error:
            await self._learn(call, self._failed(call, error), error)
            raise
        await self._learn(call, self._succeeded(call, result))
        return result

    def _plain(self, tool: ToolFunction, function: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            call = self._begin(tool, args, kwargs)
            if self._checks is not None:
                decision = self._checks.before_now(tool.name, call.arguments)
                self._decide(call, self._consent.settled_now(decision))
            if call.denied:
                self._learn_now(call, self._not_run(call))
                return self._told(call)
            return self._called(call, function, args, kwargs)

        return recorded

    def _called(self, call: _Call, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            self._learn_now(call, self._failed(call, error), error)
            raise
        if inspect.isawaitable(result):  # a plain function that hands on what an async one gave it
            return self._awaited(call, _handed_on(result), (), {})
        self._learn_now(call, self._succeeded(call, result))
        return result

    async def _learn(self, call: _Call, record: dict[str, Any], error: BaseException | None = None) -> None:
        """An interrupted call says nothing about its input."""
        if self._checks is not None and call.decision is not None and not isinstance(error, _INTERRUPTS):
            await self._checks.after(call.decision, record)

    def _learn_now(self, call: _Call, record: dict[str, Any], error: BaseException | None = None) -> None:
        if self._checks is not None and call.decision is not None and not isinstance(error, _INTERRUPTS):
            self._checks.after_now(call.decision, record)

    # -- what is kept

    def _begin(self, tool: ToolFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        record = {"tool_name": tool.name, "input": tool.given(args, kwargs), "create_time": _now()}
        if self._checks is None:
            return _Call(record, {}, time.perf_counter())
        return _Call({**record, "id": uuid.uuid4().hex}, tool.whole(args, kwargs), time.perf_counter())

    def _decide(self, call: _Call, decision: GuardDecision) -> None:
        call.decision = decision
        record = call.record
        self._note(DecidedCall(record["tool_name"], record["input"], decision, record["id"]))
        call.begun = time.perf_counter()

    def _note(self, decided: DecidedCall) -> None:
        """Keep a decision, unless it is a plain allow."""
        if decided.decision.sources or decided.decision.stops:
            self.decisions.append(decided)

    def _not_run(self, call: _Call) -> dict[str, Any]:
        return self._keep({**call.record, "output": call.decision.reason if call.decision else ""})

    def _told(self, call: _Call) -> str:
        """The reason as the tool's result. Raises CallDenied where that is wanted."""
        assert call.decision is not None
        if self._returns:
            return call.decision.reason
        raise CallDenied(call.decision)

    def _succeeded(self, call: _Call, result: Any) -> dict[str, Any]:
        output = result if isinstance(result, str) else "" if result is None else as_text(result)
        return self._ended(call, output, success=True)

    def _failed(self, call: _Call, error: BaseException) -> dict[str, Any]:
        told: object = "the call was interrupted" if isinstance(error, _INTERRUPTS) else error
        if isinstance(error, CallDenied):  # this function ran; one that it called did not
            told = f"a call inside it was denied ({error.decision.reason})"
        return self._ended(call, f"{type(error).__name__}: {told}", success=False)

    def _ended(self, call: _Call, output: str, *, success: bool) -> dict[str, Any]:
        taken = time.perf_counter() - call.begun
        return self._keep({**call.record, "output": output, "success": success, "time_cost": taken})

    def _keep(self, record: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self._calls.append(record)
        return record


def _handed_on(result: Awaitable[Any]) -> Callable[[], Awaitable[Any]]:
    return lambda: result


def _now() -> str:
    return datetime.now(UTC).isoformat()
