"""OpenAI chat conversations: assistant `tool_calls` joined with the `tool` messages that answer them.

The format has no success flag (`success` stays unknown), and seldom times. The user's last message before a call is its
`context`. Arguments that are a JSON object or list become that, anything else stays the text it is.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from toolmem.errors import RecordError, RequestError
from toolmem.formats.call_records import MAX_ID, read_record
from toolmem.formats.imported import Imported
from toolmem.formats.lines import Entry
from toolmem.formats.times import read_time
from toolmem.models import ToolCallResult, ToolSchema
from toolmem.protocols import Clock
from toolmem.readers.chat import ChatCall, key_of, read_chat, text_of
from toolmem.readers.json_values import NotJsonError, Repairs, clean_text, clean_value
from toolmem.readers.written_arguments import read_arguments
from toolmem.stored import CallFailure


class Declarations:
    """Collects schemas. The first declaration of a name counts; what cannot be read is left out and said."""

    def __init__(self) -> None:
        self._schemas: dict[str, ToolSchema] = {}
        self._redeclared: set[str] = set()
        self._problems: list[str] = []

    def add(self, declarations: Any, place: str) -> None:
        """Add a list of declarations (OpenAI or MCP form); anything but a list declares nothing."""
        for declaration in declarations if isinstance(declarations, list) else ():
            try:
                schema = ToolSchema.read(clean_value(declaration, Repairs()), f"{place}: tools")
            except (NotJsonError, RequestError) as error:
                self._problems.append(f"a tool declaration was left out: {error}")
                continue
            if self._schemas.setdefault(schema.name, schema) != schema:
                self._redeclared.add(schema.name)

    @property
    def schemas(self) -> list[ToolSchema]:
        return list(self._schemas.values())

    @property
    def notes(self) -> list[str]:
        """What a user should be told, in plain words."""
        if not self._redeclared:
            return list(self._problems)
        names = ", ".join(sorted(self._redeclared))
        return [*self._problems, f"declared in more than one way, the first declaration is used: {names}"]


_TIME_KEYS = ("create_time", "created_at", "timestamp", "created")


def is_conversation(value: Any) -> bool:
    """Does this look like a conversation: an object with `messages`, or the list of messages itself?"""
    if isinstance(value, Mapping):
        return isinstance(value.get("messages"), list)
    return isinstance(value, list) and bool(value) and all(isinstance(m, Mapping) and "role" in m for m in value)


def read_conversations(
    entries: Iterable[Entry], tools: Declarations, *, clock: Clock, time_zone: str, limit: int | None = None
) -> Imported:
    """Each entry is a conversation; a row is a call with an answer, in the order of calls.

    Declared tools go to `tools`. `limit`: rows to read.
    """
    reader = _Conversations(tools, clock, time_zone, limit)
    for entry in entries:
        if reader.full:
            break
        reader.read(entry)
    return reader.imported


class _Conversations:
    """Reads conversation after conversation into one `Imported`."""

    def __init__(self, tools: Declarations, clock: Clock, time_zone: str, limit: int | None) -> None:
        self._now = clock.now()  # one time for all calls without one: their position keeps the order
        self._clock = clock
        self._time_zone = time_zone
        self._limit = limit
        self._ids: dict[str, bytes] = {}  # id -> digest of the call that has it
        self._alike: Counter[str] = Counter()  # conversations without an id, by what was called in them
        self._tools = tools
        self.imported = Imported(format="openai")

    @property
    def full(self) -> bool:
        return self._limit is not None and self.imported.rows >= self._limit

    def read(self, entry: Entry) -> None:
        if entry.problem or not is_conversation(entry.value):
            problem = entry.problem or "not a conversation: expected an object with a list 'messages'"
            self._fail("", f"{entry.place}: {problem}")
            return
        body: Mapping[str, Any] = entry.value if isinstance(entry.value, Mapping) else {"messages": entry.value}
        self.imported.conversations += 1
        self._tools.add(body.get("tools"), entry.place)
        self._tools.add(body.get("functions"), entry.place)
        chat = read_chat(body["messages"])
        for tool, problem in chat.problems:
            self._fail(tool, f"{entry.place}: {problem}")
        contexts = [text_of(content) for content in chat.said]
        times = {at: self._time(body["messages"][at]) for at in dict.fromkeys(call.message for call in chat.calls)}
        kept = [
            (call, read)
            for call in chat.calls
            if (read := self._keep(call, contexts[call.turn], times[call.message], entry.place)) is not None
        ]
        self._name(kept, clean_text(key_of(body.get("id")), Repairs()))

    def _time(self, message: Mapping[str, Any]) -> datetime | None:
        for key in _TIME_KEYS:
            value = message.get(key)
            if value is not None:
                try:
                    moment, naive = read_time(value, self._time_zone)
                except (ValueError, RequestError):
                    continue
                self.imported.naive_times += naive
                return moment
        return None

    def _keep(self, call: ChatCall, context: str, time: datetime | None, place: str) -> ToolCallResult | None:
        """The record of an answered call, not named yet; None where there is none."""
        if call.answer is None:
            self.imported.unanswered += not self.full
            return None
        if self.full:
            return None
        row = self.imported.rows
        self.imported.rows += 1
        raw = {
            "tool_name": call.name,
            "input": read_arguments(call.arguments),
            "output": call.output,
            "context": context,
            "create_time": time or self._now,
            "metadata": {} if time else {"synthesized": ["create_time"]},
        }
        try:
            read = read_record(raw, row, clock=self._clock, time_zone=self._time_zone, notes=self.imported)
        except RecordError as error:
            problem = f"{place}, message {call.message + 1}: {error}"
            self.imported.failures.append(CallFailure(row, error.tool_name or "", problem))
            return None
        self.imported.timeless += time is None
        self.imported.calls.append((row, read))
        return read

    def _name(self, kept: Sequence[tuple[ChatCall, ToolCallResult]], given: str) -> None:
        """Give the calls of one conversation their ids.

        Without an id of its own a conversation gives none, because two conversations that look alike may be two.
        """
        conversation = given or self._conversation_id(_digest([_content(read) for _, read in kept]).hex()[:16])
        for call, read in kept:
            call_id = clean_text(call.id, Repairs())
            synthesized = [*([] if given else ["conversation_id"]), *read.metadata.get("synthesized", ())]
            read.metadata = {"conversation_id": conversation, "tool_call_id": call_id}
            if synthesized:
                read.metadata["synthesized"] = synthesized
            if given and call_id:
                read.id = self._id(f"{conversation}/{call_id}", _digest(_content(read)))

    def _conversation_id(self, digest: str) -> str:
        """Made of what was called; conversations that look alike get a number, so that none goes on in another."""
        self._alike[digest] += 1
        number = self._alike[digest]
        return f"sha256:{digest}" if number == 1 else f"sha256:{digest}#{number}"

    def _id(self, base: str, digest: bytes) -> str:
        """`base`; where another call has it already (models reuse "call_0"), with a number behind it.

        The very same call met again keeps its id: it was recorded twice, and the store counts it once.
        """
        if len(base) > MAX_ID - 16:
            base = f"sha256:{hashlib.sha256(base.encode()).hexdigest()}"
        candidate, number = base, 1
        while self._ids.setdefault(candidate, digest) != digest:
            number += 1
            candidate = f"{base}#{number}"
        return candidate

    def _fail(self, tool: str, problem: str) -> None:
        self.imported.failures.append(CallFailure(self.imported.rows, tool, problem))


def _content(call: ToolCallResult) -> list[Any]:
    return [call.tool_name, call.input, call.output]


def _digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
