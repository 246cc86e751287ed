"""One tool, many programs: which of them a call of a shell, of SQL or over HTTP asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolmem.guard.effects import CallEffects
from toolmem.readers import words
from toolmem.readers.plain_text import plain
from toolmem.readers.sql import kind_of_statement

MAX_PART = 60  # characters
MAX_TEXT = 4_000  # of a command or statement
# What stands before the program that is meant.
_SETTING_OUT = words(
    "cd pushd popd export source set unset env test true sleep echo printf "
    "sudo doas time timeout nohup nice exec command"
)
_PROGRAM = re.compile(r"[\w.+-]*[^\W\d_][\w.+-]*")
_METHODS = words("GET POST PUT PATCH DELETE HEAD OPTIONS")
_ADDRESSES = ("path", "url", "endpoint", "route", "uri")
_HOST = re.compile(r"[a-z][a-z0-9+.-]{1,20}://[^/?#]*", re.IGNORECASE)


def part_of(tool_name: str, arguments: Any) -> str:
    """The program ("psql"), the kind of statement ("SELECT") or the route ("GET /orders/#"); "" of any other call.

    At most MAX_PART characters, in one line. Linear in the size of the arguments.
    """
    if isinstance(arguments, str):
        arguments = arguments[:MAX_TEXT]
    elif isinstance(arguments, Mapping):
        arguments = {name: each[:MAX_TEXT] if isinstance(each, str) else each for name, each in arguments.items()}
    call = CallEffects(tool_name, arguments)
    if call.command is not None:
        named = [name for name in call.programs() if _PROGRAM.fullmatch(name)]
        part = next((name for name in named if name not in _SETTING_OUT), named[0] if named else "")
    elif call.statement:
        part = kind_of_statement(call.statement)
    else:
        part = _route(arguments)
    return plain(part, MAX_PART)


def _route(arguments: Any) -> str:
    """Method and path, what may name one entity as #: a segment with a digit."""
    if not isinstance(arguments, Mapping):
        return ""
    given = {str(name).lower(): value for name, value in arguments.items() if isinstance(value, str)}
    method = next((given[name].upper() for name in ("method", "http_method", "verb") if name in given), "")
    address = next((given[name] for name in _ADDRESSES if name in given), "")
    if method not in _METHODS or not address:
        return ""
    path = re.split(r"[?#]", _HOST.sub("", address, count=1), maxsplit=1)[0]
    segments = ["#" if any(map(str.isdigit, each)) else each for each in path.split("/") if each]
    return f"{method} /{'/'.join(segments)}"
