"""Ops and services of the flow tests: real ops that do something small, on a clock that the test drives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from pydantic import Field

from toolmem.flow.op import Context, Op, OpParams
from toolmem.flow.registry import OpRegistry
from toolmem.testing.clock import ManualClock


class CountWordsOp(Op):
    class Params(OpParams):
        at_least: Annotated[int, Field(ge=1)] = 1
        factor: Annotated[float, Field(ge=0)] = 1.0
        label: str = ""
        weights: list[float] = Field(default_factory=list)
        extra: dict[str, Any] = Field(default_factory=dict)

    reads = ("text",)
    leaves = ("count",)

    async def execute(self, context: Context) -> None:
        words = [word for word in context["text"].split() if len(word) >= self.params.at_least]
        context["count"] = int(len(words) * self.params.factor)


class ReportCountOp(Op):
    reads = ("count",)
    optional = ("unit",)

    async def execute(self, context: Context) -> None:
        context.response.answer = f"{context['count']} {context.get('unit', 'words')}"


class UpperCaseOp(Op):
    reads = ("text",)
    leaves = ("upper",)

    async def execute(self, context: Context) -> None:
        context["upper"] = context["text"].upper()


class FailOp(Op):
    class Params(OpParams):
        message: str = "broken"

    leaves = ("count",)

    async def execute(self, context: Context) -> None:
        raise ValueError(self.params.message)


class SleepOp(Op):
    class Params(OpParams):
        seconds: float = 1.0

    async def execute(self, context: Context) -> None:
        await context.services.clock.sleep(self.params.seconds)
        context.response.metadata.setdefault("slept", []).append(self.params.seconds)


@pytest.fixture
def ops() -> OpRegistry:
    registry = OpRegistry()
    for op_class in (CountWordsOp, ReportCountOp, UpperCaseOp, FailOp, SleepOp):
        registry.register(op_class)
    return registry


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def services(clock: ManualClock) -> Any:
    return SimpleNamespace(clock=clock, settings=None)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next deadline as soon as nothing else is ready: no test ever waits."""

    def __init__(self) -> None:
        super().__init__()
        self._virtual = 0.0

    def time(self) -> float:
        return self._virtual

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._virtual = max(self._virtual, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


class LoopClock:
    """`ports.Clock` on the running loop's own time."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@pytest.fixture
def virtual_time() -> Callable[[Any], Any]:
    """Runs a coroutine function that takes a clock, in virtual time."""

    def run(work: Callable[[LoopClock], Any]) -> Any:
        loop = VirtualLoop()
        try:
            return loop.run_until_complete(work(LoopClock()))
        finally:
            loop.close()

    return run
