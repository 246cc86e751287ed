"""Runs a flow: the request checked, one op after the other or side by side, events, a report, a response."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from toolmem.config.settings import Argument
from toolmem.errors import BudgetReached, Refused, RequestError, RunStopped, note_op
from toolmem.flow.checks import WORKSPACE_KEY, check_flow, check_request
from toolmem.flow.op import Context, Node, Op, Parallel, Sequential
from toolmem.flow.report import Announcer, Event, Listener, OpMeter, OpReport, RunReport
from toolmem.models import FlowResponse
from toolmem.protocols import LedgerEntry, Meter, Services

log = logging.getLogger("toolmem.flow")


class FlowRun(NamedTuple):
    """What a run came to."""

    response: FlowResponse
    context: Context  # of the op that ran last: the request and all that the ops left
    report: RunReport


ALWAYS_RAISED = (Refused, RunStopped, BudgetReached)  # whatever an op's `raise_exception` says


async def run_node(
    node: Node,
    *,
    name: str,
    request: Mapping[str, Any],
    services: Services,
    input_schema: Mapping[str, Argument] | None = None,
    listeners: Iterable[Listener] = (),
    meter: Meter | None = None,
    report: RunReport | None = None,
) -> FlowRun:
    """Run a flow.

    `input_schema` is the flow's in the configuration; None for a flow composed in Python. `meter` gets every booked
    request beside the report. A `report` made by `new_report` and handed in can be read while the flow runs and after
    it raised.

    Raises RequestError before anything runs. What an op raises goes on to the caller; with the op's `raise_exception`
    false it is noted in the response (`success: false`, `metadata.failures`) and the flow goes on, but for Refused,
    RunStopped, BudgetReached and cancellation. When a run is cancelled, or an op of a parallel part raises, the other
    branches are cancelled and awaited first.
    """
    accepted = check_request(request, input_schema, node)
    # A flow of the configuration was checked when that was read.
    if input_schema is None and (problems := check_flow(node, accepted)):
        raise RequestError(f"{name}: " + "; ".join(problems))
    report = report if report is not None else new_report(node, name, accepted, services)
    report.pass_on_to(meter)
    return await _Run(node, name, accepted, services, Announcer(listeners), report).whole()


def new_report(node: Node, name: str, request: Mapping[str, Any], services: Services) -> RunReport:
    """The report of a run that is about to start: every op stands in it as not run."""
    return RunReport(
        flow=name,
        workspace=str(request.get(WORKSPACE_KEY, "")),
        started=services.clock.now(),
        ops=[OpReport(op=op.key) for op in node.ops()],
    )


class _Run:
    def __init__(
        self,
        node: Node,
        name: str,
        request: dict[str, Any],
        services: Services,
        emit: Announcer,
        report: RunReport,
    ) -> None:
        self._node = node
        self._name = name
        self._services = services
        self._emit = emit
        self._report = report
        self._data = request
        self._response = FlowResponse()
        self._failures: list[dict[str, Any]] = []
        self._lost: set[str] = set()  # what failed ops would have left
        self._last: Context | None = None

    async def whole(self) -> FlowRun:
        clock = self._services.clock
        started = clock.monotonic()
        self._emit(Event("flow_started", self._name, total=len(self._report.ops)))
        try:
            await self._visit(self._node, iter(self._report.ops))
            self._report.outcome = "failed" if self._failures else "ok"
        except BaseException as error:
            self._report.outcome = _outcome(error)
            raise
        finally:
            self._report.seconds = clock.monotonic() - started
            self._emit(Event("flow_finished", self._name, message=self._report.outcome, seconds=self._report.seconds))
        if self._failures:
            self._response.success = False
            # Written last: an op may have put a `failures` of its own there.
            self._response.metadata["failures"] = [*self._response.metadata.get("failures", []), *self._failures]
        assert self._last is not None
        return FlowRun(self._response, self._last, self._report)

    async def _visit(self, node: Node, reports: Any) -> None:
        if isinstance(node, Sequential):
            for part in node.parts:
                await self._visit(part, reports)
        elif isinstance(node, Parallel):
            # Each branch takes its own reports, in reading order, before any of them starts.
            taken = [(part, iter([next(reports) for _ in part.ops()])) for part in node.parts]
            await self._side_by_side([self._visit(part, own) for part, own in taken])
        else:
            assert isinstance(node, Op)
            await self._execute(node, next(reports))

    async def _side_by_side(self, branches: list[Any]) -> None:
        tasks = [asyncio.create_task(branch) for branch in branches]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        raised = [error for error in outcomes if isinstance(error, BaseException)]
        # The branches that were cancelled because another one raised do not hide its reason.
        raised.sort(key=lambda error: isinstance(error, asyncio.CancelledError))
        for error in raised[1:]:
            if not isinstance(error, asyncio.CancelledError):
                log.warning("%s: a second branch failed as well: %s", self._name, error)
        if raised:
            raise raised[0]

    async def _execute(self, op: Op, report: OpReport) -> None:
        missing = [key for key in op.reads if key in self._lost and key not in self._data]
        if missing:
            report.notes.append(f"not run: {', '.join(missing)} is missing because an earlier op failed")
            self._lost.update(op.leaves)
            return
        clock = self._services.clock
        started = clock.monotonic()
        context = self._context(op, report, started)
        self._last = context
        report.outcome = "running"
        self._emit(Event("op_started", self._name, op.key))
        try:
            await op.execute(context)
            report.outcome = "ok"
        except ALWAYS_RAISED as error:
            report.outcome = _outcome(error)
            raise
        except Exception as error:
            report.outcome = _outcome(error)
            if op.settings.raise_exception:
                note_op(error, op.key, self._name)
                raise
            log.warning("%s: %s %s", self._name, op.key, report.outcome)
            self._failures.append({"op": op.key, "error": f"{type(error).__name__}: {error}"})
            self._lost.update(op.leaves)
        except BaseException as error:
            report.outcome = _outcome(error)
            raise
        finally:
            report.seconds = clock.monotonic() - started
            self._emit(Event("op_finished", self._name, op.key, message=report.outcome, seconds=report.seconds))

    def _context(self, op: Op, report: OpReport, started: float) -> Context:
        def told(own: OpReport, entry: LedgerEntry) -> None:
            seconds = self._services.clock.monotonic() - started
            self._emit(
                Event("request", self._name, op.key, done=own.usage.requests, message=entry.tool, seconds=seconds)
            )

        return Context(
            flow=self._name,
            op=op,
            services=self._services,
            response=self._response,
            data=self._data,
            meter=OpMeter(self._report, report, told),
            report=report,
            emit=self._emit,
            started=started,
        )


def _outcome(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
        return "cancelled"
    if isinstance(error, Refused):
        return f"refused: {error}"
    if isinstance(error, RunStopped | BudgetReached):
        return f"stopped: {error}"
    return f"failed: {type(error).__name__}: {error}"


class SystemClock:
    """`ports.Clock` on the machine's time. All instances tell the same time, so they are equal."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(SystemClock)
