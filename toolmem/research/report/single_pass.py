"""The single-pass bound: tokens that reading each call once would take, beside those that the summaries took.

No policy that reads every call can take fewer input tokens than the lines of the calls have. What a policy takes on top
is the price of reading again, of the instructions around the lines, and of the old guidance where that is shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from toolmem.guidance.llm_writer import MAX_PROMPT_CHARACTERS, usage_prompt, writer_prompts
from toolmem.pages.numbers import UNKNOWN, count
from toolmem.readers.prompt_templates import SUMMARIZE, Prompts
from toolmem.research.report.charge_sums import ESTIMATE
from toolmem.research.report.charges import SUMMARIZING, CostReport
from toolmem.research.report.recorded import frame
from toolmem.research.report.summary import PrintedTable

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


@dataclass(frozen=True, slots=True)
class SinglePass:
    """One tool: its bound, and what its summaries took."""

    tool: str
    policies: str
    calls: int
    bound_tokens: int
    bound_by: str  # "tokenizer", or "estimate" where calls are no longer kept
    summaries: int  # requests
    input_tokens: int
    ratio: float | None  # input over bound; None where there is no bound


def single_pass(report: CostReport, lines: Iterable[LineTokens]) -> list[SinglePass]:
    """One row per tool, by name. `report`: of all requests since the first call, or the ratio means nothing."""
    spent: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    policies: dict[str, dict[str, None]] = defaultdict(dict)
    for charge in report.of(kind=SUMMARIZING):
        if charge.policy:
            policies[charge.tool][charge.policy] = None
        if charge.state != "avoided":
            spent[charge.tool][0] += charge.requests
            spent[charge.tool][1] += charge.input_tokens
    rows = []
    for line in sorted(lines, key=lambda line: line.tool):
        requests, tokens = spent[line.tool]
        rows.append(
            SinglePass(
                line.tool,
                ", ".join(policies[line.tool]),
                line.calls,
                line.bound,
                "estimate" if line.estimated else "tokenizer",
                requests,
                tokens,
                tokens / line.bound if line.bound else None,
            )
        )
    return rows


def single_pass_frame(rows: Sequence[SinglePass]) -> pd.DataFrame:
    """The columns of SinglePass; `ratio` is NaN where there is no bound."""
    return frame([asdict(row) for row in rows], [each.name for each in fields(SinglePass)]).astype({"ratio": "float64"})


def single_pass_table(rows: Sequence[SinglePass]) -> PrintedTable:
    """One row per tool, as the command prints it."""
    columns = ("tool", "policy", "calls", "summaries", "input of summaries", "single pass", "times the single pass")
    written = tuple(
        (
            row.tool,
            row.policies or UNKNOWN,
            count(row.calls),
            count(row.summaries),
            count(row.input_tokens),
            (ESTIMATE if row.bound_by == "estimate" else "") + count(row.bound_tokens),
            UNKNOWN if row.ratio is None else f"{row.ratio:.2f}",
        )
        for row in rows
    )
    notes = ["Single pass: tokens of the calls' lines, each read once, as the tokenizer counts them."]
    if any(row.bound_by == "estimate" for row in rows):
        notes.append(f"{ESTIMATE}: lines of calls that are no longer kept are taken to be as long as the kept ones.")
    return PrintedTable("Beside a single pass", columns, written, frozenset(columns[2:]), tuple(notes))
