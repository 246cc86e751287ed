"""One recorded call as JSON -> `ToolCallResult`: the one place that knows what a good record is."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolmem.errors import RecordError
from toolmem.formats.reme_records import is_of_reme
from toolmem.formats.times import read_time, zone
from toolmem.late_dataclasses import dataclass, field
from toolmem.light_models import CONVERSATION_KEYS, DENIED, PendingCall, ToolCall, conversation_told
from toolmem.readers.denied_calls import is_denied
from toolmem.readers.json_values import NotJsonError, Repairs, clean_text, clean_value
from toolmem.stored import CallFailure

if TYPE_CHECKING:
    from toolmem.models import JudgeIdentity, ToolCallResult
    from toolmem.protocols import Clock

MAX_TOOL_NAME = 256  # characters
MAX_ID = 1024  # characters
MAX_TOKENS = 2**63 - 1  # what a database integer holds

GIVEN = tuple(name for name in ToolCall.__slots__ if name != "conversation_id")
# What a judge or a store writes: ignored from a caller, who could otherwise score his own calls.
JUDGED = (*(name for name in PendingCall.__slots__ if name not in GIVEN), "seq", "is_summarized")
_KNOWN = frozenset(GIVEN + JUDGED)
# Keys that other toolkits have for what is meant here.
_ELSEWHERE = {
    "tool_input": "input",
    "arguments": "input",
    "tool_output": "output",
    "result": "output",
    "execution_time": "time_cost",
}
_BESIDE_OUTPUT = _KNOWN | {*CONVERSATION_KEYS, "step", "call_hash"}


@dataclass(slots=True, kw_only=True)
class RecordNotes(Repairs):
    """What was put right in silence, counted, so that it can be said once."""

    naive_times: int = 0  # times without a zone, read in `time_zone`
    timeless: int = 0  # records without a time: they carry the clock's
    misspelt: dict[str, str] = field(default_factory=dict)  # key as written -> the known key that it is close to

    def _take(self, more: RecordNotes) -> None:
        """Add what was noted of one record."""
        self.repaired_surrogates += more.repaired_surrogates
        self.naive_times += more.naive_times
        self.timeless += more.timeless
        self.misspelt |= more.misspelt


@dataclass(slots=True, kw_only=True)
class RecordsRead(RecordNotes):
    """Good calls with their position in what was read, the bad ones by name, and what was put right."""

    calls: list[tuple[int, ToolCallResult]] = field(default_factory=list)
    failures: list[CallFailure] = field(default_factory=list)


class _FieldError(ValueError):
    """What is wrong with one field, and what would be right."""


def read_records(
    raw: Sequence[Any], *, clock: Clock, time_zone: str = "UTC", trust: bool = False, first_index: int = 0
) -> RecordsRead:
    """Read the records of a request. A bad one is named in `failures`, the others go on.

    `time_zone` (an IANA name) is where times without a zone belong; an unknown one raises RequestError. `trust`
    keeps verdicts that the records carry (dumps). `first_index` is the position of the first record.
    """
    zone(time_zone)
    read = RecordsRead()
    for index, record in enumerate(raw, first_index):
        try:
            call = read_record(record, index, clock=clock, time_zone=time_zone, notes=read, trust=trust)
        except RecordError as error:
            read.failures.append(CallFailure(index=index, tool_name=error.tool_name or "", error=str(error)))
        else:
            read.calls.append((index, call))
    return read


def read_record(
    raw: Any, index: int, *, clock: Clock, time_zone: str = "UTC", notes: RecordNotes, trust: bool = False
) -> ToolCallResult:
    """Read one record. Raises RecordError that names the field and what would be right.

    A missing `create_time` is the clock's now; unknown keys go to `metadata`; lone surrogates become U+FFFD.
    """
    from toolmem.models import ToolCallResult

    if isinstance(raw, ToolCallResult):  # from an importer, or made in Python: checked already
        call = raw if trust or not _has_judgement(raw) else _without_judgement(raw)
        return call.denied() if is_denied(call.output) else call
    if isinstance(raw, ToolCall):
        raw = raw.record()
    return ToolCallResult(
        **read_fields(raw, index, clock=clock, time_zone=time_zone, notes=notes, more=_judgement if trust else None)
    )


def read_fields(
    raw: Any,
    index: int,
    *,
    clock: Clock,
    time_zone: str = "UTC",
    notes: RecordNotes,
    more: Callable[[Mapping[str, Any], Repairs], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """The fields of a call that a record gives, and what `more` reads of it. Raises as `read_record`."""
    if not isinstance(raw, Mapping):
        raise RecordError(f"expected an object with 'tool_name', 'input', 'output', got {_kind(raw)}", index=index)
    tool_name: str | None = None
    repairs = RecordNotes()  # of this record: a refused one is not counted
    try:
        tool_name = _tool_name(raw, repairs)
        _require_output(raw)
        fields: dict[str, Any] = {
            "tool_name": tool_name,
            "input": _input(raw.get("input"), repairs),
            "output": _text(raw, "output", repairs, "pass it as JSON text"),
            "success": _success(raw.get("success")),
            "time_cost": _time_cost(raw),
            "token_cost": _token_cost(raw.get("token_cost")),
            "context": _text(raw, "context", repairs, "pass it as text"),
            "id": _id(raw.get("id") or raw.get("call_hash"), repairs),  # the latter is what ReMe tells calls apart by
            "metadata": _metadata(raw, repairs),
        }
        fields["create_time"] = _create_time(raw.get("create_time"), clock, time_zone, repairs)
        if more is not None:
            fields |= more(raw, repairs)
        if is_denied(fields["output"]):
            fields |= DENIED
    except _FieldError as error:
        raise RecordError(str(error), index=index, tool_name=tool_name) from None
    notes._take(repairs)
    return fields


def _has_judgement(call: ToolCallResult) -> bool:
    return call.evaluation_status != "pending" or call.score is not None or call.seq is not None


def _without_judgement(call: ToolCallResult) -> ToolCallResult:
    from toolmem.models import ToolCallResult

    return ToolCallResult(**{name: getattr(call, name) for name in GIVEN})


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
    return names.get(type(value), "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}")


def _tool_name(raw: Mapping[str, Any], repairs: Repairs) -> str:
    value = raw.get("tool_name")
    if value is None:
        near = [key for key in ("name", "tool", "function") if isinstance(raw.get(key), str)]
        others = [key for key in raw if isinstance(key, str) and key != "tool_name"]
        near = near or difflib.get_close_matches("tool_name", others, 1, 0.7)
        hint = f" (the record has {near[0][:40]!r}: call it 'tool_name')" if near else ""
        raise _FieldError(f"tool_name: required, the name of the tool that was called{hint}")
    if not isinstance(value, str):
        raise _FieldError(f"tool_name: expected a string, got {_kind(value)}")
    name = clean_text(value, repairs).strip()
    if not name:
        raise _FieldError("tool_name: blank; expected the name of the tool that was called")
    if len(name) > MAX_TOOL_NAME:
        raise _FieldError(f"tool_name: {len(name)} characters; at most {MAX_TOOL_NAME} are allowed")
    return name


def _cleaned(value: Any, field_name: str, repairs: Repairs) -> Any:
    try:
        return clean_value(value, repairs)
    except NotJsonError as error:
        raise _FieldError(f"{error.place(field_name)}: {error.reason}") from None


def _input(value: Any, repairs: Repairs) -> dict[str, Any] | list[Any] | str:
    if value is None:
        return {}
    if not isinstance(value, (Mapping, list, tuple, str)):
        raise _FieldError(f"input: expected an object, a list or a string, got {_kind(value)}")
    cleaned: dict[str, Any] | list[Any] | str = _cleaned(value, "input", repairs)
    return cleaned


def _require_output(raw: Mapping[str, Any]) -> None:
    """A record without an output whose other keys are unknown has its output under one of them."""
    if "output" in raw:
        return
    unknown = [str(key)[:40] for key in raw if key not in _BESIDE_OUTPUT]
    # A slip of another key is told as such, and costs nobody the record.
    strange = [key for key in unknown if key in _ELSEWHERE or _meant(key, raw) in (None, "output")]
    if not strange:
        return
    named = [f"{key!r} is {_ELSEWHERE[key]!r} here" for key in strange if key in _ELSEWHERE]
    remedy = "; ".join(named) or f"{strange[0]!r} is unknown: is it meant to be 'output'?"
    raise _FieldError(f"output: missing, and the record has keys that toolmem does not know: {remedy}")


def _text(raw: Mapping[str, Any], name: str, repairs: Repairs, remedy: str) -> str:
    value = raw.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _FieldError(f"{name}: expected a string, got {_kind(value)}; {remedy}")
    return clean_text(value, repairs)


def _success(value: Any) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise _FieldError(f"success: expected true, false or null (unknown), got {str(value)[:40]!r}")


def _number(value: Any, name: str, remedy: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _FieldError(f"{name}: expected a number or null, got {_kind(value)}; {remedy}")
    if isinstance(value, float) and not math.isfinite(value):
        raise _FieldError(f"{name}: {value} is not a number that can be counted; {remedy}")
    return value


def _time_cost(raw: Mapping[str, Any]) -> float | None:
    value = raw.get("time_cost")
    if value is None or (value == 0 and not isinstance(value, bool) and is_of_reme(raw)):
        return None
    remedy = "use seconds >= 0, or null where unknown"
    number = _number(value, "time_cost", remedy)
    if number < 0:
        raise _FieldError(f"time_cost: {str(number)[:40]} is negative; {remedy}")
    try:
        return float(number)
    except OverflowError:
        raise _FieldError(f"time_cost: too large; {remedy}") from None


def _token_cost(value: Any) -> int | None:
    if value is None:
        return None
    remedy = "use a whole number >= 0, or null where unknown"
    number = _number(value, "token_cost", remedy)
    if number != int(number):
        raise _FieldError(f"token_cost: {number} is not whole; {remedy}")
    if number > MAX_TOKENS:
        raise _FieldError(f"token_cost: larger than {MAX_TOKENS}; {remedy}")
    return int(number) if number >= 0 else None  # ReMe writes -1 where it does not know


def _id(value: Any, repairs: Repairs) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise _FieldError(f"id: expected a string or a whole number, got {_kind(value)}")
    if isinstance(value, int) and value.bit_length() > MAX_ID:
        raise _FieldError("id: the number is too large; pass it as a string")
    text = clean_text(str(value), repairs)
    if len(text) > MAX_ID:
        raise _FieldError(f"id: {len(text)} characters; at most {MAX_ID} are allowed")
    return text if text.strip() else None


def _create_time(value: Any, clock: Clock, time_zone: str, repairs: RecordNotes) -> Any:
    if value is None or (isinstance(value, str) and not value.strip()):  # "" is the default of ReMe's clients
        repairs.timeless += 1
        return clock.now()
    try:
        moment, naive = read_time(value, time_zone)
    except ValueError as error:
        raise _FieldError(f"create_time: {error}") from None
    repairs.naive_times += naive
    return moment


def _metadata(raw: Mapping[str, Any], repairs: RecordNotes) -> dict[str, Any]:
    """The record's metadata and, beside it, every key that toolmem does not know."""
    value = raw.get("metadata")
    if value is not None and not isinstance(value, Mapping):
        raise _FieldError(f"metadata: expected an object or null, got {_kind(value)}")
    metadata: dict[str, Any] = _cleaned(value, "metadata", repairs) if value else {}
    for key in raw.keys() - _KNOWN:
        if not isinstance(key, str):
            raise _FieldError(f"the key {str(key)[:40]!r} is not a string")
    for key, item in raw.items():
        if key not in _KNOWN:
            name = clean_text(key, repairs)
            if (meant := _meant(name, raw)) is not None:
                repairs.misspelt[name[:40]] = meant
            metadata[name if name not in metadata else f"record.{name}"] = _cleaned(item, name[:40], repairs)
    _name_conversation(raw, metadata)
    return metadata


def _name_conversation(raw: Mapping[str, Any], metadata: dict[str, Any]) -> None:
    """What the record itself says of its conversation goes before its metadata; `conversation_id` holds it then."""
    given = raw.get("conversation_id")
    if given is not None and (isinstance(given, bool) or not isinstance(given, str | int)):
        raise _FieldError(f"conversation_id: expected a string or a whole number, got {_kind(given)}")
    told = conversation_told(raw)
    if told is None:
        return
    if len(told) > MAX_ID:
        raise _FieldError(f"conversation_id: {len(told)} characters; at most {MAX_ID} are allowed")
    told = clean_text(told, Repairs())
    if conversation_told(metadata) != told:
        metadata.pop("record.conversation_id", None)
        if "conversation_id" in metadata:
            metadata["metadata.conversation_id"] = metadata["conversation_id"]
        metadata["conversation_id"] = told


def _meant(key: str, raw: Mapping[str, Any]) -> str | None:
    """The known key that this one is most likely a slip of, where the record does not have that one itself."""
    if len(key) > 20:
        return None
    missing = [name for name in GIVEN if len(name) > 2 and name not in raw]
    near = difflib.get_close_matches(key.lower(), missing, 1, 0.8)
    return near[0] if near else None


def misspelt_in_words(misspelt: Mapping[str, str]) -> list[str]:
    """One sentence per key."""
    said = "the key {!r} is unknown and was kept as metadata; did you mean {!r}?"
    return [said.format(key, meant) for key, meant in misspelt.items()]


def _judgement(raw: Mapping[str, Any], repairs: Repairs) -> dict[str, Any]:
    """The verdict that a trusted record carries."""
    score = _score(raw.get("score"))
    status = raw.get("evaluation_status")
    if status not in ("ok", "failed", "pending"):  # nobody says "denied" of a call whose output does not
        status = "ok" if score is not None else "pending"
    execution_failed = raw.get("execution_failed")
    if execution_failed is not None and not isinstance(execution_failed, bool):
        raise _FieldError(f"execution_failed: expected true, false or null, got {_kind(execution_failed)}")
    summarized = raw.get("is_summarized", False)
    if not isinstance(summarized, bool):
        raise _FieldError(f"is_summarized: expected true or false, got {_kind(summarized)}")
    return {
        "summary": _text(raw, "summary", repairs, "pass it as text"),
        "evaluation": _text(raw, "evaluation", repairs, "pass it as text"),
        "score": score,
        "evaluation_status": status,
        "execution_failed": execution_failed,
        "error_class": _text(raw, "error_class", repairs, "pass it as text"),
        "judge": _judge(raw.get("judge")),
        "is_summarized": summarized,
        "seq": _seq(raw.get("seq")),
    }


def _score(value: Any) -> float | None:
    """0.0, 1.0 or None. Scores between fall to the nearer side, as in a model's reply; -1 is ReMe's unknown."""
    if value is None or value == -1:
        return None
    number = _number(value, "score", "use 0.0, 1.0, or null where there is none")
    if not 0 <= number <= 1:
        raise _FieldError(f"score: {str(number)[:40]} is outside 0..1; use 0.0, 1.0, or null where there is none")
    return 1.0 if number >= 0.5 else 0.0


def _seq(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TOKENS:
        raise _FieldError(f"seq: expected a whole number >= 1 or null, got {str(value)[:40]!r}")
    return value


def _judge(value: Any) -> JudgeIdentity | None:
    if value is None:
        return None
    from toolmem.models import JudgeIdentity

    parts = {key: value.get(key) for key in JudgeIdentity.model_fields} if isinstance(value, Mapping) else {}
    if not parts or not all(isinstance(part, str) for part in parts.values()):
        raise _FieldError("judge: expected an object with 'backend', 'model' and 'prompt_version'")
    return JudgeIdentity(**parts)
