"""What must be true, computed from the operations in the order in which they were committed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from elasticsearch_fake.server import Doc, Key, Server
from toolmem.models.calls import ToolCallResult
from toolmem.store.changes import OUT_OF_DATE
from toolmem.store.elasticsearch.tool_calls import State

LOG_KEEP = 4
Told = tuple[str, str, float | None]  # a call: id, output, score


@dataclass
class Op:
    name: str
    kind: str  # append, verdicts, guidance, delete, forget
    calls: tuple[tuple[str, str], ...] = ()  # id, output
    keep: int = 0
    verdicts: dict[int, float] = field(default_factory=dict)
    covered: frozenset[int] = frozenset()
    expected: int = 0
    ids: frozenset[str] = frozenset()


@dataclass
class Life:
    """A tool from its making to its deletion."""

    stem: str
    calls: dict[int, Told] = field(default_factory=dict)
    versions: dict[tuple[int, int], Told] = field(default_factory=dict)
    latest: dict[int, int] = field(default_factory=dict)
    first: int = 1
    last: int = 0
    ever: set[str] = field(default_factory=set)  # ids, also forgotten ones
    new: set[int] = field(default_factory=set)
    guidance: str = ""
    guidance_version: int = 0

    @property
    def window(self) -> dict[int, Told]:
        return {seq: self.calls[seq] for seq in range(self.first, self.last + 1)}

    @property
    def counters(self) -> tuple[int, int, float]:
        scores = [call[2] for call in self.calls.values() if call[2] is not None]
        return len(self.calls), len(scores), sum(scores)

    def shown(self) -> Any:
        """What a reader is shown of it."""
        told = (self.guidance, self.guidance_version)
        return tuple(self.window.items()), sorted(self.new), self.counters, told


@dataclass
class Model:
    server: Server
    ops: dict[str, Op] = field(default_factory=dict)
    applied: dict[str, Any] = field(default_factory=dict)  # by operation: its right answer
    life: Life | None = None
    lives: dict[str, Life] = field(default_factory=dict)
    moments: list[Any] = field(default_factory=lambda: [None])  # what readers are to be shown
    tool: Key = ("", "")  # its document

    def written(self, key: Key, doc: Doc | None) -> None:
        """Called at every write."""
        if key[0] == "p-tools":
            assert doc is not None, "a reader would see the tool absent"
            self.tool = key
            self._commit(msgspec.json.decode(doc.source["state"], type=State))
        elif doc is not None and key[0] == "p-calls":
            life, told = self.lives[doc.source["stem"]], told_of(doc)
            if "seq" not in doc.source:
                self.everything_is_somewhere()
                return
            place = (doc.source["seq"], doc.version)
            assert told is None or life.versions.get(place) == told, "a document of no commit"
        self.everything_is_somewhere()

    def _commit(self, state: State) -> None:
        name = state.recent[-1].rsplit("-", 1)[0] if state.recent else ""
        if name and name not in self.applied:
            self._apply(self.ops[name], state)
        elif name:
            times = [each for each in state.recent if each.rsplit("-", 1)[0] == name]
            assert len(times) == 1, f"{name} was committed twice"
        self.moments.append(self.life.shown() if self.life else None)
        assert (not state.stem) == (self.life is None)
        if self.life is not None:
            record, life = state.record, self.life
            assert (record.first_seq, record.last_seq) == (life.first, life.last)
            assert len(state.kept) == len(life.window)
            assert record.new == sorted(life.new), "guidance covers something else"
            counters = record.counters
            assert (counters.calls, counters.judged, counters.score_sum) == life.counters
            assert record.guidance_version == life.guidance_version

    def _apply(self, op: Op, state: State) -> None:
        if op.kind == "delete":
            assert self.life is not None
            self.applied[op.name], self.life = True, None
            return
        if op.kind == "forget":
            self._forget(op, state)
            return
        if self.life is None:
            assert op.kind == "append" and state.stem not in self.lives
            self.life = self.lives[state.stem] = Life(state.stem)
        life, version = self.life, state.record.version
        if op.kind == "append":
            known, stored = {call[0] for call in life.calls.values()}, []
            for call_id, output in op.calls:
                if call_id not in known:
                    known.add(call_id)
                    stored.append(call_id)
                    self._write(life, life.last + 1, version, (call_id, output, None))
            life.first = max(life.first, life.last - op.keep + 1)
            life.new = {seq for seq in life.new if seq >= life.first}
            self.applied[op.name] = stored
        elif op.kind == "verdicts":
            changed = [seq for seq in op.verdicts if seq in life.window]
            assert changed
            for seq in changed:
                self._write(life, seq, version, (*life.calls[seq][:2], op.verdicts[seq]))
            life.guidance_version += 1
            self.applied[op.name] = life.counters
        else:
            assert op.expected == life.guidance_version, "guidance of an old state was taken"
            life.guidance, life.guidance_version = op.name, life.guidance_version + 1
            life.new -= op.covered
            self.applied[op.name] = life.guidance_version

    def _forget(self, op: Op, state: State) -> None:
        """The newest of the log fill the gaps; all calls of the window move on."""
        assert (life := self.life) is not None
        gone = {seq for seq, call in life.calls.items() if call[0] in op.ids}
        self.applied[op.name] = len(gone)
        if len(gone) == len(life.calls):
            self.life = None
            return
        stay, gaps = set(life.window) - gone, len(set(life.window) & gone)
        older = [seq for seq in sorted(life.calls) if seq < life.first and seq not in gone]
        number = len(state.kept) - len(stay)
        # Of others only ids may be kept.
        whole = [seq for seq in older if seq > life.last - LOG_KEEP]
        assert min(gaps, len(whole)) <= number <= gaps
        moved = sorted(stay | set(older[len(older) - number :])) if gaps else []
        for seq in gone:
            del life.calls[seq], life.latest[seq]
        if gaps:
            life.first = life.last + 1
        for seq in moved:
            life.last, call = life.last + 1, life.calls.pop(seq)
            del life.latest[seq]
            self._write(life, life.last, state.record.version, call)
        life.new = set(life.window)
        life.guidance = life.guidance and f"- {OUT_OF_DATE}"
        life.guidance_version += 1

    @staticmethod
    def _write(life: Life, seq: int, version: int, call: Told) -> None:
        assert (seq, version) not in life.versions
        life.calls[seq] = life.versions[seq, version] = call
        life.latest[seq] = version
        life.new.add(seq)
        life.last = max(life.last, seq)
        life.ever.add(call[0])

    def everything_is_somewhere(self) -> None:
        """Each call is in the outbox or a document of its newest version; old ones are known."""
        life = self.life
        if life is None:
            return
        state = msgspec.json.decode(self.server.docs[self.tool].source["state"], type=State)
        carried = {each.seq: each.version for each in state.entries}
        documents = {
            doc.source["seq"]: doc
            for key, doc in self.server.docs.items()
            if key[0] == "p-calls" and doc.source["stem"] == life.stem and "seq" in doc.source
        }
        for seq, version in life.latest.items():
            assert carried.get(seq, version) == version
            if seq not in carried:
                assert seq in documents, f"call {seq} is lost"
                is_stub = told_of(documents[seq]) is None
                assert is_stub or documents[seq].version == version, f"call {seq} is old"
                assert not is_stub or seq <= life.last - LOG_KEEP, f"call {seq} is a stub"


def told_of(doc: Doc) -> Told | None:
    """What a document tells of a call; None: only its id."""
    if "body" not in doc.source:
        return None
    return told(msgspec.json.decode(doc.source["body"], type=ToolCallResult))


def told(call: ToolCallResult) -> Told:
    assert call.id is not None
    return call.id, call.output, call.score
