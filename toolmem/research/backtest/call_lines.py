"""The lines of calls in tokens: what one pass over them would take, which no policy that reads every call can beat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from toolmem.guidance.llm_writer import MAX_PROMPT_CHARACTERS, usage_prompt, writer_prompts
from toolmem.readers.prompt_templates import SUMMARIZE, Prompts
from toolmem.research.report.single_pass import LineTokens

if TYPE_CHECKING:
    from toolmem.models import Language, ToolCallResult
    from toolmem.protocols import Tokenizer
    from toolmem.stored import StoredMemory

WINDOW = 30


class LineCounter:
    """Counts the lines of calls as the summary prompt shows them, without what stands around them.

    Calls are counted `window` at a time, so that long texts are cut as a summary of that many calls cuts them. Calls
    without a verdict have no line. `prompts`: those of the writer (a user's file among them).
    """

    def __init__(
        self, tokenizer: Tokenizer, *, window: int = WINDOW, prompts: Prompts | None = None, language: Language = ""
    ) -> None:
        self._tokenizer = tokenizer
        self._window = window
        self._template = (prompts or writer_prompts()).template(SUMMARIZE, language)

    def tokens(self, tool_name: str, calls: Sequence[ToolCallResult]) -> int:
        """Tokens of the lines of `calls` (oldest first, of one tool)."""
        judged = [call for call in calls if call.score is not None]
        around = self._count(tool_name, [])
        windows = [judged[start : start + self._window] for start in range(0, len(judged), self._window)]
        return sum(max(self._count(tool_name, each) - around, 0) for each in windows)

    def of_calls(self, calls: Iterable[ToolCallResult]) -> list[LineTokens]:
        """One row per tool: all of these calls are counted."""
        by_tool: dict[str, list[ToolCallResult]] = {}
        for call in calls:
            if call.score is not None:
                by_tool.setdefault(call.tool_name, []).append(call)
        return [LineTokens(tool, len(own), self.tokens(tool, own), len(own)) for tool, own in sorted(by_tool.items())]

    def of_memories(self, memories: Iterable[StoredMemory]) -> list[LineTokens]:
        """One row per tool: the kept calls are counted, and those that ever had a verdict stand beside them."""
        found = []
        for memory in memories:
            judged = [call for call in memory.calls if call.score is not None]
            tokens = self.tokens(memory.record.tool_name, judged)
            ever = max(memory.record.counters.judged, len(judged))
            found.append(LineTokens(memory.record.tool_name, len(judged), tokens, ever))
        return found

    def _count(self, tool_name: str, calls: Sequence[ToolCallResult]) -> int:
        return self._tokenizer.count(usage_prompt(self._template, tool_name, calls, MAX_PROMPT_CHARACTERS))
