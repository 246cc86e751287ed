"""Merges a dumped or copied memory into a store: what is new is added, nothing is replaced."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from toolmem.errors import RequestError
from toolmem.models import UPKEEP, Guidance, LifetimeCounters, ToolCallResult, ToolMemory, ToolStatistics, merge_ranges
from toolmem.store.codec import CALL_FAULTS, PreparedCall, guidance_json, micros, require_storable
from toolmem.store.semantics import AppendCalls, Found, Intake, admit, fresh
from toolmem.stored import Document


def with_ids(calls: Sequence[ToolCallResult]) -> list[ToolCallResult]:
    """Calls without an id (ReMe gives none) get one made of their content, so that a second load knows them again.

    Two calls that are alike are told apart by their number among their like, in the order of the dump.
    """
    alike: Counter[str] = Counter()
    named = []
    for call in calls:
        if call.id is None and (content := _content_print(call)) is not None:
            alike[content] += 1
            call = call.model_copy(update={"id": f"content-{content}-{alike[content]}"})
        named.append(call)
    return named


def _content_print(call: ToolCallResult) -> str | None:
    """None where the content has no JSON: such a call is refused later, and named."""
    try:
        body = [call.input, call.output, call.success, micros(call.create_time), call.time_cost, call.token_cost]
        return sha256(json.dumps([*body, call.context], sort_keys=True).encode()).hexdigest()[:24]
    except CALL_FAULTS:
        return None


def guidance_of(memory: ToolMemory) -> Guidance | None:
    """What a memory says of its guidance; its coverage is told by the calls.

    Raises RequestError where `metadata` holds something else under the names that `MemoryStore.merge` lists.
    """
    if not memory.content:
        return None
    metadata = memory.metadata
    upkeep = metadata.get("upkeep") or {}
    try:
        if not isinstance(upkeep, Mapping):
            raise ValueError(f"upkeep: expected an object, got {type(upkeep).__name__}")
        return Guidance(
            text=memory.content,
            claims=metadata.get("claims") or [],
            statistics=metadata.get("guidance_statistics") or ToolStatistics(),
            author=memory.author,
            prompt_version=metadata.get("prompt_version") or "",
            prompt_tokens=metadata.get("prompt_tokens") or 0,
            created_at=metadata.get("guidance_created_at") or memory.time_modified,
            **{name: upkeep[name] for name in UPKEEP if name in upkeep},
        )
    except ValueError as error:
        raise RequestError(f"metadata of {memory.when_to_use!r}: not a guidance: {error}", field="metadata") from error


def guidance_here(memory: ToolMemory, new: Sequence[PreparedCall], first: int) -> Guidance | None:
    """The guidance of a tool that is taken over with the calls `new`, which get the seqs from `first` on.

    Where these are other seqs than they had, what the guidance knows by seq is told by the new ones. Raises
    RequestError like `guidance_of`.
    """
    guidance = guidance_of(memory)
    if guidance is None:
        return None
    covered = [seq for seq, item in enumerate(new, first) if item.call.is_summarized]
    update: dict[str, Any] = {"covered": covered}
    had = [item.call.seq for item in new]

    def here(seq: int) -> int:
        return first - 1 + sum(one is not None and one <= seq for one in had)

    history = guidance.history
    if history is not None and (not had or had != list(range(first, first + len(had)))):
        update["history"] = history.model_copy(update={"last_seq": here(history.last_seq)})
    return guidance.model_copy(update=update)


def lifetime_of(memory: ToolMemory) -> LifetimeCounters | None:
    """The lifetime counters in `metadata.lifetime`. Raises RequestError where there is something else."""
    value = memory.metadata.get("lifetime")
    if value is None:
        return None
    try:
        counters = LifetimeCounters.model_validate(value)
        if counters.since is not None:
            micros(counters.since)
        if not (math.isfinite(counters.score_sum) and math.isfinite(counters.time_sum)):
            raise ValueError("a sum is not finite")
    except ValueError as error:
        raise RequestError(
            f"metadata.lifetime of {memory.when_to_use!r}: {error}", field="metadata.lifetime"
        ) from error
    return counters


def check_memory(memory: ToolMemory) -> None:
    """Raises RequestError where the memory itself, its calls aside, cannot be taken over."""
    require_storable(memory.when_to_use, "when_to_use")
    require_storable(memory.memory_id, "memory_id")
    if not memory.when_to_use:
        raise RequestError("when_to_use: expected the tool's name, got ''", field="when_to_use")
    for field in ("time_created", "time_modified"):
        try:
            micros(getattr(memory, field))
        except ValueError as error:
            raise RequestError(f"{field}: {error}", field=field) from error


class Merge(AppendCalls):
    """As an append; a tool that is new here takes over guidance, coverage, times and counters as well."""

    makes_tools = brings_guidance = True

    def __init__(self, now: datetime, workspace: str, memory: ToolMemory, keep: int, document: Document | None) -> None:
        super().__init__(now, workspace, memory.when_to_use, lambda: with_ids(memory.tool_call_results), keep)
        check_memory(memory)
        self.memory_id = memory.memory_id
        self._memory = memory
        self._document = document

    def _intake(self, found: Found, new: Sequence[PreparedCall]) -> Intake:
        """Seqs are taken over where they have no gaps."""
        if found.row is not None:
            return super()._intake(found, new)
        memory = self._memory
        before = fresh(self.tool, self.now, None if found.taken else memory.memory_id)
        seqs = [item.call.seq for item in new]
        if new and seqs[0] and seqs[0] > 0 and seqs == list(range(seqs[0], seqs[0] + len(seqs))):
            before.first_seq, before.last_seq = seqs[0], seqs[0] - 1
        first = before.last_seq + 1
        before.covered = merge_ranges([seq for seq, item in enumerate(new, first) if item.call.is_summarized])
        row, entering = admit(before, new, self._keep)
        guidance = guidance_here(memory, new, first)
        lifetime = lifetime_of(memory)
        row = row.changed(
            micros(memory.time_modified),
            time_created=micros(memory.time_created),
            counters=lifetime if lifetime is not None and lifetime.calls >= row.counters.calls else row.counters,
            guidance=guidance,
            guidance_version=int(guidance is not None),
        )
        document = self._document or Document(f"{self.tool}\n{memory.content}")
        if guidance is None:
            return Intake(before, row, entering)
        return Intake(before, row, entering, document, guidance_json(guidance))
