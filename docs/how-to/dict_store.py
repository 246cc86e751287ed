"""A store in dictionaries: what a backend has to add to BaseStore. See write_a_store.md."""

import math
import os
import threading
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec
import numpy as np
from msgspec.structs import replace

from toolmem.errors import RequestError, StoreClosed
from toolmem.models.calls import CallFigures, ToolCallResult
from toolmem.models.records import Document, Record, Snapshot, TextRow
from toolmem.models.tools import LoggedCall, ToolRecord
from toolmem.store.base import BaseStore
from toolmem.store.changes import DELETED
from toolmem.store.search import Ranking, index_words, scope_of
from toolmem.store.storable import (
    GUIDANCE,
    as_list,
    decoder,
    figures_of,
    guidance_of,
    is_rule,
    is_storable,
    next_version,
    read_window,
    searched_text,
)

encode = msgspec.json.encode


class Tool:
    def __init__(self):
        self.record = self.guidance = b""
        self.calls = {}  # seq -> (position, conversation, body); body None: known by id alone
        self.ids = {}  # id -> seq

    def read(self):
        record = decoder(ToolRecord)(self.record)
        record.guidance = guidance_of(record.tool_name, self.guidance or None)
        return record


class Space:
    """A workspace."""

    def __init__(self):
        self.tools, self.records, self.documents = {}, {}, {}
        self.stamp = ""


class State:
    """All that a store holds."""

    def __init__(self):
        self.lock = threading.RLock()
        self.spaces, self.embedder = {}, None
        self.positions = self.document_ids = 0
        self.key = os.urandom(32)


class FoundTool:
    """A tool while a write of it is decided: `FoundTool` in toolmem/store/changes.py."""

    def __init__(self, store, tool, ids):
        self.store, self.tool = store, tool
        self.record = None if tool is None else replace(tool.read(), guidance=None)
        self.known = set() if tool is None else {each for each in ids if each in tool.ids}

    def window(self, seqs, kind=ToolCallResult):
        return self.store._window(self.tool, None, seqs, kind)

    def figures(self, seqs):
        return self.window(seqs, CallFigures).calls if seqs else []

    def known_figures(self):
        seqs = {each: self.tool.ids[each] for each in self.known}
        return {each: (seq, figures_of(self.tool.calls[seq][2])) for each, seq in seqs.items()}

    def guidance(self):
        return self.tool.read().guidance


class DictStore(BaseStore):
    """Everything in dictionaries. Nothing outlives the process, and nothing is rolled back."""

    location = untrusted = ""
    _mask = True  # secrets are masked
    _states: dict[str, State] = {}  # by path: a store that is opened again finds its things

    def __init__(self, path="dict"):
        self.location = str(path)
        self._held = self._states.setdefault(self.location, State())
        self._is_closed = False

    @contextmanager
    def _state(self):
        if self._is_closed:
            raise StoreClosed("this store was closed")
        with self._held.lock:
            yield self._held

    @contextmanager
    def transaction(self, wait=None):
        with self._state():
            yield

    def close(self):
        self._is_closed = True

    def secret_key(self):
        with self._state() as state:
            return state.key

    def _space(self, state, workspace):
        return state.spaces.get(workspace) or Space()

    # -- workspaces and tools

    def workspaces(self):
        with self._state() as state:
            used = [name for name, space in state.spaces.items() if space.tools or space.records]
            return sorted(name for name in used if not name.startswith("."))

    def delete_workspace(self, workspace):
        with self._state() as state:
            space = self._space(state, workspace)
            count = len(space.tools)
            for held in (space.tools, space.records, space.documents):
                held.clear()
            space.stamp = os.urandom(8).hex()
            return count

    def tool_names(self, workspace):
        with self._state() as state:
            return sorted(self._space(state, workspace).tools)

    def _found(self, state, workspace, names):
        tools = self._space(state, workspace).tools
        names = sorted(tools) if names is None else names
        return [tools[name] for name in names if name in tools]

    def records(self, workspace, names=None, *, guidance=True):
        with self._state() as state:
            found = [tool.read() for tool in self._found(state, workspace, names)]
        return found if guidance else [replace(each, guidance=None) for each in found]

    def windows(self, workspace, names=None, *, recent=None, seqs=None, type=ToolCallResult):
        with self._state() as state:
            found = self._found(state, workspace, names)
            asked = [None if seqs is None else seqs.get(t.read().tool_name) for t in found]
            return [self._window(t, recent, a, type) for t, a in zip(found, asked, strict=True)]

    def _window(self, tool, recent, seqs, kind):
        record = tool.read()
        kept = range(record.first_seq, record.last_seq + 1)
        chosen = kept if recent is None else kept[-recent:]
        if seqs is not None:
            chosen = [seq for seq in sorted(set(seqs)) if seq in chosen]
        return read_window(record, [(seq, tool.calls[seq][2]) for seq in chosen], kind)

    def delete_tools(self, workspace, names=None):
        with self._state() as state:
            space = self._space(state, workspace)
            gone = [t.read().tool_name for t in self._found(state, workspace, names)]
            for name in gone:
                self._delete_tool(space, name)
            return gone

    def _delete_tool(self, space, name):
        space.tools.pop(name, None)
        space.documents.pop((GUIDANCE, name), None)

    # -- calls

    def known_ids(self, workspace, tool, ids):
        with self._state() as state:
            held = self._space(state, workspace).tools.get(tool)
            return set() if held is None else {each for each in ids if each in held.ids}

    def _commit(self, workspace, updates):
        with self._state() as state:
            space, answers, changed = state.spaces.setdefault(workspace, Space()), {}, []
            for name, update in updates.items():
                found = FoundTool(self, space.tools.get(name), update.ids)
                commit, answers[name] = update.decide(found)
                if commit is DELETED:
                    self._delete_tool(space, name)
                elif commit is not None:
                    changed.append((name, commit))
            self._write(state, space, changed)
            return answers

    def _write(self, state, space, changed):
        """Carry out what was decided. Positions follow the order of what was handed over."""
        new = []
        for name, commit in changed:
            tool = space.tools.setdefault(name, Tool())
            tool.record = encode(replace(commit.record, guidance=None))
            if commit.guidance is not None:
                tool.guidance = encode(commit.guidance)
                self._index(state, space, (GUIDANCE, name), commit.document)
            for seq, body in commit.rejudged.items():
                tool.calls[seq] = (*tool.calls[seq][:2], body)
            for each in commit.forgotten:
                del tool.calls[tool.ids.pop(each)]
            for seq, moved in commit.moved.items():
                tool.calls[moved] = tool.calls.pop(seq)
            tool.ids = {each: commit.moved.get(seq, seq) for each, seq in tool.ids.items()}
            new += [(item.index, tool, seq, item) for seq, item in commit.calls.items()]
        for _, tool, seq, item in sorted(new, key=lambda each: each[0]):
            state.positions += 1
            tool.calls[seq] = (state.positions, item.call.conversation_id, item.body)
            tool.ids[item.call.id] = seq
        for name, commit in changed:
            calls = space.tools[name].calls
            for seq in range(commit.emptied[0], commit.emptied[1] + 1):
                if seq in calls:
                    calls[seq] = (*calls[seq][:2], None)

    def call_log(
        self,
        workspace,
        *,
        conversation_id=None,
        tool_names=None,
        contains="",
        ids=None,
        after=0,
        before=None,
        limit=1000,
        newest=False,
    ):
        text = searched_text(contains).lower()
        end = math.inf if before is None else before
        with self._state() as state:
            names = None if tool_names is None else as_list(tool_names)
            tools = self._found(state, workspace, names)
            rows = sorted(row for each in tools for row in each.calls.values() if row[2])
        found = [
            LoggedCall(position, decoder(ToolCallResult)(body))
            for position, made_in, body in rows
            if after < position < end
            and (conversation_id is None or made_in in as_list(conversation_id))
            and text in body.decode().lower()
        ]
        found = [each for each in found if ids is None or each.call.id in ids]
        return found[-limit:] if newest else found[:limit]

    # -- records

    def get_many(self, workspace, keys):
        with self._state() as state:
            space = self._space(state, workspace)
            return Snapshot(space.stamp, [space.records.get(place) for place in keys])

    def list_records(self, workspace, namespace=None, *, prefix="", key_prefix="", newest=None):
        with self._state() as state:
            held = sorted(self._space(state, workspace).records.items())
        found = [
            record
            for (space, key), record in held
            if key.startswith(key_prefix)
            and (space == namespace if namespace is not None else space.startswith(prefix))
            and (namespace is not None or not space.startswith("."))
        ]
        return found if newest is None else found[len(found) - min(newest, len(found)) :]

    def namespaces(self, workspace, *, hidden=False):
        with self._state() as state:
            found = {space for space, _ in self._space(state, workspace).records}
        return sorted(each for each in found if hidden or not each.startswith("."))

    def _put(self, place, body, document, expected):
        workspace, namespace, key = place
        if not is_storable(namespace + key):
            raise RequestError("key: holds a lone surrogate", "key")
        with self._state() as state:
            space = state.spaces.setdefault(workspace, Space())
            old, now = space.records.get(place[1:]), datetime.now(UTC)
            version = next_version(place, old, expected)
            created = now if old is None else old.time_created
            made = Record(namespace, key, msgspec.Raw(body), version, created, now)
            space.records[place[1:]] = made
            self._index(state, space, place[1:], document)
            if is_rule(namespace, key):
                space.stamp = os.urandom(8).hex()
            return made

    def delete(self, workspace, namespace, key):
        with self._state() as state:
            space = self._space(state, workspace)
            space.documents.pop((namespace, key), None)
            if is_rule(namespace, key):
                space.stamp = os.urandom(8).hex()
            return space.records.pop((namespace, key), None) is not None

    # -- search

    def _index(self, state, space, place, document):
        space.documents.pop(place, None)
        if document is not None:
            state.document_ids += 1
            space.documents[place] = [str(state.document_ids), document.text, None]

    def _scope(self, state, workspace, namespace):
        held = self._space(state, workspace).documents
        wanted = scope_of(workspace, namespace).namespace
        return {key: document for (space, key), document in held.items() if space == wanted}

    def _rank(self, query):
        scope, words, identity, unit, depth, keys = query
        with self._state() as state:
            held = self._scope(state, scope.workspace, scope.namespace)
            same = identity is not None and identity == state.embedder
        held = {key: each for key, each in held.items() if keys is None or key in set(keys)}
        counts = {key: Counter(index_words(text)) for key, (_, text, _) in held.items()}
        many = Counter(word for count in counts.values() for word in count)
        weights = {word: math.log(1 + len(held) / many[word]) for word in words if many[word]}
        scores = {
            key: sum(w * count[word] / (count[word] + 1) for word, w in weights.items())
            for key, count in counts.items()
        }
        by_words = sorted((k for k in scores if scores[k]), key=lambda k: (-scores[k], k))[:depth]
        if not same or not np.any(unit):
            return Ranking(by_words)
        vectors = {key: v for key, (_, _, v) in held.items() if v is not None and np.any(v)}
        cosines = {key: round(float(v @ unit), 6) for key, v in vectors.items()}
        nearest = sorted(cosines, key=lambda key: (-cosines[key], key))[:depth]
        return Ranking(by_words, nearest, cosines)

    def documents(self, workspace, namespace, keys):
        with self._state() as state:
            held = self._scope(state, workspace, namespace)
        return {key: Document(held[key][1]) for key in keys if key in held}

    def embedder(self):
        with self._state() as state:
            return state.embedder

    def use_embedder(self, identity):
        with self._state() as state:
            if state.embedder not in (None, identity):
                for space in state.spaces.values():
                    for document in space.documents.values():
                        document[2] = None
            state.embedder = identity

    def texts_without_vector(self, workspace, namespace, limit):
        with self._state() as state:
            held = self._scope(state, workspace, namespace).values()
        return [TextRow(number, text) for number, text, v in held if v is None][:limit]

    def put_vectors(self, identity, vectors):
        with self._state() as state:
            if state.embedder != identity:
                raise RequestError("the store holds the vectors of another embedder", "vector")
            for space in state.spaces.values():
                for document in space.documents.values():
                    if document[0] in vectors:
                        document[2] = np.asarray(vectors[document[0]], np.float32)
