"""One commit to a tool: documents first, then one compare-and-swap of its record, then what has become superfluous.

    read ──> decide ──> bulk (call documents, checks) ──> swap ──won──> delete what left the window, write ids
      ^                        │ learned something new      │ lost
      └────────────────────────┴────────────────────────────┘

At most four requests where nobody competes. A writer that dies anywhere leaves either nothing visible or the whole
commit.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from toolmem.errors import Conflict, StoreError
from toolmem.store.elastic import leftovers
from toolmem.store.elastic.call_documents import delete_operations
from toolmem.store.elastic.connection import ItemResult, Operation
from toolmem.store.elastic.names import random_name, tool_id, workspace_key
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.sweeping import register
from toolmem.store.elastic.tool_state import RECENT_COMMITS, Run, ToolState, read_state, source_of

logger = logging.getLogger("toolmem.store")

_LONGEST_PAUSE = 0.5  # seconds between two attempts against competitors

T = TypeVar("T")


@dataclass(slots=True)
class Step(Generic[T]):
    """What a plan decided. `state` None: there is nothing to commit; else as it is to be, version included."""

    outcome: T
    state: ToolState | None = None
    writes: Sequence[Operation] = ()  # must be there before the swap
    checks: Sequence[Operation] = ()  # updates of nothing, which tell whether a document is there
    leaving: list[Run] | None = None  # what this commit makes superfluous; None: earlier leftovers stay as they are
    outbox: list[str] = field(default_factory=list)  # id documents that it will write


class Plan(Protocol[T]):
    """What one kind of commit reads and does. It is asked again after each lost attempt."""

    workspace: str
    tool: str

    def requests(self) -> list[dict[str, Any]]:
        """Documents to read with the record, as a multi-get names them."""
        ...

    async def decide(self, state: ToolState | None, found: Sequence[dict[str, Any]]) -> Step[T]: ...

    def learn(self, step: Step[T], writes: Sequence[ItemResult], checks: Sequence[ItemResult]) -> bool:
        """False: what the bulk answered changes the decision."""
        ...


@dataclass(slots=True)
class _Attempts(Generic[T]):
    name: str = field(default_factory=lambda: random_name(10))
    outcome: list[T] = field(default_factory=list)  # of the swap that may have been carried out
    litter: list[str] = field(default_factory=list)  # call documents of lost attempts
    writing: bool = False  # call documents may have been written that nothing names yet


async def commit(session: Session, plan: Plan[T]) -> T:
    """Raises what the plan raises; Conflict where others kept winning; StoreUnavailable where the outcome is open."""
    async with session.turn(tool_id(plan.workspace, plan.tool)):
        attempts: _Attempts[T] = _Attempts()
        give_up = session.connection.deadline()
        pause = 0.01
        try:
            while True:
                finished = await _attempt(session, plan, attempts, give_up)
                if finished:
                    return attempts.outcome[-1]
                session.new_token()
                if time.monotonic() > give_up:
                    raise Conflict(
                        f"workspace {plan.workspace!r}: the record of tool {plan.tool!r} kept changing for "
                        f"{session.connection.timeout:g} s; let fewer writers work on one tool, and try again"
                    )
                await asyncio.sleep(random.uniform(0, pause))
                pause = min(pause * 2, _LONGEST_PAUSE)
        except BaseException:
            session.new_token()
            session.littered = session.littered or bool(attempts.litter or attempts.writing)
            raise


async def _attempt(session: Session, plan: Plan[T], attempts: _Attempts[T], give_up: float) -> bool:
    request = {
        "_index": session.layout.alias("tools"),
        "_id": tool_id(plan.workspace, plan.tool),
        "routing": workspace_key(plan.workspace),
    }
    head, *found = await session.connection.multi_get([request, *plan.requests()], deadline=give_up)
    state = read_state(head) if head.get("found") else None
    if state is not None and attempts.name in state.recent and attempts.outcome:
        # Our swap was carried out and its answer was lost. Only an acknowledged write proves that it will stay.
        return await _swap(session, state, give_up)
    step = await plan.decide(state, found)
    if step.state is None:
        attempts.outcome.append(step.outcome)
        await _tidied(session, delete_operations(session.layout, attempts.litter))
        return True
    await register(session)
    attempts.writing = bool(step.writes)
    if not await _write_ahead(session, plan, step, give_up):
        attempts.litter += [operation.id for operation in step.writes]
        return False
    new = step.state
    new.recent = [*new.recent, attempts.name][-RECENT_COMMITS:]
    if step.leaving is not None:
        new.leaving, new.outbox, new.left_by = step.leaving, step.outbox, attempts.name
    attempts.outcome.append(step.outcome)
    if not await _swap(session, new, give_up):
        attempts.litter += [operation.id for operation in step.writes]
        return False
    await _after(session, new, attempts)
    return True


async def _write_ahead(session: Session, plan: Plan[T], step: Step[T], give_up: float) -> bool:
    """The documents that the swap will name; and a look at what an earlier commit to this tool left undone."""
    assert step.state is not None
    left = None if step.leaving is None else leftovers.found_in(session, step.state)
    looks = [] if left is None else left.looks(session.layout)
    operations = [*looks, *step.writes, *step.checks]
    results = await session.connection.bulk(operations, deadline=give_up) if operations else []
    if left is not None and step.leaving is not None:
        session.connection.require(results[: len(looks)])
        left.keep_undone(results[: len(looks)])
        step.leaving, step.outbox = left.with_more(step.leaving, step.outbox)
    results = results[len(looks) :]
    return plan.learn(step, results[: len(step.writes)], results[len(step.writes) :])


async def _after(session: Session, state: ToolState, attempts: _Attempts[Any]) -> None:
    """The commit stands. Do what it left to be done; where that fails, a later commit does it."""
    operations = leftovers.settling(session.layout, state) if state.left_by == attempts.name else []
    named = set(state.call_ids(state.row.first_seq, state.row.last_seq).values()) if attempts.litter else set()
    litter = delete_operations(session.layout, (doc for doc in attempts.litter if doc not in named))
    if await _tidied(session, [*operations, *litter]) and state.left_by == attempts.name:
        session.settle(state.id, attempts.name)


async def _tidied(session: Session, operations: Sequence[Operation]) -> bool:
    try:
        if operations:
            session.connection.require(await session.connection.bulk(operations))
    except StoreError as error:
        logger.warning("what a commit left to be done stays for the next one: %s", error)
        return False
    return True


async def _swap(session: Session, state: ToolState, give_up: float) -> bool:
    """False where the record is no longer as it was read."""
    place: dict[str, Any] = {"op_type": "create"}
    if state.position is not None:
        place = {"if_seq_no": state.position[0], "if_primary_term": state.position[1]}
    document = source_of(state)
    answer = await session.connection.call(
        lambda es: es.index(
            index=session.layout.alias("tools"),
            id=state.id,
            routing=workspace_key(state.workspace),
            document=document,
            **place,
        ),
        ignore=(409,),
        deadline=give_up,
    )
    return bool(answer.meta.status != 409)
