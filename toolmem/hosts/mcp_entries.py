"""Entries of MCP servers in hosts' configurations: the proxy is put before a server, and taken out again.

The forms: `mcpServers` (Claude Code, Claude Desktop, Cursor, Gemini CLI and most others), `servers` (VS Code), and
`mcp.servers` (its settings). Everything but the entry stays byte for byte, and what is undone is the entry that was
there. What stands in `env` and `headers` is shown to nobody.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

from toolmem.errors import RequestError
from toolmem.hosts.install_notes import InstallNote, forget_note, keep_note, note_of
from toolmem.hosts.json_edits import JsonText, TextSpan, changed
from toolmem.hosts.settings_files import PlannedFile

HEADERS = "TOOLMEM_MCP_HEADERS"  # in the environment of a proxy: JSON of the headers that its server wants
_PLACES = (("mcpServers",), ("servers",), ("mcp", "servers"))
_ADDRESS = ("url", "httpUrl", "serverUrl")
_OURS = ["-m", "toolmem", "mcp", "proxy"]
_SECRET = ("env", "headers")
_BOM = b"\xef\xbb\xbf"
_LARGEST = 10_000_000  # bytes of a configuration


@dataclass(frozen=True, slots=True)
class EntryChange:
    """What becomes of a configuration when one entry of it changes."""

    name: str
    file: PlannedFile
    entry: tuple[bytes, bytes]  # before, after

    @property
    def changes(self) -> bool:
        return self.file.changes

    def difference(self) -> str:
        """As a unified diff, without what `env` and `headers` hold."""
        old, new = (_redacted(_text(each or b"", self.file.path)) for each in (self.file.before, self.file.after))
        path = str(self.file.path)
        return "\n".join(unified_diff(old.splitlines(), new.splitlines(), path, path, lineterm=""))

    def wrap(self) -> None:
        """Write it, and note how it is undone. Raises RequestError, StoreError."""
        before, after = self.entry
        keep_note(_noted_as(self.name), self.file.path, InstallNote.between(self.file.path, before, after, ()))
        self.file.write()

    def unwrap(self) -> None:
        """Write it. Raises RequestError, StoreError."""
        self.file.write()
        forget_note(_noted_as(self.name), self.file.path)


def plan_wrap(path: Path, name: str, command: Sequence[str], options: Sequence[str]) -> EntryChange:
    """The entry with the proxy before its server. `command`: that runs toolmem. Raises RequestError."""
    path = Path(os.path.abspath(path))
    before, text = _read(path)
    place, span = _entry(text, name, path)
    if is_wrapped(span.value):
        return _planned(path, name, before, span, text, text[span.start : span.end])
    new = _wrapped(span.value, name, [*command, *_OURS, "--name", name, *options], path)
    whole = _replaced(JsonText(text, comments=True).root.value, place, new)
    after = changed(text, whole, comments=True)
    _, there = _entry(after, name, path)
    return _planned(path, name, before, span, text, after[there.start : there.end])


def plan_unwrap(path: Path, name: str) -> EntryChange:
    """The entry as it was; where somebody changed it since, the same without the proxy. Raises RequestError."""
    path = Path(os.path.abspath(path))
    before, text = _read(path)
    place, span = _entry(text, name, path)
    entry = text[span.start : span.end].encode()
    note = note_of(_noted_as(name), path)
    if note is not None and note.wrote(entry):
        return _planned(path, name, before, span, text, (note.undone(entry) or b"").decode())
    if not is_wrapped(span.value):
        return _planned(path, name, before, span, text, entry.decode())
    after = changed(
        text, _replaced(JsonText(text, comments=True).root.value, place, _bare(span.value, path)), comments=True
    )
    _, there = _entry(after, name, path)
    return _planned(path, name, before, span, text, after[there.start : there.end])


def is_wrapped(entry: Any) -> bool:
    """Does the proxy stand before this server?"""
    arguments = entry.get("args") if isinstance(entry, Mapping) else None
    if not isinstance(arguments, list):
        return False
    return any(arguments[at : at + len(_OURS)] == _OURS for at in range(min(len(arguments), 5)))


# ---------------------------------------------------------------- entries


def _wrapped(entry: Any, name: str, ours: list[str], path: Path) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise RequestError(f"{path}: {name}: expected an object", field="name")
    command, arguments = entry.get("command"), entry.get("args", [])
    if isinstance(command, str) and isinstance(arguments, list):
        return {**entry, "command": ours[0], "args": [*ours[1:], "--", command, *arguments]}
    address = next((entry[key] for key in _ADDRESS if isinstance(entry.get(key), str)), None)
    if address is None:
        raise RequestError(f"{path}: {name}: it has neither a command with args nor a url", field="name")
    if entry.get("type") == "sse":
        raise RequestError(f"{path}: {name}: SSE is no longer part of the protocol; use streamable HTTP", field="name")
    kept = {key: value for key, value in entry.items() if key not in {*_ADDRESS, "headers"}}
    if "type" in kept:
        kept["type"] = "stdio"
    if entry.get("headers"):
        kept["env"] = {**kept.get("env", {}), HEADERS: json.dumps(entry["headers"], ensure_ascii=False)}
    return {**kept, "command": ours[0], "args": [*ours[1:], "--url", address]}


def _bare(entry: dict[str, Any], path: Path) -> dict[str, Any]:
    """A wrapped entry without the proxy, from what it says itself."""
    arguments = entry["args"]
    rest = {key: value for key, value in entry.items() if key not in {"command", "args"}}
    if "--" in arguments and (server := arguments[arguments.index("--") + 1 :]):
        return {**rest, "command": server[0], "args": server[1:]}
    if "--url" not in arguments[:-1]:
        raise RequestError(f"{path}: the wrapped entry names no server: correct it by hand", field="name")
    env = dict(rest.get("env", {}))
    headers = env.pop(HEADERS, None)
    more: dict[str, Any] = {"type": "http"} if "type" in rest else {}
    if headers is not None:
        more["headers"] = json.loads(headers)
    kept = {key: value for key, value in rest.items() if key != "env" or env}
    return {**kept, **({"env": env} if env else {}), **more, "url": arguments[arguments.index("--url") + 1]}


def _planned(path: Path, name: str, before: bytes, span: TextSpan, text: str, entry: str) -> EntryChange:
    after = (text[: span.start] + entry + text[span.end :]).encode()
    mark = _BOM if before.startswith(_BOM) else b""
    was = text[span.start : span.end].encode()
    return EntryChange(name, PlannedFile(path, before, mark + after), (was, entry.encode()))


def _noted_as(name: str) -> str:
    return f"mcp:{name}"


# ---------------------------------------------------------------- the file


def _read(path: Path) -> tuple[bytes, str]:
    try:
        if path.stat().st_size > _LARGEST:
            raise RequestError(f"{path}: expected a file of at most {_LARGEST:,} bytes", field="file")
        data = path.read_bytes()
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror or error}", field="file") from error
    return data, _text(data, path)


def _text(data: bytes, path: Path) -> str:
    try:
        return data.removeprefix(_BOM).decode()
    except UnicodeDecodeError:
        raise RequestError(f"{path}: the file is not UTF-8 text; save it as UTF-8 first", field="file") from None


def _entry(text: str, name: str, path: Path) -> tuple[tuple[str, ...], TextSpan]:
    """Where the entry of that name stands."""
    try:
        servers = dict(_servers(JsonText(text, comments=True).root))
    except RequestError as error:
        raise RequestError(f"{path}: {error}. Nothing was changed; correct the file first", field="file") from None
    for place, span in servers.items():
        for item in reversed(span.items):
            if item.key == name:
                return (*place, name), item.held
    known = ", ".join(sorted(str(item.key) for span in servers.values() for item in span.items)) or "none"
    raise RequestError(f"{path}: no MCP server is called {name!r}; there are: {known}"[:500], field="name")


def _servers(root: TextSpan) -> Iterator[tuple[tuple[str, ...], TextSpan]]:
    for place in _PLACES:
        span: TextSpan | None = root
        for key in place:
            held = [item.held for item in span.items if item.key == key] if span is not None else []
            span = held[-1] if held else None
        if span is not None and isinstance(span.value, dict):
            yield place, span


def _replaced(whole: Any, place: Sequence[str], new: Any) -> Any:
    if not place:
        return new
    return {**whole, place[0]: _replaced(whole[place[0]], place[1:], new)}


def _redacted(text: str) -> str:
    """The text with the values of `env` and `headers` hidden."""
    edits = []
    for _, servers in _servers(JsonText(text, comments=True).root):
        for entry in servers.items:
            for item in entry.held.items:
                if item.key in _SECRET:
                    edits += [(each.held.start, each.held.end) for each in item.held.items]
    for start, end in sorted(edits, reverse=True):
        text = f'{text[:start]}"***"{text[end:]}'
    return text
