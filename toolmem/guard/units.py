"""A call in its units: each simple command, recipient and path by itself, as conditions in the user's words judge them.

    rm -rf build && cp x y     two units, so that what lets the one through does not let the other through
    sudo xargs rm x            one unit with three lines: itself, `xargs rm x`, `rm x`

A line is the words of a simple command with one space between them; white space inside a word is U+00A0, so that
`git commit -m "why --no-verify"` is not `git commit -m why --no-verify`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolmem.guard.shell_commands import Argv
from toolmem.guard.tool_classes import scopes_of
from toolmem.guard.view import View, plain, scalars, target_forms, target_names, whole_path
from toolmem.guard.word_lists import split
from toolmem.late import late_pattern

INSIDE = "\u00a0"  # stands for white space inside a word
_WHITE = late_pattern(r"\s")
_FILE = late_pattern(r"[^\s:=]*(?:/|\.[a-z]\w{0,9}$|^\.)[^\s]*")
_EDITS = frozenset(("old_string", "old_str", "old_text", "oldstring", "oldtext", "search", "edits", "diff", "patch"))
_EDITORS = frozenset(("edit", "multiedit", "replace", "str_replace", "search_replace", "replace_in_file", "edit_file"))
_ALIKE = split("rm rmdir unlink shred truncate trash del touch mkdir cat less more head tail wc stat source bat")
_ALIKE_OF_GIT = split("add rm restore clean")
_PRINTERS = split("echo printf")  # what they are given is no file, whatever it looks like
_MODES_FIRST = split("chmod chown chgrp")  # and then files
_FETCHERS = split("curl wget http https xh")
_MOST_OPERANDS = 1_000
_MOST_LINES = 8  # that one wrapper after the other makes of a command


def with_units(view: View) -> dict[str, Any]:
    """The view's fields, and beside them `tools` (its name and classes), `parameters` and `units`; made once."""
    if not view.in_units:
        name, arguments = view.fields["tool_name"], view.fields["arguments"]
        tools = [plain(name), *kinds_of(name, view.declared, arguments)]
        units = [{**each, "tools": tools} for each in _units(view, arguments)] or [_unit(tools)]
        several = sum(bool(each["lines"]) for each in units) > 1
        for each in units:  # what one of several commands says lets no other through
            own = [line.replace(INSIDE, " ") for line in each["lines"]]
            each["texts"] = own if several and own else view.fields["values"]
        view.in_units = {**view.fields, "tools": tools, "parameters": list(_given(arguments)), "units": units}
    return view.in_units


def kinds_of(
    tool_name: str,
    parameters: Mapping[str, Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    classes: Sequence[str] = (),
) -> tuple[str, ...]:
    """The classes of a tool, and of one that writes files whether it changes what is there or writes a file whole."""
    scopes = scopes_of(tool_name, parameters, arguments, classes)
    if "@write" not in scopes:
        return scopes
    names = {str(name).lower() for name in arguments or (parameters or {}).get("properties") or ()}
    edits = names & _EDITS or (not names and plain(tool_name) in _EDITORS)
    patched = next((each for each in (arguments or {}).values() if isinstance(each, str) and "*** " in each[:200]), "")
    if patched:
        edits = "*** Update File: " in patched
    return (*scopes, "@edit" if edits else "@create")


def line_of(words: Sequence[str]) -> str:
    """A simple command as it is compared."""
    return " ".join(_WHITE.sub(INSIDE, word) for word in words)


def units_of(commands: Sequence[Argv], directory: Path | None) -> list[dict[str, Any]]:
    """The units of the simple commands of one text."""
    return [_of_command(group, directory) for group in _together(commands)]


def _units(view: View, arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    directory, declared = view.directory, view.declared.get("properties")
    yield from units_of(view.handed, directory)
    targets = target_names(arguments, declared if isinstance(declared, Mapping) else {})
    for place, name, value in scalars(arguments):
        if isinstance(value, str) and value and (place in targets or name in targets):
            yield _of_target(plain(value), directory)


def _together(commands: Sequence[Argv]) -> Iterator[list[Argv]]:
    """Each command with those that wrap it before it, and with the words that it reads and its paths as they lead."""
    group: list[Argv] = []
    for each in commands:
        whole = any(one.kind == "runs" for one in group)
        if group and (len(group) >= _MOST_LINES or (whole and each.kind not in ("fed", "leads"))):
            yield group
            group = []
        group += [each] if each.words else []
    if group:
        yield group


def _of_command(commands: Sequence[Argv], directory: Path | None) -> dict[str, Any]:
    writes = commands[0].words[0] == ">"
    words = list(dict.fromkeys(word for each in commands for word in each.words))
    spoken = [word for each in commands if each.words[0] not in _PRINTERS for word in each.words[1:]]
    named = list(dict.fromkeys(part for word in spoken for part in (word, *word.split("=", 1)[1:]) if part))
    alike = [each for one in commands if one.kind == "runs" for each in _alike(one.words)][:_MOST_OPERANDS]
    led = _as_they_lead(commands)
    files = [word for word in named if writes or (not word.startswith("-") and _FILE.fullmatch(word))]
    return _unit(
        lines=[] if writes else [line_of(each.words) for each in commands],
        words=[] if writes else [_WHITE.sub(INSIDE, word) for word in words],
        paths=[form for file in files for form in _path_forms(file, directory)],
        targets=[form for word in named for form in target_forms(word)],
        alike=[_operand([word, *led.get(word, ())], directory) for word in alike],
    )


def _alike(words: Sequence[str]) -> Sequence[str]:
    """The operands with each of which a program does the same; none of one that does different things with them."""
    program, *rest = words or ("",)
    if program in _FETCHERS:
        return [word for word in rest if "://" in word and not _WHITE.search(word)]
    if program == "git" and rest[:1] and rest[0] in _ALIKE_OF_GIT:
        rest = rest[1:]
    elif program in _MODES_FIRST:
        rest = [word for word in rest if not word.startswith("-")][1:]
    elif program not in _ALIKE:
        return ()
    found = [word for word in rest if not word.startswith("-")]
    return found if len(found) > 1 else ()


def _as_they_lead(commands: Sequence[Argv]) -> dict[str, list[str]]:
    """The words of a command with what they are below the folder that it runs in."""
    runs = next((each.words for each in commands if each.kind == "runs"), ())
    found: dict[str, list[str]] = {}
    for each in commands:
        if each.kind == "leads" and len(each.words) == len(runs):
            for word, leads in zip(runs, each.words, strict=True):
                found.setdefault(word, []).append(leads)
    return found


def _operand(forms: Sequence[str], directory: Path | None) -> dict[str, Any]:
    paths = [form for word in forms for form in _path_forms(word, directory)]
    return {"paths": paths, "targets": [*paths, *(form for word in forms for form in target_forms(word))]}


def _of_target(text: str, directory: Path | None) -> dict[str, Any]:
    return _unit(paths=list(_path_forms(text, directory)), targets=[text, *target_forms(text)])


def _path_forms(path: str, directory: Path | None) -> Iterator[str]:
    """As it is given, as it is meant, and below the folder of the call."""
    if "://" in path or "\n" in path:
        return
    yield path
    whole = whole_path(path, directory)
    yield whole
    if directory is not None and whole.startswith(base := f"{plain(str(directory)).rstrip('/')}/"):
        yield whole.removeprefix(base)


def _unit(
    tools: Sequence[str] = (),
    *,
    lines: Sequence[str] = (),
    words: Sequence[str] = (),
    paths: Sequence[str] = (),
    targets: Sequence[str] = (),
    alike: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    return {
        "tools": list(tools),
        "lines": list(lines),
        "words": list(words),
        "paths": list(dict.fromkeys(paths)),
        "targets": list(dict.fromkeys([*targets, *paths])),
        "alike": list(alike),  # what lets one of these through does not let the others through
    }


def _given(arguments: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Each scalar under the parameter that it belongs to, and under the name nearest to it."""
    for place, name, value in scalars(arguments):
        if value is None or value == "":
            continue
        text = str(value).lower() if isinstance(value, bool) else plain(str(value))
        yield {"name": place, "text": text}
        if name != place:
            yield {"name": name, "text": text}
