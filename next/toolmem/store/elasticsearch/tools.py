"""Tools and their calls. One compare-and-swap of a tool's document is the commit.

New and rejudged calls, and new guidance, travel whole in the tool's outbox. After the commit they
are written as documents of their own, under the version of the commit, and a second swap empties
the outbox. Two invariants hold whatever is lost, repeated or delayed: a document exists only of a
commit that was acknowledged, and an entry leaves the outbox only by a writer that was told that
its document is written. So readers look at the tool first, and at the documents after it. What a
killed writer left in the outbox, the next one carries on.

A deleted tool leaves an empty document behind, whose versions go on: a delayed request finds that
its position is gone.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from toolmem.errors import StoreError, StoreUnavailable, ToolMemError
from toolmem.models.calls import CallFigures, ToolCallResult, conversation_of
from toolmem.models.tools import Counted, ToolRecord, Window
from toolmem.store.changes import Ask, Change, new_record
from toolmem.store.elasticsearch.client import Client, Doc, Position, Write
from toolmem.store.elasticsearch.layout import Layout, digest
from toolmem.store.elasticsearch.records import document_fields
from toolmem.store.storable import (
    GUIDANCE,
    add_guidance,
    decoder,
    is_storable,
    kept_seqs,
    micros,
    read_window,
)

RECENT = 16  # names of the last commits, by which a writer knows its own
MAX_OWN = 2_000  # tools whose state is kept in memory, some kilobytes each
_encode = msgspec.json.Encoder().encode


class Kept(Struct, frozen=True, array_like=True):
    """A call of the window. Its document has exactly this version."""

    id: str
    version: int
    failed: bool | None
    score: float | None
    time_cost: float | None
    token_cost: int | None


class Entry(Struct, frozen=True, array_like=True):
    """What is perhaps no document yet; its text stands at the same place in the outbox."""

    id: str
    version: int  # of the commit that wrote it
    seq: int = 0  # of a call; 0: the guidance
    position: int = 0
    conversation: str = ""


class State(Struct, omit_defaults=True):
    """A tool as it was committed."""

    record: ToolRecord
    stem: str = ""  # of the ids of its calls; "": the tool was deleted
    kept: list[Kept] = []
    guidance: int = 0  # the version of the commit that wrote it; 0: there is none
    position: int = 0  # of its newest call in the log
    recent: list[str] = []
    entries: list[Entry] = []


class Placed(Struct, frozen=True):
    """A call of the log, or guidance."""

    body: str
    position: int = 0
    conversation: str = ""


class Found(Struct, dict=True):
    """Implements `changes.Found`. `state` None: never stored."""

    workspace: str
    tool: str
    state: State | None = None
    position: Position | None = None
    outbox: dict[str, tuple[Entry, str]] = {}  # by the document's id
    known: set[str] = field(default_factory=set)  # of the ids that were asked for
    places: dict[int, Placed] = {}  # calls whose verdict changes, by seq
    tools: Tools | None = None  # by which its calls are read

    @property
    def alive(self) -> State | None:
        return self.state if self.state is not None and self.state.stem else None

    @cached_property
    def own_ids(self) -> set[str]:
        """Of the documents that the tool itself tells of."""
        kept = [] if self.alive is None else self.alive.kept
        return {*(each.id for each in kept), *self.outbox}

    @property
    def record(self) -> ToolRecord | None:
        return None if self.alive is None else self.alive.record

    def window(self, seqs: Sequence[int]) -> Window[ToolCallResult]:
        assert self.tools is not None and self.record is not None
        (self.places,) = self.tools.calls([(self, kept_seqs(self.record, None, seqs))])
        return window_of(self, self.places, ToolCallResult)

    def figures(self, seqs: Sequence[int]) -> list[Kept]:
        state = self.alive
        return [state.kept[seq - state.record.first_seq] for seq in seqs] if state else []


DELETED = object()  # in the place of a Change


class Plan(Struct):
    """A commit that is about to be tried."""

    found: Found
    state: State
    outbox: list[str]
    answer: Any
    emptied: tuple[int, int] = (1, 0)


class Lagging(Exception):
    """A document and its tool are not of one moment, or one was read from an old copy."""


class Tools:
    """The tools of a store. One thread of a process changes a tool at a time."""

    def __init__(self, client: Client, layout: Layout) -> None:
        self._client = client
        self._layout = layout
        self._own: dict[str, Doc] = {}  # as the last commit of this process left it
        self._writing: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    # ------------------------------------------------------------ writing

    def commit(self, workspace: str, asks: Mapping[str, Ask]) -> dict[str, Any]:
        """The answers, by tool; they may be exceptions.

        Every answer rests on an acknowledged swap, also "it is there already": what was read may
        be an old copy, or undone later.
        """
        name = os.urandom(6).hex()
        tried: dict[str, dict[str, Any]] = {tool: {} for tool in asks}
        waiting = {tool: ask for tool, ask in asks.items() if is_storable(workspace + tool)}
        none = asks.keys() - waiting.keys()
        done = {tool: asks[tool].decide(Found(workspace, tool))[1] for tool in none}
        with ExitStack() as locks:
            for place in sorted(digest(workspace, tool) for tool in waiting):
                locks.enter_context(self._writing[place])
            for attempt, _ in enumerate(self._client.pauses()):
                plans = []
                ids = {tool: ask.ids for tool, ask in waiting.items()}
                for tool, found in self.read(workspace, ids, own=attempt == 0).items():
                    try:
                        plan = self._plan(found, waiting[tool], f"{name}-{attempt}", tried[tool])
                    except Lagging:
                        continue
                    if isinstance(plan, Plan):
                        plans.append(plan)
                    else:
                        done[tool] = plan[0]
                stands = self._client.bulk([self._write(each) for each in plans])
                committed = [(p, at) for p, at in zip(plans, stands, strict=True) if at]
                done |= {plan.found.tool: plan.answer for plan, _ in committed}
                self._settle(committed)
                waiting = {tool: ask for tool, ask in waiting.items() if tool not in done}
                if not waiting:
                    return done
        raise StoreUnavailable(
            f"Elasticsearch at {self._client.location}: others changed {', '.join(waiting)} "
            "during every attempt"
        )

    def _plan(self, found: Found, ask: Ask, name: str, tried: dict[str, Any]) -> Plan | tuple[Any]:
        """A commit, or where there is no tool and nothing to do, the answer alone."""
        before = found.state
        mine = tried.keys() & set(() if before is None else before.recent)
        if mine:  # it was swapped, and the answer was lost
            change, answer = None, tried[mine.pop()]
        else:
            try:
                change, answer = ask.decide(found)
            except ToolMemError as error:
                change, answer = None, error
        entries = {} if change is DELETED else dict(found.outbox)
        if change is None:
            if before is None:
                if tried:
                    raise Lagging
                return (answer,)
            state = before
        else:
            tried[name] = answer
            state, written = self._next(found, change)
            state.recent = [*state.recent, name][-RECENT:]
            entries |= written
        state = replace(state, entries=[entry for entry, _ in entries.values()])
        outbox = [text for _, text in entries.values()]
        emptied = change.emptied if isinstance(change, Change) else (1, 0)
        return Plan(found, state, outbox, answer, emptied)

    def _next(self, found: Found, change: Any) -> tuple[State, dict[str, tuple[Entry, str]]]:
        """The state that a change leads to, and what it writes."""
        before = found.state
        version = 1 if before is None else before.record.version + 1
        recent = [] if before is None else before.recent
        guidance_id = digest(found.workspace, GUIDANCE, found.tool)
        if change is DELETED and before is not None:
            record = new_record(found.workspace, found.tool, before.record.time_created)
            record.version = version
            gone = {}
            if before.guidance or guidance_id in found.outbox:
                gone[guidance_id] = (Entry(guidance_id, version), "")
            return State(record, position=before.position, recent=recent), gone
        change.record.version = version
        state = State(
            replace(change.record, guidance=None),
            os.urandom(8).hex() if found.alive is None else found.alive.stem,
            guidance=0 if found.alive is None else found.alive.guidance,
            position=0 if before is None else before.position,
            recent=recent,
        )
        written = _call_entries(found, change, state)
        if change.guidance is not None:
            state.guidance = version
            text = "" if change.document is None else change.document.text
            body = _encode([_encode(change.guidance).decode(), text]).decode()
            written[guidance_id] = (Entry(guidance_id, version), body)
        return state, written

    def _write(self, plan: Plan) -> Write:
        """The swap."""
        found, state = plan.found, plan.state
        source = {
            "workspace": found.workspace,
            "name": found.tool,
            "live": bool(state.stem),
            "state": _encode(state).decode(),
            "outbox": plan.outbox,
        }
        place = (self._layout.tools, digest(found.workspace, found.tool))
        return Write(*place, source, position=found.position, is_new=found.position is None)

    def _settle(self, committed: Sequence[tuple[Plan, Position]]) -> None:
        """The commits stand. Where their documents cannot be written, the next commit does it."""
        emptied: list[Write] = []
        try:
            self._client.bulk(
                [
                    self._document(plan.found, entry, text)
                    for plan, _ in committed
                    for entry, text in zip(plan.state.entries, plan.outbox, strict=True)
                ]
            )
            for plan, at in committed:
                plan.found.position = at
                carried, plan.outbox = plan.outbox, []
                plan.state = replace(plan.state, entries=[])
                if carried:
                    emptied.append(self._write(plan))
            stands = self._client.bulk(emptied)
            if len(self._own) > MAX_OWN:
                self._own.clear()
            for write, own in zip(emptied, stands, strict=True):
                if own is not None:
                    self._own[write.id] = Doc(write.id, write.source, own, 0)
            for plan, _ in committed:
                self._empty(plan)
        except StoreError as error:
            log = logging.getLogger("toolmem.store")
            log.warning("calls stay in the outbox of their tool until its next commit: %s", error)

    def _document(self, found: Found, entry: Entry, text: str) -> Write:
        if entry.seq:
            stem = entry.id.partition("-")[0]
            source: dict[str, Any] = {"stem": stem, "seq": entry.seq}
            if text:
                source |= {"position": entry.position, "body": text}
                source |= {"conversation": entry.conversation} if entry.conversation else {}
            return Write(self._layout.calls, entry.id, source, entry.version)
        source = {"workspace": found.workspace, "namespace": GUIDANCE, "key": found.tool}
        source["live"] = bool(text)
        if text:
            body, document = msgspec.json.decode(text)
            source |= {"body": body, **document_fields(document)}
        return Write(self._layout.records, entry.id, source, entry.version)

    def _empty(self, plan: Plan) -> None:
        """Calls that the log has dropped are only known by their ids."""
        first, last = plan.emptied
        if not plan.state.stem or first > last:
            return
        filters = [
            {"term": {"stem": plan.state.stem}},
            {"range": {"seq": {"gte": max(first, 1), "lte": last}}},
        ]
        old = [*self._client.scan(self._layout.calls, filters, ["stem", "seq"])]
        version = plan.state.record.version
        calls = self._layout.calls
        self._client.bulk([Write(calls, each.id, each.source, version) for each in old])

    def clean(self, stems: Sequence[str]) -> None:
        """Remove the calls of deleted tools; until then nobody is shown them."""
        old = [*self._client.scan(self._layout.calls, [{"terms": {"stem": stems}}], False)]
        self._client.bulk([Write(self._layout.calls, e.id, None, e.version) for e in old])

    # ------------------------------------------------------------ reading

    def read(
        self, workspace: str, asks: Mapping[str, Sequence[str]], own: bool = False
    ) -> dict[str, Found]:
        """Tools by name, and which of the ids they know.

        An id is in the outbox, or was a document before it left it: documents are read after it.
        `own`: as this process left them, where it did; only a swap shows whether it is still so.
        """
        places = {tool: digest(workspace, tool) for tool in asks if is_storable(tool)}
        held = {place: self._own[place] for place in places.values() if own and place in self._own}
        missing = [place for place in places.values() if place not in held]
        docs = self._client.mget([(self._layout.tools, place) for place in missing])
        read = held | dict(zip(missing, docs, strict=True))
        tools = {tool: self._found(workspace, tool, read[place]) for tool, place in places.items()}
        asked = [
            (found, each, _call_id(found.alive.stem, each))
            for tool, found in tools.items()
            if found.alive is not None
            for each in asks[tool]
        ]
        docs = self._client.mget([(self._layout.calls, place) for _, _, place in asked], False)
        for (found, each, place), doc in zip(asked, docs, strict=True):
            if doc is not None or place in found.own_ids:
                found.known.add(each)
        return tools

    def read_all(self, workspace: str, outbox: bool) -> dict[str, Found]:
        """Every tool of a workspace, by name."""
        filters = [{"term": {"workspace": workspace}}, {"term": {"live": True}}]
        fields = ["name", "state", "outbox"] if outbox else ["name", "state"]
        docs = [*self._client.scan(self._layout.tools, filters, fields)]
        found = {
            doc.source["name"]: self._found(workspace, doc.source["name"], doc) for doc in docs
        }
        return dict(sorted(found.items()))

    def _found(self, workspace: str, tool: str, doc: Doc | None) -> Found:
        if doc is None:
            return Found(workspace, tool)
        state: State = decoder(State)(doc.source["state"])
        texts = doc.source.get("outbox") or [""] * len(state.entries)
        outbox = {entry.id: (entry, text) for entry, text in zip(state.entries, texts, strict=True)}
        return Found(workspace, tool, state, doc.position, outbox, tools=self)

    def calls(
        self, wanted: Sequence[tuple[Found, Collection[int]]], guidance: bool = False
    ) -> list[dict[int, Placed]]:
        """Calls by seq, of the window of each tool; with its guidance under 0. Raises Lagging."""
        places: list[tuple[str, str, int, Any]] = []
        for at, (found, seqs) in enumerate(wanted):
            state = found.alive
            assert state is not None
            first = state.record.first_seq
            for seq in seqs:
                kept = state.kept[seq - first]
                places.append((self._layout.calls, kept.id, kept.version, (at, seq)))
            if guidance and state.guidance:
                place = digest(found.workspace, GUIDANCE, found.tool)
                places.append((self._layout.records, place, state.guidance, (at, 0)))
        read: list[dict[int, Placed]] = [{} for _ in wanted]
        missing = []
        for index, place, version, (at, seq) in places:
            entry, text = wanted[at][0].outbox.get(place, (None, ""))
            if entry is None or not text:
                missing.append((index, place, version, (at, seq)))
            elif seq:
                read[at][seq] = Placed(text, entry.position, entry.conversation)
            else:
                read[at][0] = Placed(msgspec.json.decode(text)[0])
        docs = self._client.mget([(index, place) for index, place, _, _ in missing])
        for (_, _, version, (at, seq)), doc in zip(missing, docs, strict=True):
            if doc is None or doc.version != version or "body" not in doc.source:
                raise Lagging
            source = doc.source
            read[at][seq] = Placed(
                source["body"], source.get("position", 0), source.get("conversation", "")
            )
        return read


def _call_id(stem: str, call_id: str) -> str:
    return f"{stem}-{digest(call_id)[:24]}"


def _call_entries(found: Found, change: Change, state: State) -> dict[str, tuple[Entry, str]]:
    """What a change writes of calls. Moves the window of `state`."""
    record, before = state.record, found.alive
    kept = [] if before is None else list(before.kept)
    first = record.first_seq if before is None else before.record.first_seq
    written = {}
    bits = int(digest(found.workspace, found.tool)[:3], 16) >> 2
    for seq, item in change.calls.items():
        place = _call_id(state.stem, item.call.id or "")
        # Grows with time and with the order in which calls came; tools differ in the last 10 bits.
        at = micros(record.time_modified) + item.index << 10 | bits
        state.position = max(state.position + 1, at)
        conversation = conversation_of(item.call.metadata)
        text = "" if seq <= change.emptied[1] else item.body.decode()
        entry = Entry(place, record.version, seq, state.position, conversation)
        written[place] = (entry, text)
        kept.append(_kept(place, record.version, item.call))
    for seq, body in change.rejudged.items():
        place = kept[seq - first].id
        held = found.places[seq]
        entry = Entry(place, record.version, seq, held.position, held.conversation)
        written[place] = (entry, body.decode())
        kept[seq - first] = _kept(place, record.version, decoder(CallFigures)(body))
    state.kept = kept[len(kept) - record.kept :]
    return written


def _kept(place: str, version: int, call: Counted) -> Kept:
    return Kept(place, version, call.failed, call.score, call.time_cost, call.token_cost)


def window_of(found: Found, placed: Mapping[int, Placed], kind: Any) -> Window[Any]:
    """A tool with these of its calls, and its guidance where that was read."""
    assert found.record is not None
    if 0 in placed:
        add_guidance(found.record, placed[0].body)
    rows = [(seq, placed[seq].body) for seq in sorted(placed.keys() - {0})]
    return read_window(found.record, rows, kind)
