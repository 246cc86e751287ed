"""Write the pages that are made of the code and of results: `docs/reference/`.

    python docs/generate.py

`conf.py` does so before each build. A page is a function; its docstring says what it holds.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import runpy
import sqlite3
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from copy import copy
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
from msgspec import NODEFAULT, Struct
from msgspec import inspect as kinds
from msgspec.structs import fields

import toolmem
import toolmem.ops
from toolmem import ToolMem, errors
from toolmem.cli.main import commands as command_line
from toolmem.config import sections
from toolmem.flow.op import known_ops
from toolmem.formats import programs
from toolmem.formats.shapes import Format, events_of
from toolmem.formats.sources import read_units
from toolmem.formats.spans import flat_span
from toolmem.models.rules import Effect
from toolmem.operations import OPERATIONS, results
from toolmem.operations.operation import description_of
from toolmem.research import backtest, tables
from toolmem.view import conditions as language
from toolmem.view.patterns import compiled
from toolmem.view.shell import MAX_CHARACTERS
from toolmem.view.tool_classes import CLASSES, example_tool

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
PACKAGE = ROOT / "toolmem"
LOW = {".py", ".yaml", ".json", ".md", ".j2", ".css", ".txt", ".sql"}  # files whose lines count


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """In Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in lines) + "\n"


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def code(text: object) -> str:
    """As code; nothing where there is none."""
    return f"`{text}`" if str(text) else ""


# ---------------------------------------------------------------- commands

OFTEN = 2  # commands with the same option: it is described once


def commands() -> str:
    """The command line. An option that several commands have is described once."""
    found = [*_walk(command_line, "toolmem")]
    counts = Counter(record for _, command in found for record in _options(command).values())
    shared = {record for record, count in counts.items() if count >= OFTEN}
    rows = [(code(option), told) for option, told in counts if (option, told) in shared]
    parts = ["# Commands\n\nEvery command has `--help`. Options that several of them have:\n"]
    parts.append(table(("option", ""), rows))
    for path, command in found:
        options = _options(command)
        also = [code(name) for name, record in options.items() if record in shared]
        shown = copy(command)
        shown.params = [each for each in command.params if options.get(each.opts[0]) not in shared]
        context = click.Context(shown, info_name=path, max_content_width=90, help_option_names=[])
        text = shown.get_help(context).partition("\n\nCommands:\n")[0]  # they have own sections
        parts.append(f"## {path}\n\n```text\n{text}\n```\n")
        parts += [f"Also {', '.join(also)}.\n"] if also else []
    return "\n".join(parts)


def _options(command: click.Command) -> dict[str, tuple[str, str]]:
    """By the name of each: how it is written, and what its help says."""
    context = click.Context(command)
    given = (each for each in command.params if isinstance(each, click.Option))
    records = {each.opts[0]: each.get_help_record(context) for each in given}
    return {name: record for name, record in records.items() if record}


def _walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in sorted(command.list_commands(context)):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _walk(inner, f"{path} {name}")


# ---------------------------------------------------------------- configuration


def configuration() -> str:
    """Every setting, from the source of `toolmem/config/sections.py`."""
    parts = ["# Configuration\n"]
    parts.append("`toolmem config show` prints what holds, `toolmem config check` what is wrong.\n")
    columns = ("setting", "type", "default", "")
    return "\n".join([*parts, *reversed(_structs(sections, columns))])  # the whole comes first


def _structs(module: Any, columns: Sequence[str], only: Iterable[str] = ()) -> list[str]:
    """A table for each class with fields in the source of a module, which holds their comments."""
    source = inspect.getsource(module)
    lines, parts, chosen = source.splitlines(), [], set(only)
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and (not chosen or node.name in chosen):
            fields_ = [each for each in node.body if isinstance(each, ast.AnnAssign)]
            told = [_setting(each, lines) for each in fields_]
            rows = [(*each[: len(columns) - 1], each[-1]) for each in told]
            heading = f"## {node.name}\n\n{ast.get_docstring(node) or ''}\n"
            parts.append(heading + "\n" + (table(columns, rows) if rows else ""))
    return parts


def _setting(node: ast.AnnAssign, lines: Sequence[str]) -> tuple[str, str, str, str]:
    default = "" if node.value is None else ast.unparse(node.value)
    comment = lines[(node.end_lineno or 1) - 1].partition("  # ")[2]
    return (
        code(ast.unparse(node.target)),
        code(ast.unparse(node.annotation)),
        code(default),
        comment,
    )


# ---------------------------------------------------------------- ops and operations


def ops() -> str:
    """The ops that flows are made of."""
    parts = ["# Ops\n", "Flows compose them: `A() >> B()`, `A() | B()`.\n"]
    for name, kind in sorted(known_ops().items()):
        if not kind.__module__.startswith("toolmem."):
            continue
        keys = {"reads": kind.reads, "reads, if there": kind.optional, "leaves": kind.leaves}
        told = [
            f"{what}: {', '.join(map(code, names))}"
            for what, names in keys.items()
            if isinstance(names, tuple) and names  # an operation's op reads what it is asked
        ]
        rows = [(code(each.name), code(_default(each))) for each in fields(kind.Params)]
        params = table(("param", "default"), rows) if rows else "No params.\n"
        text = inspect.getdoc(kind) or ""
        parts.append(f"## {kind.__name__}\n\n`{name}`. {text}\n\n{'; '.join(told)}\n\n{params}")
    return "\n".join(parts)


def _default(field: Any) -> str:
    if field.default is not NODEFAULT:
        return repr(field.default)
    return "" if field.default_factory is NODEFAULT else repr(field.default_factory())


def operations() -> str:
    """What toolmem can be asked, everywhere alike."""
    parts = ["# Operations\n"]
    parts.append(
        "Each is a method of `ToolMem`, `AsyncToolMem`, `Client` and `AsyncClient`, and "
        "`POST /<name>` with these fields and `workspace` over HTTP.\n"
    )
    for name, each in sorted(OPERATIONS.items()):
        roads = [f"JSON-RPC `{each.rpc}`"] if each.rpc else []
        roads += [f"flow `{each.flow}`"] if each.flow else []
        rows = [_argument(each) for each in each.signature.parameters.values()]
        arguments = table(("argument", "type", "default", ""), rows) if rows else ""
        answer = code(_type(each.signature.return_annotation))
        roads.insert(0, f"Answers {answer}")
        parts.append(f"## {name}\n\n{each.__doc__}\n\n{arguments}\n{', '.join(roads)}\n")
    parts.append("# What they answer\n")
    parts += _structs(results, ("field", "type", "default", ""))
    return "\n".join(parts)


def _argument(given: inspect.Parameter) -> tuple[str, str, str, str]:
    default = "" if given.default is given.empty else code(repr(given.default))
    return code(given.name), code(_type(given.annotation)), default, description_of(given)


def _type(kind: Any) -> str:
    """As it is written, without descriptions."""
    if get_origin(kind) is Annotated:
        return _type(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(map(_type, get_args(kind)))
    if get_origin(kind) is Literal:
        return " | ".join(map(repr, get_args(kind)))
    if isinstance(kind, list):  # the arguments of a function
        return f"[{', '.join(map(_type, kind))}]"
    if get_args(kind):
        inside = ", ".join(map(_type, get_args(kind)))
        return f"{get_origin(kind).__name__}[{inside}]"
    return "None" if kind is type(None) else getattr(kind, "__name__", str(kind))


# ---------------------------------------------------------------- conditions

Calls = Sequence[tuple[str, dict[str, Any]]]  # in their order; the last one is checked


def _shell(*lines: str) -> Calls:
    return [("Bash", {"command": line}) for line in lines]


def _mail(*given: dict[str, Any]) -> Calls:
    return [("send_email", each) for each in given]


PUSH = {"command": "^git push"}
TESTED = {"earlier": {"command": "^pytest", "worked": True, "since": {"writes": True}}}
ALWAYS = {"always": True}
# By test: the tool of a rule, its `when` and `unless`, calls that it stops, calls that pass.
EXAMPLES: dict[str, tuple[str, dict[str, Any], dict[str, Any] | None, Calls, Calls]] = {
    "command": ("@shell", PUSH, None, _shell("cd app && sudo git push"), _shell("echo 'git push'")),
    "word": (
        "@shell",
        {**PUSH, "word": "(.*:)?main"},
        None,
        _shell("git push origin HEAD:main"),
        _shell("git push origin main-menu"),
    ),
    "path": (
        "@shell",
        {"path": "(^|/)migrations/"},
        None,
        _shell("cat migrations/1.sql"),
        _shell("ls src"),
    ),
    "writes": (
        "@shell",
        {"writes": r"\.env$"},
        None,
        _shell("echo A=1 > .env"),
        _shell("cat .env"),
    ),
    "target": (
        "@mail",
        {"target": "@"},
        {"target": r"@acme\.com$"},
        _mail({"to": "eve@example.org"}),
        _mail({"to": "Ann <ann@acme.com>"}),
    ),
    "text": (
        "@mail",
        {"text": r"\bsalary\b"},
        None,
        _mail({"to": "ann@acme.com", "body": "her salary"}),
        _mail({"to": "ann@acme.com", "body": "her desk"}),
    ),
    "tool": (
        "@mail",
        {"tool": "^reply_"},
        None,
        [("reply_email", {"body": "Yes"})],
        _mail({"body": "Yes"}),
    ),
    "arg": (
        "refund",
        {"arg": [{"name": "amount", "over": 150}, {"name": "approved_by", "missing": True}]},
        None,
        [("refund", {"amount": "$1,200"})],
        [("refund", {"amount": "$1,200", "approved_by": "Ann"})],
    ),
    "clock": (
        "book",
        {"clock": {"weekday": ["sat", "sun"], "from": "22:00", "to": "07:00", "of": "at"}},
        None,
        [("book", {"at": "2026-11-30T03:00"})],  # in the night of a Sunday
        [("book", {"at": "2026-11-28T03:00"})],
    ),
    "earlier": (
        "@shell",
        {"command": "^git commit"},
        TESTED,
        _shell("pytest -q", "touch a.py", "git commit -m a"),
        _shell("pytest -q", "git commit -m a"),
    ),
    "more_than": (
        "@mail",
        {**ALWAYS, "more_than": {"calls": 1, "per": "day"}},
        None,
        _mail({"to": "ann@acme.com"}, {"to": "bob@acme.com"}),
        _mail({"to": "ann@acme.com"}),
    ),
    "always": ("@shell", ALWAYS, None, _shell("ls"), [("read_file", {"path": "a.txt"})]),
}
CONDITIONS = """# Conditions

A condition says which calls a rule means. One meets it in `toolmem rules add`, in `tool_rule_put`,
in notes, and in the rules of a team.

* `when` is a list of alternatives. The rule means a call for which one of them holds.
* `unless` is a list, too. A call for which one of them holds is let through.

An alternative is an object of tests that must all hold. Each simple command, recipient and path of
a call is tested by itself, so that an exception for one allows no other. Pipes, `&&`, `sudo`,
`sh -c` and quotes are taken apart, and white space inside a word is U+00A0. Where a call does not
show what it runs, [the user is asked](../concepts/guard.md#rules).

## Effects
"""
TESTS = """# Tests

Each example was tried when this page was made. Of several calls the last one is meant, and those
before it worked.
"""
CLASSES_OF_TOOLS = """# Classes of tools

A rule on a class holds for every tool of it, whichever agent has the tool. The class follows from
the tool's name, else from its parameters, else from the arguments of the call. The test `tool`
knows `@edit` and `@create` as well: a call of `@write` is one of them.

The classes, each with a tool: {classes}.
"""
LIMITS = """# Limits

* At most {when} alternatives in `when`, and {unless} in `unless`.
* A pattern has at most {longest} characters. It is searched anywhere in the text, but `word` has to
  match the whole word. Case does not count, except in short options (`-D`).
* Patterns run in re2, in linear time. Look-around and back-references are refused:

  ```text
  {refused}
  ```

* A command line of over {characters:,} characters is not read. Under any ban on commands the user
  is asked about it.
"""
EFFECTS = {
    "deny": "The call does not run, and the agent reads why.",
    "ask": "The user is asked first.",
    "remind": "The rule needs no condition: it only stands in the prompt.",
}


def conditions() -> str:
    """The tests of conditions, each with an example that is tried here."""
    effects = "".join(f"* {code(name)}: {EFFECTS[name]}\n" for name in get_args(Effect))
    parts = [CONDITIONS, effects, TESTS]
    comments = _comments(language.BaseTests) | _comments(language.Alternative)
    for each in kinds.type_info(language.Alternative).fields:
        told = f"{_capital(comments[each.name])} ({_json_type(each.type)})."
        parts.append(f"## {each.name}\n\n{told}\n")
        parts += [_inside(kind) for kind in _objects(each.type)]
        parts.append(f"```text\n{_tried(*EXAMPLES[each.name])}\n```\n")
    classes = ", ".join(f"{code(name)} ({code(example_tool(name))})" for name in CLASSES)
    return "\n".join([*parts, CLASSES_OF_TOOLS.format(classes=classes), _limits()])


def _comments(kind: type) -> dict[str, str]:
    """What the comments of a class say of its fields."""
    source = inspect.getsource(kind)
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.ClassDef)
    fields_ = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    return {ast.unparse(each.target): _setting(each, source.splitlines())[-1] for each in fields_}


def _objects(kind: Any) -> list[type]:
    """The classes of objects that a value may be, without the tests of a call's own text."""
    if isinstance(kind, kinds.StructType):
        return [kind.cls]
    inside = kind.types if isinstance(kind, kinds.UnionType) else [getattr(kind, "item_type", None)]
    return list(dict.fromkeys(found for each in inside if each for found in _objects(each)))


def _inside(kind: type) -> str:
    """The fields of an object that is a test."""
    comments = _comments(kind)
    rows = [
        f"* {code(each.encode_name)} ({_json_type(each.type)}): {comments[each.name]}"
        for each in kinds.type_info(kind).fields
        if each.name in comments
    ]
    return "\n".join([f"{inspect.getdoc(kind)}\n", *rows, ""])


def _json_type(kind: Any) -> str:
    if isinstance(kind, kinds.UnionType):
        return " or ".join(
            _json_type(each) for each in kind.types if not isinstance(each, kinds.NoneType)
        )
    if isinstance(kind, kinds.LiteralType):
        return "a text" if len(kind.values) > 1 else code(json.dumps(*kind.values))
    if isinstance(kind, kinds.StrType):
        return "a pattern" if kind.max_length else "a text"
    if isinstance(kind, kinds.IntType):
        return f"{kind.ge} to {kind.le}"
    named = {
        kinds.FloatType: "a number",
        kinds.BoolType: "a boolean",
        kinds.StructType: "an object",
        kinds.ListType: "a list",
    }
    return named[type(kind)]


def _tried(
    rule_tool: str, when: dict[str, Any], unless: dict[str, Any] | None, *calls: Calls
) -> str:
    """An example, with what its rule makes of calls. Raises where that is not what is shown."""
    lines = [f"tool    {rule_tool}", f"when    {json.dumps(when)}"]
    lines += [f"unless  {json.dumps(unless)}"] if unless else []
    conditions = {"when": [when], "unless": [unless] if unless else []}
    for wanted, told, made in zip(("deny", "allow"), ("stops", "passes"), calls, strict=True):
        with ToolMem(":memory:") as memory:
            memory.tool_rule_put(rule_tool, "An example", effect="deny", **conditions)
            for tool, arguments in made:
                found = memory.check_tool_call(tool, arguments, conversation_id="example")
                memory.tool_call_ended(found, arguments, output="done", success=True)
        if found.action != wanted:
            raise ValueError(f"{when}: {made[-1]} comes out as {found.action}, not {wanted}")
        shown = (given.get("command") or f"{tool} {json.dumps(given)}" for tool, given in made)
        lines.append(f"{told:8}{', then '.join(shown)}")
    return "\n".join(lines)


def _limits() -> str:
    """From the code that holds them."""
    when, unless = (each.type.max_length for each in kinds.type_info(language.Conditions).fields)
    (longest,) = get_args(language.PatternText)[1:]
    try:
        compiled("(?!main)")
    except ValueError as error:
        refused = str(error)
    return LIMITS.format(
        when=when,
        unless=unless,
        longest=longest.max_length,
        refused=refused,
        characters=MAX_CHARACTERS,
    )


# ---------------------------------------------------------------- files


def files() -> str:
    """The files that an evaluation writes."""
    parts = ["# Files of an evaluation\n"]
    parts.append(
        "`toolmem evaluate` writes them beside `report.html`. An empty cell means unknown. "
        "`summary.json` holds the same as totals, with costs, and `later_repairs` below.\n"
    )
    for name, each in tables.TABLES.items():
        if name not in ("costs", "ledger"):
            kind, columns = each.kind, ("column", "type", "")
            (shown,) = _structs(inspect.getmodule(kind), columns, [kind.__name__])
            parts.append(shown.replace(f"## {kind.__name__}", f"## {name}.csv"))
            if issubclass(kind, tables.Figures):
                parts.append("and the figures below.\n")
    (shown,) = _structs(tables, ("column", "type", ""), ["Figures"])
    parts.append(shown.replace("## Figures", "## Figures of tools and groups"))
    (shown,) = _structs(backtest, ("key", "type", "default", ""), ["LaterRepairs"])
    parts.append(shown.replace("## LaterRepairs", "## later_repairs in summary.json"))
    parts.append(
        "`sentence` says it in words. The guidance is written by rules: no model is asked.\n"
    )
    return "\n".join(parts)


# ---------------------------------------------------------------- Python


def python() -> str:
    """The public names of the package."""
    parts = ["# Python\n"]
    for name in sorted(toolmem.__all__):
        value = getattr(toolmem, name)
        if not callable(value):
            continue
        if inspect.isclass(value) and issubclass(value, Struct):
            parts += _structs(inspect.getmodule(value), ("field", "type", "default", ""), [name])
            continue
        parts.append(f"## {name}\n\n{inspect.getdoc(value) or ''}\n")
        if not name.startswith("Async"):  # its docstring names the class whose arguments it takes
            rows = [_argument(each) for each in _parameters(value)]
            parts.append(table(("argument", "type", "default", ""), rows) if rows else "")
        if inspect.isclass(value):
            parts.append(_methods(value))
    return "\n".join(parts)


def _parameters(value: Callable[..., Any]) -> Iterable[inspect.Parameter]:
    try:
        return inspect.signature(value, eval_str=True).parameters.values()
    except NameError:  # a type that is imported for type checkers alone
        return inspect.signature(value).parameters.values()


def _methods(kind: type) -> str:
    """Its methods; operations have a page of their own, and awaited ones are told of once."""
    told = _told(kind)
    name = kind.__name__.removeprefix("Async")
    plain = {} if name == kind.__name__ else _told(getattr(toolmem, name))
    parts = []
    if told.keys() >= OPERATIONS.keys():
        told = {each: text for each, text in told.items() if each not in OPERATIONS}
        parts.append("Each [operation](operations.md) is a method.\n")
    if same := [code(each) for each, text in told.items() if plain.get(each) == text]:
        parts.append(f"As in {name}: {', '.join(same)}.\n")
    if rows := [(code(each), text) for each, text in told.items() if plain.get(each) != text]:
        parts.append(table(("method", ""), rows))
    return "\n".join(parts)


def _told(kind: type) -> dict[str, str]:
    """What each method of a class does."""
    return {
        name: (inspect.getdoc(value) or "").partition("\n\n")[0]
        for name, value in inspect.getmembers(kind)
        if callable(value) and not name.startswith("_") and name not in dir(Exception)
    }


# ---------------------------------------------------------------- errors


def errors_() -> str:
    """The tree of errors."""
    return f"# Errors\n\n```text\n{inspect.getdoc(errors)}\n```\n"


# ---------------------------------------------------------------- measured


def benchmarks() -> str:
    """The results of `make bench`."""
    parts = ["# Measured\n", "`make bench` measures all of this, `make bench ARGS=NAME` one.\n"]
    paths = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    results = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    usual = Counter(told["machine"] for told in results).most_common(1)
    parts += [f"Measured on {machine}, where no other machine is named.\n" for machine, _ in usual]
    for told in results:
        basis = [f"`make bench ARGS={told['name']}`", told["date"], told["commit"]]
        basis += [told["machine"]] if told["machine"] != usual[0][0] else []
        parts.append(f"## {told['title']}\n\n{', '.join(basis)}.\n")
        for each in told["tables"]:
            parts.append(f"**{each['title']}**\n\n{table(each['columns'], each['rows'])}")
    if not results:
        parts.append("Nothing has been measured on this tree yet.\n")
    return "\n".join(parts)


# ---------------------------------------------------------------- the folders


def folders() -> str:
    """The folders in the order of imports, and the paths of a call and of a sentence."""
    (REFERENCE / "folders.svg").write_text(_picture(), encoding="utf-8")
    return (
        "# The folders\n\nA folder imports from those below it only. The left path is a call that "
        "is added, the right one a sentence of the user; a dot is a folder that it enters, and the "
        "number the order. A bar is as long as the folder has lines. `CONTRIBUTING.md` has the "
        "same list as text.\n\n![The folders and both paths](folders.svg)\n"
    )


def _folders() -> list[tuple[str, int, str]]:
    """Name, lines and first sentence of each, from the top."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = contract["tool"]["importlinter"]["contracts"][0]["layers"]
    found = []
    for name in (each.strip() for layer in layers for each in layer.split("|")):
        folder = PACKAGE / name
        place = folder / "__init__.py" if folder.is_dir() else PACKAGE / f"{name}.py"
        files = folder.rglob("*") if folder.is_dir() else [place]
        lines = sum(len(each.read_bytes().splitlines()) for each in files if each.suffix in LOW)
        told = ast.get_docstring(ast.parse(place.read_text(encoding="utf-8"))) or ""
        found.append((name, lines, told.replace("\n", " ").partition(". ")[0].rstrip(".:")))
    return found


def _picture() -> str:
    paths = runpy.run_path(str(ROOT / "benchmarks" / "paths.py"))["paths"]()
    folders, height = _folders(), 26
    drawn, places = [], {}
    for row, (name, lines, told) in enumerate(folders):
        top = 30 + row * height
        places[name] = top + 10
        label = told.replace("&", "&amp;").replace("<", "&lt;")
        width = 4 + lines / 50
        drawn.append(
            f'<rect x="150" y="{top}" width="{width:.0f}" height="20" class="size"/>'
            f'<text x="140" y="{top + 15}" text-anchor="end" class="name">{name}</text>'
            f'<text x="256" y="{top + 15}">{label}</text>'
        )
    for title, path, left in (("call", "add", 16), ("sentence", "sentence", 50)):
        drawn.append(
            f'<text x="{left + 4}" y="18" text-anchor="middle" class="path">{title}</text>'
        )
        drawn.append(_path(paths[path].files, places, left))
    total = 40 + len(folders) * height
    style = (
        "text{font:12px sans-serif;fill:#1f2933}.name{font-weight:bold}.size{fill:#d9e2ec}"
        "line{stroke:#4a6fa5;stroke-width:2}circle{fill:#4a6fa5}.path{fill:#4a6fa5}"
        ".order{fill:white;font-size:10px}rect.back{fill:white}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 {total}" role="img">'
    back = f'<rect width="860" height="{total}" class="back"/>'
    title = "<title>The folders of toolmem, and the paths of a call and of a sentence</title>"
    return f"{head}{title}<style>{style}</style>{back}{''.join(drawn)}</svg>\n"


def _path(files: Sequence[str], places: dict[str, int], left: int) -> str:
    """A line through the folders, numbered in the order of entry."""
    entered = dict.fromkeys(file.partition("/")[0].removesuffix(".py") for file in files)
    points = [places[name] for name in entered if name in places]
    x = left + 4
    line = f'<line x1="{x}" y1="{min(points)}" x2="{x}" y2="{max(points)}"/>'
    dots = [
        f'<circle cx="{x}" cy="{y}" r="9"/>'
        f'<text x="{x}" y="{y + 4}" text-anchor="middle" class="order">{order}</text>'
        for order, y in enumerate(points, 1)
    ]
    return line + "".join(dots)


# ---------------------------------------------------------------- formats of recordings

PAYLOADS = ROOT / "tests" / "formats" / "payloads"
MOST = 3  # elements of a list that are shown
MAX_TEXT = 90  # characters of a text or a line that is shown
LABELS = ("Written by", "Where", "A line", "Read", "Lost", "Verified")
STATES = {
    "by its program": "`make test-hosts` runs the program, and reads what it writes",
    "by its package": "the package itself wrote a recording, which the tests read",
    "by its types": "the package's types were filled by hand, so that a service may send more",
    "by hand": "files of the program were compared by hand",
    "by its documentation": "**no recording of it was seen here**",
}
COMMANDS = {
    "claude_code": "toolmem import --from-agents",
    "codex": "toolmem import --from-agents",
    "gemini_cli": "toolmem import --from-agents",
    "opencode": "toolmem import --from-agents",
    "table": "toolmem import calls.csv",
    "reme": "toolmem store import dump.jsonl",
}
# The formats that are no part of `programs`: what the comments there say of the others.
OWN: dict[str, tuple[str, Any]] = {
    "calls": (
        """
# Written by: you, from Python or any other language.
# Where: a file of JSON Lines.
# A line: a call. Only `tool_name` and `output` are asked for.
# Read: `input`, `success`, `create_time`, `time_cost` (seconds), `token_cost`, `context` (what the
# user asked for), `conversation_id` and `metadata`, where they are there.
# Lost: fields with other names; a likely misspelling is named.
# Verified: this version of toolmem, by its package.
""",
        {
            "tool_name": "weather",
            "input": {"city": "Olso"},
            "output": "Error: no such city",
            "success": False,
            "conversation_id": "a",
        },
    ),
    "openai": (
        """
# Written by: programs that keep what they send to OpenAI's Chat Completions, and many datasets.
# Where: a file that you saved, one conversation a line; or one document that is a conversation.
# A line: `messages` and, if there, `tools`.
# Read: the request, the calls and their answers by `tool_call_id`, else by their order.
# Lost: times, where no message names its own; whether a call worked.
# Verified: openai 3.57.0, by its types.
""",
        {
            "messages": [
                {"role": "user", "content": "find boots"},
                {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "function": {"arguments": '{"query":"boots"}', "name": "search"},
                            "type": "function",
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "3 hits"},
            ]
        },
    ),
    "reme": (
        """
# Written by: ReMe: dumps and local stores of its tool memory; and the flow `vector_store` here.
# Where: a file of JSON Lines, or the folder of a local store.
# A line: a tool with its guidance and calls. A bad line refuses the whole file.
# Read: calls, verdicts and guidance; see [Coming from ReMe](../../migration/from_reme.md).
# Lost: memories that are not of tools.
# Verified: reme-ai 0.2.0.4 to 0.3.1, by hand.
""",
        {
            "memory_type": "tool",
            "memory_id": "m1",
            "when_to_use": "search",
            "content": "Keep limit at 10 or below.",
            "time_created": "2026-02-03 10:00:00",
            "time_modified": "2026-02-03 11:00:00",
            "author": "qwen3",
            "tool_call_results": [
                {
                    "create_time": "2026-02-03 10:00:05",
                    "tool_name": "search",
                    "input": {"q": "rain", "limit": 10},
                    "output": "[umbrella]",
                    "success": True,
                    "evaluation": "It answered.",
                    "score": 1.0,
                }
            ],
        },
    ),
}


def notes_on_formats() -> dict[str, dict[str, str]]:
    """What the comment above each format says, by the format's name and the comment's labels."""
    source = Path(inspect.getfile(programs)).read_text(encoding="utf-8")
    found = re.findall(r"((?:^#.*\n)+)^\w+ = Format\(\s*\"(\w+)\"", source, re.MULTILINE)
    own = ((comment, name) for name, (comment, _) in OWN.items())
    return {name: _labelled(comment) for comment, name in (*own, *found)}


def _labelled(comment: str) -> dict[str, str]:
    text = " ".join(line.removeprefix("#").strip() for line in comment.strip().splitlines())
    parts = re.split(rf"(?:^| )({'|'.join(LABELS)}): ", text)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def formats() -> str:
    """All formats of recordings: who writes them, and how they were verified."""
    rows = [
        (f"[{name}](formats/{name}.md)", told["Written by"], code(_command(name)), told["Verified"])
        for name, told in notes_on_formats().items()
    ]
    states = "\n".join(f"* {state}: {told}" for state, told in STATES.items())
    return (
        "# Formats of recordings\n\n`toolmem import PATH...` recognizes files by their content, "
        "also in folders and packed with gzip. `toolmem evaluate --input` and `toolmem guard "
        "replay --input` read the same files; `--map` describes a form that is not here. Secrets "
        "are masked, and what was imported before adds nothing. Tokens are read from `calls`, "
        "`table` and `reme` alone: others count them by message or by request.\n\nThe last column "
        f"is the newest version that was tried, and how:\n\n{states}\n\n"
        + table(("format", "written by", "how to read it", "verified"), rows)
        + "\n```{toctree}\n:hidden:\n:glob:\n\nformats/*\n```\n"
    )


def _command(name: str) -> str:
    return COMMANDS.get(name, "toolmem import recordings/")


def format_page(name: str) -> str:
    """One format: who writes it, what a line looks like, what is read and what is lost."""
    told = notes_on_formats()[name]
    form = programs.BY_NAME.get(name)
    read = ([told["Read"]] if "Read" in told else []) + (_read(form) if form else [])
    example = _example(name)
    shown = f"```text\n{example}\n```" if example else "None was written here to show."
    parts = {
        "Written by": _capital(told["Written by"]),
        "Where it is": _capital(told["Where"]),
        "A line": f"{_capital(told['A line'])}\n\n{shown}",
        "What is read": "\n".join(f"* {_capital(each)}" for each in read),
        "What is lost": _capital(told["Lost"]),
        "Verified with": told["Verified"],
        "How to read it": f"```console\n$ {_command(name)}\n```\n",
    }
    return f"# {name}\n\n" + "\n\n".join(f"## {head}\n\n{text}" for head, text in parts.items())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _read(form: Format) -> list[str]:
    """What the table of paths says, in words."""
    named = {
        "name": "the tool", "arguments": "arguments", "output": "the result", "time": "its begin",
        "end": "its end", "time_cost": "seconds", "token_cost": "tokens",
        "request": "the request of the user", "conversation": "the conversation",
    }  # fmt: skip
    paths = defaultdict[str, list[str]](list)
    for shape in form.shapes:
        for field in shape.__struct_fields__[1:]:
            given = getattr(shape, field)
            for path in given if isinstance(given, tuple) else (given,):
                paths[field] += [each.strip("^") for each in path.split("|") if each]
    fields = [  # of a span they stand in attributes, which the comment names
        f"{what} from {', '.join(map(code, dict.fromkeys(paths[field])))}"
        for field, what in named.items()
        if paths[field] and form.prepare is not flat_span
    ]
    told = dict.fromkeys([*paths["error"], *paths["status"], *paths["success"]])
    switches = {
        f"whether it failed, by {', '.join(map(code, told))}": bool(told),
        "an answer without an error worked": form.silent_success,
        "a success that is told only says that the tool ran": not form.trusts_success,
        "calls that were not allowed to run are left out and counted": bool(form.refused),
        "texts that the program adds to a user's or to a result are left out": bool(form.noise),
        "a later line may repeat the calls of earlier ones: each is read once": (
            form.repeats_history or bool(form.history)
        ),
    }
    commands = form.names.commands if form.names else {}
    named_as = defaultdict[str, list[str]](list)
    for name, (ours, _) in commands.items():
        named_as[ours] += [code(name)] if name != ours else []
    renamed = [
        f"{code(ours)}, as in its hook: the name of {', '.join(names)}"
        for ours, names in named_as.items()
        if names
    ]
    return [*fields, *(text for text, holds in switches.items() if holds), *renamed]


# ---------------------------------------------------------------- a line of a format


def _example(name: str) -> str:
    """A line of the payload that the format's program wrote, cut to what is read; or nothing."""
    if name in OWN:
        return _drawn(OWN[name][1])
    payload = next(iter(sorted(PAYLOADS.glob(f"{name}.*"))), None)
    if payload is None:
        return ""
    if payload.suffix == ".csv":
        return payload.read_text(encoding="utf-8").strip()
    with tempfile.TemporaryDirectory() as folder:
        units = [line.value for line in read_units(_readable(payload, Path(folder)))]
    form = programs.BY_NAME[name]
    unit = next(each for each in units if _has_call(form, each))
    for group in unit.get("scopeSpans", ()) if isinstance(unit, dict) else ():
        unit = [each for each in group["spans"] if _has_call(form, each)][-1]  # of a tool
    return _drawn(_cut(unit, _keys(form)))


def _has_call(form: Format, unit: Any) -> bool:
    return any(event.name for event in events_of(form, unit))


def _readable(payload: Path, folder: Path) -> Path:
    """The payload; a database that its statements make."""
    if payload.suffix != ".sql":
        return payload
    made = folder / "made.db"
    with closing(sqlite3.connect(made)) as database:
        database.executescript(payload.read_text(encoding="utf-8"))
    return made


def _keys(form: Format) -> set[str]:
    """Those that the format reads; none: the whole is shown."""
    if form.prepare is flat_span:
        return set()
    paths = [path for mark in form.marks for path in mark]
    paths += [path for shape in form.shapes for path in shape.where]
    for shape in form.shapes:
        given = [getattr(shape, field) for field in shape.__struct_fields__[1:]]
        paths += [each for one in given for each in (one if isinstance(one, tuple) else (one,))]
    return {*form.inside, *(key for path in paths for key in re.split(r"[/|^]", path))} - {""}


def _cut(value: Any, keys: set[str]) -> Any:
    """Without what is not read, with few elements and short texts; arguments stay."""
    if isinstance(value, list):
        return [_cut(each, keys) for each in value[: MOST if keys else None]]
    if isinstance(value, dict):
        kept = {key: _cut(each, keys) for key, each in value.items() if key in keys}
        return kept or {key: _cut(each, keys) for key, each in value.items()}
    return f"{value[:MAX_TEXT]}..." if isinstance(value, str) and len(value) > MAX_TEXT else value


def _drawn(value: Any, indent: int = 0) -> str:
    """As JSON; what is short stands in one line."""
    text, pad = json.dumps(value, ensure_ascii=False), " " * indent
    if len(text) + indent <= MAX_TEXT or not isinstance(value, dict | list):
        return text
    if isinstance(value, list):
        inner = [_drawn(each, indent + 1) for each in value]
        return "[\n" + ",\n".join(f"{pad} {each}" for each in inner) + f"\n{pad}]"
    items = [f"{pad} {json.dumps(key)}: {_drawn(each, indent + 1)}" for key, each in value.items()]
    return "{\n" + ",\n".join(items) + f"\n{pad}}}"


PAGES = {
    "commands": commands,
    "configuration": configuration,
    "ops": ops,
    "operations": operations,
    "conditions": conditions,
    "files": files,
    "python": python,
    "errors": errors_,
    "benchmarks": benchmarks,
    "folders": folders,
    "formats": formats,
    **{f"formats/{name}": partial(format_page, name) for name in notes_on_formats()},
}


def main() -> None:
    (REFERENCE / "formats").mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (REFERENCE / f"{name}.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
