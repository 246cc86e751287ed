"""Join the events of a file into records of calls, as `read_records` takes them.

An answer belongs to the open call with its id; without an id, to the oldest open call of the
conversation. The number of open calls is limited, so that a file of any size can be read.

A record's id is a digest of the format, of the call's id in the file (without one: its content) and
of its time (without one: its conversation). Logs of requests and forked sessions repeat old calls
under other times and conversations. There, if the call's id was drawn at random, the digest is of
the format, this id, the tool and its arguments. Thus a file that is read again, and a session that
was copied into another file, give the same ids.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from toolmem.formats.chat import UserMessage, is_random, json_digest, read_arguments, text_of
from toolmem.formats.shapes import MAP_FIELDS, MAPPED, Event, Format, events_of, read_path
from toolmem.formats.sources import looks_like

MAX_OPEN = 10_000  # calls that wait for an answer, in one file
MAX_CONVERSATIONS = 10_000  # that are remembered, in one file
MAX_CONTEXT = 4_000  # characters of the user's request
MAX_SECONDS = 30 * 86_400  # of a call; more comes from clocks that differ

UNANSWERED = "calls without an answer were left out"
ORPHANS = "answers to no known call were left out"
NAMELESS = "rows name no tool and were left out: give its place by --map name=..."

_CONVERSATION_KEYS = ("id", "conversation_id", "session_id", "thread_id", "task_id")
Record = dict[str, Any]


class Histories:
    """Recognizes conversations that continue: each line of a request log repeats the history."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}  # of conversations, by the digest of their messages

    def known(self, messages: list[Any], own_name: str) -> tuple[int, str]:
        """Return (how many messages repeat an earlier line, its conversation or `own_name`)."""
        digest = b""
        name = ""
        count = 0
        for number, message in enumerate(messages, 1):
            digest = json_digest((digest, _without_cache_control(message)))
            if digest in self._names and number < len(messages):
                count = number
                name = self._names[digest]
        if count and digest in self._names:
            count = len(messages)  # a request that was sent twice
        name = name or own_name or f"conversation-{digest.hex()}"
        self._names.setdefault(digest, name)
        _drop_oldest(self._names, MAX_CONVERSATIONS)
        return count, name


class Joiner:
    """Makes records of the events of one file in one format. `notes` counts what was left out."""

    def __init__(self, form: Format, file_name: str, notes: Counter[str]) -> None:
        self.form = form
        self._file_name = file_name
        self._conversation = file_name if form.marks else ""  # rows of a table name theirs
        self._own_conversation = ""  # the newest one that the file names
        self._has_begun = False  # it has a call or a message
        self._forked_from = ""  # the last conversation that was named before it began
        self._notes = notes
        self._open: dict[str, dict[str, Event]] = {}  # by conversation and id, the oldest first
        self._open_count = 0
        self._without_id = 0  # calls
        self._has_calls = False
        self._noise = re.compile(form.noise) if form.noise else None
        self._requests: dict[str, str] = {}  # by conversation
        self._seen: dict[bytes, int] = {}  # how often the file had an id, by its digest
        self._histories = Histories()
        self._rows = 0
        self._lacking = dict[str, str]()  # paths of --map without a value so far, by field
        if form.name == MAPPED:
            (shape,) = form.shapes
            fields = {name: getattr(shape, name) for name in MAP_FIELDS}
            fields["conversation"] = next(iter(shape.conversation), "")
            self._lacking = {name: path for name, path in fields.items() if path}

    def read(self, unit: Any) -> Iterator[tuple[Record | UserMessage | None, str]]:
        """Yield (record, "") of completed calls, (message, "") of the user, and (None, problem)."""
        if self.form.history:
            unit = self._without_history(unit)
        self._rows += 1
        for field, path in list(self._lacking.items()):
            if read_path(path, unit, unit) is not UNSET:
                del self._lacking[field]
        problems: dict[str, None] = {}  # each once
        orphans = self._notes[ORPHANS]
        has_calls = False
        for event in events_of(self.form, unit):
            if event.problem:
                problems[event.problem] = None
                continue
            if self.form.one_conversation and event.conversation:
                self._follow(event)
            elif event.name or event.request:
                self._has_begun = True
            for each in self._take(event, unit):
                if isinstance(each, str):
                    problems[each] = None
                    continue
                has_calls = has_calls or isinstance(each, dict)
                yield each, ""
        if self.form.history and not has_calls and self._notes[ORPHANS] > orphans:
            problems["its answers belong to no call that is known"] = None
        yield from ((None, problem) for problem in problems)

    def _follow(self, event: Event) -> None:
        """Set an event's conversation. A forked session's file names it first, then its parents."""
        if self._has_begun or not self._own_conversation:
            self._own_conversation = event.conversation
            self._forked_from = ""
            self._has_begun = False
        elif event.conversation != self._own_conversation:
            self._forked_from = event.conversation
        event.conversation = self._own_conversation

    def _without_history(self, unit: Any) -> Any:
        """Return the unit without the messages that earlier units had."""
        body = unit if isinstance(unit, dict) else {self.form.history: unit}
        messages = body.get(self.form.history)
        if not isinstance(messages, list):
            return unit
        given = next((body[key] for key in _CONVERSATION_KEYS if body.get(key)), "")
        known, conversation = self._histories.known(messages, str(given))
        begins = messages[0] if messages else None
        is_answer = isinstance(begins, dict) and str(begins.get("type")).endswith("_output")
        if known or not is_answer:  # an answer alone continues what the server keeps
            self._conversation = conversation
        return {**body, self.form.history: messages[known:]}

    def close(self) -> None:
        """Count the unanswered calls, and report paths of --map without a value in any row."""
        for name, path in self._lacking.items():
            note = f"rows have nothing at {path[:60]!r}, where --map looks for {name}"
            self._notes[note] += self._rows
        self._notes[UNANSWERED] += self._open_count
        self._open.clear()
        self._open_count = 0

    def _take(self, event: Event, unit: Any) -> Iterator[Record | UserMessage | str]:
        """Add an event to its call. Yields a message, the record of a call, or a problem."""
        is_answer = event.name is None and event.output is not None
        if event.conversation or not (self.form.marks or is_answer):
            self._conversation = event.conversation
        event.conversation = self._conversation
        if event.request:
            self._requests.pop(event.conversation, None)
            self._requests[event.conversation] = event.request[:MAX_CONTEXT]
            _drop_oldest(self._requests, MAX_CONVERSATIONS)
            yield UserMessage(event.conversation, event.request[:MAX_CONTEXT])
        key = self._key(event)
        call = self._open.get(event.conversation, {}).get(key)
        if call is not None:
            _complete(call, event)
        elif event.name is not None:
            call = event
            self._has_calls = True
            event.request = self._requests.get(event.conversation, "")
            self._open.setdefault(event.conversation, {})[key] = event
            self._open_count += 1
        elif is_answer and (self.form.marks or self._has_calls):
            self._notes[ORPHANS] += 1
        elif not (self.form.marks or event.request):
            self._count_nameless(unit)
        if call is not None and call.output is not None:
            self._forget(call.conversation, key)
            yield from self._record(call)
        elif self._open_count > MAX_OPEN:
            oldest = next(iter(self._open))
            self._forget(oldest, next(iter(self._open[oldest])))
            self._notes[UNANSWERED] += 1

    def _count_nameless(self, row: Any) -> None:
        """Count a row that names no tool; the note shows the first one."""
        known = next((note for note in self._notes if note.startswith(NAMELESS)), "")
        self._notes[known or f"{NAMELESS}; the first row is {looks_like(row)}"] += 1

    def _key(self, event: Event) -> str:
        """Return the key of the event's call. An answer without an id is the oldest open call's."""
        if event.id:
            return event.id
        if event.name is None:
            return next(iter(self._open.get(event.conversation, ())), "")
        self._without_id += 1
        return f"#{self._without_id}"

    def _forget(self, conversation: str, key: str) -> None:
        del self._open[conversation][key]
        self._open_count -= 1
        if not self._open[conversation]:
            del self._open[conversation]

    def _record(self, call: Event) -> Iterator[Record | str]:
        """The record of a call, or why there is none."""
        output = text_of(call.output)
        if self.form.refused and output.startswith(self.form.refused):
            self._notes["calls that were not allowed to run were left out"] += 1
            return
        if call.arguments is None and self.form.gives_arguments:
            yield f"no arguments of {str(call.name)[:60]!r} where {self.form.name} has them"
            return
        if call.arguments is None and self.form.marks:
            self._notes["calls were recorded without their arguments"] += 1
        if self._noise is not None:
            output = self._noise.sub(lambda found: "".join(found.groups("")), output)
        name, arguments, server = self._as_in_hooks(call)
        record_id = self._record_id(call, arguments, output)
        if record_id is None:
            self._notes["calls that were written twice were read once"] += 1
            return
        metadata = {"conversation_id": call.conversation} if call.conversation else {}
        metadata["format"] = self.form.name
        if call.id:
            metadata["tool_call_id"] = call.id
        if self._forked_from:
            metadata["forked_from"] = self._forked_from
        if server:
            metadata["server"] = server
        seconds = (call.end - call.time).total_seconds() if call.time and call.end else None
        is_known = seconds is not None and 0 <= seconds <= MAX_SECONDS
        yield {
            "id": record_id,
            "tool_name": name,
            "input": arguments,
            "output": output,
            "success": None if call.failed is None else not call.failed,
            "context": call.request,
            "create_time": call.time or call.end,
            "time_cost": seconds if is_known else call.time_cost,
            "token_cost": call.token_cost,
            "metadata": metadata,
        }

    def _as_in_hooks(self, call: Event) -> tuple[Any, Any, str]:
        """Return tool, arguments and MCP server of a call as the program's hooks get them."""
        names = self.form.names
        arguments = read_arguments(call.arguments)
        if names is None or not isinstance(call.name, str):
            return call.name, arguments, ""
        name, arguments = names.in_hook(call.name, arguments)
        titled = re.fullmatch(names.title, call.title) if names.title else None
        name, server = names.split(name, titled["server"] if titled else "")
        return name, arguments, server

    def _record_id(self, call: Event, arguments: Any, output: str) -> str | None:
        """The id of a call's record; None: the file had this very call before."""
        if (self.form.history or self.form.one_conversation) and is_random(call.id):
            digest = json_digest((self.form.name, call.id, call.name, arguments))
            if digest in self._seen:
                return None
            self._seen[digest] = 1
            return digest.hex()
        is_timed = call.time is not None and not self.form.repeats_history
        place = call.conversation or self._file_name
        when = call.time.isoformat() if call.time and is_timed else place
        content: Any = (call.name, arguments, output)
        # A row's number is its id in this file alone, and files may have the same name.
        is_row = call.id and not call.time and place == self._file_name
        is_row = is_row and not self.form.repeats_history
        source = (call.id, *content) if is_row else call.id or content
        digest = json_digest((self.form.name, source, when))
        by_id = not self.form.history and (is_timed or self.form.repeats_history)
        if call.id and (by_id or self.form.repeats_history or (call.end and not self.form.history)):
            # Models use ids such as `call_0` again, for calls with another content.
            same = digest if by_id else json_digest((digest, (*content, call.end)))
            if same in self._seen:
                return None
            self._seen[same] = 0
        number = self._seen[digest] = self._seen.get(digest, 0) + 1
        return f"{digest.hex()}-{number}" if number > 1 else digest.hex()


def _complete(call: Event, event: Event) -> None:
    """Fill the empty fields of a call from a later event."""
    for name in ("arguments", "output", "failed", "time", "end"):
        if getattr(call, name) is None:
            setattr(call, name, getattr(event, name))


def _without_cache_control(message: Any) -> Any:
    """A message without `cache_control`, which the next request puts into another message."""
    if not isinstance(message, dict):
        return message
    parts = message.get("content")
    if isinstance(parts, list):
        message = {**message, "content": [_without_cache_control(each) for each in parts]}
    return {key: value for key, value in message.items() if key != "cache_control"}


def _drop_oldest(kept: dict[Any, Any], number: int) -> None:
    """Remove the oldest entry of a dictionary with more entries than allowed."""
    if len(kept) > number:
        del kept[next(iter(kept))]
