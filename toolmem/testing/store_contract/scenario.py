"""How a promise is tested: a store on fresh data, an event loop of its own, and small builders."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import numpy as np
import pytest
from numpy.typing import NDArray

from toolmem.models import Guidance, JudgeIdentity, ToolCallResult, Verdict
from toolmem.protocols import Clock, EmbedderIdentity, MemoryStore
from toolmem.stored import Document, LogLimits

EMBEDDER = EmbedderIdentity("test", "axes", 4)
JUDGE = JudgeIdentity(backend="offline", model="rule_based_check", prompt_version="0123456789ab")
OTHER_JUDGE = JudgeIdentity(backend="dashscope", model="qwen/plus@1", prompt_version="ba9876543210")
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

W = "workspace"
TOOL = "search"


class StoreFactory(Protocol):
    """Makes stores on one and the same data; picklable where other processes can reach it."""

    def __call__(
        self,
        *,
        embedder: EmbedderIdentity | None = EMBEDDER,
        clock: Clock | None = None,
        log: LogLimits | None = None,
    ) -> MemoryStore:
        """A store that is not open yet. `clock`, `log`: None for those of the backend's choice."""
        ...


class Scenario:
    """Base of the parts of the contract: where the store comes from."""

    @pytest.fixture
    def fresh_store(self) -> Callable[[], StoreFactory]:
        """Each call gives a factory on new, empty data. A backend's suite overrides this."""
        raise NotImplementedError("provide the fixture `fresh_store`")

    @pytest.fixture
    def store_factory(self, fresh_store: Callable[[], StoreFactory]) -> StoreFactory:
        return fresh_store()


Test = Callable[..., Coroutine[Any, Any, None]]


def driven(test: Test) -> Callable[..., None]:
    """Run an async test `(self, store)` or `(self, store, store_factory)` in a loop of its own, on an open store."""
    wants_factory = "store_factory" in inspect.signature(test).parameters

    @functools.wraps(test)
    def run(self: Scenario, store_factory: StoreFactory) -> None:
        async def scenario(store: MemoryStore) -> None:
            await (test(self, store, store_factory) if wants_factory else test(self, store))

        drive(store_factory(), scenario)

    del run.__dict__["__wrapped__"]  # pytest would ask for the inner function's arguments
    return run


def drive(store: MemoryStore, scenario: Callable[[MemoryStore], Awaitable[None]]) -> None:
    async def whole() -> None:
        await store.open()
        try:
            await scenario(store)
        finally:
            await store.close()

    asyncio.run(whole())


# -- builders


def call(number: int = 0, tool: str = TOOL, *, judged: bool = True, **fields: Any) -> ToolCallResult:
    """One call; its `number` shows in input and time."""
    made = ToolCallResult.model_validate(
        {
            "tool_name": tool,
            "input": {"query": f"question {number}"},
            "output": f"answer {number}",
            "success": True,
            "create_time": START + timedelta(seconds=number),
            "time_cost": 0.25,
            "token_cost": 7,
            **fields,
        }
    )
    return made.judged(verdict()) if judged else made


def calls(numbers: Sequence[int] | range, tool: str = TOOL, **fields: Any) -> list[ToolCallResult]:
    return [call(number, tool, **fields) for number in numbers]


def verdict(score: float = 1.0, judge: JudgeIdentity = JUDGE, **fields: Any) -> Verdict:
    return Verdict.model_validate(
        {
            "summary": "asked",
            "evaluation": "answered",
            "score": score,
            "execution_failed": False,
            "judge": judge,
            **fields,
        }
    )


def guidance(text: str = "Ask precisely.", covered: Sequence[int] = (), **fields: Any) -> Guidance:
    return Guidance(text=text, covered=list(covered), author="offline/data_driven", prompt_version="1", **fields)


def document(text: str = "Ask precisely.", *numbers: float) -> Document:
    return Document(text, vector(*numbers) if numbers else None)


def vector(*numbers: float) -> NDArray[np.float32]:
    """Four numbers, scaled to unit length (all zero: as they are)."""
    array = np.array(numbers, dtype=np.float32)
    length = float(np.linalg.norm(array))
    return array / np.float32(length) if length else array


def numbers_of(kept: Sequence[ToolCallResult]) -> list[int]:
    """The numbers that `call` gave."""
    return [int(each.output.removeprefix("answer ")) for each in kept]


async def append(store: MemoryStore, *numbers: int, keep: int = 100, tool: str = TOOL, workspace: str = W) -> None:
    appended = await store.append_calls(workspace, tool, calls(numbers, tool), keep)
    assert appended.stored == len(numbers)


async def kept_calls(store: MemoryStore, tool: str = TOOL, workspace: str = W) -> list[ToolCallResult]:
    """All kept calls of one tool, oldest first."""
    (memory,) = await store.memories(workspace, [tool], calls=True)
    return list(memory.calls)
