"""One commit to a tool: documents first, then one compare-and-swap of its record, then what has become superfluous.

    read ──> decide ──> bulk (call documents, checks) ──> swap ──won──> mark what the window dropped, write ids
      ^                        │ learned something new      │ lost
      └────────────────────────┴────────────────────────────┘

At most four requests where nobody competes. A writer that dies anywhere leaves either nothing visible or the whole
commit. What is decided is `toolmem.store.semantics`'s.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from toolmem.errors import Conflict, StoreError
from toolmem.store.codec import PreparedCall, storables
from toolmem.store.elastic import generations, leftovers, positions, server_errors
from toolmem.store.elastic.call_documents import call_item, delete_items, kept_calls, told_of
from toolmem.store.elastic.cluster import BulkItem, ItemResult
from toolmem.store.elastic.document_ids import id_doc_id, random_name, tool_id
from toolmem.store.elastic.leftovers import Leaves
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.sweeping import register
from toolmem.store.elastic.tool_state import RECENT_COMMITS, ToolState, clip_runs, put_run, read_state, source_of
from toolmem.store.semantics import AppendCalls, Found, Request, Step, ToolRow

logger = logging.getLogger("toolmem.store")

_LONGEST_PAUSE = 0.5  # seconds between two attempts against competitors

T = TypeVar("T")


@dataclass(slots=True)
class _Documents:
    """What an attempt writes. `state`: as it is to be, version included."""

    state: ToolState
    writes: Sequence[BulkItem] = ()  # must be there before the swap
    new: Sequence[PreparedCall] = ()  # the calls of `writes` that are new
    checked: Sequence[str] = ()  # ids of calls that are looked for once more
    leaves: Leaves | None = None  # None: earlier leftovers stay as they are
    highest: BulkItem | None = None  # says which position in the log is the last one that is given


class Commit(Generic[T]):
    """A request on its way into the record of its tool. `taken`: another tool of the workspace has its memory id."""

    def __init__(self, session: Session, request: Request[T], taken: bool = False) -> None:
        self._session = session
        self._connection = session.connection
        self._layout = session.layout
        self._request = request
        self._taken = taken
        self._tool_id = tool_id(request.workspace, request.tool)
        self._name = random_name(10)
        self._known: set[str] = set()
        self._outcome: list[T] = []  # of the swap that may have been carried out
        self._litter: list[str] = []  # call documents of lost attempts
        self._writing = False  # call documents may have been written that nothing names yet
        self.logged = (0, 0)  # calls that came, and their bytes

    async def run(self) -> T:
        """Raises what deciding raises; Conflict where others kept winning; StoreUnavailable where the outcome is
        open.
        """
        session, request = self._session, self._request
        async with session.turn(self._tool_id):
            give_up = self._connection.deadline()
            pause = 0.01
            try:
                while not await self._attempt(give_up):
                    session.new_token()
                    if time.monotonic() > give_up:
                        raise Conflict(
                            f"workspace {request.workspace!r}: the record of tool {request.tool!r} kept changing for "
                            f"{self._connection.timeout:g} s; let fewer writers work on one tool, and try again"
                        )
                    await asyncio.sleep(random.uniform(0, pause))
                    pause = min(pause * 2, _LONGEST_PAUSE)
                return self._outcome[-1]
            except BaseException:
                session.new_token()
                session.littered = session.littered or bool(self._litter or self._writing)
                raise

    async def _attempt(self, give_up: float) -> bool:
        head, *found = await self._connection.multi_get(self._wanted(), deadline=give_up)
        state = read_state(head) if head.get("found") else None
        if state is not None and self._name in state.recent and self._outcome:
            # Our swap was carried out and its answer was lost. Only an acknowledged write proves that it will stay.
            # Which of our documents it made visible is not told: those that it did not are left to a sweep.
            self._session.littered = True
            return await self._swap(state, give_up)
        step, planned = await self._decide(state, found)
        answer = step.answer()
        if planned is None:
            self._outcome.append(answer)
            await self._tidied(delete_items(self._layout, self._litter))
            return True
        await register(self._session)
        self._writing = bool(planned.writes)
        new = planned.state
        if await self._write_ahead(planned, give_up):
            new.recent = [*new.recent, self._name][-RECENT_COMMITS:]
            if (leaves := planned.leaves) is not None:
                new.leaving, new.dropped, new.outbox = leaves.leaving, leaves.dropped, leaves.outbox
                new.left_by = self._name
            self._outcome.append(answer)
            if await self._swap(new, give_up):
                await self._after(new)
                return True
        self._litter += [item.id for item in planned.writes]
        return False

    # -- read and decide

    def _wanted(self) -> list[dict[str, Any]]:
        session, request = self._session, self._request
        record = session.wanted("tools", self._tool_id, request.workspace)
        ids = [session.wanted("ids", document) for document in self._id_documents(request.ids)]
        log = [positions.wanted(session, "calls", request.workspace)] if isinstance(request, AppendCalls) else []
        return [
            record,
            *ids,
            *log,
            *([session.wanted("meta", generations.DOCUMENT)] if request.brings_guidance else []),
        ]

    def _id_documents(self, ids: Sequence[str]) -> list[str]:
        return [id_doc_id(self._request.workspace, self._request.tool, call_id) for call_id in ids]

    async def _decide(
        self, state: ToolState | None, found: Sequence[dict[str, Any]]
    ) -> tuple[Step[T], _Documents | None]:
        """None: there is nothing to commit."""
        request, session = self._request, self._session
        answers = found[: len(request.ids)]
        held, told = Found(taken=self._taken), {}
        if state is not None:
            self._known = leftovers.known(state, request.ids, answers)  # anew: what was read may have been undone
            kept = await kept_calls(session, state, request.seqs) if request.seqs else {}
            calls = {seq: call for seq, (call, _) in kept.items()}
            told = {seq: places for seq, (_, places) in kept.items()}
            held = Found(state.read_guidance(session.guidance), self._known, calls, self._taken)
        step = request.decide(held)
        planned = None
        if step.row is not None:
            if step.new:
                given = positions.given(session, found[len(request.ids)], len(step.new))
                told = {seq: told_of(item, place) for (seq, item), place in zip(step.new.items(), given, strict=True)}
            planned = self._documents(state or ToolState(request.workspace, step.row), step.row, step, told)
            if step.document is not None:
                generation = generations.read_generation(found[-1])
                planned.state.guidance = step.guidance
                planned.state.document = await generations.searchable_of(session, step.document, generation)
                planned.state.document_time = request.now
        elif state is not None and leftovers.owed(session, state, answers):
            # Nothing new, but what is told of a call rests on the record alone: a swap proves that it stands.
            state.row.version += 1
            planned = _Documents(state, leaves=Leaves())
        return step, planned

    def _documents(
        self, state: ToolState, row: ToolRow, step: Step[T], told: Mapping[int, dict[str, Any]]
    ) -> _Documents:
        """The calls of the step as documents under tokens of their own, and what the swap makes superfluous. `told`: by
        seq, the fields by which the log finds a call.
        """
        session = self._session
        state.row = row
        leaves = Leaves(dropped=clip_runs(state.runs, 0, row.first_seq - 1), outbox=self._id_documents(step.ids))
        state.runs = clip_runs(state.runs, row.first_seq, row.last_seq)
        token = session.fresh_token() if step.replaced else ""
        for seq in step.replaced:
            leaves.leaving += clip_runs(state.runs, seq, seq)
            state.runs = put_run(state.runs, seq, seq, token)
        if new := step.new:
            first, last = min(new), max(new)
            token = session.token(row.id_stem, first, last)
            state.runs = put_run(state.runs, max(first, row.first_seq), last, token)
            leaves.dropped += clip_runs([(first, last, token)], 0, row.first_seq - 1)
        documents = {**step.replaced, **new}.items()
        writes = [call_item(session, state, seq, token, item, told.get(seq, {})) for seq, item in documents]
        self.logged = len(new), sum(told[seq]["size"] for seq in new)
        highest = max((told[seq]["position"] for seq in new), default=0)
        return _Documents(
            state,
            writes,
            list(new.values()),
            # The id documents were read with the record, not after it: a commit may have come between the two. The
            # bulk, which is sent later, looks again.
            checked=step.ids if state.position is not None else (),
            leaves=leaves if writes else None,
            highest=positions.raised(session, "calls", state.workspace, highest) if highest else None,
        )

    # -- write

    async def _write_ahead(self, planned: _Documents, give_up: float) -> bool:
        """The documents that the swap will name; and a look at what an earlier commit to this tool left undone. False:
        what was answered changes the decision.
        """
        left = None if planned.leaves is None else leftovers.found_in(self._session, planned.state)
        looks = [] if left is None else left.looks(self._layout)
        checks = leftovers.look_for_ids(self._layout, self._id_documents(planned.checked))
        items = [*looks, *planned.writes, *checks, *([planned.highest] if planned.highest is not None else [])]
        results = await self._connection.bulk(items, deadline=give_up) if items else []
        looked, results = results[: len(looks)], results[len(looks) :]
        if left is not None and planned.leaves is not None:
            self._connection.require(looked)
            left.keep_undone(looked)
            planned.leaves = left.with_more(planned.leaves)
        if planned.highest is not None and (raised := results.pop()).status != 409:  # another writer's is higher
            self._connection.require([raised])
        count = len(planned.writes)
        refused = self._refused(planned, results[:count])
        return not self._found_known(planned, results[count:]) and not refused

    def _refused(self, planned: _Documents, writes: Sequence[ItemResult]) -> bool:
        """A call that the server refuses for good is named, the others go on without it."""
        request, refused = self._request, False
        if not isinstance(request, AppendCalls):
            self._connection.require(writes)
            return False
        for item, result in zip(planned.new, writes, strict=True):
            if result.error is not None:
                if server_errors.is_block(result.error) or server_errors.may_retry(result.status, result.error):
                    self._connection.require([result])
                request.refuse(item, server_errors.reason(result.error))
                refused = True
        return refused

    def _found_known(self, planned: _Documents, checks: Sequence[ItemResult]) -> bool:
        self._connection.require(checks)
        stem = planned.state.row.id_stem
        there = {
            call_id
            for call_id, result in zip(planned.checked, checks, strict=True)
            if leftovers.names_tool(result, stem)
        }
        self._known |= there
        return bool(there)

    async def _swap(self, state: ToolState, give_up: float) -> bool:
        return await self._session.swap("tools", state.id, state.workspace, source_of(state), state.position, give_up)

    async def _after(self, state: ToolState) -> None:
        """The commit stands. Do what it left to be done; where that fails, a later commit does it."""
        ours = state.left_by == self._name
        named = {*state.kept_ids().values(), *state.dropped_ids().values()} if self._litter else set()
        litter = delete_items(self._layout, (doc for doc in self._litter if doc not in named))
        if await self._tidied([*(leftovers.settling(self._layout, state) if ours else []), *litter]) and ours:
            self._session.settle(state.id, self._name)

    async def _tidied(self, items: Sequence[BulkItem]) -> bool:
        try:
            self._connection.require(await self._connection.bulk(items))
        except StoreError as error:
            logger.warning("what a commit left to be done stays for the next one: %s", error)
            return False
        return True


# -- which ids are known


class _Settle(Request[None]):
    """Changes nothing: its swap proves that the record stands, and what earlier commits left is done after it."""

    def __init__(self, workspace: str, tool: str, ids: Sequence[str]) -> None:
        self.workspace, self.tool, self.ids = workspace, tool, ids

    def decide(self, found: Found) -> Step[None]:
        return Step(lambda: None)


async def known_ids(session: Session, workspace: str, tool: str, ids: Sequence[str]) -> set[str]:
    """Which of these this tool has ever stored. Writes only where a writer died before it made its ids known."""
    asked = storables(ids)
    documents = [session.wanted("ids", id_doc_id(workspace, tool, call_id)) for call_id in asked]
    while asked:
        # First the record, then the id documents: an id is in one of the two from its commit on.
        (head,) = await session.connection.multi_get([session.wanted("tools", tool_id(workspace, tool), workspace)])
        if not head.get("found"):
            break
        state, answers = read_state(head), await session.connection.multi_get(documents)
        if not leftovers.owed(session, state, answers):
            return leftovers.known(state, asked, answers)
        await Commit(session, _Settle(workspace, tool, asked)).run()
    return set()
