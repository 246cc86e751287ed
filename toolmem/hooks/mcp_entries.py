"""Put the proxy before an MCP server in a host's configuration, and remove it.

`mcpServers` is the key of Claude Code, Claude Desktop, Cursor, Gemini CLI and most others;
`servers` and `mcp.servers` are VS Code's. Every byte outside the entry stays. A note in the user's
state folder has the old text of the entry, which `unwrap` restores.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from toolmem.errors import RequestError
from toolmem.hooks.install_notes import read_notes, write_notes
from toolmem.hooks.installs import FileChange, read_text, write_change
from toolmem.hooks.json_text import Part, parts, readable

HEADERS = "TOOLMEM_MCP_HEADERS"  # variable of the proxy: headers for its server, as JSON
_SERVER_KEYS = (("mcpServers",), ("servers",), ("mcp", "servers"))
_URL_KEYS = ("url", "httpUrl", "serverUrl")
_PROXY_WORDS = ["-m", "toolmem", "mcp", "proxy"]
_NOTES = "wrapped.json"


class Wrapped(Struct, frozen=True):
    """The note on one server: the text of its entry, `before` and `after` the proxy was put in."""

    file: str
    name: str
    before: str
    after: str

    @property
    def place(self) -> tuple[str, str]:
        return self.file, self.name


class EntryChange(Struct, frozen=True):
    """A planned change of one server's entry."""

    file: FileChange
    entry: Wrapped
    starts: str  # the command or address that the host uses after the change


def plan_wrap(path: Path, name: str, python: Sequence[str], more: Sequence[str]) -> EntryChange:
    """Plan to put the proxy before a server. `python`: toolmem's Python. `more`: proxy options.

    Raises RequestError if there is no such server, or it has the proxy already.
    """
    text, entry = _read(path, name)
    has_proxy = json.dumps(_PROXY_WORDS)[1:-1] in json.dumps(entry.value)
    if has_proxy or not isinstance(entry.value, dict):
        raise RequestError(f"{name}: the proxy stands before it already, or it is no object")
    new = _wrapped(name, entry.value, [*python, *_PROXY_WORDS, "--name", name, *more])
    before = text[entry.value_start : entry.end]
    after = json.dumps(new, ensure_ascii=False)
    if "\n" in before:
        line = text[text.rfind("\n", 0, entry.start) + 1 : entry.start]
        indent = line[: len(line) - len(line.lstrip())]
        after = json.dumps(new, indent=2, ensure_ascii=False).replace("\n", f"\n{indent}")
    return _planned(path, text, entry, Wrapped(str(path.resolve()), name, before, after), after)


def plan_unwrap(path: Path, name: str) -> EntryChange:
    """Plan to remove the proxy. Raises RequestError if the entry is not as `wrap` left it."""
    text, entry = _read(path, name)
    place = str(path.resolve()), name
    notes = [note for note in read_notes(_NOTES, list[Wrapped]) if note.place == place]
    if not notes or notes[-1].after != text[entry.value_start : entry.end]:
        remedy = "What it started before is behind `--` or `--url` in its args: change it by hand"
        raise RequestError(f"{name}: it is not as `toolmem mcp wrap` left it. {remedy}")
    return _planned(path, text, entry, notes[-1], notes[-1].before)


def apply(change: EntryChange, *, wraps: bool) -> None:
    """Write a change. `wraps`: `plan_wrap` made it. Raises RequestError and StoreUnavailable."""
    place = change.entry.place
    others = [note for note in read_notes(_NOTES, list[Wrapped]) if note.place != place]
    if wraps:  # the note first: if the process is killed here, it fits no entry
        write_notes(_NOTES, [*others, change.entry])
    write_change(change.file)
    if not wraps:
        write_notes(_NOTES, others)


def _wrapped(name: str, entry: dict[str, Any], ours: list[str]) -> dict[str, Any]:
    command = entry.get("command")
    arguments = entry.get("args", [])
    if isinstance(command, str) and isinstance(arguments, list):
        return {**entry, "command": ours[0], "args": [*ours[1:], "--", command, *arguments]}
    address = next((entry[key] for key in _URL_KEYS if isinstance(entry.get(key), str)), None)
    if entry.get("type") == "sse":
        raise RequestError(f"{name}: sse is not spoken; give its streamable HTTP address", "name")
    if address is None:
        raise RequestError(f"{name}: it has neither a command with args nor a url", "name")
    rest = {key: each for key, each in entry.items() if key not in (*_URL_KEYS, "headers")}
    if "type" in rest:
        rest["type"] = "stdio"
    if headers := entry.get("headers"):
        rest["env"] = {**rest.get("env", {}), HEADERS: json.dumps(headers)}
    return {**rest, "command": ours[0], "args": [*ours[1:], "--url", address]}


def _read(path: Path, name: str) -> tuple[str, Part]:
    """The file's text, and the entry in it. Raises RequestError."""
    text = read_text(path)
    if text is None:
        raise RequestError(f"{path}: there is no such file", "file")
    try:
        found = list(_entries(readable(text)))
    except ValueError as error:
        raise RequestError(f"{path}: {error}. Nothing was changed", "file") from None
    for entry in reversed(found):
        if entry.key == name:
            return text, entry
    known = ", ".join(each.key for each in found) or "none"
    problem = f"{path}: no MCP server is called {name!r}; there are: {known}"
    raise RequestError(problem[:500], "name")


def _entries(text: str) -> Iterator[Part]:
    for keys in _SERVER_KEYS:
        members = parts(text, text.index("{"))
        for key in keys:
            found = next((e for e in members if e.key == key and isinstance(e.value, dict)), None)
            members = parts(text, found.value_start) if found else iter(())
        yield from members


def _planned(path: Path, text: str, entry: Part, wrapped: Wrapped, new: str) -> EntryChange:
    after = text[: entry.value_start] + new + text[entry.end :]
    value = json.loads(readable(new))
    words = [value.get("command", ""), *(value.get("args") or ())]
    address = next((value[key] for key in _URL_KEYS if key in value), "")
    starts = str(address) or shlex.join(map(str, words))
    return EntryChange(FileChange(path, text, after), wrapped, starts)
