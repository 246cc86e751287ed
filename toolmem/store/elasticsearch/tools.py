"""Tools and their calls. One compare-and-swap of a tool's document is the commit.

The commit puts new and rejudged calls, and new guidance, whole into the tool's outbox. Afterwards
they are written as documents of their own, under the version of the commit, and a second swap
empties the outbox. Two invariants hold whatever is lost, repeated or delayed: a document exists
only after its commit was acknowledged, and an entry leaves the outbox only after the write of its
document was acknowledged. So readers read the tool first, and its documents afterwards. The next
writer finishes what a killed writer left in the outbox.

A deleted tool leaves an empty document behind, whose versions go on, so that a delayed request
finds its position gone. So does a forgotten call. The document of a deleted tool names the calls
that are to be removed, until they are.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolmem.errors import StoreError, StoreUnavailable, ToolMemError
from toolmem.models.calls import CallFigures, ToolCallResult
from toolmem.models.guidance import Guidance
from toolmem.models.tools import Counted, ToolRecord, Window
from toolmem.store.changes import DELETED, Commit, Update, new_record
from toolmem.store.elasticsearch.client import MAX_CONFLICT_PAUSE, Client, Doc, Revision, Write
from toolmem.store.elasticsearch.layout import Layout, digest, terms
from toolmem.store.elasticsearch.records import document_fields
from toolmem.store.storable import (
    GUIDANCE,
    decoder,
    figures_of,
    guidance_of,
    micros,
    read_window,
    window_seqs,
)

RECENT = 16  # names of the last commits, by which a writer recognizes its own
MAX_LAST_SEEN = 2_000  # tools whose state is cached, some kilobytes each
_encode = msgspec.json.Encoder().encode


class WindowCall(Struct, frozen=True, array_like=True):
    """A call in the window of a tool. Its document has exactly this version."""

    id: str
    version: int
    failed_by_flag: bool | None
    score: float | None
    time_cost: float | None
    token_cost: int | None
    failed_silently: bool = False


class OutboxEntry(Struct, frozen=True, array_like=True):
    """A call or guidance in the outbox. Its text stands at the same index of `outbox`."""

    id: str
    version: int  # of the commit that wrote it
    seq: int = 0  # of a call; 0: the guidance; -1: a call that is forgotten
    position: int = 0
    conversation: str = ""


Outbox = dict[str, tuple[OutboxEntry, str]]  # by the document's id


class State(Struct, omit_defaults=True):
    """The committed state of a tool."""

    record: ToolRecord
    stem: str = ""  # of the ids of its calls; "": the tool was deleted
    kept: list[WindowCall] = []
    guidance: int = 0  # the version of the commit that wrote it; 0: there is none
    position: int = 0  # of its newest call in the log
    recent: list[str] = []
    dead: list[str] = []  # stems of calls of the deleted tool, which are still to be removed
    entries: list[OutboxEntry] = []


class FoundTool(Struct):
    """Implements `changes.FoundTool`. A tool as it was read; `_apply` changes it for the commit."""

    tools: Tools  # by which its calls are read
    workspace: str
    tool: str
    state: State
    revision: Revision | None = None  # None: it was never stored
    outbox: Outbox = {}
    known: set[str] = set()  # of the ids that were asked for
    sources: dict[int, dict[str, Any]] = {}  # documents of its calls, by seq; 0: of its guidance
    older: dict[int, tuple[str, dict[str, Any]]] = {}  # id and document of calls that left it
    emptied: tuple[int, int] = (1, 0)  # as in `Commit`
    answer: Any = None  # of the Update, to the caller of `commit`

    @property
    def exists(self) -> bool:
        return bool(self.state.stem)

    @property
    def record(self) -> ToolRecord | None:
        return self.state.record if self.exists else None

    def window(self, seqs: Sequence[int]) -> Window[ToolCallResult]:
        kept = window_seqs(self.state.record, None, seqs)
        self.tools.fetch([(self, kept)])
        return self.shown(ToolCallResult)

    def figures(self, seqs: Sequence[int]) -> list[Any]:
        """`WindowCall` names them as `CallFigures` does."""
        return [self.state.kept[seq - self.state.record.first_seq] for seq in seqs]

    def known_figures(self) -> dict[str, tuple[int, Any]]:
        places = {each: _call_id(self.state.stem, each) for each in self.known}
        first = self.state.record.first_seq
        window = {kept.id: (seq, kept) for seq, kept in enumerate(self.state.kept, first)}
        older = self.tools.sources(self, [each for each in places.values() if each not in window])
        self.older = {source["seq"]: (at, source) for at, source in older.items()}
        read = {at: (each["seq"], figures_of(each.get("body"))) for at, each in older.items()}
        return {each: window.get(at) or read[at] for each, at in places.items()}

    def guidance(self) -> Guidance | None:
        self.tools.fetch([(self, [])], guidance=True)
        return guidance_of(self.tool, self.sources[0]["body"]) if 0 in self.sources else None

    def shown(self, kind: Any) -> Window[Any]:
        """The window with the calls and guidance that were fetched."""
        if 0 in self.sources:
            self.state.record.guidance = guidance_of(self.tool, self.sources[0]["body"])
        rows = [(seq, source["body"]) for seq, source in self.sources.items() if seq]
        return read_window(self.state.record, rows, kind)


class Stale(Exception):
    """A document and its tool were read at different versions, or from an outdated copy."""


class Tools:
    """The tools of a store. One thread of a process changes a tool at a time."""

    def __init__(self, client: Client, layout: Layout) -> None:
        self._client = client
        self._layout = layout
        self._last_seen: dict[str, Doc] = {}  # tools as the last commit of this process left them
        self._writing: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    # ------------------------------------------------------------ writing

    def commit(self, workspace: str, updates: Mapping[str, Update]) -> dict[str, Any]:
        """The answers, by tool; an answer may be an exception.

        Every answer needs an acknowledged swap, even "it is there already": a read may return an
        outdated copy, or one that is undone later.
        """
        name = os.urandom(6).hex()
        done: dict[str, Any] = {}
        attempts: dict[str, dict[str, Any]] = {tool: {} for tool in updates}
        with ExitStack() as locks:
            for place in sorted(digest(workspace, tool) for tool in updates):
                locks.enter_context(self._writing[place])
            for attempt, _ in enumerate(self._client.attempts(longest=MAX_CONFLICT_PAUSE)):
                waiting = {tool: update.ids for tool, update in updates.items() if tool not in done}
                swaps, committed = [], []
                for tool, found in self.read(workspace, waiting, cached=attempt == 0).items():
                    try:
                        _apply(found, updates[tool], f"{name}-{attempt}", attempts[tool])
                    except Stale:
                        continue
                    if found.revision is None and not found.exists:
                        done[tool] = found.answer  # there is no tool, and nothing to do
                    else:
                        swaps.append(found)
                revisions = self._client.bulk([self._swap(each) for each in swaps])
                for found, revision in zip(swaps, revisions, strict=True):
                    if revision is not None:
                        found.revision = revision
                        done[found.tool] = found.answer
                        committed.append(found)
                self._flush_outboxes(committed)
                if len(done) == len(updates):
                    return done
        raise StoreUnavailable(
            f"Elasticsearch at {self._client.location}: others changed "
            f"{', '.join(sorted(updates.keys() - done.keys()))} during every attempt"
        )

    def _swap(self, found: FoundTool) -> Write:
        state = found.state
        state.entries = [entry for entry, _ in found.outbox.values()]
        source = {
            "workspace": found.workspace,
            "name": found.tool,
            "live": found.exists,
            "state": _encode(state).decode(),
            "outbox": [text for _, text in found.outbox.values()],
        }
        place = (self._layout.tools, digest(found.workspace, found.tool))
        return Write(*place, source, revision=found.revision, is_new=found.revision is None)

    def _flush_outboxes(self, committed: Sequence[FoundTool]) -> None:
        """Write the documents of commits, and empty the outboxes; else the next commit does it."""
        written, emptied = list[Write](), list[Write]()
        for found in committed:
            for entry, text in found.outbox.values():
                index = self._layout.calls if entry.seq else self._layout.records
                source = _document(found, entry, text)
                written.append(Write(index, entry.id, source, entry.version))
        try:
            self._client.bulk(written)
            if dead := [stem for found in committed for stem in found.state.dead]:
                self._remove_deleted_calls(dead)
            for found in committed:
                if found.outbox or found.state.dead:
                    found.outbox, found.state.dead = {}, []
                    emptied.append(self._swap(found))
            revisions = self._client.bulk(emptied)
            if len(self._last_seen) > MAX_LAST_SEEN:
                self._last_seen.clear()
            for write, revision in zip(emptied, revisions, strict=True):
                if revision is not None:
                    self._last_seen[write.id] = Doc(write.id, write.source, revision, 0)
            for found in committed:
                self._remove_old_bodies(found)
        except StoreError as error:
            log = logging.getLogger("toolmem.store")
            log.warning("calls stay in the outbox of their tool until its next commit: %s", error)

    def _remove_old_bodies(self, found: FoundTool) -> None:
        """Remove the bodies of calls that left the log; their ids stay known."""
        first, last = found.emptied
        if first > last:
            return
        filters: list[Any] = terms(stem=found.state.stem)
        filters.append({"range": {"seq": {"gte": first, "lte": last}}})
        version, index = found.state.record.version, self._layout.calls
        old = [*self._client.scan(index, filters, ["stem", "seq"])]
        self._client.bulk([Write(index, each.id, each.source, version) for each in old])

    def _remove_deleted_calls(self, stems: Sequence[str]) -> None:
        """Remove the calls of deleted tools, which no reader sees any more."""
        index = self._layout.calls
        old = [*self._client.scan(index, [{"terms": {"stem": stems}}], False)]
        self._client.bulk([Write(index, each.id, None, each.version) for each in old])

    # ------------------------------------------------------------ reading

    def read(
        self, workspace: str, updates: Mapping[str, Sequence[str]], cached: bool = False
    ) -> dict[str, FoundTool]:
        """Tools by name, and which of the ids they know. `updates`: ids by tool.

        An id is in the outbox until its document is written, so documents are read afterwards.
        `cached`: as this process last wrote them, where it did; a swap shows if that is outdated.
        """
        places = {tool: digest(workspace, tool) for tool in updates}
        seen = {p: self._last_seen[p] for p in places.values() if cached and p in self._last_seen}
        missing = [place for place in places.values() if place not in seen]
        docs = self._client.mget([(self._layout.tools, place) for place in missing])
        read = seen | dict(zip(missing, docs, strict=True))
        tools = {tool: self._found(workspace, tool, read[place]) for tool, place in places.items()}
        asked = [
            (self._layout.calls, _call_id(found.state.stem, each))
            for found in tools.values()
            if found.exists
            for each in updates[found.tool]
        ]
        docs = self._client.mget(asked, ["seq"])
        stored = {doc.id for doc in docs if doc is not None and "seq" in doc.source}
        for found in tools.values():
            ids = stored.union(found.outbox, (kept.id for kept in found.state.kept))
            ids -= {each for each, (entry, _) in found.outbox.items() if entry.seq < 0}
            found.known = {e for e in updates[found.tool] if _call_id(found.state.stem, e) in ids}
        return tools

    def read_all(self, workspace: str) -> dict[str, FoundTool]:
        """Every tool of a workspace, by name."""
        filters = terms(workspace=workspace, live=True)
        docs = self._client.scan(self._layout.tools, filters, True)
        by_name = {doc.source["name"]: doc for doc in docs}
        return {name: self._found(workspace, name, by_name[name]) for name in sorted(by_name)}

    def _found(self, workspace: str, tool: str, doc: Doc | None) -> FoundTool:
        if doc is None:
            record = new_record(workspace, tool, datetime.now(UTC))
            return FoundTool(self, workspace, tool, State(record))
        state: State = decoder(State)(doc.source["state"])
        waiting = zip(state.entries, doc.source["outbox"], strict=True)
        outbox = {entry.id: (entry, text) for entry, text in waiting}
        return FoundTool(self, workspace, tool, state, doc.revision, outbox)

    def fetch(
        self, wanted: Sequence[tuple[FoundTool, Collection[int]]], guidance: bool = False
    ) -> None:
        """Read the documents of calls in the window of each tool. Raises Lagging."""
        places: list[tuple[FoundTool, int, tuple[str, str], int]] = []
        for found, seqs in wanted:
            state = found.state
            for seq in seqs:
                kept = state.kept[seq - state.record.first_seq]
                places.append((found, seq, (self._layout.calls, kept.id), kept.version))
            if guidance and state.guidance:
                place = (self._layout.records, _guidance_id(found))
                places.append((found, 0, place, state.guidance))
        stored = [place for found, _, place, _ in places if place[1] not in found.outbox]
        docs = dict(zip(stored, self._client.mget(stored), strict=True))
        for found, seq, place, version in places:
            doc = docs.get(place)
            if place[1] in found.outbox:
                found.sources[seq] = _document(found, *found.outbox[place[1]])
            elif doc is not None and doc.version == version and "body" in doc.source:
                found.sources[seq] = doc.source
            else:
                raise Stale

    def sources(self, found: FoundTool, places: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The documents of calls by id, also of calls outside the window. Raises Stale."""
        waiting = {p: _document(found, *found.outbox[p]) for p in places if p in found.outbox}
        stored = [(self._layout.calls, place) for place in places if place not in waiting]
        docs = self._client.mget(stored)
        if not all(doc is not None and "seq" in doc.source for doc in docs):
            raise Stale
        return waiting | {doc.id: doc.source for doc in docs if doc is not None}


def _call_id(stem: str, call_id: str) -> str:
    return f"{stem}-{digest(call_id)[:24]}"


def _guidance_id(found: FoundTool) -> str:
    return digest(found.workspace, GUIDANCE, found.tool)


def _document(found: FoundTool, entry: OutboxEntry, text: str) -> dict[str, Any]:
    """The document of an entry of the outbox."""
    if entry.seq:
        source: dict[str, Any] = {"stem": entry.id.partition("-")[0]}
        source |= {} if entry.seq < 0 else {"seq": entry.seq}
        if text:
            source |= {"position": entry.position, "body": text}
            source |= {"conversation": entry.conversation} if entry.conversation else {}
        return source
    source = {"workspace": found.workspace, "namespace": GUIDANCE, "key": found.tool}
    source["live"] = bool(text)
    if text:
        body, document = msgspec.json.decode(text)
        source |= {"body": body, **document_fields(document)}
    return source


def _apply(found: FoundTool, update: Update, name: str, attempts: dict[str, Any]) -> None:
    """Apply an Update, and set the answer. `attempts`: earlier answers by name. Raises Stale."""
    commit: Any = None
    if own := attempts.keys() & set(found.state.recent):  # swapped, and the answer was lost
        found.answer = attempts[own.pop()]
    else:
        try:
            commit, found.answer = update.decide(found)
        except ToolMemError as error:
            found.answer = error
    if commit is None:
        if attempts and found.revision is None:
            raise Stale
        return
    attempts[name] = found.answer
    if commit is DELETED:
        _apply_delete(found)
    else:
        _apply_commit(found, commit)
    found.state.recent = [*found.state.recent, name][-RECENT:]


def _apply_delete(found: FoundTool) -> None:
    before, place = found.state, _guidance_id(found)
    record = new_record(found.workspace, found.tool, before.record.time_created)
    record.version = before.record.version + 1
    has_guidance = before.guidance or place in found.outbox
    found.outbox = {place: (OutboxEntry(place, record.version), "")} if has_guidance else {}
    dead = [*before.dead, before.stem]
    found.state = State(record, position=before.position, recent=before.recent, dead=dead)


def _apply_commit(found: FoundTool, commit: Commit) -> None:
    commit.record.version = version = found.state.record.version + 1
    stem = found.state.stem or os.urandom(8).hex()
    state = replace(found.state, record=commit.record, stem=stem)
    written = _call_entries(found, commit, state)
    if commit.guidance is not None:
        state.guidance = version
        text = "" if commit.document is None else commit.document.text
        body = _encode([_encode(commit.guidance).decode(), text]).decode()
        place = _guidance_id(found)
        written[place] = (OutboxEntry(place, version), body)
    found.state, found.outbox, found.emptied = state, found.outbox | written, commit.emptied


def _call_entries(found: FoundTool, commit: Commit, state: State) -> Outbox:
    """The outbox entries of a commit's calls. Moves the window of `state`."""
    record, kept = state.record, list(found.state.kept)
    first = found.state.record.first_seq
    written: Outbox = {}
    placed: dict[int, WindowCall] = {}  # above the kept ones
    tool_bits = int(digest(found.workspace, found.tool)[:3], 16) >> 2
    for seq, item in commit.calls.items():
        place = _call_id(state.stem, item.call.id or "")
        # Grows with time and with the order in which calls came; tools differ in the last 10 bits.
        at = micros(record.time_modified) + item.index << 10 | tool_bits
        state.position = max(state.position + 1, at)
        text = "" if seq <= commit.emptied[1] else item.body.decode()
        entry = OutboxEntry(place, record.version, seq, state.position, item.call.conversation_id)
        written[place] = (entry, text)
        placed[seq] = _window_call(place, record.version, item.call)
    for seq, body in commit.rejudged.items():
        place, source = kept[seq - first].id, found.sources[seq]
        conversation = source.get("conversation", "")
        entry = OutboxEntry(place, record.version, seq, source["position"], conversation)
        written[place] = (entry, body.decode())
        kept[seq - first] = _window_call(place, record.version, decoder(CallFigures)(body))
    found.tools.fetch([(found, [seq for seq in commit.moved if seq >= first])])
    for seq, moved in commit.moved.items():
        place, source = found.older.get(seq) or (kept[seq - first].id, found.sources[seq])
        placed[moved] = _window_call(place, record.version, decoder(CallFigures)(source["body"]))
        where = (moved, source["position"], source.get("conversation", ""))
        written[place] = (OutboxEntry(place, record.version, *where), source["body"])
    for each in commit.forgotten:
        place = _call_id(state.stem, each)
        written[place] = (OutboxEntry(place, record.version, -1), "")
    kept += [placed[seq] for seq in sorted(placed)]
    state.kept = kept[len(kept) - record.kept :]
    return written


def _window_call(place: str, version: int, call: Counted) -> WindowCall:
    costs = (call.time_cost, call.token_cost)
    return WindowCall(place, version, call.failed_by_flag, call.score, *costs, call.failed_silently)
