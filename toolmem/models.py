"""What travels through toolmem: calls, verdicts, statistics, guidance, memories, rules, responses.

All times are aware and in UTC. `None` means unknown, never zero.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
)

from toolmem.light_models import (
    CONVERSATION_KEYS,
    DENIED,
    Language,
    LifetimeCounters,
    RuleStatus,
    Said,
    Speaker,
    ToolCall,
    ToolMemoryRule,
    ToolSchema,
    conversation_told,
    merge_ranges,
)

__all__ = [
    "CLAIM_DATA",
    "CONVERSATION_KEYS",
    "UPKEEP",
    "CallFigures",
    "Claim",
    "EvaluationStatus",
    "FailureCount",
    "FlowResponse",
    "Guidance",
    "JudgeIdentity",
    "Language",
    "LifetimeCounters",
    "LineProof",
    "RepairCount",
    "RepairHistory",
    "RuleStatus",
    "Said",
    "Speaker",
    "Subject",
    "ToolCall",
    "ToolCallResult",
    "ToolMemory",
    "ToolMemoryRule",
    "ToolRecord",
    "ToolSchema",
    "ToolStatistics",
    "Usage",
    "Verdict",
    "conversation_told",
    "merge_ranges",
]

EvaluationStatus = Literal["ok", "failed", "pending", "denied"]  # denied: stopped before it ran, never judged


class JudgeIdentity(BaseModel):
    """Who judged a call. Scores of two identities are never averaged in silence."""

    model_config = ConfigDict(frozen=True)

    backend: str  # offline, dry_run, scripted, dashscope, openai_compatible
    model: str  # the model's name; "rule_based_check" for the offline judge
    prompt_version: str  # first 12 characters of the hash of the prompt file; the rule-based judge's number

    def __str__(self) -> str:
        return f"{self.backend}/{self.model}@{self.prompt_version}"


class Verdict(BaseModel):
    """What a judge said of one call."""

    model_config = ConfigDict(frozen=True)

    summary: str
    evaluation: str
    score: float  # 0.0 or 1.0
    execution_failed: bool | None  # the call itself went wrong; None = the judge did not say
    error_class: str = ""  # e.g. "not_found", "timeout", "bad_parameter"; "" where it did not fail
    judge: JudgeIdentity

    @field_validator("score")
    @classmethod
    def _is_a_verdict(cls, score: float) -> float:
        if score not in (0.0, 1.0):
            raise ValueError(f"a score is 0.0 or 1.0, got {score}")
        return score


class ToolCallResult(BaseModel):
    """One tool call, and what was made of it."""

    tool_name: str
    input: dict[str, Any] | list[Any] | str = Field(default_factory=dict)
    output: str = ""
    success: bool | None = None  # the tool reported no error; says nothing about usefulness; None = unknown
    create_time: datetime
    time_cost: float | None = None  # seconds, wall clock
    token_cost: int | None = None
    context: str = ""  # what the agent was asked
    id: str | None = None  # given by the caller, or by the store when it keeps the call
    metadata: dict[str, Any] = Field(default_factory=dict)

    # after judging
    summary: str = ""
    evaluation: str = ""
    score: float | None = None  # 0.0, 1.0, or None where there is no verdict
    evaluation_status: EvaluationStatus = "pending"
    execution_failed: bool | None = None
    error_class: str = ""
    judge: JudgeIdentity | None = None

    # told by the store
    seq: int | None = None  # order of arrival in its tool, from 1
    is_summarized: bool = False  # covered by the tool's current guidance

    @property
    def failed(self) -> bool | None:
        """The recorded flag where it is known, else what the judge saw; None where neither is known."""
        return (not self.success) if self.success is not None else self.execution_failed

    @property
    def conversation_id(self) -> str:
        """The conversation that the call was made in; "" where its metadata does not tell it."""
        return conversation_told(self.metadata) or ""

    def judged(self, verdict: Verdict) -> ToolCallResult:
        """A copy that carries the verdict."""
        return self.model_copy(
            update={
                "summary": verdict.summary,
                "evaluation": verdict.evaluation,
                "score": float(verdict.score),
                "evaluation_status": "ok",
                "execution_failed": verdict.execution_failed,
                "error_class": verdict.error_class,
                "judge": verdict.judge,
            }
        )

    def unjudged(self, reason: str) -> ToolCallResult:
        """A copy whose evaluation failed: no score, left out of averages and summaries, tried again later."""
        return self.model_copy(
            update={
                "summary": "",
                "evaluation": reason,
                "score": None,
                "evaluation_status": "failed",
                "execution_failed": None,
                "error_class": "",
                "judge": None,
            }
        )

    def denied(self) -> ToolCallResult:
        """A copy for a call that was stopped before it ran: it counts nowhere, and is never judged."""
        return self.model_copy(update=DENIED)


class CallFigures(BaseModel):
    """The numbers of one kept call, without its texts: cheap to read for a whole window."""

    seq: int
    success: bool | None
    execution_failed: bool | None
    score: float | None
    time_cost: float | None  # seconds
    token_cost: int | None
    judge: str = ""  # str(JudgeIdentity), "" where there is no verdict

    @property
    def failed(self) -> bool | None:
        return (not self.success) if self.success is not None else self.execution_failed


class ToolStatistics(BaseModel):
    """Figures over a stated set of calls. Averages leave out unknown values; None = nothing known."""

    calls: int = 0
    failures: int = 0
    unknown: int = 0  # neither flag nor verdict says whether it failed
    success_rate: float | None = None  # share of calls that did not fail, among those that are known
    avg_score: float | None = None
    avg_time_cost: float | None = None  # seconds
    avg_token_cost: float | None = None
    unscored: int = 0  # evaluation failed or pending
    judges: list[str] = Field(default_factory=list)  # more than one: the average mixes them


Bounded = Annotated[str, AfterValidator(lambda text: text[:1_000])]  # what a call may have brought in


class Subject(BaseModel):
    """What a claim is about, in no language: claims of one kind about equal subjects are counted together."""

    model_config = ConfigDict(frozen=True)

    form: str  # which line of its kind; a key of `guidance.counted.phrases.PHRASES`
    path: Bounded = ""  # a parameter
    error: Bounded = ""  # a message, particulars masked
    condition: tuple[str, Bounded, Bounded] | None = None  # `counted.conditions.Condition`
    repairs: tuple[tuple[str, Bounded, Bounded, Bounded], ...] = ()  # `counted.repairs.Repair`

    @model_serializer(mode="wrap")
    def _without_what_is_empty(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in dump(self).items() if value}


class Claim(BaseModel):
    """A finding with its counts, `k` of `n` calls, and which; `text` says it in one language."""

    model_config = ConfigDict(frozen=True)

    text: str
    k: int
    n: int
    call_ids: tuple[str, ...]
    kind: str = ""  # e.g. "parameter", "error_class", "repair", "repeat", "overall"
    subject: Subject | None = None  # None: not written by the data-driven writer
    counts: dict[str, int] = Field(default_factory=dict)  # further counts of the sentence: `ok` of `on` other calls
    detail: dict[str, Any] = Field(default_factory=dict)  # what it tells beside: examples, averages


CLAIM_DATA = {"subject", "counts", "detail"}  # what its text is made of: kept for the next edit, shown to no reader


class RepairCount(BaseModel):
    """How often one kind of repair followed one kind of error."""

    model_config = ConfigDict(frozen=True)

    error: str  # the message, particulars masked
    kind: str  # as in toolmem.guidance.counted.repairs
    path: str
    before: str = ""
    after: str = ""
    k: int  # successes that followed such failures in this way; failures in a row that end in one count once
    forms: dict[str, int] = Field(default_factory=dict)  # how often a statement that repaired had which form
    call_ids: tuple[str, ...] = ()  # of the failures before the newest of them
    part: str = ""  # as FailureCount's


class FailureCount(BaseModel):
    """How often a tool failed with one kind of error, or answered nothing of worth, and what worked instead."""

    model_config = ConfigDict(frozen=True)

    error: str  # the message, or the answer, particulars masked
    message: str = ""  # as it came, in one line
    silent: bool = False  # the call ran, and its answer was worth nothing
    k: int  # calls
    sent: str = ""  # arguments that were changed or left out later, as JSON; all of them where nothing worked
    lacked: tuple[str, ...] = ()  # parameters that were added later
    worked: str = ""  # the arguments that worked instead, as JSON, as far as they may be told
    others: tuple[str, ...] = ()  # parameters of which another value worked, another entity's
    left_out: tuple[str, ...] = ()
    size: int = 0  # parameters that differ
    repaired: bool = False  # what worked instead is known
    past: bool = False  # it led to another error
    between: tuple[str, ...] = ()  # tools called before the same call went better, every time
    tried: bool = False  # the tool was called again, and nothing worked
    call_ids: tuple[str, ...] = ()  # of the newest
    part: str = ""  # of one tool for many: the program, the kind of statement or the route that was asked for
    recovered: int = 0  # successes after it, where it has a part


class LineProof(BaseModel):
    """What conversations showed of one line of a card (`toolmem.guidance.proof`)."""

    model_config = ConfigDict(frozen=True)

    line: tuple[Bounded, bool, Bounded, Bounded]  # its error, silent and part as FailureCount's; the change, by form
    since: datetime | None = None  # when the guidance was written in which it first stood; None: it stands in none
    counts: dict[str, int] = Field(default_factory=dict)  # conversations: shown, followed, worked, failed


class RepairHistory(BaseModel):
    """Failures and repairs over every call that a tool's guidance was written from, those before the window too."""

    model_config = ConfigDict(frozen=True)

    rules: int = 1  # what counts as a repair; counts of two versions are never added
    since: datetime  # create_time of the first call counted
    calls: int  # calls counted
    last_seq: int  # the newest of them: what lies behind it is counted already
    recovered: dict[str, int] = Field(default_factory=dict)  # successes after failures, by the last one's error
    repairs: tuple[RepairCount, ...] = ()
    failures: tuple[FailureCount, ...] = ()
    proofs: tuple[LineProof, ...] = ()  # of the lines that tell of failures; those that are withheld last


class Guidance(BaseModel):
    """Usage guidance of one tool, and the evidence behind it."""

    text: str
    claims: list[Claim] = Field(default_factory=list)
    statistics: ToolStatistics = Field(default_factory=ToolStatistics)  # of the calls analyzed
    covered: list[int] = Field(default_factory=list)  # seqs of the calls that were analyzed
    author: str  # "offline/data_driven", "dashscope/qwen-plus", ...
    prompt_version: str
    prompt_tokens: int = 0  # of the window; what the next skip saves (an estimate where nothing was sent)
    update_tokens: int = 0  # of an incremental prompt beside its calls: this text and the instructions
    edits: int = 0  # incremental summaries since the window was last read as a whole
    history: RepairHistory | None = None  # kept by the data-driven writer
    created_at: datetime | None = None

    def upkeep(self) -> dict[str, Any]:
        """As JSON: what the next summary needs of this one, and no reader is shown."""
        return self.model_dump(mode="json", include=set(UPKEEP))


UPKEEP = ("update_tokens", "edits", "history")  # fields of Guidance; `upkeep` in a memory's metadata


class ToolRecord(BaseModel):
    """The authoritative state of one tool in one workspace; a call exists once this record says so.

    The calls kept are those with `first_seq <= seq <= last_seq`, without gaps.
    """

    workspace: str
    tool_name: str
    memory_id: str
    version: int  # grows with every commit
    guidance_version: int = 0  # grows when the guidance or a verdict changes
    first_seq: int = 1
    last_seq: int = 0
    covered: list[tuple[int, int]] = Field(default_factory=list)  # ranges of seqs, both ends included
    unjudged: list[int] = Field(default_factory=list)  # kept seqs without a verdict (failed or pending)
    counters: LifetimeCounters = Field(default_factory=LifetimeCounters)
    guidance: Guidance | None = None
    time_created: datetime
    time_modified: datetime


class ToolMemory(BaseModel):
    """What an agent, a dump or a report gets of one tool."""

    workspace_id: str
    memory_id: str
    memory_type: Literal["tool"] = "tool"
    when_to_use: str  # the tool's name
    content: str  # the guidance, "" where there is none yet
    score: float | None = None  # average over the kept calls that have a score
    time_created: datetime
    time_modified: datetime
    author: str
    tool_call_results: list[ToolCallResult] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)  # statistics, claims, lifetime counters

    def reply(self) -> dict[str, Any]:
        """As JSON values for an answer: what is unknown of the memory or of a call is left out.

        ReMe's clients read an absent value as their default and refuse null.
        """
        told = self.model_dump(mode="json", exclude={"tool_call_results"})
        if self.score is None:
            del told["score"]
        calls = [call.model_dump(mode="json", exclude_none=True) for call in self.tool_call_results]
        metadata = told.pop("metadata")
        return {**told, "tool_call_results": calls, "metadata": metadata}


class Usage(BaseModel):
    """What was sent to models, and what a skip saved."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    saved_requests: int = 0
    saved_prompt_tokens: int = 0
    cost: float | None = None
    currency: str = ""
    estimated: bool = False  # counted by the tokenizer instead of taken from a reply


class FlowResponse(BaseModel):
    """The answer of a flow, the same on every road (Python, CLI, HTTP, MCP)."""

    answer: str = ""
    success: bool = True
    metadata: dict[str, Any] = Field(default_factory=dict)
