"""What a rule's condition sees of a call: the same lists for every tool, so that one condition fits many.

Every list is always there, sorted and without doubles. Text is compared as people read it: NFKC, case-folded, without
characters that cannot be seen; hosts in their IDNA form; addresses without display name and plus tag.
"""

from __future__ import annotations

import functools
import math
import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from toolmem.guard.shell_commands import Argv, is_command, simple_commands
from toolmem.guard.tool_classes import scopes_of
from toolmem.guard.word_lists import words
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, field
from toolmem.readers.sql import looks_like_sql, read_statement

_MOST_NESTED = 200  # levels of the arguments that are looked into
_INVISIBLE = late_pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_ADDRESS = late_pattern(r"(?<![\w.%+-])([\w.%+-]{1,64})@((?:[\w-]{1,63}\.){1,8}[^\W\d_][\w-]{1,62})(?![\w-])")
_MAILBOX = late_pattern(r"\s*\"?([^<>\"@]{0,200}?)\"?\s*<\s*([^<>\s]{1,320})\s*>\s*")
_URL = late_pattern(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`\\]{1,2000}")
_HOST = late_pattern(r"(?<![\w@./-])((?:[\w-]{1,63}\.){1,8}[^\W\d_][\w-]{1,62})\.?(?=[/:?#\s,;)\]}>\"'`]|\Z)")
_PATH = late_pattern(r"(?:~|\.{1,2})?/[^\s\"'`<>|;&]*|[a-z]:[\\/][^\s\"'`<>|;&]*")
_WORDS = late_pattern(r"[a-z]+|[^\W\d_a-z]+")
_NUMBER = late_pattern(r"[-+]?(?:\d{1,3}(?:[,' \u00a0\u202f]\d{3})+|\d{1,18})(?:\.\d{1,12})?")

_TARGET, _CONTENT = words("target_words"), words("content_words")
_ARGS = ("args", "arguments", "argv", "params")  # of a program that stands beside them
_WITH_HOST = late_pattern(r"(?:[a-z][a-z0-9+.-]{0,20}:)?[/\\]{2}")
_ROUNDABOUT = late_pattern(r"//|(?:^|/)\.{1,2}/")  # a path that says where it does not lead
_QUOTED_LOCAL = late_pattern(r"\"([^\"\s@]{1,64})\"@")
_COMMENT = late_pattern(r"\([^()]{0,100}\)(?=@)")
_LONGEST_URL = 10_000  # characters
_LONGEST_LIST, _LONGEST_MAILBOX = 10_000, 600  # characters of a list of addresses, of one with its name
_LISTS = ("values", "targets", "emails", "hosts", "paths", "tables", "statements")
_SAYS_WHOM = late_pattern(r"\b(?:recipient|email address|who(?:m|se)?|destination|url|path|branch|account)\b")
_FILES = words("file_words")
_FILE = late_pattern(r"[\w./~@+-]*(?:/|\.[a-z]\w{0,9})[\w./~@+-]*")
_COMMAND = words("command_words")
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
    commands: list[Argv] = []
    run: list[Argv] = []
    patches = "@write" in scopes_of(tool_name)
    for line in _apart(arguments):
        run += [lowered(each) for each in simple_commands(visible(shlex.join(line)), directory)]
    for place, name, value in scalars(arguments):
        if isinstance(value, bool) or value is None:
            text = str(value).lower()
        elif isinstance(value, int | float):
            text = f"{value:g}" if isinstance(value, float) else str(value)
            numbers[(name, _as_float(value))] = None
        else:
            text = plain(str(value))
            if (number := number_in(text)) is not None:
                numbers[(name, number)] = None
        found["values"].add(text)
        named = _words_of(name)
        patched = patched_files(text) if _PATCH.search(text) else []
        if patched and patches:
            pass  # the text of a patch is not run, whatever its parameter is called
        elif is_command(text, runs := names_command(name)):
            into = run if runs or len(arguments) == 1 else commands
            into += [lowered(each) for each in simple_commands(visible(str(value)), directory)]
            into += [Argv((">", path)) for path in patched if any(each.words[:1] == ("apply_patch",) for each in into)]
        if looks_like_sql(text[:4000]):
            for each in str(value)[:20_000].split(";"):
                statement = read_statement(each)
                found["tables"] |= statement.tables
                if statement.form:
                    found["statements"].add(statement.form.lower())
        _take_places(text, found)
        if patches:
            found["targets"].update(whole_path(path, directory) for path in patched)
        if place in targets or (named & _TARGET and not named & _CONTENT):
            path = text if named & _FILES and "://" not in text else _file_of(text)
            if not path:
                found["targets"].update(_target_forms(text))
                continue
            found["paths"].add(path)
            found["targets"].add(whole_path(path, directory))
            if not _ROUNDABOUT.search(path):
                found["targets"].update(_target_forms(text))
    commands += run
    for word in (word for command in commands for word in command.words[1:]):
        _take_places(word, found)
        if not word.startswith("-") and _FILE.fullmatch(word):
            found["paths"].add(word)
    paths = {whole_path(path, directory) for path in found["paths"]}
    fields = {
        "tool_name": tool_name,
        "arguments": dict(arguments),
        **{name: sorted(listed) for name, listed in found.items()},
        "paths": sorted(paths),
        "commands": [list(each.words) for each in commands],
        "programs": sorted({each.words[0] for each in commands if each.words}),
        "numbers": [{"name": name, "value": value} for name, value in sorted(numbers)],
    }
    return View(fields, commands, run)


def _apart(arguments: Mapping[str, Any]) -> Iterator[list[str]]:
    """Command lines that are handed over word by word: `{"command": ["git", "push"]}`, or a program and its `args`."""
    inside = (each for value in arguments.values() if isinstance(value, list) for each in value[:_MOST_NESTED])
    for given in (arguments, *(each for each in inside if isinstance(each, Mapping))):
        args = next((each for each in map(given.get, _ARGS) if isinstance(each, list)), [])
        for name, value in given.items():
            if not names_command(str(name)):
                continue
            if isinstance(value, list) and all(isinstance(each, str) for each in value):
                yield value
            elif isinstance(value, str) and args and all(isinstance(each, str) for each in args):
                yield [value, *args]


def patched_files(text: str) -> list[str]:
    """The files that a patch changes, in the forms of agents and of `diff`."""
    return [match.strip() for match in _PATCHED.findall(text)]


def target_names(arguments: Mapping[str, Any], declared: Mapping[str, Any]) -> frozenset[str]:
    """The parameters whose name, format or description says whom or where."""
    return frozenset(name for name in {*arguments, *declared} if _is_target(name, declared.get(name)))


def names_command(name: str) -> bool:
    """Does a parameter's name say that it holds a command line?"""
    return bool(_words_of(name) & _COMMAND)


def _is_target(name: str, schema: Any) -> bool:
    words = _words_of(name)
    if words & _CONTENT:
        return False
    if words & _TARGET:
        return True
    if not isinstance(schema, Mapping):
        return False
    described = str(schema.get("description", ""))[:300].lower()
    return schema.get("format") in {"email", "uri", "hostname", "idn-email"} or _SAYS_WHOM.search(described) is not None


def _words_of(name: str) -> frozenset[str]:
    return _words(name[:200])


@functools.lru_cache(maxsize=2000)  # each value of a list has its parameter's name
def _words(name: str) -> frozenset[str]:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return frozenset(_WORDS.findall(apart.lower()))


def scalars(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Every scalar with the parameter that it belongs to and the name nearest to it."""
    waiting: list[tuple[str, str, Any, int]] = [(str(name), str(name), value, 0) for name, value in arguments.items()]
    while waiting:
        place, name, value, depth = waiting.pop()
        if isinstance(value, Mapping) and depth < _MOST_NESTED:
            waiting.extend((place, str(key), each, depth + 1) for key, each in value.items())
        elif isinstance(value, list | tuple) and depth < _MOST_NESTED:
            waiting.extend((place, name, each, depth + 1) for each in value)
        elif not isinstance(value, Mapping | list | tuple):
            yield place, name, value


def plain(text: str) -> str:
    """Text as it is compared: NFKC, case-folded, without what cannot be seen, white space at the ends gone."""
    if text.isascii():
        return text.lower().strip()
    folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    return unicodedata.normalize("NFKC", folded).strip()


def _as_float(number: float) -> float:
    """A number as a float; one beyond them all is infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def visible(text: str) -> str:
    """Text in NFKC without what cannot be seen, its letters as they are: programs tell `-C` from `-c`."""
    return text if text.isascii() else unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))


def lowered(command: Argv) -> Argv:
    """A command with its words as they are compared."""
    return Argv(tuple(plain(word) for word in command.words), command.hides, plain(command.place))


def number_in(text: str) -> float | None:
    """The number that a text is, with an optional sign of a currency: "$6,000" and "6 000 EUR" are 6000."""
    if len(text) > 40 or not any(character.isdigit() for character in text):
        return None
    bare = re.sub(r"[$€£¥₹]|\b(?:usd|eur|gbp|cny|rmb|euros?|dollars?|pounds?)\b|元", "", text).strip()
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d{1,2}|\d{1,15},\d{1,2}", bare):
        bare = bare.replace(".", "").replace(",", ".")  # 6.000,00
    if not _NUMBER.fullmatch(bare):
        return None
    return float(re.sub(r"[,' \u00a0\u202f]", "", bare))


def _take_places(text: str, found: dict[str, set[str]]) -> None:
    """The addresses, hosts and paths that a text holds."""
    if "@" in text:
        found["emails"].update(address(found_) for found_ in (m.group() for m in _ADDRESS.finditer(text)))
    if "." in text:
        found["hosts"].update(host for match in _HOST.finditer(text) if (host := idna(match[1])))
    if "://" in text:
        found["hosts"].update(host for match in _URL.finditer(text) if (host := host_of(match.group())))
    if "/" in text or "\\" in text:
        found["paths"].update(match.group() for match in _PATH.finditer(text) if len(match.group()) > 1)


def _target_forms(text: str) -> Iterator[str]:
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
        if (host := host_of(each)) and _WITH_HOST.match(each):
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
    text = path.replace("\\", "/")
    if not text.startswith(("/", "~")) and not re.match(r"[a-z]:", text) and directory is not None:
        text = f"{plain(str(directory))}/{text}"
    kept: list[str] = []
    for part in text.split("/"):
        if part == ".." and kept and kept[-1] not in {"", "..", "~"}:
            kept.pop()
        elif part not in {".", ""} or not kept:
            kept.append(part)
    return "/".join(kept) or "/"
