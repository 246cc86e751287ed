"""Markdown from values: tables, fields with their comments, docstrings."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
import types
import typing
from collections.abc import Iterable, Sequence
from typing import Any

GENERATED = "Written from the code by `python docs/generate.py`."
_COMMENTED = re.compile(r"^ {4}(?P<name>[a-z_]+)\s*:.*?(?:  # type: ignore\[[a-z-]+\])?  # (?P<text>.+)$")
_FIELD = re.compile(r"^ {4}([a-z_]+)\s*:")
_ABOVE = re.compile(r"^ {4}# (?P<text>.+)$")
_PLAIN = {int: "whole number", float: "number", bool: "true or false", str: "text", type(None): "null", Any: "anything"}


def page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", *(part.strip("\n") for part in parts)]) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*head, *("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows)])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def code(language: str, text: str) -> str:
    fence = "````" if "```" in text else "```"
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def json_block(value: Any) -> str:
    return code("json", json.dumps(value, indent=2, ensure_ascii=False))


def code_names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "nothing"


def docstring(thing: Any) -> str:
    """As Markdown: indented examples are code already; tags in angle brackets would be taken for HTML."""
    text = _clean(thing if isinstance(thing, str) else (thing.__doc__ or ""))
    pieces = text.split("`")  # every second one is code
    return "`".join(re.sub(r"<(\w+)>", r"`<\1>`", piece) if n % 2 == 0 else piece for n, piece in enumerate(pieces))


def _clean(raw: str) -> str:
    """As `inspect.cleandoc`, but where the quotes end on a line of their own, that line tells the margin: then a text
    which goes on with nothing but an indented example keeps it.
    """
    first, *rest = raw.expandtabs().splitlines() or [""]
    if not rest or rest[-1].strip():
        return inspect.cleandoc(raw)
    margin = len(rest[-1])
    return "\n".join([first.strip(), *(line[margin:].rstrip() for line in rest)]).strip("\n")


def summary_line(thing: Any) -> str:
    return docstring(thing).partition("\n\n")[0]


def comments(cls: type) -> dict[str, str]:
    """What the source says behind each field (or on the line above it), for the class and those it comes from."""
    found: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        if owner.__module__.split(".")[0] != "toolmem":
            continue
        above = before = ""
        for line in textwrap.dedent(inspect.getsource(owner)).splitlines():  # `Params` stands inside an op
            if behind := _COMMENTED.match(line):
                found[behind["name"]] = behind["text"]
            elif above and (plain := _FIELD.match(line)):
                found[plain[1]] = above
            # A comment behind an empty line is the heading of a group of fields.
            alone = _ABOVE.match(line) if _FIELD.match(before) else None
            above, before = alone["text"] if alone and " " in alone["text"] else "", line
    return found


def field_type(field: Any) -> str:
    limits = [
        f"{sign} {value:g}"
        for mark, sign in (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"))
        for m in field.metadata
        if (value := getattr(m, mark, None)) is not None
    ]
    return " ".join([type_text(field.annotation), *limits])


def type_text(annotation: Any) -> str:
    """A type in words: `whole number or null`, `list of text`, `one of a, b`."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return type_text(arguments[0])
    if origin is typing.Literal:
        return "one of " + ", ".join(f"`{json.dumps(value)}`" for value in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(type_text(part) for part in arguments)
    if origin in (list, tuple):
        parts = [part for part in arguments if part is not Ellipsis]
        if parts == [Any]:
            return "list"
        return "list of " + " and ".join(dict.fromkeys(type_text(part) for part in parts))
    if origin is dict and arguments[1] is Any:
        return "object"
    if origin is dict:
        return f"object of {type_text(arguments[1])}"
    return {"datetime": "time", "SecretStr": "text (secret)"}.get(annotation.__name__, f"{annotation.__name__}")


def default_text(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if hasattr(value, "model_dump"):
        return ""
    return f"`{json.dumps(value, default=str)}`"
