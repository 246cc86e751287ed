"""What operations return. The fields of a result are the metadata of its flow's response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_args

from msgspec import Struct, convert, field

from toolmem.formats.data_frames import frame_of
from toolmem.llm.usage import LedgerRow, Usage
from toolmem.models.calls import Moment, ToolCallResult
from toolmem.models.decisions import Decision
from toolmem.models.tools import CallFailure, ToolMemory, ToolStatistics
from toolmem.ops.summary_tool_memory import SummaryOutcome

if TYPE_CHECKING:
    import pandas as pd

NEXT_HEADER = "Toolmem-Next"  # of an answer over HTTP: `Calls.next`

Row = TypeVar("Row", bound=Struct)


class Rows(list[Row]):
    """A list whose items all have the same fields."""

    sent_as: ClassVar[Any]  # the type of a plain list of these items

    @staticmethod
    def read(kind: type[Rows[Any]], value: Any) -> Rows[Any]:
        """Convert a list of plain dicts to a list of type `kind`, as a `dec_hook` of msgspec."""
        return kind(convert(value, kind.sent_as))

    def to_frame(self) -> pd.DataFrame:
        """Make a DataFrame: a row for each item, a column for each field. Objects are JSON text.

        Types of columns are the same whatever the rows hold, so that Parquet and CSV files can be
        written and `toolmem.read_calls` reads calls back. Needs pandas, else raises RequestError.
        """
        return frame_of(get_args(self.sent_as)[0], self)


class Calls(Rows[ToolCallResult]):
    """Calls of the log, oldest first; or calls of windows, sorted by tool and then by time."""

    sent_as = list[ToolCallResult]
    next: int | None = None  # `before` of a request for older calls; None: there are none


class Decisions(Rows[Decision]):
    """Decisions, oldest first."""

    sent_as = list[Decision]


class Ledger(Rows[LedgerRow]):
    """Requests to models, oldest first."""

    sent_as = list[LedgerRow]


class Result(Struct, kw_only=True):
    """What became of a request."""

    answer: str = ""  # a sentence, or the text that was asked for
    success: bool = True  # all of the request was done
    partial: bool = False  # a part of it was done


class Evaluation(Struct, kw_only=True):
    """How many calls were judged, and which were not."""

    requested: int
    evaluated: int
    reused: int  # judged by a known verdict
    duplicates: int  # with a known id
    failed: int
    failures: list[CallFailure] = []


class Added(Result, kw_only=True):
    """The outcome of adding calls."""

    evaluation: Evaluation
    memory_list: list[ToolMemory] = []  # the tools of the calls
    trimmed: dict[str, int] = {}  # by tool: calls that left its window
    stopped: str = ""  # why no more calls were sent to the judge; "": all were sent
    budget_reached: bool = False  # it stopped at the configured budget
    usage: Usage = field(default_factory=Usage)


class SummaryFailure(Struct):
    """A tool that was not summarized, and why."""

    tool_name: str
    error: str


class Summarized(Result, kw_only=True):
    """The outcome for each tool. Names are in the order of the request."""

    summarized: list[str] = []
    skipped: list[str] = []
    failed: list[str] = []
    not_found: list[str] = []
    not_analyzed: dict[str, int] = {}  # by tool: new calls that were not read
    failures: list[SummaryFailure] = []
    outcomes: list[SummaryOutcome] = []
    memory_list: list[ToolMemory] = []  # summarized and skipped tools
    stopped: str = ""  # why no more tools were sent to the writer; "": all were sent
    budget_reached: bool = False  # it stopped at the configured budget
    usage: Usage = field(default_factory=Usage)


class Retrieved(Result, kw_only=True):
    """Guidance of tools, as an agent gets it."""

    memory_list: list[ToolMemory] = []
    not_found: list[str] = []

    @property
    def text(self) -> str:
        """The guidance; "" if no tool was found."""
        return self.answer if self.memory_list else ""

    def __str__(self) -> str:
        return self.text


class Advice(Result, kw_only=True):
    """Advice on one failed call."""

    lines: list[AdviceLine] = []

    @property
    def text(self) -> str:
        """The lines of advice; "" if nothing is known."""
        return self.answer

    def __str__(self) -> str:
        return self.text


class AdviceLine(Struct, kw_only=True):
    """A line of advice. It is about `k` of `n` calls, such as 3 failures in 10 calls."""

    kind: str
    text: str
    k: int = 0
    n: int = 0
    call_ids: tuple[str, ...] = ()


class ToolOverview(Struct, kw_only=True):
    """Figures of one tool. Those from `window` to `unjudged` count only its kept calls."""

    tool_name: str
    calls_ever: int
    new_calls: int  # since the guidance was written
    window: ToolStatistics
    worked: int = 0  # did not fail
    failed: int = 0  # silently too
    no_use: int = 0  # worked, but were scored 0
    lost: int = 0  # failed, or of no use
    unjudged: int = 0  # without a verdict
    guidance: str = ""  # "": there is none yet, or it was not requested
    guidance_created_at: Moment | None = None
