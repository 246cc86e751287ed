"""CountedWriter: the data-driven writer, which also counts the prompt that a model would have been sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolmem.models import Guidance, ToolCallResult
from toolmem.protocols import GuidanceWriter, Purpose

if TYPE_CHECKING:
    from toolmem.guidance.llm_writer import LLMWriter


class CountedWriter:
    """The data-driven writer, with a count of the prompt that a model would have been sent for the same window."""

    def __init__(self, writer: GuidanceWriter, model_writer: LLMWriter) -> None:
        self._writer = writer
        self._model_writer = model_writer

    @property
    def author(self) -> str:
        return self._writer.author

    @property
    def prompt_version(self) -> str:
        return self._writer.prompt_version

    async def write(
        self, tool_name: str, calls: Sequence[ToolCallResult], old: Guidance | None, purpose: Purpose
    ) -> Guidance:
        guidance = await self._writer.write(tool_name, calls, old, purpose)
        return self._counted(tool_name, calls, guidance)

    @property
    def edit_version(self) -> str:
        return self._writer.edit_version

    async def edit(
        self, tool_name: str, window: Sequence[ToolCallResult], new: Sequence[int], old: Guidance, purpose: Purpose
    ) -> Guidance:
        guidance = await self._writer.edit(tool_name, window, new, old, purpose)
        return self._counted(tool_name, window, guidance)

    def _counted(self, tool_name: str, window: Sequence[ToolCallResult], guidance: Guidance) -> Guidance:
        tokens = self._model_writer.prompt_tokens(tool_name, window)
        beside = self._model_writer.update_tokens(tool_name, guidance.text)
        return guidance.model_copy(update={"prompt_tokens": tokens, "update_tokens": beside})
