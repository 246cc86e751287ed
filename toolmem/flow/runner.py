"""Run a flow: one op after the other or in parallel, with events, a report and a response."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any

import msgspec
from msgspec import Struct, field

from toolmem.config.names import hint, lower_first
from toolmem.config.sections import Argument
from toolmem.errors import RequestError, RunCancelled, wrong
from toolmem.flow.checks import OLD_WORKSPACE_KEY, WORKSPACE_KEY, check_flow
from toolmem.flow.op import (
    Cancellation,
    Context,
    Node,
    Op,
    Parallel,
    Sequential,
    known_ops,
    outer_cancellation,
)
from toolmem.flow.report import Event, Listener, OpReport, RunReport
from toolmem.flow.services import Services
from toolmem.formats.records import plain_records
from toolmem.models.tools import FlowResponse

log = logging.getLogger("toolmem.flow")

WORKSPACE_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

# Names of ReMe and OpenHuman for fields of a request, and toolmem's names. Both are accepted.
OLD_NAMES = {OLD_WORKSPACE_KEY: WORKSPACE_KEY, "session_id": "conversation_id"}

_TYPES: Mapping[str, Any] = {
    "string": str | list[str],  # ReMe declares `tool_names: string` and sends lists as well
    "array": list[Any],
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict[str, Any],
}
_RECORDS = "tool_call_results"
_ALWAYS_RAISED = (RequestError, RunCancelled)  # whatever `raise_exception` says


def with_new_names(request: Mapping[str, Any]) -> dict[str, Any]:
    """Rename keys such as `workspace_id` to `workspace`. Raises RequestError if both are given."""
    renamed = {key: value for key, value in request.items() if key not in OLD_NAMES}
    for old, new in OLD_NAMES.items():
        if request.get(old) is None:
            continue
        if renamed.get(new) is not None:
            raise RequestError(f"{old}: `{new}` says the same; give one of them", old)
        renamed[new] = request[old]
    return renamed


class FlowRun(Struct):
    """The outcome of a run."""

    response: FlowResponse
    report: RunReport


def run_flow(
    node: Node,
    request: Mapping[str, Any],
    services: Services,
    *,
    name: str,
    arguments: Mapping[str, Argument] | None,
    listeners: Iterable[Listener],
) -> FlowRun:
    """Run a flow. If it was composed in Python, `name` is "" and `arguments` None.

    Raises RequestError if the request is wrong, before any op runs. Raises what an op raises; if
    the op's `raise_exception` is false, the response names the error, and the flow goes on.
    """
    ops = list(node.ops())
    data = _checked_request(request, arguments, ops)
    if arguments is None:
        problems = check_flow(node, data, known_ops())
        if problems:
            raise RequestError("; ".join(problems))
    reports = [OpReport(op.key) for op in ops]
    report = RunReport(name, data[WORKSPACE_KEY], services.clock.now(), reports)
    cancellation = outer_cancellation.get() or Cancellation()
    return _Run(services, data, report, tuple(listeners), cancellation).run(node)


class _Run(Struct):
    _services: Services
    _data: dict[str, Any]
    _report: RunReport
    _listeners: tuple[Listener, ...]
    _cancellation: Cancellation
    _response: FlowResponse = field(default_factory=FlowResponse)
    _failures: list[dict[str, str]] = []
    _missing_keys: set[str] = set()  # that failed ops would have left

    def run(self, node: Node) -> FlowRun:
        clock = self._services.clock
        report = self._report
        started = clock.monotonic()
        self._emit(Event("flow_started", total=len(report.ops)))
        try:
            self._visit(node, iter(report.ops))
            report.outcome = "failed" if self._failures else "ok"
        except BaseException as error:
            report.outcome = _outcome(error)
            raise
        finally:
            report.seconds = clock.monotonic() - started
            self._emit(Event("flow_finished", message=report.outcome, seconds=report.seconds))
        if self._failures:
            failures = self._response.metadata.get("failures", [])
            self._response.success = False
            self._response.metadata["failures"] = [*failures, *self._failures]
        return FlowRun(self._response, report)

    def _emit(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)

    def _visit(self, node: Node, reports: Iterator[OpReport]) -> None:
        if isinstance(node, Sequential):
            for part in node.parts:
                self._visit(part, reports)
        elif isinstance(node, Parallel):
            self._run_parallel(node, reports)
        else:
            assert isinstance(node, Op)
            self._run_op(node, next(reports))

    def _run_parallel(self, node: Parallel, reports: Iterator[OpReport]) -> None:
        """Run each branch in a thread. An error in one, or Ctrl-C, cancels the others."""
        # `reports` are in reading order, so each branch gets its own before any runs.
        work = [(part, iter([next(reports) for _ in part.ops()])) for part in node.parts]
        with ThreadPoolExecutor(len(work), "toolmem branch") as threads:
            branches: list[Future[None]] = [
                threads.submit(self._visit, part, own) for part, own in work
            ]
            try:
                wait(branches, return_when=FIRST_EXCEPTION)
            except BaseException:
                self._cancellation.set()
                raise
            if any(branch.done() and branch.exception() for branch in branches):
                self._cancellation.set()
        errors = [error for branch in branches if (error := branch.exception())]
        errors.sort(key=lambda error: isinstance(error, RunCancelled))  # the cause comes first
        for error in errors[1:]:
            if not isinstance(error, RunCancelled):
                log.warning("%s: a second branch failed too: %s", self._report.flow, error)
        if errors:
            raise errors[0]

    def _run_op(self, op: Op, report: OpReport) -> None:
        missing = [key for key in op.reads if key in self._missing_keys and key not in self._data]
        if missing:
            report.notes.append(f"an earlier op failed and did not leave {', '.join(missing)}")
            self._missing_keys.update(op.leaves)
            return
        if _RECORDS in {*op.reads, *op.optional} & self._data.keys() and not op.takes_results:
            self._data[_RECORDS] = plain_records(self._data[_RECORDS])
        clock = self._services.clock
        started = clock.monotonic()
        context = Context(
            op,
            self._services,
            self._response,
            self._data,
            report,
            self._emit,
            self._cancellation,
            self._report.flow,
        )
        report.outcome = "running"
        self._emit(Event("op_started", op.key))
        try:
            _call(op, context)
            report.outcome = "ok"
        except BaseException as error:
            report.outcome = _outcome(error)
            is_failure = isinstance(error, Exception) and not isinstance(error, _ALWAYS_RAISED)
            if op.settings.raise_exception or not is_failure:
                raise
            log.warning("%s: %s %s", self._report.flow, op.key, report.outcome)
            self._failures.append({"op": op.key, "error": f"{type(error).__name__}: {error}"})
            self._missing_keys.update(op.leaves)
        finally:
            report.seconds = clock.monotonic() - started
            self._emit(Event("op_finished", op.key, message=report.outcome, seconds=report.seconds))


def _call(op: Op, context: Context) -> None:
    """Run an op. A coroutine gets its own event loop, in a thread where a loop is running."""
    run = op.run
    if not inspect.iscoroutinefunction(run):
        run(context)
        return
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(run(context))
    else:
        with ThreadPoolExecutor(1, "toolmem op") as thread:
            thread.submit(asyncio.run, run(context)).result()


def _outcome(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt | RunCancelled):
        return "cancelled"
    return f"failed: {type(error).__name__}: {error}"


def _checked_request(
    request: Mapping[str, Any], schema: Mapping[str, Argument] | None, ops: Iterable[Op]
) -> dict[str, Any]:
    """The request without its None values, old names replaced.

    Raises RequestError with the `field` at fault. `schema`: the flow's `input_schema`; None allows
    every key that the ops read.
    """
    read = {key for op in ops for key in (*op.reads, *op.optional)}
    known = set(read if schema is None else schema)
    request = with_new_names(request)
    for old, new in OLD_NAMES.items():
        if old in known and new in request:  # a flow or an op was written for the old name
            known.add(new)
            request[old] = request[new]
    for key in request:
        if key not in known and key != WORKSPACE_KEY:
            raise RequestError(f"{key}: unknown ({hint(str(key), known)})", field=str(key))
    given = {key: value for key, value in request.items() if value is not None}
    for key, argument in (schema or {}).items():
        if key in given:
            _check_argument(key, argument, given[key])
        elif argument.required:
            raise RequestError(f"{key}: missing (expected {argument.type})", field=key)
    check_workspace(given.get(WORKSPACE_KEY))
    return {OLD_WORKSPACE_KEY: given[WORKSPACE_KEY], **given}  # for ops that read the old name


def check_workspace(workspace: Any) -> None:
    """Raises RequestError if this is not the name of a workspace."""
    if workspace is None:
        raise RequestError(f"{WORKSPACE_KEY}: missing", field=WORKSPACE_KEY)
    if not (isinstance(workspace, str) and WORKSPACE_PATTERN.fullmatch(workspace)):
        form = "up to 128 letters, digits, '.', '_' or '-', the first a letter or digit"
        raise wrong(WORKSPACE_KEY, f"expected {form}; got {workspace!r}")


def _check_argument(key: str, argument: Argument, value: Any) -> None:
    try:
        msgspec.convert(value, _TYPES[argument.type])
    except msgspec.ValidationError as error:
        raise RequestError(f"{key}: {lower_first(str(error))}", field=key) from None
    if argument.enum is not None and value not in argument.enum:
        raise wrong(key, f"expected one of {', '.join(map(str, argument.enum))}; got {value!r}")
