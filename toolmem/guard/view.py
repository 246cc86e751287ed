"""What a rule's condition sees of a call: the same lists for every tool, so that one condition fits many.

Every list is always there, sorted and without doubles. Text is compared as people read it: NFKC, case-folded, without
characters that cannot be seen; hosts in their IDNA form; addresses without display name and plus tag.
"""

from __future__ import annotations

import functools
import math
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from toolmem.guard.handed_commands import MOST_NESTED, HandedLine, handed_lines
from toolmem.guard.open_words import open_commands
from toolmem.guard.parameter_names import names_command as names_command
from toolmem.guard.parameter_names import names_file, names_target
from toolmem.guard.parameter_names import target_names as target_names
from toolmem.guard.shell_commands import TOO_DEEP, Argv, read_commands
from toolmem.guard.shell_files import other_form
from toolmem.guard.shell_files import whole_path as path_from
from toolmem.guard.tool_classes import scopes_of
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, field
from toolmem.readers.sql import looks_like_sql, read_statement

_INVISIBLE = late_pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_ADDRESS = late_pattern(r"(?<![\w.%+-])([\w.%+-]{1,64})@((?:[\w-]{1,63}\.){1,8}[^\W\d_][\w-]{1,62})(?![\w-])")
_MAILBOX = late_pattern(r"\s*\"?([^<>\"@]{0,200}?)\"?\s*<\s*([^<>\s]{1,320})\s*>\s*")
_URL = late_pattern(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`\\]{1,2000}")
_HOST = late_pattern(r"(?<![\w@./-])((?:[\w-]{1,63}\.){1,8}[^\W\d_][\w-]{1,62})\.?(?=[/:?#\s,;)\]}>\"'`]|\Z)")
_PATH = late_pattern(r"(?:~|\.{1,2})?/[^\s\"'`<>|;&]*|[a-z]:[\\/][^\s\"'`<>|;&]*")
_NUMBER = late_pattern(r"[-+]?(?:\d{1,3}(?:[,' \u00a0\u202f]\d{3})+|\d{1,18})(?:\.\d{1,12})?")
_DIGITS = late_pattern(r"[$€£¥₹\s]{0,3}\d[\d,.' ]*")
_LIKE_NUMBER = late_pattern(r"[-+$€£¥₹\s]{0,4}(?:[^\W\d_]{1,8}\s{0,3})?[-+$€£¥₹\s]{0,4}\d")
_MONEY = late_pattern(
    r"[$€£¥₹]|\b(?:usd|eur|gbp|cny|rmb|euros?|dollars?|pounds?|yuan)\b|元|块钱?|美元|欧元|英镑|人民币"
)
_TIMES = {"k": 1e3, "千": 1e3, "万": 1e4}
_LONGEST_NUMBER = 40  # characters of a number that is read; one of more digits is beyond any bound

_WITH_HOST = late_pattern(r"(?:[a-z][a-z0-9+.-]{0,20}:)?[/\\]{2}")
_ROUNDABOUT = late_pattern(r"//|(?:^|/)\.{1,2}/")  # a path that says where it does not lead
_QUOTED_LOCAL = late_pattern(r"\"([^\"\s@]{1,64})\"@")
_COMMENT = late_pattern(r"\([^()]{0,100}\)(?=@)")
_LONGEST_URL = 10_000  # characters
_LONGEST_LIST, _LONGEST_MAILBOX = 10_000, 600  # characters of a list of addresses, of one with its name
_MOST_BITS = 1024  # of a number that is a float
_SCALARS = frozenset((str, int, float, bool, type(None)))
_SPACE = late_pattern(r"\s")
_LISTS = ("values", "targets", "emails", "hosts", "paths", "tables", "statements")
_FILE = late_pattern(r"[\w./~@+-]*(?:/|\.[a-z]\w{0,9})[\w./~@+-]*")
_PATCH = late_pattern(r"^(?:\*\*\* begin patch|diff --git |--- )", re.MULTILINE)
_PATCHED = late_pattern(
    r"^(?:\*\*\* (?:add|update|delete) file: |\*\*\* move to: |(?:\+\+\+|---) (?:[ab]/)?)(\S[^\n]{0,500})", re.MULTILINE
)


@dataclass(slots=True)
class View:
    """A call as conditions see it, and what of it could not be taken apart."""

    fields: dict[str, Any]
    argv: list[Argv] = field(default_factory=list)  # each simple command, with what hides
    run: list[Argv] = field(default_factory=list)  # those of parameters that hold commands; a file's text is not run
    unread: str = ""  # why not all of it was looked at
    open: list[Sequence[str]] = field(default_factory=list)  # commands with words that only the shell completes
    handed: list[Argv] = field(default_factory=list)  # of lines that are handed over: those that wrap, too
    declared: Mapping[str, Any] = field(default_factory=dict)  # the JSON schema of its tool
    directory: Path | None = None
    in_units: dict[str, Any] = field(default_factory=dict)  # made when it is first asked for: `units`


def view_of(
    tool_name: str,
    arguments: Mapping[str, Any],
    parameters: Mapping[str, Any] | None = None,
    *,
    directory: Path | None = None,
) -> View:
    """The view of a call. `parameters`: the JSON schema that the tool declares; `directory`: where it would run.

    Linear in the size of the arguments; what is nested deeper than 200 levels is not looked at.
    """
    arguments = {str(name): value for name, value in arguments.items()}
    declared = (parameters or {}).get("properties")
    targets = target_names(arguments, declared if isinstance(declared, Mapping) else {})
    found: dict[str, set[str]] = {name: set() for name in _LISTS}
    numbers: dict[tuple[str, float], None] = {}
    lines = _HandedLines(directory, patches="@write" in scopes_of(tool_name))
    for line in handed_lines(tool_name, arguments, parameters):
        lines.read(line)
    folder = None if directory is None else _folder(directory)
    whole = functools.cache(lambda path: path_from(path, folder))
    unread: list[str] = []
    beyond = False
    for place, name, value in scalars(arguments, unread):
        if isinstance(value, bool) or value is None:
            text = str(value).lower()
        elif isinstance(value, int | float):
            text = f"{value:g}" if isinstance(value, float) else str(value)
            beyond = beyond or math.isinf(value)
            numbers[(name, _as_float(value))] = None
        else:
            text = plain(str(value))
            if (number := number_in(text)) is not None:
                numbers[(name, number)] = None
        found["values"].add(text)
        if looks_like_sql(text[:4000]):
            for each in str(value)[:20_000].split(";"):
                statement = read_statement(each)
                found["tables"] |= statement.tables
                if statement.form:
                    found["statements"].add(statement.form.lower())
        is_file = names_file(name) and "://" not in text
        _take_places(text, found, paths=not is_file)
        if lines.patches:
            patched = patched_files(text) if _PATCH.search(text) else []
            found["targets"].update(path_from(path, folder) for path in patched)
        if place in targets or names_target(name):
            path = text if is_file else _file_of(text)
            if not path:
                found["targets"].update(target_forms(text))
                continue
            found["paths"].add(path)
            found["targets"].add(whole(path))
            if not _ROUNDABOUT.search(path):
                found["targets"].update(target_forms(text))
    commands = [*lines.guessed, *lines.run]
    for word in {word for command in commands for word in command.words[1:]}:
        _take_places(word, found)
        if not word.startswith("-") and _FILE.fullmatch(word):
            found["paths"].add(word)
    paths = set(map(whole, found["paths"]))
    home = _folder(Path.home())
    near = ("~", home)
    for listed in (paths, found["targets"]):
        listed.update([other for path in listed if path.startswith(near) and (other := other_form(path, home))])
    fields = {
        "tool_name": tool_name,
        "arguments": _checkable(arguments) if unread or beyond else dict(arguments),
        **{name: sorted(listed) for name, listed in found.items()},
        "paths": sorted(paths),
        "commands": [list(each.words) for each in commands],
        "command_lines": list(dict.fromkeys(_line_of(each) for each in commands if _is_own(each))),
        "programs": sorted({each.words[0] for each in commands if each.words and "=" not in each.words[0]}),
        "numbers": [{"name": name, "value": value} for name, value in sorted(numbers)],
    }
    return View(
        fields,
        commands,
        [each for each in lines.run if each.kind == "runs"],
        "".join(unread) or lines.unread,
        open_commands(each.words for each in commands),
        lines.run,
        parameters or {},
        directory,
    )


class _HandedLines:
    """The simple commands of the lines that a call hands over. `patches`: the tool writes files, so that the text of a
    patch is not run."""

    def __init__(self, directory: Path | None, *, patches: bool) -> None:
        self.directory = directory
        self.patches = patches
        self.run: list[Argv] = []
        self.guessed: list[Argv] = []  # of values that only look like a command
        self.unread = ""

    def read(self, line: HandedLine) -> None:
        patched = patched_files(plain(line.text)) if _PATCH.search(line.text.lower()) else []
        if patched and self.patches:
            return
        opened = read_commands(visible(line.text), self.directory)
        into = self.run if line.named else self.guessed
        into += [lowered(each) for each in opened.commands]
        if any(each.words[:1] == ("apply_patch",) for each in opened.commands):
            into += [Argv((">", path)) for path in patched]
        self.unread = self.unread or opened.unread


def _is_own(command: Argv) -> bool:
    """Does it stand in the line, as it is or with what it reads?"""
    return command.kind != "leads" and command.words[:1] != (">",)


def _line_of(command: Argv) -> str:
    """A command as one text: white space between words is a blank, within a word U+00A0."""
    return " ".join(_SPACE.sub("\u00a0", word) for word in command.words)


def patched_files(text: str) -> list[str]:
    """The files that a patch changes, in the forms of agents and of `diff`."""
    return [match.strip() for match in _PATCHED.findall(text)]


def scalars(arguments: Mapping[str, Any], unread: list[str] | None = None) -> Iterator[tuple[str, str, Any]]:
    """Every scalar with the parameter that it belongs to and the name nearest to it; a number beyond all floats is
    the largest of them. `unread`: takes why some were passed over."""
    waiting: list[tuple[str, str, Any, int]] = [(str(name), str(name), value, 0) for name, value in arguments.items()]
    while waiting:
        place, name, value, depth = waiting.pop()
        if type(value) in _SCALARS or not isinstance(value, dict | list | tuple | Mapping):
            yield place, name, _as_float(value) if isinstance(value, int) and _is_beyond(value) else value
        elif depth >= MOST_NESTED:
            if unread is not None and not unread:
                unread.append(TOO_DEEP)
        elif isinstance(value, dict | Mapping):  # to ask for what is common first is quicker
            waiting.extend((place, str(key), each, depth + 1) for key, each in value.items())
        else:
            waiting.extend((place, name, each, depth + 1) for each in value)


def _is_beyond(number: int) -> bool:
    return number.bit_length() > _MOST_BITS


def _checkable(value: Any, depth: int = 0) -> Any:
    """Arguments as a validator can read them: what is too deeply nested is left out, numbers are finite."""
    if isinstance(value, Mapping):
        return {str(key): _checkable(each, depth + 1) for key, each in value.items()} if depth < MOST_NESTED else None
    if isinstance(value, list | tuple):
        return [_checkable(each, depth + 1) for each in value] if depth < MOST_NESTED else None
    return _as_float(value) if isinstance(value, int) and _is_beyond(value) else value


def plain(text: str) -> str:
    """Text as it is compared: NFKC, case-folded, without what cannot be seen, white space at the ends gone."""
    if text.isascii():
        return text.lower().strip()
    folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    return unicodedata.normalize("NFKC", folded).strip()


def _as_float(number: float) -> float:
    """A number as a float; one beyond them all is the largest, which conditions can compare."""
    try:
        return min(max(float(number), -sys.float_info.max), sys.float_info.max)
    except OverflowError:
        return sys.float_info.max if number > 0 else -sys.float_info.max


def visible(text: str) -> str:
    """Text in NFKC without what cannot be seen, its letters as they are: programs tell `-C` from `-c`."""
    return text if text.isascii() else unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))


def lowered(command: Argv) -> Argv:
    """A command with its words as they are compared."""
    return Argv(tuple(map(plain, command.words)), command.hides, plain(command.place), command.kind)


def number_in(text: str) -> float | None:
    """The number that a text is, with an optional sign of a currency: "$6,000", "6 000 EUR" and "6k" are 6000."""
    if not _LIKE_NUMBER.match(text):
        return None
    if len(text) > _LONGEST_NUMBER:
        return _as_float(math.inf) if _DIGITS.fullmatch(text) else None
    bare = _MONEY.sub("", text).strip()
    times = _TIMES.get(bare[-1:], 1.0)
    bare = bare[:-1].rstrip() if times > 1 else bare
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d{1,2}|\d{1,15},\d{1,2}", bare):
        bare = bare.replace(".", "").replace(",", ".")  # 6.000,00
    if not _NUMBER.fullmatch(bare):
        return None
    return float(re.sub(r"[,' \u00a0\u202f]", "", bare)) * times


def _take_places(text: str, found: dict[str, set[str]], *, paths: bool = True) -> None:
    """The addresses, hosts and paths that a text holds. `paths` False: it is one itself."""
    if "@" in text:
        found["emails"].update(address(found_) for found_ in (m.group() for m in _ADDRESS.finditer(text)))
    if "." in text:
        found["hosts"].update(host for match in _HOST.finditer(text) if (host := idna(match[1])))
    if "://" in text:
        found["hosts"].update(host for match in _URL.finditer(text) if (host := host_of(match.group())))
    if paths and ("/" in text or "\\" in text):
        found["paths"].update(match.group() for match in _PATH.finditer(text) if len(match.group()) > 1)


def target_forms(text: str) -> Iterator[str]:
    """A target as it stands, and as what it names: its address, its display name, its host."""
    for each in map(str.strip, re.split("[,;]", text)) if "@" in text and len(text) < _LONGEST_LIST else [text]:
        if not each:
            continue
        mailbox = _MAILBOX.fullmatch(each) if len(each) < _LONGEST_MAILBOX else None
        if mailbox:
            each = mailbox[2]
            if mailbox[1].strip():
                yield mailbox[1].strip()
        if each.startswith("mailto:"):
            each = plain(unquote(each[len("mailto:") :].partition("?")[0]))
        if "@" in each and "://" not in each:
            bare = _COMMENT.sub("", _QUOTED_LOCAL.sub(r"\1@", each[:_LONGEST_LIST]))
            if found := [match.group() for match in _ADDRESS.finditer(bare)]:
                yield from map(address, found)
                each = _ADDRESS.sub(" ", bare).strip("<>[]{}\"' .:")
        if each:
            yield each
        if _WITH_HOST.match(each) and (host := host_of(each)):
            yield host
        elif match := _HOST.match(each):
            yield idna(match[1]) or match[1]


def address(text: str) -> str:
    """An address in small letters, without its plus tag, the host in IDNA form."""
    local, _, host = plain(text).rpartition("@")
    return f"{local.partition('+')[0]}@{idna(host) or host}"


def host_of(url: str) -> str:
    """The host of a URL, without user, port and final dot; empty where it has none."""
    url = url[:_LONGEST_URL].replace("\\", "/")
    try:
        host = urlsplit(url if _WITH_HOST.match(url) else f"//{url}").hostname or ""
    except ValueError:
        return ""
    return idna(unquote(host) if "%" in host else host)


def _file_of(text: str) -> str:
    """The path of a file:// address; empty where it is none."""
    try:
        return unquote(urlsplit(text[:_LONGEST_URL]).path) if text.startswith("file:") else ""
    except ValueError:
        return ""


def idna(host: str) -> str:
    """A host name as DNS sees it; empty where it is none."""
    host = plain(host).rstrip(".").replace("。", ".")
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return ""


def whole_path(path: str, directory: Path | None) -> str:
    """A path against the directory of the call, `.` and `..` taken out, links not followed."""
    return path_from(path, None if directory is None else _folder(directory))


@functools.lru_cache(maxsize=200)
def _folder(directory: Path) -> str:
    return plain(str(directory))
