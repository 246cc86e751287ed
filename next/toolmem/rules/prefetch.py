"""The rules of a session's prompt, read before it begins.

A session without its critical rules is unsafe: a store that does not answer in time raises
StoreUnavailable, unless the caller asks for an empty section (`on_error="empty"`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any, Literal

from toolmem.errors import StoreError, StoreUnavailable
from toolmem.rules.prompt import (
    Language,
    PinnedRules,
    PromptCaps,
    ToolMemoryRulesSection,
    choose,
)
from toolmem.rules.store import ToolMemoryStore

log = logging.getLogger("toolmem.rules")
TIMEOUT = 5.0  # seconds


def prefetch_tool_memory_rules_blocking(
    rules: ToolMemoryStore,
    tools: Sequence[str] = (),
    *,
    language: Language = "",
    caps: PromptCaps | None = None,
    recalls: bool = False,
    timeout: float = TIMEOUT,
    on_error: Literal["raise", "empty"] = "raise",
) -> ToolMemoryRulesSection:
    """The section for these tools; none: for all. Raises StoreError."""
    done: list[PinnedRules] = []
    failed: list[BaseException] = []

    def read() -> None:
        try:
            done.append(choose(rules.all_rules(), tools, caps))
        except BaseException as error:  # handed to the caller below
            failed.append(error)

    reader = threading.Thread(target=read, daemon=True, name="toolmem-prefetch")
    reader.start()
    reader.join(timeout)
    if not done and not failed:
        failed.append(StoreUnavailable(f"the store gave no rules within {timeout:g} s"))
    if failed:
        if on_error == "raise" or not isinstance(failed[0], StoreError):
            raise failed[0]
        log.warning("the session begins without rules: %s", failed[0])
    return ToolMemoryRulesSection(done[0] if done else PinnedRules(), language, recalls=recalls)


async def prefetch_tool_memory_rules(
    rules: ToolMemoryStore, tools: Sequence[str] = (), **options: Any
) -> ToolMemoryRulesSection:
    """The same, awaited."""
    import asyncio

    return await asyncio.to_thread(prefetch_tool_memory_rules_blocking, rules, tools, **options)
