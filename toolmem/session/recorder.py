"""A decorator for tools: check each call against the rules before it runs, record it after."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, ParamSpec, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from toolmem.errors import CallDenied, ToolMemError, wrong
from toolmem.guard.consent import asked_about
from toolmem.guard.decision import apply_answer, without_consent
from toolmem.memory.toolmem import Workspace, require
from toolmem.models.decisions import Action, Decision
from toolmem.operations.rules import schemas_of
from toolmem.rules.identity import folded_name
from toolmem.rules.turn import Captured
from toolmem.session.functions import ToolFunction, as_text

P = ParamSpec("P")
R = TypeVar("R")
OnDenied = Literal["raise", "return"]

log = logging.getLogger("toolmem.session")
MAX_DECISIONS = 1_000
_INTERRUPTS = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)


class Question(Struct, frozen=True):
    """What the user is asked about a call. `action` and `reason` are those of the decision."""

    tool_name: str
    arguments: Any
    rule: str  # in the user's words; "" if no rule asks
    words: str  # of the user, that may take the rule back: a yes then lifts it
    decision: Decision

    @property
    def action(self) -> Action:
        return self.decision.action

    @property
    def reason(self) -> str:
        return self.decision.reason


OnAsk = Callable[[Question], Any]


class RecordedCall(Struct):
    """A call under way. If it is denied, it must not run, and `reason` is its result."""

    record: dict[str, Any]
    arguments: dict[str, Any]  # with the function's defaults
    begun: float  # time.perf_counter(), seconds
    decision: Decision | None = None

    @property
    def is_denied(self) -> bool:
        return self.decision is not None and self.decision.action in ("ask", "deny")

    @property
    def reason(self) -> str:
        return self.decision.reason if self.decision else ""


class CallRecorder:
    """Records the calls of decorated functions; with a memory, it also checks them before they run.

        recorder = CallRecorder(memory)

        @recorder.tool
        def send_email(to: str, text: str) -> str: ...

    A denied call raises CallDenied, or returns the reason (`on_denied="return"`). A call that needs
    consent runs only if `on_ask(question)` returns True; without `on_ask`, it is denied. An
    `on_ask` that does not ask the user must have the attribute `automatic = True`.
    """

    def __init__(
        self,
        memory: Workspace | None = None,
        *,
        conversation_id: str = "",
        tools: Sequence[Any] = (),
        on_denied: OnDenied = "raise",
        on_ask: OnAsk | None = None,
        is_guests: bool = False,
    ) -> None:
        if on_denied not in ("raise", "return"):
            raise wrong("on_denied", f"expected 'raise' or 'return', got {on_denied!r}")
        require(Workspace | None, "memory", "a ToolMem or a workspace of one", memory)
        require(Iterable, "tools", "a list of names or schemas", tools)
        self.conversation_id = conversation_id or (uuid.uuid4().hex if memory else "")
        self.schemas = {folded_name(each.name): each for each in schemas_of(list(tools))}
        self.decisions: deque[Decision] = deque(maxlen=MAX_DECISIONS)
        self.guard = memory.services.guard(memory.workspace_name) if memory else None
        self._returns_reason = on_denied == "return"
        self.is_guests = is_guests
        self._on_ask = on_ask
        # The yes of an automatic function does not lift a rule: it is not the user's consent.
        self._asks_user = on_ask is not None and not getattr(on_ask, "automatic", False)
        self._answers = Captured()  # what the user's answers lifted
        self._records: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def tool(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function, plain or async: its calls are checked and recorded."""
        if isinstance(function, classmethod | staticmethod):
            return cast("Callable[P, R]", type(function)(self.tool(function.__func__)))
        tool = ToolFunction(function)
        self.schemas.setdefault(folded_name(tool.name), tool.schema)

        def begin(*args: Any, **kwargs: Any) -> RecordedCall:
            return self.begin(tool.name, *tool.arguments(args, kwargs))

        def plain(*args: P.args, **kwargs: P.kwargs) -> Any:
            call = begin(*args, **kwargs)
            if call.is_denied:
                return self._denied(call)
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                self.failed(call, error)
                raise
            if inspect.isawaitable(result):  # a plain function that returns a coroutine
                return self._await_result(call, result)
            self.succeeded(call, result)
            return result

        async def coroutine(*args: P.args, **kwargs: P.kwargs) -> Any:
            call = await asyncio.to_thread(begin, *args, **kwargs)
            if call.is_denied:
                return self._denied(call)
            return await self._await_result(call, cast("Awaitable[Any]", function(*args, **kwargs)))

        wrapped: Callable[..., Any] = coroutine if tool.is_async else plain
        functools.update_wrapper(wrapped, function)
        wrapped.__name__ = tool.name
        return wrapped

    def take(self) -> list[dict[str, Any]]:
        """Remove and return the recorded calls, oldest first, as records for `ToolMem.add`."""
        with self._lock:
            taken, self._records = self._records, []
        extra = {"conversation_id": self.conversation_id} if self.conversation_id else {}
        return [{**record, **extra} for record in taken]

    def take_answers(self) -> Captured:
        """Remove and return the rules that the user's answers to `on_ask` lifted.

        The messages in `told` also say how the user can let a denied call pass.
        """
        with self._lock:
            taken, self._answers = self._answers, Captured()
        return taken

    def give_back(self, records: list[dict[str, Any]]) -> None:
        """Put back records that could not be handled; the next `take` returns them."""
        with self._lock:
            self._records[:0] = records

    def check(
        self, tool_name: str, arguments: Any, *, force: bool | None = None, call_id: str = ""
    ) -> Decision:
        """Decide on a call. `on_ask` answers an `ask`. `force`: see `Guard.before`."""
        assert self.guard is not None
        decision = self.guard.before(
            tool_name,
            arguments,
            conversation_id=self.conversation_id,
            schema=self.schemas.get(folded_name(tool_name)),
            force=force,
            asks_user=self._asks_user and not self.is_guests,
            call_id=call_id,
        )
        if self.is_guests:
            decision = replace(decision, notice="")
        if decision.action == "ask" and self._on_ask is not None:
            try:
                about = asked_about(self.guard.rules, decision)
            except ToolMemError:
                about = ("", "")
            agreed = _ask(self._on_ask, Question(tool_name, arguments, *about, decision))
            try:
                known = decision if self._asks_user else without_consent(decision)
                answer = self.guard.answered(known, agreed)
                with self._lock:
                    self._answers.add(answer)
            except ToolMemError as error:
                log.error("the user's answer is not kept: %s", error)
            decision = apply_answer(decision, agreed)
        elif decision.notice:
            with self._lock:
                self._answers.told.append(decision.notice)
        if decision.sources:
            self.decisions.append(decision)
        return decision

    def report_end(self, decision: Decision, arguments: Any, record: Mapping[str, Any]) -> None:
        """Tell the guard the outcome of a call that was allowed."""
        assert self.guard is not None
        success = record.get("success")
        try:
            with self.guard.store.transaction():  # one for all reads and writes of the guard
                self.guard.after(
                    decision,
                    arguments,
                    output=str(record.get("output", "")),
                    failed=None if success is None else not success,
                    call_id=str(record.get("id", "")),
                )
        except ToolMemError as error:  # the call has run, and its result must reach the agent
            log.error("the guard did not learn how a call ended: %s", error)

    # ------------------------------------------------------------ around a call

    def begin(
        self, tool_name: str, arguments: dict[str, Any], given: dict[str, Any] | None = None
    ) -> RecordedCall:
        """Check a call that the host runs itself. The host then calls `succeeded` or `failed`.

        `given`: the arguments to record, without a function's defaults; None: `arguments`.
        """
        record = {
            "tool_name": tool_name,
            "input": arguments if given is None else given,
            "create_time": datetime.now(UTC).isoformat(),
            "id": uuid.uuid4().hex,
        }
        decision = None
        if self.guard is not None:
            decision = self.check(tool_name, arguments, call_id=str(record["id"]))
        return RecordedCall(record, arguments, time.perf_counter(), decision)

    async def _await_result(self, call: RecordedCall, running: Awaitable[Any]) -> Any:
        try:
            result = await running
        except BaseException as error:
            self.failed(call, error)
            raise
        self.succeeded(call, result)
        return result

    def _denied(self, call: RecordedCall) -> str:
        assert call.decision is not None
        self._add_record({**call.record, "output": call.reason})
        if self._returns_reason:
            return call.reason
        raise CallDenied(call.decision)

    def succeeded(self, call: RecordedCall, result: Any) -> None:
        """Record the result of a call."""
        given = "" if result is None else result
        self._finish(call, given if isinstance(given, str) else as_text(given), success=True)

    def failed(self, call: RecordedCall, error: BaseException) -> None:
        """Record what a call raised. The outcome of an interrupted call is unknown."""
        is_interrupt = isinstance(error, _INTERRUPTS)
        reason: object = "the call was interrupted" if is_interrupt else error
        if isinstance(error, CallDenied):  # of another tool, which this function called
            reason = f"a call inside it was denied ({error.decision.reason})"
        output = f"{type(error).__name__}: {reason}"
        self._finish(call, output, success=None if is_interrupt else False)

    def _finish(self, call: RecordedCall, output: str, *, success: bool | None) -> None:
        taken = time.perf_counter() - call.begun
        record = {**call.record, "output": output, "success": success, "time_cost": taken}
        self._add_record(record)
        if call.decision is not None:
            self.report_end(call.decision, call.arguments, record)

    def _add_record(self, record: dict[str, Any]) -> None:
        with self._lock:
            self._records.append(record)


def _ask(on_ask: OnAsk, question: Question) -> bool:
    """Ask the user about a call. Whatever `on_ask` raises is no consent."""
    try:
        return on_ask(question) is True
    except Exception:
        log.exception("on_ask raised: the call is denied")
        return False
