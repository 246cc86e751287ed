"""Copying one store into another, whatever their backends: on the protocol alone, one tool at a time.

A copy replaces nothing. What is there already is recognized (calls by their id, records by their value), so that a copy
that was interrupted goes on where it stopped, and one that is run twice adds nothing. Afterwards everything is read
back from both sides and compared.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from toolmem.errors import Conflict
from toolmem.models import ToolCallResult, ToolMemory
from toolmem.protocols import Embedder, MemoryStore
from toolmem.readers.plain_text import counted
from toolmem.store.masked import take_over_key
from toolmem.stored import Appended, CallFailure, Document, LoggedCall, LoggedDecision, Record, StoredMemory

KEEP_ALL = 2**31 - 1  # a copy keeps what it finds
PAGE = 500  # verdicts, or texts handed to an embedder, at once
MAX_DIFFERENCES = 50  # spelled out

Progress = Callable[[str, int, int], None]  # what, how many are done, of how many


@dataclass
class Copied:
    """What a copy did. `differences`: what the verification found, in words; empty: both sides hold the same."""

    tools: int = 0
    calls: int = 0  # added
    duplicates: int = 0  # calls that were there already
    records: int = 0  # added
    kept: int = 0  # records that were there already, with the same or another value
    verdicts: int = 0  # added
    decisions: int = 0  # added
    failures: list[CallFailure] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    different: int = 0  # how many there are in all

    def took(self, appended: Appended) -> None:
        self.tools += 1
        self.calls += appended.stored
        self.duplicates += len(appended.duplicates)
        self.failures += appended.failures

    def differs(self, what: str) -> None:
        self.different += 1
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(what)


class Copy:
    """`embedder`: the target's. Vectors are taken over where the source's come from the same one, and made anew
    otherwise; None: texts without vectors stay so.
    """

    def __init__(
        self,
        source: MemoryStore,
        target: MemoryStore,
        *,
        embedder: Embedder | None,
        progress: Progress | None = None,
    ) -> None:
        self._source = source
        self._target = target
        self._embedder = embedder
        self._progress = progress or (lambda what, done, total: None)
        self._same_embedder = False

    async def run(self, workspaces: Sequence[str] | None = None) -> Copied:
        """Copy and verify these workspaces (None: all). Raises StoreError and ModelError; run it again to go on."""
        info = await self._source.info()
        stored = info["embedder"]
        if self._embedder is not None and stored is not None:
            self._same_embedder = stored == asdict(self._embedder.identity)
        chosen = list(info["workspaces"]) if workspaces is None else [w for w in workspaces if w in info["workspaces"]]
        done = Copied()
        await take_over_key(self._source, self._target)
        for workspace in chosen:
            await self._copy_tools(workspace, done)
            await self._copy_records(workspace, done)
            await self._copy_verdicts(workspace, done)
            await self._copy_decisions(workspace, done)
        for workspace in chosen:
            await self._verify(workspace, done)
        return done

    # -- copying

    async def _copy_tools(self, workspace: str, done: Copied) -> None:
        names, there = await self._source.tool_names(workspace), set(await self._target.tool_names(workspace))
        for number, name in enumerate(names, 1):
            for stored in await self._source.memories(workspace, [name], calls=True):
                held = await self._documents(await self._source.documents(workspace, None, [name]))
                memory = with_logged(stored, await _logged(self._source, workspace, name))
                # where the tool is new, its window is the source's; elsewhere what is new comes after what is there
                keep = KEEP_ALL if name in there else max(len(stored.calls), 1)
                appended = await self._target.merge(workspace, memory, keep, document=held.get(name))
                done.took(appended)
            self._progress(f"{workspace}: tools", number, len(names))

    async def _copy_records(self, workspace: str, done: Copied) -> None:
        spaces = await self._source.namespaces(workspace)
        for number, namespace in enumerate(spaces, 1):
            there = {record.key: record for record in await self._target.list(workspace, namespace)}
            records = await self._source.list(workspace, namespace)
            missing = sorted((r for r in records if r.key not in there), key=lambda r: (r.time_created, r.key))
            done.kept += len(records) - len(missing)
            for first in range(0, len(missing), PAGE):
                await self._put(workspace, namespace, missing[first : first + PAGE], done)
            self._progress(f"{workspace}: records by namespace", number, len(spaces))

    async def _put(self, workspace: str, namespace: str, records: Sequence[Record], done: Copied) -> None:
        """In the order in which they were made, so that the target's times have the same order."""
        held = await self._source.documents(workspace, namespace, [record.key for record in records])
        documents = await self._documents(held)
        for record in records:
            try:
                await self._target.put(
                    workspace,
                    namespace,
                    record.key,
                    record.value,
                    document=documents.get(record.key),
                    expected_version=0,
                )
                done.records += 1
            except Conflict:  # somebody wrote it meanwhile; the verification says whether it differs
                done.kept += 1

    async def _copy_verdicts(self, workspace: str, done: Copied) -> None:
        total = (await self._source.info())["workspaces"].get(workspace, {}).get("verdicts", 0)
        read = 0
        async for keys in _pages(self._source, workspace):
            there = await self._target.verdicts(workspace, keys)
            missing = await self._source.verdicts(workspace, [key for key in keys if key not in there])
            await self._target.put_verdicts(workspace, missing)
            done.verdicts += len(missing)
            read += len(keys)
            self._progress(f"{workspace}: verdicts", read, max(total, read))

    async def _copy_decisions(self, workspace: str, done: Copied) -> None:
        decided = (await _decisions(self._source, workspace))[::-1]
        there = {each.id for each in await _decisions(self._target, workspace)}
        for number, decision in enumerate(decided, 1):
            if decision.id not in there:
                await self._target.log_decision(workspace, decision)
                done.decisions += 1
            self._progress(f"{workspace}: decisions", number, len(decided))

    async def _documents(self, held: dict[str, Document]) -> dict[str, Document]:
        if self._same_embedder or self._embedder is None:
            return {key: each if self._same_embedder else Document(each.text) for key, each in held.items()}
        embedded = [key for key, each in held.items() if each.vector is not None]
        vectors = await self._embedder.embed([held[key].text for key in embedded]) if embedded else ()
        fresh = dict(zip(embedded, vectors, strict=True))
        return {key: Document(each.text, fresh.get(key)) for key, each in held.items()}

    # -- verifying

    async def _verify(self, workspace: str, done: Copied) -> None:
        names = await self._source.tool_names(workspace)
        for number, name in enumerate(names, 1):
            ours = await self._source.memories(workspace, [name], calls=True)
            theirs = await self._target.memories(workspace, [name], calls=True)
            for stored in ours:
                _compare_memories(workspace, stored, theirs[0] if theirs else None, done)
            copied_ids = {each.id for each in await _logged(self._target, workspace, name)}
            missing = sum(each.id not in copied_ids for each in await _logged(self._source, workspace, name))
            if missing:
                done.differs(f"{workspace}: {counted(missing, 'logged call')} of tool {name!r} missing")
            self._progress(f"{workspace}: tools verified", number, len(names))
        for namespace in await self._source.namespaces(workspace):
            copied = {record.key: record.value for record in await self._target.list(workspace, namespace)}
            for record in await self._source.list(workspace, namespace):
                if copied.get(record.key) != record.value:
                    state = "differs" if record.key in copied else "is missing"
                    done.differs(f"{workspace}: record {record.key!r} of {namespace!r} {state}")
        there = {each.id: each for each in await _decisions(self._target, workspace)}
        for decision in await _decisions(self._source, workspace):
            if there.get(decision.id) != decision:
                done.differs(f"{workspace}: the decision {decision.id!r} is missing or differs")
        async for keys in _pages(self._source, workspace):
            wanted, found = await self._source.verdicts(workspace, keys), await self._target.verdicts(workspace, keys)
            for key in wanted:
                if found.get(key) != wanted[key]:
                    state = "differs" if key in found else "is missing"
                    done.differs(f"{workspace}: the cached verdict {key!r} {state}")


async def _logged(store: MemoryStore, workspace: str, tool: str) -> list[ToolCallResult]:
    """All logged calls of a tool, oldest first."""
    found: list[LoggedCall] = []
    while page := await store.call_log(workspace, tool=tool, after=found[-1].position if found else 0, limit=PAGE):
        found += page
    return [each.call for each in found]


async def _decisions(store: MemoryStore, workspace: str) -> list[LoggedDecision]:
    return await store.decisions(workspace, limit=KEEP_ALL)


def with_logged(stored: StoredMemory, logged: Sequence[ToolCallResult]) -> ToolMemory:
    """A stored memory in the words of `MemoryStore.merge`, and before its kept calls those that left the window."""
    memory, kept = whole_memory(stored), {call.id for call in stored.calls}
    dropped = [call for call in logged if call.id not in kept]
    first = stored.calls[0].seq if stored.calls else None
    if dropped and first is not None and first > len(dropped):  # without a gap, so that the seqs are taken over
        numbered = enumerate(dropped, first - len(dropped))
        dropped = [call.model_copy(update={"seq": seq}) for seq, call in numbered]
    return memory.model_copy(update={"tool_call_results": [*dropped, *memory.tool_call_results]})


async def _pages(store: MemoryStore, workspace: str) -> AsyncIterator[list[str]]:
    after = ""
    while keys := await store.verdict_keys(workspace, after, PAGE):
        yield keys
        after = keys[-1]


def _compare_memories(workspace: str, ours: StoredMemory, theirs: StoredMemory | None, done: Copied) -> None:
    name = ours.record.tool_name
    if theirs is None:
        done.differs(f"{workspace}: tool {name!r} is missing")
        return
    copied = {call.id: _content(call) for call in theirs.calls}
    missing = [call.id for call in ours.calls if copied.get(call.id) != _content(call)]
    if missing:
        done.differs(
            f"{workspace}: {counted(len(missing), 'call')} of tool {name!r} missing or different, e.g. {missing[0]!r}"
        )
    if theirs.record.counters.calls < ours.record.counters.calls:
        done.differs(
            f"{workspace}: tool {name!r} counts {counted(theirs.record.counters.calls, 'call')} in its lifetime, "
            f"the source {ours.record.counters.calls}"
        )
    texts = [each.record.guidance.text if each.record.guidance else "" for each in (ours, theirs)]
    if texts[0] and texts[0] != texts[1]:
        done.differs(f"{workspace}: tool {name!r} keeps the guidance that it had in the target")


def _content(call: ToolCallResult) -> ToolCallResult:
    """Without what each store decides for itself."""
    return call.model_copy(update={"seq": None, "is_summarized": False})


def whole_memory(stored: StoredMemory) -> ToolMemory:
    """A stored memory in the words of `MemoryStore.merge`, with everything that it can take over."""
    record, guidance = stored.record, stored.record.guidance
    metadata: dict[str, Any] = {"lifetime": record.counters.model_dump(mode="json")}
    if guidance is not None:
        metadata |= {
            "claims": [claim.model_dump(mode="json") for claim in guidance.claims],
            "guidance_statistics": guidance.statistics.model_dump(mode="json"),
            "prompt_version": guidance.prompt_version,
            "prompt_tokens": guidance.prompt_tokens,
            "guidance_created_at": guidance.created_at.isoformat() if guidance.created_at else None,
            "upkeep": guidance.upkeep(),
        }
    return ToolMemory(
        workspace_id=record.workspace,
        memory_id=record.memory_id,
        when_to_use=record.tool_name,
        content=guidance.text if guidance else "",
        score=None,
        time_created=record.time_created,
        time_modified=record.time_modified,
        author=guidance.author if guidance else "",
        tool_call_results=list(stored.calls),
        metadata=metadata,
    )


async def take_over(
    target: MemoryStore,
    workspace: str,
    memories: Iterable[ToolMemory],
    *,
    embedder: Embedder | None,
    progress: Callable[[int], None] | None = None,
) -> Copied:
    """Merge memories that were read from a file. The same file twice adds nothing."""
    done = Copied()
    for memory in memories:
        document = None
        if memory.content:
            text = f"{memory.when_to_use}\n{memory.content}"
            document = Document(text, None if embedder is None else (await embedder.embed([text]))[0])
        appended = await target.merge(workspace, memory, KEEP_ALL, document=document)
        done.took(appended)
        if progress is not None:
            progress(done.tools)
    return done
