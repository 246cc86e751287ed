"""The types that a store takes and answers: records, documents, filters, hits, logs, what became of an append."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from toolmem.errors import RequestError
from toolmem.late_dataclasses import dataclass, field

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolmem.models import CallFigures, ToolCallResult, ToolRecord

OF_THE_STORE = ".store"  # the workspace of what belongs to the store itself; `workspaces` and `info` leave it out


@dataclass(frozen=True, slots=True)
class CallFailure:
    """One call that was not stored. `index`: its position in what was handed over, from 0."""

    index: int
    tool_name: str
    error: str


@dataclass(frozen=True, slots=True)
class Appended:
    """What `append_calls` did."""

    record: ToolRecord | None  # None only where nothing was stored and the tool is unknown
    stored: int  # new calls counted (those trimmed at once among them)
    duplicates: tuple[int, ...] = ()  # positions of calls whose id was known already
    trimmed: int = 0  # calls that left the window, or never entered it
    failures: tuple[CallFailure, ...] = ()


class BesideCalls(Protocol):
    """What a commit of calls changes in keyed records."""

    def prepare(self, kept: Sequence[Any]) -> None:
        """Before a lock is taken. `kept`: the calls as the store keeps them, in the order in which they were given."""

    def change(self, records: RecordsOfCommit, appended: Mapping[str, Appended]) -> None:
        """Inside the commit. `appended`: by tool; its positions are those among the tool's calls."""


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A tool record with its kept calls (oldest first)."""

    record: ToolRecord
    figures: tuple[CallFigures, ...] = ()
    calls: tuple[ToolCallResult, ...] = ()
    state: Hashable = field(default=None, compare=False)  # see `MemoryStore.memories`; None: the store tells none


@dataclass(frozen=True, slots=True)
class Record:
    """A keyed record. `value` is a JSON object."""

    namespace: str
    key: str
    value: dict[str, Any]
    version: int  # 1 at the first put
    time_created: datetime
    time_modified: datetime


class RawRecord(NamedTuple):
    """A keyed record as it is stored, for readers of many."""

    namespace: str
    key: str
    text: str  # the value's JSON, unless it is damaged
    version: int
    born: int  # `time_created` in microseconds since 1970, UTC
    modified: int = 0  # `time_modified`, the same


class RecordsOfCommit(Protocol):
    """The keyed records of a workspace inside a commit."""

    now: int  # microseconds since 1970, UTC

    def get(self, namespace: str, key: str) -> RawRecord | None: ...
    def put(self, held: RawRecord | None, namespace: str, key: str, value: Mapping[str, Any]) -> None:
        """Write it. `held`: what `get` answered in this commit."""

    def of(self, namespace: str) -> list[RawRecord]: ...
    def delete(self, namespace: str, key: str) -> None: ...


class Stamped(NamedTuple):
    """Records as they are now, and a mark of the state of the workspace's rules: see `MemoryStore.read_stamped`."""

    stamp: str
    records: tuple[RawRecord | None, ...]  # as asked; None where there is none


@dataclass(frozen=True, slots=True)
class LogLimits:
    """How much the logs of each workspace hold; beyond it the oldest entries go."""

    max_calls: int = 100_000
    max_bytes: int = 1_000_000_000  # of logged calls, each as long as it was when it came
    max_decisions: int = 100_000

    def __post_init__(self) -> None:
        for name in ("max_calls", "max_bytes", "max_decisions"):
            limit = getattr(self, name)
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
                raise RequestError(f"log.{name}: expected a whole number of at least 1, got {limit!r}", field="log")


class LoggedCall(NamedTuple):
    """A call in the call log."""

    position: int  # grows with each call that the workspace takes in
    call: ToolCallResult  # its judgement as it is now; `seq` and `is_summarized`, which the window gives, are not set


Outcome = Literal["", "worked", "failed", "not_run", "unknown"]


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """What the guard decided about one call, and what became of the call."""

    id: str
    time: datetime
    conversation_id: str
    tool_name: str
    input: str  # JSON, secrets masked
    action: str
    reason: str
    advice: str
    mode: str
    sources: list[dict[str, Any]] = field(default_factory=list)
    forced: bool = False  # it ran all the same
    outcome: Outcome = ""  # "": not known yet
    call_id: str = ""  # of the call as it was stored


@dataclass(frozen=True, slots=True)
class Document:
    """The searchable side of a keyed record or of a tool's guidance."""

    text: str
    vector: NDArray[np.float32] | None = None  # unit length, from the embedder that the store was opened with


@dataclass(frozen=True, slots=True)
class Where:
    """Filters of a search.

    `namespace`: None searches tool guidance, a name searches the keyed records of that namespace.
    `keys`: only these tools (or record keys). `equals`: fields of a record's value that must equal, or, for a
    list field, contain, the given value. `modified_since`: only what changed at or after this time.
    """

    namespace: str | None = None
    keys: tuple[str, ...] | None = None
    equals: Mapping[str, Any] = field(default_factory=dict)
    modified_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """What a search found, and how near it is."""

    key: str  # the tool's name, or the record's key
    score: float  # reciprocal rank fusion of the legs; only its order means something
    similarity: float | None  # cosine in [-1, 1]; None where the vector leg was not asked
    text_rank: int | None  # from 1; None where the text leg did not find it
    vector_rank: int | None
