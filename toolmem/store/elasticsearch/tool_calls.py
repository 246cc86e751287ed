"""Tools and their calls. One compare-and-swap of a tool's document is the commit.

The commit puts new and rejudged calls, and new guidance, into the tool's outbox. Then they are
written as documents of their own, under the version of the commit, and a second swap empties the
outbox. Two invariants hold, whatever request is lost, repeated or delayed: a document exists only
after its commit was acknowledged, and an entry leaves the outbox only after the write of its
document was acknowledged. So a reader that reads the tool first and its documents afterwards
misses no call. The next writer writes what a killed writer left in the outbox.

A deleted tool leaves an empty document behind, whose versions go on, so that a delayed request
meets a newer revision. The same holds for a forgotten call. The document of a deleted tool names
the calls that are still to be removed.
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
from toolmem.store import storable
from toolmem.store.changes import DELETED, Commit, Update, new_record
from toolmem.store.elasticsearch.client import MAX_CONFLICT_PAUSE, Client, Doc, Revision, Write
from toolmem.store.elasticsearch.layout import Layout, digest, terms
from toolmem.store.elasticsearch.records import document_fields
from toolmem.store.storable import GUIDANCE, decoder, figures_of, guidance_of, micros

RECENT = 16  # names of commits kept in a tool, by which a writer recognizes its own
MAX_LAST_SEEN = 2_000  # tools whose state is cached, some kilobytes each
_encode = msgspec.json.Encoder().encode


class WindowCall(Struct, frozen=True, array_like=True):
    """The figures of a call in a tool's window, and the exact version of its document."""

    id: str
    version: int
    failed_by_flag: bool | None
    score: float | None
    time_cost: float | None
    token_cost: int | None
    failed_silently: bool = False


class OutboxEntry(Struct, frozen=True, array_like=True):
    """A call or guidance that was committed, and still has to become a document of its own."""

    id: str
    version: int  # of the commit that wrote it
    seq: int = 0  # of the call; 0: guidance; -1: a forgotten call
    position: int = 0
    conversation: str = ""


Outbox = dict[str, tuple[OutboxEntry, str]]  # entry and text, by the document's id


class State(Struct, omit_defaults=True):
    """The state of a tool, as the last commit left it in the tool's document."""

    record: ToolRecord
    stem: str = ""  # prefix of the ids of its calls; "": the tool was deleted
    kept: list[WindowCall] = []
    guidance: int = 0  # version of the commit that wrote the guidance; 0: there is none
    position: int = 0  # in the log, of its newest call
    recent: list[str] = []  # names of the last commits
    dead: list[str] = []  # stems of deleted calls whose documents are still to be removed
    entries: list[OutboxEntry] = []  # of the texts in the document's field `outbox`, in order


class FoundTool(Struct):
    """A tool as it was read. `_apply` changes it in memory. Implements `changes.FoundTool`."""

    tools: Tools  # reads its calls
    workspace: str
    tool: str
    state: State
    revision: Revision | None = None  # None: the tool was never stored
    outbox: Outbox = {}
    known: set[str] = set()
    sources: dict[int, dict[str, Any]] = {}  # documents of its calls, by seq; 0: of its guidance
    older: dict[int, tuple[str, dict[str, Any]]] = {}  # id and document of calls before the window
    emptied: tuple[int, int] = (1, 0)  # as in `Commit`
    answer: Any = None  # of the update

    @property
    def exists(self) -> bool:
        return bool(self.state.stem)

    @property
    def record(self) -> ToolRecord | None:
        return self.state.record if self.exists else None

    def window(self, seqs: Sequence[int]) -> Window[ToolCallResult]:
        kept = storable.window_seqs(self.state.record, None, seqs)
        self.tools.fetch([(self, kept)])
        return self.shown(ToolCallResult)

    def figures(self, seqs: Sequence[int]) -> list[Any]:
        """Return the `WindowCall`s of these seqs. `CallSums.add` takes them like `CallFigures`."""
        return [self.state.kept[seq - self.state.record.first_seq] for seq in seqs]

    def known_figures(self) -> dict[str, tuple[int, Any]]:
        doc_ids = {each: _call_id(self.state.stem, each) for each in self.known}
        first = self.state.record.first_seq
        window = {kept.id: (seq, kept) for seq, kept in enumerate(self.state.kept, first)}
        older = self.tools.sources(self, [each for each in doc_ids.values() if each not in window])
        self.older = {source["seq"]: (at, source) for at, source in older.items()}
        read = {at: (each["seq"], figures_of(each.get("body"))) for at, each in older.items()}
        return {each: window.get(at) or read[at] for each, at in doc_ids.items()}

    def guidance(self) -> Guidance | None:
        self.tools.fetch([(self, [])], guidance=True)
        return guidance_of(self.tool, self.sources[0]["body"]) if 0 in self.sources else None

    def shown(self, kind: Any) -> Window[Any]:
        """Return what `Tools.fetch` read: record, guidance and calls, decoded as `kind`."""
        if 0 in self.sources:
            self.state.record.guidance = guidance_of(self.tool, self.sources[0]["body"])
        rows = [(seq, source["body"]) for seq, source in self.sources.items() if seq]
        return storable.read_window(self.state.record, rows, kind)


class Stale(Exception):
    """A document does not match its tool: one of them was read from an outdated copy."""


class Tools:
    """Reads and writes tools. In one process, one thread at a time changes a tool."""

    def __init__(self, client: Client, layout: Layout) -> None:
        self._client = client
        self._layout = layout
        self._last_seen: dict[str, Doc] = {}  # tools after the last commit of this process
        self._writing: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    # ------------------------------------------------------------ writing

    def commit(self, workspace: str, updates: Mapping[str, Update]) -> dict[str, Any]:
        """Carry out updates. Returns by tool the answer, or the ToolMemError that `decide` raised.

        An existing tool's document is written even if nothing changes: what was read may be out of
        date or be undone later, and only a write that succeeds shows that it was not.
        """
        commit_name = os.urandom(6).hex()
        done: dict[str, Any] = {}
        attempts: dict[str, dict[str, Any]] = {tool: {} for tool in updates}
        with ExitStack() as locks:
            for doc_id in sorted(digest(workspace, tool) for tool in updates):  # no deadlock
                locks.enter_context(self._writing[doc_id])
            for attempt, _ in enumerate(self._client.attempts(longest=MAX_CONFLICT_PAUSE)):
                waiting = {tool: update.ids for tool, update in updates.items() if tool not in done}
                swaps, committed = [], []
                for tool, found in self.read(workspace, waiting, cached=attempt == 0).items():
                    try:
                        _apply(found, updates[tool], f"{commit_name}-{attempt}", attempts[tool])
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
        index = self._layout.tools
        doc_id = digest(found.workspace, found.tool)
        return Write(index, doc_id, source, None, found.revision, is_new=found.revision is None)

    def _flush_outboxes(self, committed: Sequence[FoundTool]) -> None:
        """Write the outboxes as documents, and empty them. If it fails, the next commit does it."""
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
        """Remove the documents of calls of deleted tools; no reader sees them any more."""
        index = self._layout.calls
        old = [*self._client.scan(index, [{"terms": {"stem": stems}}], False)]
        self._client.bulk([Write(index, each.id, None, each.version) for each in old])

    # ------------------------------------------------------------ reading

    def read(
        self, workspace: str, call_ids: Mapping[str, Sequence[str]], cached: bool = False
    ) -> dict[str, FoundTool]:
        """Read the tools in `call_ids`, and which of these ids each tool knows (`known`).

        Tools are read before documents: until its document is written, a call is in the outbox.
        `cached`: take tools as this process last wrote them; a commit fails if that is outdated.
        """
        doc_ids = {tool: digest(workspace, tool) for tool in call_ids}
        seen = {each: self._last_seen.get(each) for each in doc_ids.values()} if cached else {}
        missing = [doc_id for doc_id in doc_ids.values() if seen.get(doc_id) is None]
        docs = self._client.mget([(self._layout.tools, doc_id) for doc_id in missing])
        read = seen | dict(zip(missing, docs, strict=True))
        tools = {name: self._tool_of(workspace, name, read[at]) for name, at in doc_ids.items()}
        asked = [
            (self._layout.calls, _call_id(found.state.stem, each))
            for found in tools.values()
            if found.exists
            for each in call_ids[found.tool]
        ]
        docs = self._client.mget(asked, ["seq"])
        stored = {doc.id for doc in docs if doc is not None and "seq" in doc.source}
        for found in tools.values():
            known = stored.union(found.outbox, (kept.id for kept in found.state.kept))
            known -= {each for each, (entry, _) in found.outbox.items() if entry.seq < 0}
            stem = found.state.stem
            found.known = {each for each in call_ids[found.tool] if _call_id(stem, each) in known}
        return tools

    def read_all(self, workspace: str) -> dict[str, FoundTool]:
        """Every tool of a workspace, by name."""
        filters = terms(workspace=workspace, live=True)
        docs = self._client.scan(self._layout.tools, filters, True)
        by_name = {doc.source["name"]: doc for doc in docs}
        return {name: self._tool_of(workspace, name, by_name[name]) for name in sorted(by_name)}

    def _tool_of(self, workspace: str, tool: str, doc: Doc | None) -> FoundTool:
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
        """Read calls in the windows of tools, by seq, into each tool's `sources`. Raises Stale."""
        reads: list[tuple[FoundTool, int, str, str, int]] = []  # tool, seq, index, id, version
        for found, seqs in wanted:
            state = found.state
            for seq in seqs:
                kept = state.kept[seq - state.record.first_seq]
                reads.append((found, seq, self._layout.calls, kept.id, kept.version))
            if guidance and state.guidance:
                index, doc_id = self._layout.records, _guidance_id(found)
                reads.append((found, 0, index, doc_id, state.guidance))
        stored = [(index, at) for found, _, index, at, _ in reads if at not in found.outbox]
        docs = dict(zip(stored, self._client.mget(stored), strict=True))
        for found, seq, index, doc_id, version in reads:
            doc = docs.get((index, doc_id))
            if doc_id in found.outbox:
                found.sources[seq] = _document(found, *found.outbox[doc_id])
            elif doc is not None and doc.version == version and "body" in doc.source:
                found.sources[seq] = doc.source
            else:
                raise Stale

    def sources(self, found: FoundTool, doc_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return documents of calls, by document id, also from before the window. Raises Stale."""
        waiting = {
            each: _document(found, *found.outbox[each]) for each in doc_ids if each in found.outbox
        }
        stored = [(self._layout.calls, doc_id) for doc_id in doc_ids if doc_id not in waiting]
        docs = self._client.mget(stored)
        found_docs = [doc for doc in docs if doc is not None and "seq" in doc.source]
        if len(found_docs) < len(docs):
            raise Stale
        return waiting | {doc.id: doc.source for doc in found_docs}


def _call_id(stem: str, call_id: str) -> str:
    return f"{stem}-{digest(call_id)[:24]}"


def _guidance_id(found: FoundTool) -> str:
    return digest(found.workspace, GUIDANCE, found.tool)


def _document(found: FoundTool, entry: OutboxEntry, text: str) -> dict[str, Any]:
    """The document that an entry of the outbox becomes."""
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
    """Let an update decide, and change the tool in memory. Raises Stale.

    `name`: the name of this attempt. `attempts`: the answers of earlier attempts, by name.
    """
    commit: Any = None
    if own := attempts.keys() & set(found.state.recent):  # it was swapped; the reply was lost
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
    before, doc_id = found.state, _guidance_id(found)
    record = new_record(found.workspace, found.tool, before.record.time_created)
    record.version = before.record.version + 1
    has_guidance = before.guidance or doc_id in found.outbox
    found.outbox = {doc_id: (OutboxEntry(doc_id, record.version), "")} if has_guidance else {}
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
        doc_id = _guidance_id(found)
        written[doc_id] = (OutboxEntry(doc_id, version), body)
    found.state = state
    found.outbox = found.outbox | written
    found.emptied = commit.emptied


def _call_entries(found: FoundTool, commit: Commit, state: State) -> Outbox:
    """The outbox entries of a commit's calls. Also sets the window of `state`."""
    record, kept = state.record, list(found.state.kept)
    first = found.state.record.first_seq
    written: Outbox = {}
    placed: dict[int, WindowCall] = {}  # by seq, all above those of the window before
    tool_bits = int(digest(found.workspace, found.tool)[:3], 16) >> 2
    for seq, item in commit.calls.items():
        doc_id = _call_id(state.stem, item.call.id or "")
        # It grows with time and in the order of the calls; tools differ in the last 10 bits.
        at = micros(record.time_modified) + item.index << 10 | tool_bits
        state.position = max(state.position + 1, at)
        text = "" if seq <= commit.emptied[1] else item.body.decode()
        entry = OutboxEntry(doc_id, record.version, seq, state.position, item.call.conversation_id)
        written[doc_id] = (entry, text)
        placed[seq] = _window_call(doc_id, record.version, item.call)
    for seq, body in commit.rejudged.items():
        doc_id, source = kept[seq - first].id, found.sources[seq]
        conversation = source.get("conversation", "")
        entry = OutboxEntry(doc_id, record.version, seq, source["position"], conversation)
        written[doc_id] = (entry, body.decode())
        kept[seq - first] = _window_call(doc_id, record.version, decoder(CallFigures)(body))
    found.tools.fetch([(found, [seq for seq in commit.moved if seq >= first])])
    for seq, moved in commit.moved.items():
        doc_id, source = found.older.get(seq) or (kept[seq - first].id, found.sources[seq])
        placed[moved] = _window_call(doc_id, record.version, decoder(CallFigures)(source["body"]))
        where = (moved, source["position"], source.get("conversation", ""))
        written[doc_id] = (OutboxEntry(doc_id, record.version, *where), source["body"])
    for each in commit.forgotten:
        doc_id = _call_id(state.stem, each)
        written[doc_id] = (OutboxEntry(doc_id, record.version, -1), "")
    kept += [placed[seq] for seq in sorted(placed)]
    state.kept = kept[len(kept) - record.kept :]
    return written


def _window_call(doc_id: str, version: int, call: Counted) -> WindowCall:
    figures = (call.failed_by_flag, call.score, call.time_cost, call.token_cost)
    return WindowCall(doc_id, version, *figures, call.failed_silently)
