"""Carrying out what `semantics` decided of a tool: its calls as documents of their own, then the swap of its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from toolmem.store.codec import PreparedCall
from toolmem.store.elastic import embedders, failures
from toolmem.store.elastic.call_documents import kept_calls, write_operation
from toolmem.store.elastic.commits import Step
from toolmem.store.elastic.connection import ItemResult
from toolmem.store.elastic.ids import known, owed
from toolmem.store.elastic.leftovers import look_for_id, names_tool
from toolmem.store.elastic.names import id_doc_id
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.tool_state import ToolState, clip_runs, put_run
from toolmem.store.semantics import AppendCalls, Found, Request
from toolmem.store.semantics import Step as Decided
from toolmem.stored import Appended

T = TypeVar("T")


class RequestPlan(Generic[T]):
    """`taken`: another tool of the workspace has the request's memory id."""

    def __init__(self, session: Session, request: Request[T], taken: bool) -> None:
        self.workspace = request.workspace
        self.tool = request.tool
        self._session = session
        self._request = request
        self._taken = taken
        self._known: set[str] = set()
        self._checked: list[str] = []
        self._written: list[PreparedCall] = []

    def _id_document(self, call_id: str) -> str:
        return id_doc_id(self.workspace, self.tool, call_id)

    def requests(self) -> list[dict[str, Any]]:
        layout = self._session.layout
        ids = [{"_index": layout.alias("ids"), "_id": self._id_document(each)} for each in self._request.ids]
        return [*ids, *([embedders.claim_request(layout)] if self._request.brings_guidance else [])]

    async def decide(self, state: ToolState | None, found: Sequence[dict[str, Any]]) -> Step[T]:
        ids = self._request.ids
        if state is None:
            decided = self._request.decide(Found(taken=self._taken))
        else:
            answers = found[: len(ids)]
            self._known = known(state, ids, answers)  # anew: an earlier attempt may have read what was undone
            decided = self._request.decide(await self._found(state))
            if decided.row is None and owed(self._session, state, ids, answers):
                return _proving(state, decided.answer())
        if decided.row is None:
            return Step(decided.answer())
        step = self._documents(state or ToolState(self.workspace, decided.row), decided)
        if step.state is not None and decided.document is not None:
            claim = embedders.read_claim(found[-1].get("_source"))
            step.state.guidance = decided.guidance
            step.state.document = await self._session.searchable(decided.document, claim)
            step.state.document_time = self._request.now
        return step

    async def _found(self, state: ToolState) -> Found:
        session, seqs = self._session, self._request.seqs
        calls = await kept_calls(session.connection, session.layout, state, seqs) if seqs else {}
        return Found(state.read_guidance(session.guidance), self._known, calls, self._taken)

    def _documents(self, state: ToolState, decided: Decided[T]) -> Step[T]:
        """The calls of the step as documents under tokens of their own, and what the swap makes superfluous."""
        assert decided.row is not None
        state.row = row = decided.row
        leaving = clip_runs(state.runs, 0, row.first_seq - 1)
        state.runs = clip_runs(state.runs, row.first_seq, row.last_seq)
        token = self._session.fresh_token() if decided.replaced else ""
        for seq in decided.replaced:
            leaving += clip_runs(state.runs, seq, seq)
            state.runs = put_run(state.runs, seq, seq, token)
        if entering := decided.entering:
            token = self._session.token(row.id_stem, min(entering), max(entering))
            state.runs = put_run(state.runs, min(entering), max(entering), token)
        layout, writer = self._session.layout, self._session.writer
        writes = [
            write_operation(layout, state, seq, token, writer, item.call, item.payload)
            for seq, item in {**decided.replaced, **entering}.items()
        ]
        self._written = list(entering.values())
        # The id documents were read with the record, not after it: a commit may have come between the two. The bulk,
        # which is sent later, looks again.
        self._checked = [call_id for call_id in decided.ids if state.position is not None]
        return Step(
            outcome=decided.answer(),
            state=state,
            writes=writes,
            checks=[look_for_id(layout, self._id_document(call_id)) for call_id in self._checked],
            leaving=leaving if writes else None,
            outbox=[self._id_document(call_id) for call_id in decided.ids],
        )

    def learn(self, step: Step[T], writes: Sequence[ItemResult], checks: Sequence[ItemResult]) -> bool:
        """A call that the server refuses for good is named, the others go on without it."""
        assert step.state is not None
        request, learned = self._request, False
        if not isinstance(request, AppendCalls):
            self._session.connection.require(writes)
            return True
        for item, result in zip(self._written, writes, strict=True):
            if result.error is None:
                continue
            if failures.is_block(result.error) or failures.may_retry(result.status, result.error):
                self._session.connection.require([result])
            request.refuse(item, failures.reason(result.error))
            learned = True
        for call_id, result in zip(self._checked, checks, strict=True):
            self._session.connection.require([result])
            if names_tool(result, step.state.row.id_stem):
                self._known.add(call_id)
                learned = True
        return not learned


def _proving(state: ToolState, answer: T) -> Step[T]:
    """Nothing new, but what is told of a call rests on the record alone: a swap proves that it stands."""
    state.row.version += 1
    if isinstance(answer, Appended):
        answer = replace(answer, record=state.row.record(state.workspace))
    return Step(answer, state, leaving=[])
