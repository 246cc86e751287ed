"""Recognize imported calls that a hook has recorded before."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from toolmem.formats.chat import is_random, sorted_digest
from toolmem.formats.programs import GEMINI
from toolmem.formats.recording import ReadCall
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import ToolCallResult, hook_call_id, is_hook_call_id
from toolmem.research.import_runs import OWN, format_of
from toolmem.text.masking import mask_call

FORMAT_ID = r"[0-9a-f]{24}(-\d+)?"  # an id that formats.joining gave to a record
MAX_SESSION = 10_000  # newest calls of a session that are compared by content


class HookCalls:
    """Finds imported calls that a hook recorded before, so that no call is counted twice."""

    def __init__(self, memory: ToolMem) -> None:
        self._store = memory.services.store()
        self._workspace = memory.workspace_name
        # By hash of a hook's id: the hash of the first record's id.
        self._first: dict[int, int] = {}
        self._repeats: Counter[str] = Counter()  # further records with a hook's id
        self._numbers: dict[tuple[str, str | None], int] = {}  # by hook's id and record's id
        self._recorded: set[tuple[str, str | None]] = set()  # tool and id of calls found so far
        self._contents: dict[str, Counter[bytes]] = {}  # digests of recorded calls, by session

    def not_recorded(self, batch: list[ReadCall]) -> list[ReadCall]:
        """Return the calls of a batch that no hook recorded."""
        ids = [self._ids(each.call) for each in batch]
        ids_by_tool: defaultdict[str, set[str]] = defaultdict(set)
        for each, given in zip(batch, ids, strict=True):
            ids_by_tool[each.call.tool_name] |= given
        known = {
            tool: self._store.known_ids(self._workspace, tool, asked) if asked else asked
            for tool, asked in ids_by_tool.items()
        }
        fresh = []
        for each, given in zip(batch, ids, strict=True):
            call = each.call
            record = (call.tool_name, call.id)
            if record in self._recorded:
                continue
            if not known[call.tool_name].isdisjoint(given) or self._is_known_by_content(call):
                self._recorded.add(record)
                continue
            if call.id in given:  # no import takes the id of a hook's call
                call.id = sorted_digest(call.id).hex()
            fresh.append(each)
        return fresh

    def _ids(self, call: ToolCallResult) -> set[str]:
        """Return ids that a hook may have given a call, and its own id unless a format made it."""
        is_own = format_of(call) == OWN or not re.fullmatch(FORMAT_ID, call.id or "")
        ids = {call.id} if call.id and is_own else set()
        key = call.metadata.get("tool_call_id")
        if isinstance(key, str) and format_of(call) != OWN:
            number = self._number(hook_call_id(call.conversation_id, key), key, call.id)
            ids.add(hook_call_id(call.conversation_id, key, number))
            if parent := call.metadata.get("forked_from"):
                ids.add(hook_call_id(str(parent), key, number))
        return ids

    def _number(self, hook_id: str, key: str, record_id: str | None) -> int:
        """Number the records for which a hook would make the same id, from 1."""
        if is_random(key):  # never used again
            return 1
        own_hash = hash(record_id)
        if self._first.setdefault(hash(hook_id), own_hash) == own_hash:
            return 1
        if (hook_id, record_id) not in self._numbers:
            self._repeats[hook_id] += 1
            self._numbers[hook_id, record_id] = 1 + self._repeats[hook_id]
        return self._numbers[hook_id, record_id]

    def _is_known_by_content(self, call: ToolCallResult) -> bool:
        """Gemini CLI gives hooks no ids: its calls of a session are compared by their input."""
        if call.metadata.get("format") != GEMINI.name:
            return False
        session = call.conversation_id
        if session not in self._contents:
            logged = self._store.call_log(
                self._workspace, conversation_id=session, limit=MAX_SESSION
            )
            recorded = [e.call for e in logged if e.call.id and is_hook_call_id(e.call.id)]
            self._contents[session] = Counter(map(self._content, recorded))
        left = self._contents[session]
        content = self._content(call)
        left[content] -= 1
        return left[content] >= 0

    def _content(self, call: ToolCallResult) -> bytes:
        """A digest of tool and input, with secrets masked as in the store."""
        return sorted_digest((call.tool_name, mask_call(call, self._store.secret_key()).input))
