"""The protocols (interfaces) by which the parts of toolmem meet. Nothing here knows a backend, a model or a file."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from toolmem.late_dataclasses import dataclass
from toolmem.stored import OF_THE_STORE as OF_THE_STORE
from toolmem.stored import Appended, Document, Hit, RawRecord, Record, Stamped, StoredMemory, Where
from toolmem.workspace_logs import WorkspaceLogs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolmem.engine.guarding import CallGuard
    from toolmem.models import Guidance, JudgeIdentity, ToolCallResult, ToolMemory, ToolRecord, ToolSchema, Verdict


class Clock(Protocol):
    """Time, so that tests can drive it."""

    def now(self) -> datetime:
        """Aware, UTC."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""

    async def sleep(self, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One request to a model, as it is booked."""

    time: datetime
    workspace: str
    flow: str
    op: str
    tool: str
    backend: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    estimated: bool  # counted by the tokenizer, not taken from the reply
    outcome: str  # "ok", "error: <class>", "not_sent" (dry_run)
    seconds: float  # of the request itself
    waited: float = 0.0  # seconds before it, for the pacing gate
    cost: float | None = None
    currency: str = ""


class Meter(Protocol):
    """Books requests: the run's own sums, and the ledger behind it."""

    def book(self, entry: LedgerEntry) -> None: ...


@dataclass(frozen=True, slots=True)
class Purpose:
    """On whose behalf a request to a model is made."""

    workspace: str
    flow: str
    op: str
    tool: str
    meter: Meter

    def book(self, **figures: Any) -> None:
        """Book one request; `figures`: the fields of LedgerEntry that are not told here."""
        self.meter.book(LedgerEntry(workspace=self.workspace, flow=self.flow, op=self.op, tool=self.tool, **figures))


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """Whose vectors these are: those of two identities are never compared."""

    name: str  # "hashing", "dashscope", ...
    model: str
    dimension: int


class Embedder(Protocol):
    """Makes vectors of texts, near each other where the texts mean much the same."""

    @property
    def identity(self) -> EmbedderIdentity: ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32, shape (len(texts), dimension), rows of unit length (a text without content: a zero row)."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply. `sent` is False where the prompt was built and counted, but nobody was asked."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    estimated: bool = False
    sent: bool = True


class LLM(Protocol):
    """A chat model that is given one prompt and gives one text."""

    @property
    def backend(self) -> str: ...

    @property
    def model(self) -> str: ...

    async def complete(self, prompt: str, purpose: Purpose, *, json_reply: bool = False) -> Completion:
        """Raises ModelError. Books every attempt with `purpose.meter`."""


class Tokenizer(Protocol):
    """Counts the tokens of a text as a model does."""

    def count(self, text: str) -> int: ...


class Judge(Protocol):
    """Judges one tool call."""

    @property
    def identity(self) -> JudgeIdentity: ...

    @property
    def paid(self) -> bool:
        """Its verdicts cost requests: each is cached as soon as it is read."""

    async def judge(self, call: ToolCallResult, schema: ToolSchema | None, purpose: Purpose) -> Verdict:
        """Raises ModelError (ReplyUnreadable among them)."""


class GuidanceWriter(Protocol):
    """Distils the judged calls of one tool into guidance."""

    @property
    def author(self) -> str:
        """What wrote it, as "backend/model"."""

    @property
    def prompt_version(self) -> str: ...

    async def write(
        self, tool_name: str, calls: Sequence[ToolCallResult], old: Guidance | None, purpose: Purpose
    ) -> Guidance:
        """`calls`: the window, oldest first, all judged. Raises ModelError."""

    @property
    def edit_version(self) -> str:
        """The prompt version of `edit`; `prompt_version` where both prompts come from one file."""

    async def edit(
        self, tool_name: str, window: Sequence[ToolCallResult], new: Sequence[int], old: Guidance, purpose: Purpose
    ) -> Guidance:
        """Change `old` by what the calls `new` (seqs in `window`) say; it sees no other call.

        The rest of `window` serves to count what a whole summary would have cost. Raises ReplyUnreadable where the
        changes cannot be read or made, else ModelError.
        """


class MemoryStore(WorkspaceLogs, Protocol):
    """What every backend promises; `toolmem.testing.store_contract` is the proof.

    A write that returned survives SIGKILL; readers never see a tool absent during an update; several processes
    may write at once; two workspaces never see each other. Cost never grows with the size of the store, but for
    `search`. Tool names are exact keys: case, commas, spaces, slashes and scripts all count.
    """

    async def open(self) -> None: ...
    async def close(self) -> None: ...

    # -- tool memories
    async def known_ids(self, workspace: str, tool: str, ids: Sequence[str]) -> set[str]:
        """Which of these call ids this tool has ever stored (those trimmed since among them)."""

    async def append_calls(self, workspace: str, tool: str, calls: Sequence[ToolCallResult], keep: int) -> Appended:
        """One commit: each new call gets the next seq and, if it has none, an id; the newest `keep` stay.

        Calls whose id is known are skipped and counted. A denied call (`readers.denied_calls`) enters no window, no
        count and no log. One bad call never takes the others with it. Reads and writes nothing that grows with the
        history or the number of tools. Each new call is logged in the same commit, whether or not the window keeps it.
        """

    async def tool_names(self, workspace: str) -> builtins.list[str]:
        """Sorted by code point."""

    async def records(self, workspace: str, tools: Sequence[str] | None) -> builtins.list[ToolRecord]:
        """Without calls: what the skip needs. In the order asked (None: all, by name); missing ones absent."""

    async def memories(
        self,
        workspace: str,
        tools: Sequence[str] | None,
        *,
        calls: bool = False,
        recent: int | None = None,
        seqs: Mapping[str, Sequence[int]] | None = None,
        known: Mapping[str, Hashable] | None = None,
    ) -> builtins.list[StoredMemory]:
        """In the order asked (None: all, by name); missing ones absent; each one a consistent snapshot.

        `figures` of the newest `recent` kept calls (None: all kept); with `calls=True` the calls themselves as
        well, oldest first; `seqs` (per tool) picks calls by seq instead of `recent`.

        `known`: by tool, the `state` that an earlier answer to the same question bore. A tool whose state is still
        that one comes with its record alone: nothing of it was committed since, by any process.
        """

    async def put_guidance(
        self,
        workspace: str,
        tool: str,
        guidance: Guidance,
        *,
        document: Document,
        guidance_version: int,
    ) -> ToolRecord:
        """Replace the guidance and mark exactly the seqs `guidance.covered` as summarized (earlier ones stay marked).

        Raises Conflict where `guidance_version` is no longer the record's, or the tool is gone.
        """

    async def update_verdicts(
        self, workspace: str, tool: str, verdicts: Mapping[int, ToolCallResult]
    ) -> ToolRecord | None:
        """Replace the judgement of kept calls (by seq), adjust the counters, and count them as new again.

        A seq that is no longer kept is passed over. `guidance_version` grows. None where the tool is gone.
        """

    async def merge(
        self, workspace: str, memory: ToolMemory, keep: int, *, document: Document | None = None
    ) -> Appended:
        """Take over a dumped or copied memory, judgements trusted: replaces nothing, adds and logs calls of a new id.

        A tool that is new here takes over guidance, coverage and lifetime counters as well: the guidance from
        `content`, `author` and `metadata`'s `claims`, `guidance_statistics`, `prompt_version`, `prompt_tokens`,
        `guidance_created_at`, `upkeep`; coverage from `is_summarized`; the counters from `metadata["lifetime"]`.
        `document` is the searchable side of that guidance; without it the text alone can be searched. Calls without
        an id are recognized by their content, so that the same memory merged twice adds nothing.
        """

    async def delete_memories(self, workspace: str, memory_ids: Sequence[str]) -> builtins.list[str]:
        """Delete tools by memory_id, their logged calls with them; answers the ids that were there."""

    async def delete_tools(self, workspace: str) -> int:
        """Every tool memory with its calls, also the logged ones; answers how many tools there were.

        Records, verdicts and logged decisions stay.
        """

    # -- verdict cache
    async def verdicts(self, workspace: str, keys: Sequence[str]) -> dict[str, Verdict]: ...
    async def put_verdicts(self, workspace: str, verdicts: Mapping[str, Verdict]) -> None: ...
    async def verdict_keys(self, workspace: str, after: str = "", limit: int = 1000) -> builtins.list[str]:
        """A page of the cache's keys, sorted: those that follow `after`."""

    # -- keyed records
    async def put(
        self,
        workspace: str,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        *,
        document: Document | None = None,
        expected_version: int | None = None,
    ) -> Record:
        """Upsert. `expected_version`: 0 = must not exist yet, n = must be at n (else Conflict), None = either way."""

    async def get(self, workspace: str, namespace: str, key: str) -> Record | None: ...
    async def list(self, workspace: str, namespace: str) -> builtins.list[Record]:
        """By key. A damaged row never hides the others; it is logged and left out."""

    async def list_raw(
        self, workspace: str, namespaces: Sequence[str] | None, *, prefix: str = "", key_prefix: str = ""
    ) -> builtins.list[RawRecord]:
        """The records of several namespaces at one moment, by namespace and key, not parsed, damaged ones included.

        `namespaces` None: all whose name begins with `prefix`. Only keys that begin with `key_prefix`. Its cost grows
        with what it answers, not with the number of namespaces.
        """

    async def read_stamped(self, workspace: str, keys: Sequence[tuple[str, str]]) -> Stamped:
        """The records of these namespaces and keys as they are now, and the stamp of the workspace's rules.

        The stamp is another one whenever a rule (namespace `tool-*`, key `rule/*`) was written or deleted since, by
        any process, also one that died at once; no two states of the rules have the same. One read, whatever the
        store holds; it sees what was committed before it began.
        """

    async def delete(self, workspace: str, namespace: str, key: str) -> bool: ...
    async def namespaces(self, workspace: str) -> builtins.list[str]: ...
    async def documents(self, workspace: str, namespace: str | None, keys: Sequence[str]) -> dict[str, Document]:
        """The searchable side of these records (`namespace` None: of these tools' guidance), by key.

        Those without one are absent. Vectors are of the embedder that `info` names.
        """

    # -- search
    async def search(
        self,
        workspace: str,
        text: str,
        vector: NDArray[np.float32] | None,
        top_k: int,
        where: Where | None = None,
    ) -> builtins.list[Hit]:
        """Text and cosine legs, fused by reciprocal rank (k = 60), best first.

        An empty `text` skips the text leg, no `vector` the vector leg.
        """

    async def reembed(self, embedder: Embedder, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed every searchable text again and take on the new embedder's identity; answers how many."""

    # -- workspaces and the store itself
    async def workspaces(self) -> builtins.list[str]: ...
    async def delete_workspace(self, workspace: str) -> int:
        """Everything in it, its logs as well; answers how many tool memories there were."""

    async def info(self) -> dict[str, Any]:
        """backend, location, schema_version, embedder, and counts per workspace.

        Counted are tools, calls (those in windows), records, verdicts, logged_calls and decisions.
        """


@runtime_checkable
class ChangesEmbedder(Protocol):
    """What a store may have besides: it can be told to go on with another embedder while it is open."""

    async def stored_embedder(self) -> EmbedderIdentity | None:
        """Whose vectors it holds; None where it holds none yet."""

    def take_vectors_of(self, embedder: EmbedderIdentity) -> None:
        """From now on vectors come from this one. Nothing that is stored changes."""


class ConfiguredOp(Protocol):
    """An op as the configuration bound it: what decides which adapters it gets."""

    @property
    def key(self) -> str: ...

    @property
    def settings(self) -> Any:
        """toolmem.config's OpSettings: names of the llm, the embedding model, the store; language, prompt file."""

    @property
    def params(self) -> Any: ...


class Services(Protocol):
    """Adapters as the configuration chose them for an op."""

    clock: Clock
    settings: Any  # toolmem.config.Settings
    configured: Any  # toolmem.flow.configure.Configured

    async def store(self, op: ConfiguredOp) -> MemoryStore: ...
    async def store_named(self, name: str = "default") -> MemoryStore: ...
    def untrusted(self, store: str = "default") -> str:
        """Why nothing that this open store holds may reach a prompt; "" where it may."""

    async def call_guard(self, workspace_id: str, rules_workspace_id: str = "") -> CallGuard:
        """The guard of a workspace of the default store, as the configuration says. Raises StoreUntrusted, StoreError.

        `rules_workspace_id`: whose rules bind, where it is another.
        """

    async def judge(self, op: ConfiguredOp) -> Judge: ...
    async def writer(self, op: ConfiguredOp) -> GuidanceWriter: ...
    async def embedder(self, op: ConfiguredOp) -> Embedder: ...
    def chat_model(self, op: ConfiguredOp) -> LLM | None:
        """The op's model; None where none is configured."""

    def fan_out(self, op: ConfiguredOp) -> int:
        """How many requests of this op may be under way at once."""

    def interval(self, op: ConfiguredOp) -> float:
        """Seconds between two requests of this op to a model; 0: not paced."""

    def price(
        self, model: str, prompt_tokens: int, completion_tokens: int, cached_tokens: int
    ) -> tuple[float | None, str]:
        """(cost, currency); None where the model has no price."""
