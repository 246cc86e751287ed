"""The models that an agent's hook needs: dataclasses, because importing pydantic takes longer than a hook may.

They answer what pydantic's models answer (`model_dump`, `model_copy`, `model_validate`), and stand in models of those.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Literal, Self, get_args

from toolmem.errors import RequestError

Language = Literal["", "zh"]
Speaker = Literal["user", "agent", "program"]
RuleStatus = Literal["active", "proposed", "superseded", "withdrawn"]
Priority = Literal["critical", "high", "normal"]
Source = Literal["user_explicit", "post_turn", "programmatic"]

# What may tell the conversation of a call: keys of its record, else of its metadata; the first that does counts.
CONVERSATION_KEYS = ("conversation_id", "session_id", "thread_id", "trace_id", "run_id")

_Reader = Callable[[Any], Any]
_MOST_COUNTED = 10**15


class Row:
    """A dataclass, with the methods of a model."""

    __slots__ = ()

    @classmethod
    def model_validate(cls, value: Any) -> Self:
        """From an object of JSON; other keys are passed over. Raises ValueError that names the field."""
        if isinstance(value, cls):
            return value
        if type(value) is not dict and not isinstance(value, Mapping):
            raise ValueError(f"expected an object, got {type(value).__name__}")
        known = _READERS_OF.get(cls) or _readers(cls)
        try:
            return cls(
                **{
                    name: each if (reader := known[name]) is _text and type(each) is str else reader(each)
                    for name, each in value.items()
                    if name in known
                }
            )
        except (ValueError, TypeError):
            raise ValueError(cls._problem(value)) from None

    @classmethod
    def _problem(cls, value: Mapping[str, Any]) -> str:
        for name, reader in _readers(cls).items():
            try:
                reader(value.get(name)) if name in value else None
            except ValueError as error:
                return f"{name}: {error}"
        return f"{next(iter(sorted(_required(cls) - value.keys())), '')}: is missing"

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        return cls.model_validate(json.loads(text))

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        return replace(self, **(update or {}))  # type: ignore[type-var]  # each row is a dataclass

    def model_dump(
        self,
        *,
        mode: Literal["python", "json"] = "python",
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
    ) -> dict[str, Any]:
        left_out = exclude or ()
        shown = [name for name in _readers(type(self)) if (include is None or name in include) and name not in left_out]
        return {name: _dumped(getattr(self, name), mode == "json") for name in shown}

    def model_dump_json(self) -> str:
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":"))


def _readers(cls: type[Row]) -> dict[str, _Reader]:
    """By field, what reads a value of its annotation; raises ValueError where the value is none of its kind."""
    known = _READERS_OF.get(cls)
    if known is None:
        known = _READERS_OF[cls] = {}
        for each in fields(cls):  # type: ignore[arg-type]  # each row is a dataclass
            kind, _, optional = str(each.type).partition(" | ")
            known[each.name] = _or_none(_READERS[kind]) if optional else _READERS[kind]
    return known


def _required(cls: type[Row]) -> set[str]:
    known = fields(cls)  # type: ignore[arg-type]  # each row is a dataclass
    return {each.name for each in known if each.default is MISSING and each.default_factory is MISSING}


def _dumped(value: Any, as_json: bool) -> Any:
    if isinstance(value, Row):
        return value.model_dump(mode="json" if as_json else "python")
    if isinstance(value, list | dict):
        return deepcopy(value)
    if as_json and isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value


# ---------------------------------------------------------------- reading values


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {type(value).__name__}")
    return value


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected a list of texts, got {type(value).__name__}")
    return [_text(each) for each in value]


def _time(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value)
    except (ValueError, TypeError):
        raise ValueError(f"expected a time, e.g. 2026-01-31T12:00:00Z; got {value!r}"[:200]) from None


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_COUNTED:
        raise ValueError(f"expected a whole number from 0 to {_MOST_COUNTED:,}, got {value!r}"[:200])
    return value


def _sum(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, got {type(value).__name__}")
    return float(value)


def _one_of(choices: Any) -> _Reader:
    allowed = {choice: choice for choice in get_args(choices)}

    def read(value: Any) -> Any:
        try:
            return allowed[value]
        except (KeyError, TypeError):
            raise ValueError(f"expected one of {', '.join(allowed)}; got {value!r}"[:200]) from None

    return read


def _or_none(reader: _Reader) -> _Reader:
    return lambda value: None if value is None else reader(value)


# ---------------------------------------------------------------- tools and rules


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema(Row):
    """A tool's declaration, read from the OpenAI or the MCP form."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)  # JSON schema of the input object

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
        description = body.get("description")
        return cls(
            name=body["name"].strip(),
            description=description if isinstance(description, str) else "",
            parameters=dict(parameters),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Row):
    """Who put a rule, and in which sentence, session and turn."""

    by: Speaker
    sentence: str = ""
    session: str = ""
    turn: int | None = None
    time: datetime | None = None


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
        """An agent's own, which binds nobody. What it put as critical was approved where it is active."""
        return self.priority != "critical" and self.by == "agent"


# ---------------------------------------------------------------- guidance


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimLine(Row):
    """What a prompt shows of a claim."""

    text: str


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
    evaluation_status: Literal["pending"] = "pending"
    execution_failed: None = None
    error_class: str = ""
    judge: None = None

    @property
    def failed(self) -> bool | None:
        return None if self.success is None else not self.success


def conversation_told(fields: Mapping[str, Any]) -> str | None:
    """The conversation that a record, or the metadata of a call, tells; None where none of its keys does."""
    told = (fields.get(key) for key in CONVERSATION_KEYS)
    known = (value for value in told if isinstance(value, str | int) and not isinstance(value, bool))
    return next((text for value in known if (text := str(value).strip())), None)


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


_READERS_OF: dict[Any, dict[str, _Reader]] = {}
_READERS: dict[str, _Reader] = {  # by annotation, as it is written
    "str": _text,
    "list[str]": _texts,
    "int": _count,
    "float": _sum,
    "datetime": _time,
    "dict[str, Any]": dict,
    "list[ClaimLine]": _claims,
    "Said": Said.model_validate,
    "Speaker": _one_of(Speaker),
    "Priority": _one_of(Priority),
    "Source": _one_of(Source),
    "RuleStatus": _one_of(RuleStatus),
}
