"""Fetches the block of rules for a session that starts; a store that fails stops the session, unless told otherwise."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Literal

from toolmem.errors import StoreError, StoreUnavailable
from toolmem.late import late_logger
from toolmem.light_models import Language, ToolSchema
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.section import ToolMemoryRulesSection

logger = late_logger("toolmem.rules")

TIMEOUT = 5.0  # seconds
OnError = Literal["raise", "empty"]
PromptTools = Iterable[str | ToolSchema | Mapping[str, Any]]
_GRACE = 1.0  # seconds that a blocking caller waits on for a store that holds up its whole loop


async def prefetch_tool_memory_rules(
    rules: RuleStore,
    tools: PromptTools | None = None,
    *,
    language: Language = "",
    timeout: float = TIMEOUT,
    on_error: OnError = "raise",
) -> ToolMemoryRulesSection:
    """The block for these tools (None or none: for all), to be kept for the session.

    A store that fails, or does not answer within `timeout` seconds, raises StoreError. `on_error="empty"` answers an
    empty block instead, and logs it: the caller's decision to run without the user's rules.
    """
    try:
        async with asyncio.timeout(timeout):
            return ToolMemoryRulesSection(await rules.rules_for_prompt(tools), language)
    except TimeoutError:
        return _failed(StoreUnavailable(_no_answer(timeout)), on_error)
    except StoreError as error:
        return _failed(error, on_error)


def prefetch_tool_memory_rules_blocking(
    rules: RuleStore,
    tools: PromptTools | None = None,
    *,
    language: Language = "",
    timeout: float = TIMEOUT,
    on_error: OnError = "raise",
    call: Callable[[Coroutine[Any, Any, ToolMemoryRulesSection]], ToolMemoryRulesSection] | None = None,
) -> ToolMemoryRulesSection:
    """The same for synchronous hosts, also inside a running event loop.

    It runs on a loop of its own in a thread of its own, which suits stores that any loop may use; `call` runs it where
    the store lives instead (`app.call` of a ToolMemApp).
    """
    work = prefetch_tool_memory_rules(rules, tools, language=language, timeout=timeout, on_error=on_error)
    if call is not None:
        return call(work)
    done: Future[ToolMemoryRulesSection] = Future()
    threading.Thread(target=_run, args=(work, done), name="toolmem prefetch", daemon=True).start()
    try:
        return done.result(timeout + _GRACE)
    except FutureTimeout:
        return _failed(StoreUnavailable(_no_answer(timeout)), on_error)


def _run(work: Coroutine[Any, Any, ToolMemoryRulesSection], done: Future[ToolMemoryRulesSection]) -> None:
    try:
        done.set_result(asyncio.run(work))
    except BaseException as error:
        done.set_exception(error)


def _no_answer(timeout: float) -> str:
    return f"the store did not answer within {timeout:g} s; without the user's rules no session should start"


def _failed(error: StoreError, on_error: OnError) -> ToolMemoryRulesSection:
    if on_error == "raise":
        raise error
    logger.error("the session starts without its tool rules: %s", error)
    return ToolMemoryRulesSection()
