"""The kinds of commit: calls added, a memory taken over, guidance put, verdicts replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from toolmem.errors import Conflict, RequestError
from toolmem.models import Guidance, ToolCallResult, ToolMemory, ToolRecord, merge_ranges
from toolmem.store.codec import (
    call_payload,
    check_call,
    clip,
    lacks_verdict,
    micros,
    require_storable,
    without,
)
from toolmem.store.elastic import embedders, failures
from toolmem.store.elastic.call_documents import kept_calls, write_operation
from toolmem.store.elastic.commits import Step
from toolmem.store.elastic.connection import ItemResult, Operation
from toolmem.store.elastic.ids import known, owed
from toolmem.store.elastic.leftovers import look_for_id, names_tool
from toolmem.store.elastic.names import id_doc_id
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.tool_state import Run, ToolState, clip_runs, new_state, put_run
from toolmem.store.merging import guidance_here, lifetime_of
from toolmem.store.sqlite.tool_rows import count_outcome
from toolmem.store.sqlite.tool_writes import CALL_FAULTS, Admission, Prepared, PreparedCall, admit, guidance_json
from toolmem.stored import Appended, CallFailure, Document


class AppendPlan:
    """Add the calls whose id is new, and keep the newest `keep`."""

    def __init__(
        self, session: Session, now: datetime, workspace: str, tool: str, prepared: Prepared, keep: int
    ) -> None:
        self.workspace = workspace
        self.tool = tool
        self._session = session
        self._now = micros(now)
        self._good, bad = prepared
        self._failures = {failure.index: failure for failure in bad}
        self._keep = keep
        self._given = list(dict.fromkeys(item.call.id for item in self._good if item.call.id is not None))
        self._known: set[str] = set()
        self._checked: list[str] = []
        self._written: list[PreparedCall] = []

    def _id_document(self, call_id: str) -> str:
        return id_doc_id(self.workspace, self.tool, call_id)

    def requests(self) -> list[dict[str, Any]]:
        return [{"_index": self._session.layout.alias("ids"), "_id": self._id_document(each)} for each in self._given]

    async def decide(self, state: ToolState | None, found: Sequence[dict[str, Any]]) -> Step[Appended]:
        self._checked = []
        if state is not None:
            self._recognize(state, found[: len(self._given)])
        new, duplicates = self._unseen()
        if state is None or not self._is_stored(state):
            return await self._decide_unknown_tool(new, duplicates)
        if not new and not owed(self._session, state, self._given, found):
            return Step(Appended(state.record, 0, duplicates, 0, self._failed()))
        if not new:
            outcome = Appended(_next(state), 0, duplicates, 0, self._failed())
            return Step(outcome, state, leaving=[])
        state.row.time_modified = self._now
        return self._step(state, new, duplicates, admit(state.row, new, self._keep))

    @staticmethod
    def _is_stored(state: ToolState) -> bool:
        return state.position is not None

    async def _decide_unknown_tool(self, new: list[PreparedCall], duplicates: tuple[int, ...]) -> Step[Appended]:
        if not new:
            return Step(Appended(None, 0, duplicates, 0, self._failed()))
        require_names(self.workspace, self.tool)
        state = new_state(self.workspace, self.tool, self._now)
        return self._step(state, new, duplicates, admit(state.row, new, self._keep))

    def _recognize(self, state: ToolState, found: Sequence[Mapping[str, Any]]) -> None:
        self._known = known(state, self._given, found)  # anew: an earlier attempt may have read what was undone
        # The id documents were read with the record, not after it: a commit may have come between the two. The bulk,
        # which is sent later, looks again.
        self._checked = [call_id for call_id in self._given if call_id not in self._known]

    def _unseen(self) -> tuple[list[PreparedCall], tuple[int, ...]]:
        new: list[PreparedCall] = []
        duplicates: list[int] = []
        seen = set(self._known)
        for item in self._good:
            if item.index in self._failures:
                continue
            if item.call.id is not None and item.call.id in seen:
                duplicates.append(item.index)
                continue
            new.append(item)
            if item.call.id is not None:
                seen.add(item.call.id)
        return new, tuple(duplicates)

    def _step(
        self, state: ToolState, new: Sequence[PreparedCall], duplicates: tuple[int, ...], admission: Admission
    ) -> Step[Appended]:
        layout = self._session.layout
        leaving = clip_runs(state.runs, 0, state.row.first_seq - 1)
        state.runs = clip_runs(state.runs, state.row.first_seq, state.row.last_seq)
        entering = admission.entering
        token = ""
        if entering:
            token = self._session.token(state.row.id_stem, min(entering), max(entering))
            state.runs = put_run(state.runs, min(entering), max(entering), token)
        self._written = list(entering.values())
        writes = [
            write_operation(layout, state, seq, token, self._session.writer, item.call, item.payload)
            for seq, item in entering.items()
        ]
        new_ids = [item.call.id for item in new if item.call.id is not None]
        wanted = set(new_ids)
        checked = [call_id for call_id in self._checked if call_id in wanted]
        self._checked = checked
        return Step(
            outcome=Appended(_next(state), len(new), duplicates, admission.trimmed, self._failed()),
            state=state,
            writes=writes,
            checks=[look_for_id(layout, self._id_document(call_id)) for call_id in checked],
            leaving=leaving,
            outbox=[self._id_document(call_id) for call_id in new_ids],
        )

    def learn(self, step: Step[Appended], writes: Sequence[ItemResult], checks: Sequence[ItemResult]) -> bool:
        """A call that the server refuses for good is named, the others go on without it."""
        assert step.state is not None
        learned = False
        for item, result in zip(self._written, writes, strict=True):
            if result.error is None:
                continue
            if failures.is_block(result.error) or failures.may_retry(result.status, result.error):
                self._session.connection.require([result])
            self._failures[item.index] = CallFailure(item.index, self.tool, failures.reason(result.error))
            learned = True
        for call_id, result in zip(self._checked, checks, strict=True):
            self._session.connection.require([result])
            if names_tool(result, step.state.row.id_stem):
                self._known.add(call_id)
                learned = True
        return not learned

    def _failed(self) -> tuple[CallFailure, ...]:
        return tuple(self._failures[index] for index in sorted(self._failures))


class MergePlan(AppendPlan):
    """As an append; a tool that is new here takes over guidance, coverage, times and counters as well."""

    def __init__(
        self,
        session: Session,
        now: datetime,
        workspace: str,
        memory: ToolMemory,
        prepared: Prepared,
        keep: int,
        document: Document | None,
        memory_id: str | None,
    ) -> None:
        """`memory_id`: the memory's own, None where another tool of the workspace has it."""
        super().__init__(session, now, workspace, memory.when_to_use, prepared, keep)
        self._memory = memory
        self._document = document
        self._memory_id = memory_id

    def requests(self) -> list[dict[str, Any]]:
        return [*super().requests(), embedders.claim_request(self._session.layout)]

    async def decide(self, state: ToolState | None, found: Sequence[dict[str, Any]]) -> Step[Appended]:
        self._claim = embedders.read_claim(found[-1].get("_source"))
        return await super().decide(state, found)

    async def _decide_unknown_tool(self, new: list[PreparedCall], duplicates: tuple[int, ...]) -> Step[Appended]:
        require_names(self.workspace, self.tool)
        memory = self._memory
        state = new_state(self.workspace, self.tool, self._now, self._memory_id)
        row = state.row
        seqs = [item.call.seq for item in new]
        if new and seqs[0] and seqs[0] > 0 and seqs == list(range(seqs[0], seqs[0] + len(seqs))):
            row.first_seq, row.last_seq = seqs[0], seqs[0] - 1
        first = row.last_seq + 1
        row.covered = merge_ranges([seq for seq, item in enumerate(new, first) if item.call.is_summarized])
        admission = admit(row, new, self._keep)
        lifetime = lifetime_of(memory)
        if lifetime is not None and lifetime.calls >= row.counters.calls:
            row.counters = lifetime
        row.time_created, row.time_modified = micros(memory.time_created), micros(memory.time_modified)
        guidance = guidance_here(memory, new, first)
        if guidance is not None:
            row.guidance_version = 1
            row.guidance = guidance_json(guidance)
            document = self._document or Document(f"{row.name}\n{memory.content}")
            state.document = await self._session.searchable(document, self._claim)
            state.document_time = self._now
        return self._step(state, new, duplicates, admission)


class GuidancePlan:
    def __init__(
        self,
        session: Session,
        now: datetime,
        workspace: str,
        tool: str,
        guidance: Guidance,
        document: Document,
        guidance_version: int,
    ) -> None:
        self.workspace = workspace
        self.tool = tool
        self._session = session
        self._now = micros(now)
        self._guidance = guidance if guidance.created_at else guidance.model_copy(update={"created_at": now})
        self._document = document
        self._version = guidance_version

    def requests(self) -> list[dict[str, Any]]:
        return [embedders.claim_request(self._session.layout)]

    async def decide(self, state: ToolState | None, found: Sequence[dict[str, Any]]) -> Step[ToolRecord]:
        if state is None:
            raise Conflict(f"workspace {self.workspace!r}: tool {self.tool!r} is gone; read again and decide again")
        row = state.row
        if row.guidance_version != self._version:
            raise Conflict(
                f"workspace {self.workspace!r}: the guidance of tool {self.tool!r} is at version "
                f"{row.guidance_version}, not at {self._version}; read again and decide again"
            )
        covered = clip(merge_ranges(self._guidance.covered), row.first_seq, row.last_seq)
        row.guidance_version += 1
        row.covered = merge_ranges([], [*row.covered, *covered])
        row.time_modified = state.document_time = self._now
        row.guidance = guidance_json(self._guidance)
        state.document = await self._session.searchable(self._document, embedders.read_claim(found[0].get("_source")))
        return Step(_next(state), state)

    def learn(self, step: Step[ToolRecord], writes: Sequence[ItemResult], checks: Sequence[ItemResult]) -> bool:
        return True


_JUDGEMENT = ("summary", "evaluation", "score", "evaluation_status", "execution_failed", "error_class", "judge")


class VerdictsPlan:
    """New versions of judged calls, under a token of their own; the old ones leave."""

    def __init__(
        self, session: Session, now: datetime, workspace: str, tool: str, verdicts: Mapping[int, ToolCallResult]
    ) -> None:
        self.workspace = workspace
        self.tool = tool
        self._session = session
        self._now = micros(now)
        self._verdicts = verdicts

    def requests(self) -> list[dict[str, Any]]:
        return []

    async def decide(self, state: ToolState | None, found: Sequence[dict[str, Any]]) -> Step[ToolRecord | None]:
        if state is None:
            return Step(None)
        layout, row = self._session.layout, state.row
        token = self._session.fresh_token()
        old = await kept_calls(self._session.connection, layout, state, sorted(self._verdicts))
        if not old:
            return Step(state.record)
        writes: list[Operation] = []
        leaving: list[Run] = []
        for seq, call in old.items():
            new, payload = self._judged(state, seq, call)
            count_outcome(row.counters, call, -1)
            count_outcome(row.counters, new, 1)
            writes.append(write_operation(layout, state, seq, token, self._session.writer, new, payload))
            leaving += clip_runs(state.runs, seq, seq)
            state.runs = put_run(state.runs, seq, seq, token)
        row.covered = without(row.covered, old)
        row.unjudged = without(row.unjudged, old)
        row.unjudged = merge_ranges([seq for seq in old if lacks_verdict(self._verdicts[seq])], row.unjudged)
        row.prune()
        row.guidance_version += 1
        row.time_modified = self._now
        return Step(_next(state), state, writes, leaving=leaving)

    def _judged(self, state: ToolState, seq: int, call: ToolCallResult) -> tuple[ToolCallResult, str]:
        new = call.model_copy(update={name: getattr(self._verdicts[seq], name) for name in _JUDGEMENT})
        own_id = None if call.id == state.row.assigned_id(seq) else call.id
        try:
            check_call(new, state.row.name)
            return new, call_payload(new, own_id)
        except CALL_FAULTS as error:
            raise RequestError(f"verdicts[{seq}]: {error}", field="verdicts") from error

    def learn(self, step: Step[ToolRecord | None], writes: Sequence[ItemResult], checks: Sequence[ItemResult]) -> bool:
        self._session.connection.require(writes)
        return True


def _next(state: ToolState) -> ToolRecord:
    """The record as the commit will have written it."""
    return state.record.model_copy(update={"version": state.row.version + 1})


def require_names(workspace: str, tool: str) -> None:
    """What a first write needs. Raises RequestError."""
    require_storable(workspace, "workspace")
    if not workspace:
        raise RequestError("workspace: expected a name, got ''", field="workspace")
    if not tool:
        raise RequestError("tool: expected a name, got ''", field="tool")
