"""A decorator that records the calls of plain Python functions, for agents that run their tools themselves."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


class CallRecorder:
    """Keeps what decorated functions were called with and what came of it, until `take` hands it over.

        recorder = CallRecorder()

        @recorder.tool
        def send_email(to: str, text: str) -> str: ...

        send_email(to="bob@example.com", text="hi")
        await session.after_turn(calls=recorder.take(), user_message="write to Bob")

    A call that raises is recorded as failed, with the error as its output, and the error goes on to the caller.
    """

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []

    def tool(self, function: Callable[P, R]) -> Callable[P, R]:
        """Record the calls of `function`, a plain or an async one, under its name."""
        signature = inspect.signature(function)

        def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
            try:
                given = dict(signature.bind(*args, **kwargs).arguments)
            except TypeError:  # a wrong call is a call as well: the function itself will say so
                given = {**{str(position): value for position, value in enumerate(args)}, **kwargs}
            return {
                "tool_name": function.__name__,
                "input": _as_json(given),
                "create_time": datetime.now(UTC).isoformat(),
            }

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def recorded_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                call, begun = begin(args, kwargs), time.perf_counter()
                try:
                    result = await function(*args, **kwargs)
                except BaseException as error:
                    self._failed(call, begun, error)
                    raise
                self._succeeded(call, begun, result)
                return result

            return cast("Callable[P, R]", recorded_async)

        @functools.wraps(function)
        def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
            call, begun = begin(args, kwargs), time.perf_counter()
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                self._failed(call, begun, error)
                raise
            self._succeeded(call, begun, result)
            return result

        return recorded

    def take(self, conversation_id: str | None = None) -> list[dict[str, Any]]:
        """The calls recorded since the last time, oldest first, as records of `add_tool_call_result`.

        `conversation_id`: the conversation that they were made in; an AgentSession gives its own.
        """
        taken, self._calls = self._calls, []
        return taken if conversation_id is None else [{**call, "conversation_id": conversation_id} for call in taken]

    def _succeeded(self, call: dict[str, Any], begun: float, result: Any) -> None:
        output = result if isinstance(result, str) else "" if result is None else _dumped(result)
        self._calls.append({**call, "output": output, "success": True, "time_cost": time.perf_counter() - begun})

    def _failed(self, call: dict[str, Any], begun: float, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | GeneratorExit):
            output = f"{type(error).__name__}: the call was interrupted"
        else:
            output = f"{type(error).__name__}: {error}"
        self._calls.append({**call, "output": output, "success": False, "time_cost": time.perf_counter() - begun})


def _as_json(value: Any) -> Any:
    """The value as JSON has it; what JSON has no word for becomes its text."""
    return json.loads(_dumped(value))


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(str(value), ensure_ascii=False)
