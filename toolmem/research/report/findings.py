"""What an evaluation found, as plain data: the interchange between `toolmem evaluate` and the report.

The notebook runs in a kernel process of its own, so everything that it shows travels through a directory:

    evaluation.json   everything but the two long lists: source, judge, settings, phases, summary runs, failures
    calls.jsonl       one judged ToolCallResult per line, in input order
    memories.jsonl    one ToolMemory per line, with the calls that the store kept of it (`include_calls`)

A call keeps the id under which it was stored, so that a claim's call ids can be traced to rows of calls.csv.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from toolmem.errors import Refused
from toolmem.models import FlowResponse, ToolCallResult, ToolMemory, Usage

Setting = str | int | float | bool | None
Action = Literal["summarized", "skipped", "failed"]
Model = TypeVar("Model", bound=BaseModel)


class ToolUsage(BaseModel):
    """What one summary run did with one tool, what it spent, and what a skip saved."""

    model_config = ConfigDict(extra="forbid")

    tool: str
    action: Action
    reason: str = ""  # why it was skipped or failed
    requests: int = 0  # LLM requests sent
    prompt_tokens: int = 0
    completion_tokens: int = 0
    saved_requests: int = 0
    saved_prompt_tokens: int = 0
    estimated: bool = False  # tokens counted by the tokenizer instead of taken from a reply


class SummaryRun(BaseModel):
    """One run of `summary_tool_memory`."""

    model_config = ConfigDict(extra="forbid")

    label: str  # "all new", "nothing new", "newest 5 %"
    response: FlowResponse
    seconds: float  # wall clock
    tools: list[ToolUsage] = Field(default_factory=list)


class BadRecord(BaseModel):
    """A record that could not be read, stored or joined."""

    model_config = ConfigDict(extra="forbid")

    where: str  # file and line, or the position in the input
    tool_name: str = ""  # "" where even that could not be read
    error: str


class Evaluation(BaseModel):
    """The whole of one evaluation."""

    model_config = ConfigDict(extra="forbid")

    format_version: Literal[1] = 1
    toolmem_version: str = ""

    inputs: list[str]  # names of the files that were read
    input_format: str  # "calls", "openai"
    ignore_success: bool = False  # the recorded flag was withheld from the judge
    notes: list[str] = Field(default_factory=list)  # what the reader should know of the input, a sentence each
    workspace: str = ""
    store: str = ""  # backend and location

    backend: str = "offline"  # llm.default.backend
    judge: str  # str(JudgeIdentity) of the judge that was configured
    judge_meaning: str  # what its score means, one or two sentences
    writer: str = ""  # who wrote the guidance, "backend/model"
    embedder: str = ""
    settings: dict[str, Setting] = Field(
        default_factory=dict
    )  # max_history_tool_call_cnt, recent_call_count, force, ...

    time_zone: str = "UTC"  # in which times are shown (IANA name)
    started: datetime
    phases: dict[str, float] = Field(default_factory=dict)  # seconds, in the order in which they ran

    calls: list[ToolCallResult] = Field(default_factory=list)  # all that were recorded, input order, judged
    denied: list[tuple[int, ToolCallResult]] = Field(default_factory=list)  # row and call: in calls.csv, in no figure
    labels: dict[int, bool] = Field(default_factory=dict)  # by row: a person says that the call worked
    rows: list[int] = Field(default_factory=list)  # the input's row of each call; empty: 0, 1, 2, ... without gaps
    memories: list[ToolMemory] = Field(default_factory=list)  # with tool_call_results
    summaries: list[SummaryRun] = Field(default_factory=list)  # in the order in which they ran
    failures: list[BadRecord] = Field(default_factory=list)
    spent: dict[str, Usage] = Field(default_factory=dict)  # by op; of a dry run: counted, not sent
    tokens_by: Literal["tokenizer", "estimate"] = "tokenizer"  # where no reply stated them
    stopped_by: str = ""  # "budget" or "errors" where requests were stopped before all was done

    @model_validator(mode="after")
    def _rows_fit(self) -> Self:
        if self.rows and self.calls and len(self.rows) != len(self.calls):
            raise ValueError(f"rows: {len(self.rows)} row numbers for {len(self.calls)} calls")
        return self

    @property
    def unsummarized(self) -> list[str]:
        """Tools whose last summary failed; what guidance they had before stays."""
        return [use.tool for use in self.summaries[-1].tools if use.action == "failed"] if self.summaries else []

    @property
    def row_numbers(self) -> Sequence[int]:
        """The input's row of each call, from 0. Gaps are records that could not be used or were not drawn."""
        return self.rows or range(len(self.calls))

    @property
    def keep(self) -> int | None:
        """Calls kept per tool (the window); None where the setting was not handed over."""
        return _count(self.settings.get("max_history_tool_call_cnt"))

    @property
    def recent(self) -> int | None:
        """Newest calls of a tool that a summary analyzes; None where the setting was not handed over."""
        return _count(self.settings.get("recent_call_count"))

    def save(self, directory: Path | str) -> Path:
        """Write the three files into `directory` (made if absent) and answer it."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        _write_lines(folder / "calls.jsonl", (call.model_dump_json() for call in self.calls))
        _write_lines(folder / "memories.jsonl", (memory.model_dump_json() for memory in self.memories))
        head = self.model_dump_json(exclude={"calls", "memories"}, indent=1)
        (folder / "evaluation.json").write_text(head + "\n", encoding="utf-8")
        return folder

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read what `save` wrote. Raises Refused where that is not what the directory holds."""
        folder = Path(directory)
        try:
            head = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
            calls = _read_lines(folder / "calls.jsonl", ToolCallResult)
            memories = _read_lines(folder / "memories.jsonl", ToolMemory)
            evaluation = cls.model_validate(head)
        except FileNotFoundError as error:
            raise Refused(
                f"{folder} holds no evaluation ({Path(error.filename).name} is missing): `toolmem evaluate` writes one"
            ) from error
        except (ValidationError, json.JSONDecodeError) as error:
            raise Refused(f"{folder} holds an evaluation that this version cannot read: {error}") from error
        return evaluation.model_copy(update={"calls": calls, "memories": memories})


def _count(value: Setting) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


def _read_lines(path: Path, model: type[Model]) -> list[Model]:
    # not splitlines(): a text may hold U+2028, which ends a line there but not in JSON Lines
    with path.open(encoding="utf-8", newline="\n") as file:
        return [model.model_validate_json(line) for line in file if line.strip()]
