"""The models that an agent's hook needs: dataclasses, because importing pydantic takes longer than a hook may.

They answer what pydantic's models answer (`model_dump`, `model_copy`, `model_validate`), and stand in models of those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from toolmem.errors import RequestError
from toolmem.late_dataclasses import KW_ONLY, dataclass, field
from toolmem.rows import READERS, Row, one_of

Language = Literal["", "zh"]
Speaker = Literal["user", "agent", "program"]
RuleStatus = Literal["active", "proposed", "superseded", "withdrawn"]
Effect = Literal["deny", "ask", "remind"]
When = bool | dict[str, Any]
Priority = Literal["critical", "high", "normal"]
Source = Literal["user_explicit", "post_turn", "programmatic"]

# What may tell the conversation of a call: keys of its record, else of its metadata; the first that does counts.
CONVERSATION_KEYS = ("conversation_id", "session_id", "thread_id", "trace_id", "run_id")
_HINTS = ("readOnlyHint", "destructiveHint", "openWorldHint")

# ---------------------------------------------------------------- tools and rules


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema(Row):
    """A tool's declaration, read from the OpenAI or the MCP form."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)  # JSON schema of the input object
    annotations: dict[str, Any] = field(default_factory=dict)  # what MCP calls so: hints at what it does

    @classmethod
    def read(cls, declaration: Any, field: str = "tools") -> ToolSchema:
        """Read `{"type": "function", "function": {...}}`, `{"name", "parameters"}` or MCP's `{"name", "inputSchema"}`.

        Raises RequestError that names `field`.
        """
        body = declaration
        if isinstance(body, Mapping) and isinstance(body.get("function"), Mapping):
            body = body["function"]
        if not isinstance(body, Mapping) or not isinstance(body.get("name"), str) or not body["name"].strip():
            raise RequestError(
                f"{field}: expected a tool schema in OpenAI or MCP form with a 'name', got {str(declaration)[:80]!r}",
                field=field,
            )
        parameters = body.get("parameters") or body.get("inputSchema") or body.get("input_schema") or {}
        if not isinstance(parameters, Mapping):
            raise RequestError(f"{field}: the parameters of {body['name']!r} are not a JSON schema object", field=field)
        description, hints = body.get("description"), body.get("annotations")
        return cls(
            name=body["name"].strip(),
            description=description if isinstance(description, str) else "",
            parameters=dict(parameters),
            annotations={name: hints[name] for name in _HINTS if isinstance(hints.get(name), bool)}
            if isinstance(hints, Mapping)
            else {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Row):
    """Who put a rule, and in which sentence, session and turn."""

    by: Speaker
    sentence: str = ""
    session: str = ""
    turn: int | None = None
    time: datetime | None = None
    noted_by: str = ""  # the model or agent that wrote down what was said; "": nobody did
    understood: str = ""  # in its words; shown where people look, never in a prompt


@dataclass(slots=True, kw_only=True)
class ToolMemoryRule(Row):
    """A rule on one tool. Eager (in every prompt) where the priority is critical or high."""

    id: str
    tool_name: str
    rule: str
    priority: Priority = "normal"
    source: Source = "programmatic"
    tags: list[str] = field(default_factory=list)
    created_at: datetime
    updated_at: datetime
    status: RuleStatus = "active"  # a proposed rule waits for a person, a withdrawn one is kept and holds no longer
    said: Said | None = None  # None: stored before this was kept
    effect: Effect = "remind"  # what becomes of a call that `when` holds for; remind: it stands in the prompt alone
    unchecked: str = ""  # of a reminder: why no call is held against it
    expires_at: datetime | None = None
    superseded_by: str = ""  # the id of the rule that took its place
    # A JSON Schema that the view of a call fulfils; true: every call of the tool. The last field: see `at_a_glance`.
    when: When | None = None

    @property
    def checked(self) -> bool:
        """Whether calls are held against it."""
        return self.effect != "remind" and self.when is not None

    def holds_at(self, now: datetime) -> bool:
        """Whether it binds then: active, and not expired."""
        return self.status == "active" and (self.expires_at is None or self.expires_at > now)

    @property
    def eager(self) -> bool:
        return self.priority != "normal"

    @property
    def by(self) -> Speaker:
        if self.said is not None:
            return self.said.by
        return "user" if self.source == "user_explicit" else "program"

    @property
    def is_users(self) -> bool:
        """What the user said, also where a program of theirs handed it over."""
        return self.by == "user" or (self.by == "program" and self.source == "user_explicit")

    @property
    def is_note(self) -> bool:
        """An agent's own, which binds nobody. What it put as critical, deny or ask was approved where it is active."""
        return self.priority != "critical" and self.by == "agent" and self.effect == "remind"


# ---------------------------------------------------------------- guidance


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimLine(Row):
    """What a prompt shows of a claim, and by what it chooses."""

    text: str
    kind: str = ""
    k: int = 0


def _condition(value: Any) -> When:
    if value is True or isinstance(value, dict):
        return value
    raise ValueError(f"expected a JSON Schema or true, got {type(value).__name__}")


def _claims(value: Any) -> list[ClaimLine]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, got {type(value).__name__}")
    return [ClaimLine.model_validate(each) for each in value]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidanceLines(Row):
    """What a prompt shows of guidance."""

    text: str
    claims: list[ClaimLine] = field(default_factory=list)


# ---------------------------------------------------------------- calls


@dataclass(slots=True, kw_only=True)
class LifetimeCounters(Row):
    """Counters of a tool that never shrink, whatever the window drops."""

    calls: int = 0
    successes: int = 0  # calls known not to have failed
    failures: int = 0  # calls known to have failed
    judged: int = 0  # calls with a score
    score_sum: float = 0.0
    time_calls: int = 0  # calls with a known time_cost
    time_sum: float = 0.0  # seconds
    token_calls: int = 0  # calls with a known token_cost
    token_sum: int = 0
    since: datetime | None = None  # create_time of the oldest call counted


@dataclass(slots=True)
class ToolCall:
    """A tool call as a program hands it over: `ToolCall("search", {"q": "rain"}, output="[]")`.

    What is left out is unknown; a missing `create_time` is the time at which the call is added.
    """

    tool_name: str
    input: dict[str, Any] | list[Any] | str = field(default_factory=dict)
    output: str = ""
    _: KW_ONLY
    success: bool | None = None  # the tool reported no error; says nothing about usefulness
    create_time: datetime | None = None
    time_cost: float | None = None  # seconds, wall clock
    token_cost: int | None = None
    context: str = ""  # what the agent was asked
    conversation_id: str | None = None  # repairs are told inside one conversation
    id: str | None = None  # sent twice, it counts once
    metadata: dict[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """As a record of a request; `formats.read_record` says what of it cannot be."""
        told = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in told.items() if value is not None}


@dataclass(slots=True, kw_only=True)
class PendingCall(Row):
    """A call as a store takes it, before anybody has judged it: `ToolCallResult`, for who has no time for that."""

    tool_name: str
    input: dict[str, Any] | list[Any] | str
    output: str
    success: bool | None
    create_time: datetime
    time_cost: float | None
    token_cost: int | None
    context: str
    id: str | None
    metadata: dict[str, Any]
    summary: str = ""
    evaluation: str = ""
    score: None = None
    evaluation_status: Literal["pending", "denied"] = "pending"
    execution_failed: None = None
    error_class: str = ""
    judge: None = None

    @property
    def failed(self) -> bool | None:
        return None if self.success is None else not self.success


# What is known of a call that was stopped before it ran: it is neither failure nor success, and never judged.
DENIED: Mapping[str, Any] = {
    "success": None,
    "summary": "",
    "evaluation": "",
    "score": None,
    "evaluation_status": "denied",
    "execution_failed": None,
    "error_class": "",
    "judge": None,
}


def conversation_told(fields: Mapping[str, Any]) -> str | None:
    """The conversation that a record, or the metadata of a call, tells; None where none of its keys does."""
    for key in CONVERSATION_KEYS:  # asked of every call, several times
        value = fields.get(key)
        if value is None or isinstance(value, bool):
            continue
        if isinstance(value, (str, int)) and (text := str(value).strip()):
            return text
    return None


def merge_ranges(seqs: Sequence[int], ranges: Sequence[tuple[int, int]] = ()) -> list[tuple[int, int]]:
    """Sorted, disjoint ranges (both ends included) that hold `seqs` and all of `ranges`."""
    parts = sorted([*((s, s) for s in seqs), *((a, b) for a, b in ranges)])
    merged: list[tuple[int, int]] = []
    for low, high in parts:
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


READERS.update(  # by annotation, as it is written
    {
        "list[ClaimLine]": _claims,
        "Said": Said.model_validate,
        "Speaker": one_of(Speaker),
        "Priority": one_of(Priority),
        "Source": one_of(Source),
        "RuleStatus": one_of(RuleStatus),
        "Effect": one_of(Effect),
        "When": _condition,
    }
)
