"""OpenAI chat conversations: assistant `tool_calls` joined with the `tool` messages that answer them.

The format has no success flag (`success` stays unknown), and seldom times. The user's last message before a call is its
`context`. Arguments that are a JSON object or list become that, anything else stays the text it is.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from toolmem.errors import RecordError, RequestError
from toolmem.formats.imported import Imported
from toolmem.formats.json_values import NotJsonError, Repairs, clean_text, clean_value
from toolmem.formats.lines import Entry
from toolmem.formats.records import MAX_ID, RecordNotes, read_record
from toolmem.formats.times import read_time
from toolmem.models import ToolCallResult, ToolSchema
from toolmem.protocols import Clock
from toolmem.stored import CallFailure


def text_of(content: Any) -> str:
    """The text of a message's `content`: a string, a list of parts, or null; anything else as JSON text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, (str, Mapping)) for part in content):
        return "\n".join(_part_text(part) for part in content)
    return _json_text(content)


def _part_text(part: str | Mapping[str, Any]) -> str:
    if isinstance(part, str):
        return part
    for key in ("text", "refusal", "content"):
        if isinstance(part.get(key), str):
            return str(part[key])
    kind = part.get("type")
    return f"[{kind}]" if isinstance(kind, str) else _json_text(part)  # an image or a sound: said, not carried


def _json_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "[nested too deeply to be shown]"


def read_arguments(arguments: Any) -> Any:
    """The input of a call from its `arguments`, which should be the text of a JSON object.

    Text that is not JSON (a Python literal, a cut-off object), or holds what JSON cannot carry (NaN), stays text; so
    does a JSON number or boolean, because an input is an object, a list or a string. Empty or null: no arguments, `{}`.
    """
    if arguments is None:
        return {}
    if not isinstance(arguments, str):
        return arguments
    if not arguments.strip():
        return {}
    try:
        value = json.loads(arguments)
        clean_value(value, Repairs())
    except (ValueError, RecursionError, NotJsonError):
        return arguments
    if value is None:
        return {}
    return value if isinstance(value, (dict, list, str)) else arguments


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
    reader = _Reader(tools, clock, time_zone, limit)
    for entry in entries:
        if reader.full:
            break
        reader.read(entry)
    return reader.finish()


@dataclass(slots=True)
class _Call:
    """A call of an assistant message, and its answer once it came."""

    id: str  # "" where the message gives none
    name: Any
    input: Any
    context: str
    message: int  # position of its message
    time: datetime | None
    output: str | None = None


@dataclass(slots=True)
class _Conversation:
    """Joins the messages of one conversation."""

    time_zone: str
    calls: list[_Call] = field(default_factory=list)
    waiting: dict[str, list[_Call]] = field(default_factory=dict)  # by id, unanswered, oldest first
    context: str = ""
    orphans: list[tuple[str, str]] = field(default_factory=list)  # (tool name, what is wrong)
    naive_times: int = 0

    def read(self, messages: Sequence[Any]) -> None:
        for position, message in enumerate(messages):
            if not isinstance(message, Mapping):
                self.orphans.append(("", f"message {position + 1} is not an object"))
                continue
            role = message.get("role")
            if role == "user":
                self.context = text_of(message.get("content"))
            elif role == "assistant":
                self._ask(message, position)
            elif role in ("tool", "function"):
                self._answer(message, position)

    def _ask(self, message: Mapping[str, Any], position: int) -> None:
        asked = message.get("tool_calls")
        calls = [call for call in asked if isinstance(call, Mapping)] if isinstance(asked, list) else []
        if isinstance(message.get("function_call"), Mapping):
            calls.append({"function": message["function_call"]})
        time = self._time(message)
        for raw in calls:
            body = next((raw[key] for key in ("function", "custom") if isinstance(raw.get(key), Mapping)), raw)
            call = _Call(
                id=_key(raw.get("id")),
                name=body.get("name"),
                input=read_arguments(body["arguments"] if "arguments" in body else body.get("input")),
                context=self.context,
                message=position,
                time=time,
            )
            self.calls.append(call)
            # An id used again in a later message closes the earlier call: nobody will answer that one any more.
            queue = [old for old in self.waiting.get(call.id, []) if old.message == position or not call.id]
            self.waiting[call.id] = [*queue, call]

    def _answer(self, message: Mapping[str, Any], position: int) -> None:
        given, name = _key(message.get("tool_call_id")), _key(message.get("name"))
        call = self._take(given, name)
        if call is None:
            what = f"call {given[:60]!r}" if given else f"a call of {name[:60]!r}"
            self.orphans.append((name, f"message {position + 1} answers {what}, which no message before it made"))
            return
        call.output = text_of(message.get("content"))

    def _take(self, call_id: str, name: str) -> _Call | None:
        queue = self.waiting.get(call_id, []) if call_id else []
        if not queue and (not call_id or call_id not in self.waiting):
            # Without an id the name decides; without a name too, the oldest call of the last message that asked.
            queue = [call for call in self.waiting.get("", []) if not name or call.name == name]
            queue = [call for call in queue if call.message == queue[-1].message]
        if not queue:
            return None
        call = queue[0]
        self.waiting[call.id] = [other for other in self.waiting[call.id] if other is not call]
        return call

    def _time(self, message: Mapping[str, Any]) -> datetime | None:
        for key in _TIME_KEYS:
            value = message.get(key)
            if value is not None:
                try:
                    moment, naive = read_time(value, self.time_zone)
                except (ValueError, RequestError):
                    continue
                self.naive_times += naive
                return moment
        return None


class _Reader:
    """Reads conversation after conversation into one `Imported`."""

    def __init__(self, tools: Declarations, clock: Clock, time_zone: str, limit: int | None) -> None:
        self._now = clock.now()  # one time for all calls without one: their position keeps the order
        self._clock = clock
        self._time_zone = time_zone
        self._limit = limit
        self._notes = RecordNotes()
        self._ids: dict[str, bytes] = {}  # id -> digest of the call that has it
        self._alike: Counter[str] = Counter()  # conversations without an id, by what was called in them
        self._tools = tools
        self._imported = Imported(format="openai")

    @property
    def full(self) -> bool:
        return self._limit is not None and self._imported.rows >= self._limit

    def read(self, entry: Entry) -> None:
        if entry.problem or not is_conversation(entry.value):
            problem = entry.problem or "not a conversation: expected an object with a list 'messages'"
            self._fail("", f"{entry.place}: {problem}")
            return
        body: Mapping[str, Any] = entry.value if isinstance(entry.value, Mapping) else {"messages": entry.value}
        self._imported.conversations += 1
        self._tools.add(body.get("tools"), entry.place)
        self._tools.add(body.get("functions"), entry.place)
        conversation = _Conversation(self._time_zone)
        conversation.read(body["messages"])
        self._notes.naive_times += conversation.naive_times
        for tool, problem in conversation.orphans:
            self._fail(tool, f"{entry.place}: {problem}")
        kept = [pair for call in conversation.calls if (pair := self._keep(call, entry.place)) is not None]
        self._name(kept, clean_text(_key(body.get("id")), Repairs()))

    def _keep(self, call: _Call, place: str) -> tuple[_Call, ToolCallResult] | None:
        """The record of an answered call, not named yet; None where there is none."""
        if call.output is None:
            self._imported.unanswered += not self.full
            return None
        if self.full:
            return None
        row = self._imported.rows
        self._imported.rows += 1
        raw = {
            "tool_name": call.name,
            "input": call.input,
            "output": call.output,
            "context": call.context,
            "create_time": call.time or self._now,
        }
        try:
            read = read_record(raw, row, clock=self._clock, time_zone=self._time_zone, notes=self._notes)
        except RecordError as error:
            problem = f"{place}, message {call.message + 1}: {error}"
            self._imported.failures.append(CallFailure(row, error.tool_name or "", problem))
            return None
        self._imported.timeless += call.time is None
        self._imported.calls.append((row, read))
        return call, read

    def _name(self, kept: Sequence[tuple[_Call, ToolCallResult]], given: str) -> None:
        """Give the calls of one conversation their ids.

        Without an id of its own a conversation gives none, because two conversations that look alike may be two.
        """
        conversation = given or self._conversation_id(_digest([_content(read) for _, read in kept]).hex()[:16])
        for call, read in kept:
            call_id = clean_text(call.id, Repairs())
            read.metadata = {"conversation_id": conversation, "tool_call_id": call_id}
            synthesized = [] if given else ["conversation_id"]
            if call.time is None:
                synthesized.append("create_time")
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
        self._imported.failures.append(CallFailure(self._imported.rows, tool, problem))

    def finish(self) -> Imported:
        self._imported.repaired_surrogates = self._notes.surrogates
        self._imported.naive_times = self._notes.naive_times
        return self._imported


def _key(value: Any) -> str:
    """An id or a name as text; "" where there is none."""
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip() else ""


def _content(call: ToolCallResult) -> list[Any]:
    return [call.tool_name, call.input, call.output]


def _digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
