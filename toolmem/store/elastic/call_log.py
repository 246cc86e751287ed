"""The log of a workspace: every call that came, in the order of positions, until there is too much of it.

A call is stored once, as the document that its tool's record names. When the window drops it, the document stays, and
that a commit had named it is written down beside it (`dropped_calls`). A search finds the documents; each is compared
with the record and with what is written down, so that what no commit ever named is never shown.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolmem.errors import StoreError
from toolmem.store.codec import MAX_INTEGER
from toolmem.store.elastic import dropped_calls
from toolmem.store.elastic.call_documents import delete_items, read_call, read_states
from toolmem.store.elastic.cluster import PAGE
from toolmem.store.elastic.document_ids import digest, workspace_key
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.tool_state import ToolState, read_state
from toolmem.stored import LoggedCall, LogLimits

logger = logging.getLogger("toolmem.store")

_OFTEN, _SELDOM = 0.01, 0.05  # of the limits: what may come between two looks at them
_FEW = 1000  # calls: up to a limit of so many, often
_WORKSPACES = 10_000  # remembered at once
_LOOKS = 5  # at a call that is judged again and again while it is read
_FIELDS = ["tool", "stem", "seq", "position"]

Hit = Mapping[str, Any]


# -- reading


async def read(
    session: Session,
    workspace: str,
    *,
    conversation: str | None = None,
    tool: str | None = None,
    after: int = 0,
    limit: int = 1000,
    newest: bool = False,
) -> list[LoggedCall]:
    """See `MemoryStore.call_log`.

    Calls that several writers bring at the same moment have their places before their commits end, and may end in
    another order: who follows the log from `after` should look back a few calls of other writers.
    """
    filters: list[dict[str, Any]] = [{"term": {"w": workspace_key(workspace)}}]
    filters.append({"range": {"position": {"gt": max(min(after, MAX_INTEGER), 0)}}})
    if conversation is not None:
        filters.append({"term": {"conversation": digest(conversation)}})
    if tool is not None:
        states = await read_states(session, workspace, [tool])
        filters.append({"terms": {"stem": [state.row.id_stem for state in states]}})
    await session.connection.refresh(session.layout.alias("calls"))
    found: dict[int, LoggedCall] = {}
    last: Hit | None = None
    while len(found) < limit:
        hits = await search(session, filters, min(limit - len(found), PAGE), "desc" if newest else "asc", last)
        for each in await _Page(session, workspace, hits).committed():
            found[each.position] = each
        if not hits:
            break
        last = hits[-1]
    return [found[position] for position in sorted(found)]


async def search(
    session: Session, filters: Sequence[Hit], size: int, order: str, after: Hit | None, fields: Sequence[str] = _FIELDS
) -> list[Hit]:
    """The next documents in the order of positions. Routed to nowhere: calls lie where their ids put them."""
    answer = await session.connection.search(
        index=session.layout.alias("calls"),
        query={"bool": {"filter": list(filters)}},
        size=size,
        sort=[{"position": {"order": order, "unmapped_type": "long"}}],
        source=False,
        docvalue_fields=list(fields),
        track_total_hits=False,
        **({"search_after": after["sort"]} if after is not None else {}),
    )
    hits: list[Hit] = answer["hits"]["hits"]
    return hits


@dataclass(slots=True)
class _Page:
    """Some documents that a search found, on their way to be calls."""

    session: Session
    workspace: str
    hits: Sequence[Hit]
    calls: dict[int, LoggedCall] = field(default_factory=dict)  # by position
    torn: list[Hit] = field(default_factory=list)  # the commit that was read has been followed by another

    async def committed(self) -> Collection[LoggedCall]:
        """The calls that a commit has named, each with its judgement as it is now."""
        waiting = self.hits
        for _ in range(_LOOKS):
            self.torn = []
            await self._look(waiting)
            waiting = self.torn
        return self.calls.values()

    async def _look(self, hits: Sequence[Hit]) -> None:
        """First the records, then the rest: what a record does not name any more is written down by then."""
        states = await self._states({hit["fields"]["tool"][0] for hit in hits})
        named = {hit["_id"]: _named(states.get(hit["fields"]["stem"][0]), hit) for hit in hits}
        documents = dict.fromkeys(named.values())
        fields = ["figures", "body", "position"]
        wanted = [self.session.wanted("calls", each, None, fields) for each in documents]
        found = dict(zip(documents, await self.session.connection.multi_get(wanted), strict=True))
        dropped = await dropped_calls.read(self.session, _before_windows(states, hits))
        for state in states.values():
            dropped.update(state.dropped_ids().values())
        for hit in hits:
            self._sort(hit, states.get(hit["fields"]["stem"][0]), found[named[hit["_id"]]], dropped)

    async def _states(self, tools: Collection[str]) -> dict[str, ToolState]:
        """By stem."""
        wanted = [self.session.wanted("tools", tool, self.workspace, ["body"]) for tool in tools]
        found = await self.session.connection.multi_get(wanted)
        states = [read_state(each) for each in found if each.get("found")]
        return {state.row.id_stem: state for state in states}

    def _sort(self, hit: Hit, state: ToolState | None, found: Mapping[str, Any], dropped: Collection[str]) -> None:
        seq = hit["fields"]["seq"][0]
        if state is None or seq > state.row.last_seq:
            return
        if not found.get("found"):
            if seq >= state.row.first_seq:  # judged again meanwhile
                self.torn.append(hit)
        elif found["_source"].get("position") == _position(hit) and (
            seq >= state.row.first_seq or found["_id"] in dropped
        ):
            for call in read_call(state.row, seq, found["_source"]):
                own = call.model_copy(update={"seq": None, "is_summarized": False})
                self.calls[_position(hit)] = LoggedCall(_position(hit), own)


def _named(state: ToolState | None, hit: Hit) -> str:
    """The document that is now that of the call: another one where it was judged again."""
    seq = hit["fields"]["seq"][0]
    kept = {} if state is None or seq < state.row.first_seq else state.call_ids(seq, seq)
    return str(kept.get(seq, hit["_id"]))


def _before_windows(states: Mapping[str, ToolState], hits: Sequence[Hit]) -> list[tuple[str, int]]:
    """Stem and seq of what a window has dropped, if it was ever committed."""
    places = [(hit["fields"]["stem"][0], hit["fields"]["seq"][0]) for hit in hits]
    return [(stem, seq) for stem, seq in places if stem in states and seq < states[stem].row.first_seq]


def _position(hit: Hit) -> int:
    return int(hit["fields"]["position"][0])


# -- limits


async def keep_to(session: Session, workspace: str, limits: LogLimits, calls: int, size: int) -> None:
    """Now and then, after so many calls and bytes: delete the oldest that no window keeps, beyond the limits.

    How often hangs on how much room there was, so that the log may be some hundredths longer. The commit stands: where
    this fails, a later one does it.
    """
    often = _OFTEN if limits.max_calls <= _FEW else _SELDOM
    left = session.log_room.get(workspace, random.random() * often)
    left -= max(calls / limits.max_calls, size / limits.max_bytes)
    if len(session.log_room) > _WORKSPACES:
        session.log_room.clear()
    session.log_room[workspace] = left
    if left > 0 or not calls:
        return
    try:
        room = await _shorten(session, workspace, limits)
        session.log_room[workspace] = max(room / 10, often)  # others may write as much meanwhile
    except StoreError as error:
        logger.warning("the log of workspace %r stays longer than its limits for now: %s", workspace, error)


async def _shorten(session: Session, workspace: str, limits: LogLimits) -> float:
    """Answers which part of the limits is free."""
    filters = [{"term": {"w": workspace_key(workspace)}}, {"exists": {"field": "position"}}]
    index = session.layout.alias("calls")
    await session.connection.refresh(index)
    answer = await session.connection.search(
        index=index,
        query={"bool": {"filter": filters}},
        size=0,
        aggs={"size": {"sum": {"field": "size"}}},
        track_total_hits=True,
    )
    excess = answer["hits"]["total"]["value"] - limits.max_calls
    too_large = answer["aggregations"]["size"]["value"] - limits.max_bytes
    room = -max(excess / limits.max_calls, too_large / limits.max_bytes)
    last: Hit | None = None
    while excess > 0 or too_large > 0:
        hits = await search(session, filters, PAGE, "asc", last, ["stem", "seq", "size"])
        if not hits:
            break
        oldest: list[Hit] = []
        for hit in hits:
            if excess <= 0 and too_large <= 0:
                break
            excess, too_large = excess - 1, too_large - hit["fields"]["size"][0]
            oldest.append(hit)
        await _delete_dropped(session, oldest)
        last = hits[-1]
    return float(max(room, 0))


async def _delete_dropped(session: Session, hits: Sequence[Hit]) -> None:
    """Of these documents those that are known to have left their window for good."""
    places = {hit["_id"]: (hit["fields"]["stem"][0], hit["fields"]["seq"][0]) for hit in hits}
    dropped = await dropped_calls.read(session, places.values())
    gone = {document: place for document, place in places.items() if document in dropped}
    told = dropped_calls.delete_items(session.layout, list(gone.values()))
    session.connection.require(await session.connection.bulk([*delete_items(session.layout, gone), *told]))
