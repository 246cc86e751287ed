"""The commands, from the help that they print themselves."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterator
from typing import Any

from page_writers.markdown import code, page, table

_HEAD = """\
Results go to stdout, progress and messages to stderr. Every command takes overrides (`section.key=value`) behind its
options, and `--config FILE`; `toolmem -h` and `toolmem COMMAND -h` print the same as this page, which is written from
them by `python docs/generate.py`. `toolmem --install-completion` has your shell complete commands and options,
`--show-completion` prints what it would add.
"""
_EXAMPLE = re.compile(r"(?:[A-Z_]+=\S+ )*toolmem ")  # also with variables before it
_CODES = """\
## Exit codes

| code | meaning |
|---|---|
| 0 | success |
| 1 | partial, failed, or a named thing was not found |
| 2 | refused before any work |
| 3 | the budget is reached; what was done until then is kept |
| 4 | an op raised an error that is none of toolmem's; `--debug` shows its traceback |
| 5 | `toolmem guard check`: the call is not to run, or the user is to be asked first |
| 130 | interrupted; what was acknowledged is stored |
"""


def command_line() -> str:
    import typer

    from toolmem.cli.commands import app

    parts = [_HEAD, _CODES]
    for name, command in _commands("toolmem", typer.main.get_command(app)):
        parts += [f"## {name}", *_help(command), code("text", _usage(name, command))]
        rows = list(_options(command))
        if rows:
            parts.append(table(["option", "takes", "default", "meaning"], rows))
    return page("Command line", *parts)


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", {})
    if not children:
        yield name, command
    for child in sorted(children):
        if not children[child].hidden:
            yield from _commands(f"{name} {child}", children[child])


def _help(command: Any) -> Iterator[str]:
    """Paragraphs; those that are commands are examples."""
    examples = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "")):
        text = " ".join(paragraph.strip("\b\f ").split())
        if _EXAMPLE.match(text):
            examples.append(f"$ {text}")
        elif text:
            yield text
    if examples:
        yield code("console", "\n".join(examples))


def _usage(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    shown = []
    for argument in arguments:
        labels = [f"{label}..." if argument.nargs == -1 else label for label in _arguments(argument)]
        shown += labels if argument.required else [f"[{label}]" for label in labels]
    return " ".join([name, "[OPTIONS]", *shown])


def _arguments(argument: Any) -> list[str]:
    """Names of what stands there: two kinds of words may share one argument (`[TOOL]... [OVERRIDE]...`)."""
    return re.findall(r"\w+", (argument.metavar or argument.name).upper())


def _options(command: Any) -> Iterator[tuple[str, str, str, str]]:
    for param in command.params:
        if param.name == "help" or getattr(param, "hidden", False):
            continue
        is_option = param.param_type_name == "option"
        default = param.default
        shown = "" if default in (None, False, ()) or callable(default) else f"`{default}`"
        names = ", ".join(f"`{name}`" for name in (param.opts if is_option else _arguments(param)))
        kind = "" if getattr(param, "is_flag", False) else _kind(param)
        yield names, kind, "required" if param.required else shown, (getattr(param, "help", "") or "")


def _kind(param: Any) -> str:
    annotation = param.type_descriptor.annotation
    several = typing.get_origin(annotation) is list
    if several:
        annotation = typing.get_args(annotation)[0]
    name = {str: "text", int: "number", float: "number"}.get(
        annotation, getattr(annotation, "__name__", "text").lower()
    )
    low = getattr(param, "min", None)
    return name + (f" >= {low:g}" if low is not None else "") + (", several" if several else "")
