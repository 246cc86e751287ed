"""Which format a file has, by its content, and the one door through which files come in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from toolmem.errors import RequestError
from toolmem.flow.runner import SystemClock
from toolmem.formats.calls_jsonl import is_call, read_calls
from toolmem.formats.imported import Format, Imported
from toolmem.formats.lines import UTF8_BOM, Entry, open_bytes, read_document, read_lines
from toolmem.formats.openai_chat import Declarations, is_conversation, read_conversations
from toolmem.formats.times import zone
from toolmem.protocols import Clock
from toolmem.readers.plain_text import counted

FORMATS: dict[Format, str] = {
    "calls": "one tool call per line: JSON objects with 'tool_name', 'input', 'output', ... (plain or .gz)",
    "openai": "OpenAI chat conversations, one per line: JSON objects with 'messages' (plain or .gz)",
}
_LINES_LOOKED_AT = 10_000  # noise before the first good line, at most


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a look at the file showed."""

    format: Format | None
    document: Any = None  # the value that is the whole file, where it is not one value per line


def recognize(path: str | Path) -> Format:
    """The format by content. Raises RequestError that says what was seen and what can be read."""
    seen = _look(Path(path))
    if seen.format is None:
        raise RequestError(_unknown(Path(path)), field="input")
    return seen.format


def read_file(
    path: str | Path,
    format: Format | None = None,
    *,
    clock: Clock | None = None,
    time_zone: str = "UTC",
    limit: int | None = None,
    trust: bool = False,
) -> Imported:
    """Read a recording. `format` None: recognized by content. `limit`: at most so many recorded calls. `clock`: of the
    calls that have no time of their own; None: this machine's.

    Bad lines and records are named in `failures`, the others are read. Raises RequestError where the file cannot be
    read, is empty, has another format, or holds not one good call.
    """
    path = Path(path)
    if format is not None and format not in FORMATS:
        raise RequestError(f"format: {format!r} is unknown; there are {' and '.join(FORMATS)}", field="format")
    if limit is not None and limit < 1:
        raise RequestError(f"limit: {limit} reads nothing; use a whole number >= 1", field="limit")
    zone(time_zone)
    clock = clock or SystemClock()
    seen = _look(path)
    chosen = format or seen.format
    if chosen is None:
        raise RequestError(_unknown(path), field="input")
    values = read_lines(path) if seen.document is None else iter([Entry("document", seen.document)])
    tools = Declarations()
    entries = (part for value in values for part in _spread(value, tools))
    if chosen == "calls":
        imported = read_calls(entries, clock=clock, time_zone=time_zone, limit=limit, trust=trust)
    else:
        imported = read_conversations(entries, tools, clock=clock, time_zone=time_zone, limit=limit)
    if not imported.calls:
        raise RequestError(_nothing_in(path, imported, seen.format), field="input")
    imported.tools = tools.schemas
    imported.notes = [*tools.notes, *imported.notes, *_counts_in_words(imported, time_zone)]
    return imported


def _look(path: Path) -> _Seen:
    """Look for the first value that is a call or a conversation."""
    with open_bytes(path):  # a file that cannot be opened is refused before anything else
        pass
    for number, entry in enumerate(islice(read_lines(path), _LINES_LOOKED_AT)):
        if number == 0 and entry.problem:
            seen = _document(path)
            if seen.format is not None:
                return seen
        found = _format_of(entry.value)
        if found is not None:
            return _Seen(found)
    return _Seen(None)


def _document(path: Path) -> _Seen:
    """The whole file as one JSON value, as it is where somebody printed it over several lines."""
    with open_bytes(path) as file:
        try:
            start = file.read(4096).removeprefix(UTF8_BOM).lstrip()
        except (EOFError, OSError):
            return _Seen(None)
    if start[:1] not in (b"[", b"{"):
        return _Seen(None)
    try:
        value = read_document(path)
    except ValueError:
        return _Seen(None)
    return _Seen(_format_of(value), value)


def _format_of(value: Any) -> Format | None:
    if is_call(value) or _is_request(value) or (isinstance(value, list) and any(map(is_call, value))):
        return "calls"
    if is_conversation(value) or (isinstance(value, list) and any(map(is_conversation, value))):
        return "openai"
    return None


def _is_request(value: Any) -> bool:
    """The request of `add_tool_call_result`, saved as a file."""
    return isinstance(value, Mapping) and isinstance(value.get("tool_call_results"), list)


def _spread(entry: Entry, tools: Declarations) -> Iterator[Entry]:
    """One entry per call or conversation, where a value holds a list of them; declarations beside go to `tools`."""
    items = entry.value
    if _is_request(items):
        tools.add(items.get("tools"), entry.place)
        items = items["tool_call_results"]
    elif not isinstance(items, list) or is_conversation(items) or _format_of(items) is None:
        yield entry
        return
    for number, item in enumerate(items, 1):
        yield Entry(f"{entry.place}, item {number}", item)


def _unknown(path: Path) -> str:
    """Why nothing was recognized: what was seen, and which formats there are."""
    formats = "; ".join(f"{name}: {text}" for name, text in FORMATS.items())
    with open_bytes(path) as file:
        try:
            head = file.read(4096)
        except (EOFError, OSError) as error:
            return f"input: {path} is damaged: {error}"
    if not head.removeprefix(UTF8_BOM).strip():
        return f"input: {path} is empty; expected {formats}"
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return f"input: {path} is UTF-16 text; save it as UTF-8"
    if b"\x00" in head:
        return f"input: {path} is binary (it begins with {head[:8]!r}); expected {formats}"
    begin = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n").splitlines()[0][:60]
    return f"input: the format of {path} is not recognized; it begins with {begin!r}; expected {formats}"


def _nothing_in(path: Path, imported: Imported, looks_like: Format | None) -> str:
    if looks_like not in (None, imported.format):
        return f"input: {path} holds no good record as {imported.format!r}; it looks like {looks_like!r}"
    if imported.failures:
        first = imported.failures[0].error
        return f"input: {path} holds no good record ({counted(len(imported.failures), 'bad one')}; the first: {first})"
    if imported.format == "openai":
        calls, conversations = imported.unanswered, imported.conversations
        unanswered = f"{counted(calls, 'call')} without an answer" if calls else "no tool calls"
        return f"input: {path} holds no answered tool call ({counted(conversations, 'conversation')}, {unanswered})"
    return f"input: {path} is empty; expected {FORMATS[imported.format]}"


def _counts_in_words(imported: Imported, time_zone: str) -> list[str]:
    counts = (
        (imported.unanswered, "call has no answer and was left out", "calls have no answer and were left out"),
        (
            imported.timeless,
            "call has no time of its own and carries the time of the import",
            "calls have no time of their own and carry the time of the import",
        ),
        (
            imported.naive_times,
            f"time has no zone and was read as {time_zone}",
            f"times have no zone and were read as {time_zone}",
        ),
        (
            imported.repaired_surrogates,
            "lone surrogate was replaced by U+FFFD",
            "lone surrogates were replaced by U+FFFD",
        ),
    )
    return [f"{count:,} {one if count == 1 else many}" for count, one, many in counts if count]
