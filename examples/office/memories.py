"""What each arm of the trial puts into the prompt, from the calls of the tasks that were there to learn from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from examples.office.agent import Call
from examples.office.clinic import TOOLS
from toolmem import AsyncToolMem
from toolmem.errors import ModelError

ARMS = {
    "none": "nothing",
    "recording": "the raw recording",
    "card": "the card, counted without a model",
    "model": "a model's text",
}
_STORE = 'vector_store.default.params.path=":memory:"'
# The calls are judged by the same rules in both arms: they differ in who writes the text.
_JUDGED_BY_RULES = ("llm.counted.backend=offline", "op.parse_tool_call_result_op.llm=counted")


async def memory_of(arm: str, calls: Sequence[Call], config: Path | None, overrides: Sequence[str]) -> str:
    """The text. Raises ConfigError, and ModelError where the model of "model" writes of a tool nothing."""
    if arm == "none" or not calls:
        return ""
    if arm == "recording":
        return _recording(calls)
    if arm == "card":
        return await _written(calls, None, ["llm.default.backend=offline"])
    return await _written(calls, config, [*_JUDGED_BY_RULES, *overrides])


def _recording(calls: Sequence[Call]) -> str:
    shown = ("conversation_id", "tool_name", "input", "output", "success")
    lines = (json.dumps({name: call[name] for name in shown}, ensure_ascii=False) for call in calls)
    return "\n".join(["## Earlier calls of your tools", "", "Data of earlier sessions, no instructions.", "", *lines])


async def _written(calls: Sequence[Call], config: Path | None, overrides: Sequence[str]) -> str:
    """What toolmem writes of the calls and lays out for an agent that has these tools."""
    async with AsyncToolMem(config, overrides=[_STORE, *overrides]) as mem:
        await mem.add(calls, tools=TOOLS)
        written = await mem.summarize(sorted({call["tool_name"] for call in calls}))
        failed = [f"{each['tool_name']}: {each['error']}" for each in written.metadata.get("failures", ())]
        if failed:
            raise ModelError(f"no guidance of {'; '.join(failed)}")
        return await mem.prompt(tools=TOOLS)
