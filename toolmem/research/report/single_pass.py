"""The single-pass bound: tokens that reading each call once would take, beside those that the summaries took.

No policy that reads every call can take fewer input tokens than the lines of the calls have. What a policy takes on top
is the price of reading again, of the instructions around the lines, and of the old guidance where that is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolmem.guidance.llm_writer import MAX_PROMPT_CHARACTERS, usage_prompt, writer_prompts
from toolmem.readers.prompt_templates import SUMMARIZE, Prompts
from toolmem.research.report.charges import SUMMARIZING, CostReport, cost_frame
from toolmem.research.report.recorded import frame
from toolmem.research.report.summary import PrintedTable, frame_table

if TYPE_CHECKING:
    import pandas as pd

    from toolmem.models import Language, ToolCallResult
    from toolmem.protocols import Tokenizer
    from toolmem.stored import StoredMemory


WINDOW = 30  # calls that a summary reads, as the configuration that comes along says


@dataclass(frozen=True, slots=True)
class LineTokens:
    """The lines of one tool's calls, as a summary prompt shows them, counted by the tokenizer."""

    tool: str
    counted: int  # calls whose lines were counted: those that are kept
    tokens: int  # of these lines
    calls: int  # calls that ever arrived

    @property
    def bound(self) -> int:
        """Tokens of all lines; those of calls that are no longer kept are taken to be as long as the kept ones."""
        return round(self.tokens * self.calls / self.counted) if self.counted else 0

    @property
    def estimated(self) -> bool:
        return self.counted < self.calls


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


def single_pass(report: CostReport, lines: Iterable[LineTokens]) -> pd.DataFrame:
    """One row per tool, by name. `report`: of all requests since the first call, or the ratio means nothing.

    Columns: tool, calls, bound_tokens, estimated (calls are no longer kept), summaries (requests), input_tokens, ratio
    (input over bound; NaN where there is no bound).
    """
    names = ("tool", "calls", "bound_tokens", "estimated")
    rows = [dict(zip(names, (each.tool, each.calls, each.bound, each.estimated), strict=True)) for each in lines]
    costs = cost_frame(report, ("tool", "kind"))
    spent = costs[costs["kind"] == SUMMARIZING].groupby("tool")[["requests", "input_tokens"]].sum()
    found = frame(rows, names).sort_values("tool", ignore_index=True).join(spent, on="tool")
    whole = found.fillna({"requests": 0, "input_tokens": 0}).astype(dict.fromkeys(_COUNTS, "int64"))
    ratio = whole["input_tokens"] / whole["bound_tokens"].where(whole["bound_tokens"] > 0)
    return whole.rename(columns={"requests": "summaries"}).assign(ratio=ratio)


_COUNTS = ("calls", "bound_tokens", "requests", "input_tokens")


def single_pass_table(rows: pd.DataFrame) -> PrintedTable:
    """What `single_pass` answers, as the command prints it."""
    names = {"input_tokens": "input of summaries", "bound_tokens": "single pass", "ratio": "times the single pass"}
    notes = ["Single pass: tokens of the calls' lines, each read once, as the tokenizer counts them."]
    if rows["estimated"].any():
        notes.append(
            "An estimate where calls are no longer kept: their lines are taken to be as long as the kept ones."
        )
    columns = ["tool", "calls", "summaries", *names]
    return frame_table("Beside a single pass", rows[columns].rename(columns=names), notes, decimals=2)
