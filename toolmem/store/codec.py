"""What the rows of the store hold, and how it turns back into models."""

from __future__ import annotations

import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from toolmem.errors import RequestError
from toolmem.late import late_logger
from toolmem.late_dataclasses import dataclass
from toolmem.light_models import conversation_told
from toolmem.readers.denied_calls import is_denied
from toolmem.stored import CallFailure

if TYPE_CHECKING:
    from toolmem.models import Guidance, ToolCallResult

logger = late_logger("toolmem.store")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MAX_PAYLOAD_CHARACTERS = 200_000_000  # SQLite takes up to 1 GB of UTF-8 in a row
MAX_INTEGER = 2**63 - 1

# What a call may raise on its way in or out; everything else is the store's fault, not the call's.
CALL_FAULTS = (ValueError, TypeError, KeyError, RecursionError, OverflowError)

Ranges = list[tuple[int, int]]


def micros(moment: datetime) -> int:
    """Microseconds since 1970. Raises ValueError where the time has no zone."""
    if moment.tzinfo is None:
        raise ValueError(f"the time {moment.isoformat()} has no time zone")
    return (moment - EPOCH) // MICROSECOND


def moment(microseconds: int) -> datetime:
    """The time at so many microseconds since 1970, in UTC."""
    return EPOCH + microseconds * MICROSECOND


_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def dump_json(value: Any) -> str:
    """Compact JSON that reads back as the same value.

    Raises ValueError (NaN, infinity, lone surrogates, circles), TypeError (no JSON type) or RecursionError.
    """
    text = _compact(value)
    require_unicode(text)
    return text


def require_unicode(text: str) -> None:
    """Raises ValueError where the text holds a lone surrogate, which no UTF-8 can carry."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"lone surrogate {text[error.start]!r} at character {error.start}; replace it, e.g. by U+FFFD"
            ) from error


def storable(text: str) -> bool:
    """Whether the store can hold this text at all."""
    try:
        require_unicode(text)
    except ValueError:
        return False
    return True


def storables(names: Iterable[str]) -> list[str]:
    """The names that there can be anything of."""
    return [name for name in names if storable(name)]


def unnameable(*asked: Any) -> bool:
    """Whether a text among these cannot be stored: then there is nothing of that name."""
    return not all(storable(each) for each in asked if isinstance(each, str))


def require_storable(text: str, field: str) -> None:
    """Raises RequestError where the text holds what no store can keep."""
    try:
        require_unicode(text)
    except ValueError as error:
        raise RequestError(f"{field}: {error}", field=field) from error


def require_names(workspace: str, tool: str = "any") -> None:
    """What a first write needs. Raises RequestError."""
    for field_name, name in (("workspace", workspace), ("tool", tool)):
        require_storable(name, field_name)
        if not name:
            raise RequestError(f"{field_name}: expected a name, got ''", field=field_name)


def digest(call_id: str) -> bytes:
    """16 bytes that stand for a call id, so that ids ever seen stay compact."""
    return blake2b(call_id.encode(), digest_size=16).digest()


def conversation_digest(metadata: Mapping[str, Any]) -> bytes | None:
    """Stands for the conversation that a call's metadata tells; None where it tells none."""
    told = conversation_told(metadata)
    return None if told is None else digest(told)


# -- ranges of seqs


def read_ranges(text: str) -> Ranges:
    """Ranges from their JSON text."""
    return [(low, high) for low, high in json.loads(text)] if text != "[]" else []


def write_ranges(ranges: Sequence[tuple[int, int]]) -> str:
    """Ranges as JSON text."""
    return json.dumps(ranges, separators=(",", ":"))


def clip(ranges: Iterable[tuple[int, int]], first: int, last: int) -> Ranges:
    """What of the ranges lies between `first` and `last`, both included."""
    return [(max(low, first), min(high, last)) for low, high in ranges if high >= first and low <= last]


def members(ranges: Iterable[tuple[int, int]]) -> set[int]:
    """Every number in the ranges."""
    return {seq for low, high in ranges for seq in range(low, high + 1)}


def without(ranges: Iterable[tuple[int, int]], seqs: Iterable[int]) -> Ranges:
    """The ranges less single seqs."""
    remaining = list(ranges)
    for seq in seqs:
        remaining = [
            part
            for low, high in remaining
            for part in (((low, seq - 1), (seq + 1, high)) if low <= seq <= high else ((low, high),))
            if part[0] <= part[1]
        ]
    return remaining


# -- calls

# Texts of a call that its payload holds where they are not empty.
_TEXTS = ("output", "context", "summary", "evaluation", "error_class")


def call_payload(call: ToolCallResult, call_id: str | None) -> str:
    """The JSON of what the columns of a call's row do not hold.

    Raises ValueError, TypeError or RecursionError where the call cannot be kept as it is.
    """
    body: dict[str, Any] = {"create_time": micros(call.create_time), "input": call.input}
    for name in _TEXTS:
        if text := getattr(call, name):
            body[name] = text
    if call_id is not None:
        body["id"] = call_id
    if call.metadata:
        body["metadata"] = call.metadata
    if call.evaluation_status != "ok":
        body["evaluation_status"] = call.evaluation_status
    text = dump_json(body)
    if len(text) > MAX_PAYLOAD_CHARACTERS:
        raise ValueError(f"{len(text):,} characters, more than the {MAX_PAYLOAD_CHARACTERS:,} that a call may have")
    return text


def check_call(call: ToolCallResult, tool: str) -> None:
    """Raises ValueError where a call must not enter a tool's record. What every backend refuses alike."""
    if call.tool_name != tool:
        raise ValueError(f"is a call of {call.tool_name!r}, not of {tool!r}")
    if not isinstance(call.input, dict | list | str):
        raise ValueError(f"input: expected an object, a list or text, got {type(call.input).__name__}")
    for name in _TEXTS:
        if not isinstance(getattr(call, name), str):
            raise ValueError(f"{name}: expected text, got {type(getattr(call, name)).__name__}")
    if not isinstance(call.metadata, Mapping):
        raise ValueError(f"metadata: expected an object, got {type(call.metadata).__name__}")
    for name in ("score", "time_cost"):
        number = getattr(call, name)
        if number is not None and not (math.isfinite(number) and number >= 0):
            raise ValueError(f"{name}: expected a finite number >= 0 or null, got {number!r}")
    if call.token_cost is not None and not 0 <= call.token_cost <= MAX_INTEGER:
        raise ValueError(f"token_cost: expected an integer >= 0 or null, got {call.token_cost!r}")
    if call.id is not None and (not isinstance(call.id, str) or not call.id):
        raise ValueError(f"id: expected text that is not empty, or null, got {call.id!r}")


def lacks_verdict(call: ToolCallResult) -> bool:
    """Whether the call waits for a judge."""
    return call.score is None or call.evaluation_status != "ok"


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call that the store can keep, and its payload, made before a lock is taken."""

    index: int
    call: ToolCallResult
    payload: str


def prepare(tool: str, calls: Iterable[ToolCallResult]) -> tuple[list[PreparedCall], list[CallFailure]]:
    """Check and encode each call that ran; those that cannot be kept are named. A denied call counts nowhere."""
    good: list[PreparedCall] = []
    bad: list[CallFailure] = []
    for index, call in enumerate(calls):
        try:
            require_unicode(tool)
            item = prepared(index, call, tool, call.id)
        except ValueError as error:
            bad.append(CallFailure(index, tool, f"{error}"))
        else:
            good += [] if is_denied(call.output) else [item]
    return good, bad


def prepared(index: int, call: ToolCallResult, tool: str, call_id: str | None) -> PreparedCall:
    """Raises ValueError where the call cannot be kept."""
    try:
        check_call(call, tool)
        return PreparedCall(index, call, call_payload(call, call_id))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except CALL_FAULTS as error:
        raise ValueError(f"{error}") from error


def require_keep(keep: int) -> None:
    """Raises RequestError where fewer than one call would be kept."""
    if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
        raise RequestError(f"keep: expected an integer >= 1, got {keep!r}", field="keep")


# -- guidance


def guidance_json(guidance: Guidance) -> str:
    """Raises RequestError where the guidance holds what cannot be stored."""
    try:
        text = guidance.model_dump_json()
        require_unicode(text)
    except ValueError as error:
        raise RequestError(f"guidance: {error}", field="guidance") from error
    return text


class GuidanceCache:
    """Parsed guidance, for one opening of one store: parsing is nine tenths of reading a record. For any thread.

    A key stands for one guidance for good, so only what is committed may be asked for: a version that is being written
    may be taken back and be given to another guidance. Hands out copies, because callers may change what they get.
    """

    def __init__(self, capacity: int = 4096) -> None:
        self.opening: Hashable = object()  # another one each time: in between the file may have been replaced
        self._capacity = capacity
        self._kept: OrderedDict[Hashable, Guidance | None] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, tool: str, read: Callable[[], str | None]) -> Guidance | None:
        """`read` gives the JSON where the key is not known yet.

        A guidance that cannot be read any more is logged and treated as absent: the tool is summarized again.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return copied(self._kept[key])
        from toolmem.models import Guidance

        try:
            text = read()
            parsed = None if text is None else Guidance.model_validate_json(text)
        except ValueError as error:
            logger.error("the guidance of tool %r is damaged and left out: %s", tool, type(error).__name__)
            parsed = None
        self.keep(key, parsed)
        return copied(parsed)

    def keep(self, key: Hashable, guidance: Guidance | None) -> None:
        with self._lock:
            self._kept[key] = guidance
            while len(self._kept) > self._capacity:
                self._kept.popitem(last=False)


def copied(guidance: Guidance | None) -> Guidance | None:
    """A copy whose lists and statistics are its own. What is frozen (the claims) is shared."""
    if guidance is None:
        return None
    own = {
        "claims": [*guidance.claims],
        "covered": [*guidance.covered],
        "statistics": guidance.statistics.model_copy(),
    }
    return guidance.model_copy(update=own)
