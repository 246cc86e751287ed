"""Make the tests that find in calls what a demand names: addresses, files, amounts, commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import Any

from msgspec import Struct

from toolmem.models.tools import ToolSchema
from toolmem.rules.reader import words
from toolmem.rules.reader.tools import (
    Action,
    action_parameter,
    amount_parameter,
    does_by_name,
    is_shell,
    value_parameter,
    with_argument,
)
from toolmem.text.forms import number_in
from toolmem.view.options import bundle_of
from toolmem.view.parameters import is_target

_END = r"(\s|$)"  # of a word of a command
# `git push -f` and `git push origin +main` are compared as `git push --force` as well.
_FORCED = {"command": rf"^git push{_END}", "word": "--force(-with-lease|-if-includes)?(=.*)?"}
_ENV_FILES = r"(\.(local|dev\w*|prod\w*|stag\w*|test\w*|qa|ci|live|secrets?|bak|old))*"
OF_COMMANDS = ("program", "command", "quoted", "option", "force")  # kinds of terms in commands
Test = dict[str, Any]


class CallTests(Struct, frozen=True):
    """The condition on one tool, in the JSON form of `toolmem.view.conditions`."""

    when: list[Test]
    unless: list[Test] = []


class Term(Struct, frozen=True):
    """A part of a demand to look for in calls: an address, a path, a command, an amount."""

    kind: str  # a group of `conditions._TERMS`, or "name", "program", "branch", "value"
    text: str


def tests_of(
    terms: Sequence[Term], tool: ToolSchema, verb: str, text: str, action: Action | None
) -> list[Test] | None:
    """Make tests that find the terms in calls of a tool; return None if a term has no test.

    A call is meant if any of the tests holds. `verb`: what the demand forbids. `text`: the whole
    sentence in lower case. `action`: for a tool of many actions, the one that is forbidden.
    """
    tests: list[Test] = []
    limits: list[Test] = []
    for term in terms:
        test = _test(term, tool, verb, text, action)
        if test is None:
            return None
        if test.keys() == {"arg"}:
            limits.append(test)
        else:
            tests.append(test)
    if not limits:
        return tests
    pairs = product(tests or [{}], limits)  # "no more than 500 to Sarah" means both
    return [with_argument(test, limit["arg"]) for test, limit in pairs]


def _test(term: Term, tool: ToolSchema, verb: str, text: str, action: Action | None) -> Test | None:
    """Make the test that finds a term in a tool's calls; return None if there is none."""
    where = "text" if words.WRITES_INTO.search(text) else "target"
    written = term.text.lower()
    quoted = re.escape(written.removeprefix("www."))
    whole = rf"(^|[^\w]){quoted}($|[^\w])"
    match term.kind:
        case "email":
            return {where: rf"(^|[^\w.+-]){quoted}($|[^\w.-])"}
        case "host":
            before = r"^(([\w+.-]+:)*//)?([^/?#]*[@.])?"
            return {where: rf"{before if where == 'target' else '(^|[@./])'}{quoted}($|[/:?#])"}
        case "path":
            return _path_test(_path_pattern(written, text), tool, verb, action)
        case "channel":
            return {where: rf"(^|[^\w-]){re.escape(written.lstrip('#'))}($|[^\w-])"}
        case "name":
            return {where: quoted if words.CJK.search(written) else whole}
        case "amount":
            name = amount_parameter(tool)
            over = number_in(written.replace("￥", "¥"))
            return {"arg": {"name": name, "over": over}} if name and over is not None else None
        case "code":
            return {"text": whole}
        case "literal":
            declared = tool.properties
            is_sent = any(is_target(name, declared) for name in declared) and " about " not in text
            is_meant = action or does_by_name(tool, verb)
            return {"target" if is_sent else "text": whole} if is_meant else None
        case "value":
            wide = "prod(uction)?" if written in ("prod", "production") else quoted
            return {"arg": {"name": value_parameter(tool, written), "matches": f"^{wide}$"}}
        case "branch":
            if not is_shell(tool):
                return {"text": rf"^{quoted}$"}
            return {"command": r"^git push\b", "word": rf"\+?(.*:)?(refs/heads/)?{quoted}"}
    return None


def _path_pattern(path: str, text: str) -> str:
    """Make the pattern of a path. ".env files" means those of all environments, but no examples."""
    several = _ENV_FILES if path == ".env" and re.search(r"\.env ?(?:files|文件)", text) else ""
    before = "^" if path[0] in "/~" else "(^|/)"
    return f"{before}{re.escape(path.rstrip('/'))}{several}(/|$)"


def _path_test(at: str, tool: ToolSchema, verb: str, action: Action | None) -> Test | None:
    """Make the test for what a verb does with the path `at`; None if no test can tell."""
    parameter = action_parameter(tool)
    if verb in words.TOUCH or not (is_shell(tool) or parameter):
        return {"path": at}
    if verb in words.ACTIONS["write"]:
        return {"writes": at}
    if parameter and verb in words.ACTIONS["read"]:
        return {"path": at, "arg": {"name": parameter, "matches": words.READS}}
    if parameter:
        return {"path": at} if action else None
    if verb in words.ACTIONS["read"]:
        return {"path": at}
    for does, command in words.PATH_COMMANDS.items():
        if verb in words.ACTIONS[does]:
            return {"command": command, "path": at}
    return None


def commands_forbidden(
    programs: Sequence[Term], others: Sequence[Test], text: str
) -> CallTests | None:
    """Make the condition that forbids programs, with options; return None when in doubt.

    `programs`: terms for programs and options. `others`: if any, one of these tests must hold, too.
    """
    if any(each.kind == "force" for each in programs):
        when = [_with_other(_FORCED, other) for other in others or [{}]]
        return CallTests(when) if len(programs) == 1 else None
    options = [each.text for each in programs if each.kind == "option"]
    starts = [each.text for each in programs if each.kind in ("program", "command")]
    lines = [each.text.split() for each in programs if each.kind == "quoted"]
    if options and (lines or len(starts) > 1) and not _come_first(options, starts, text):
        return None if others or lines else _each_with_its_own(options, starts, text)
    if len(options) > 1 and not _are_alternatives(options, text):
        bundle = bundle_of(starts[0], options) if len(starts) == 1 else ""
        if not bundle:
            return None
        options = [bundle]
    if options and not starts:
        tests = [_option_test(each) for each in options]
    else:
        ends = [[each] for each in options] or [[]]
        lines += [[*start.split(), *end] for start, end in product(starts, ends)]
        tests = [_line_test(line) for line in lines]
    when = [_with_other(test, other) for test, other in product(tests, others or [{}])]
    return CallTests(when, [{"command": words.PRINTING}] if options and not starts else [])


def _with_other(test: Test, other: Test) -> Test:
    """Make a test that requires both. If both test a word, the word of `test` joins the command."""
    if "word" not in test or "word" not in other:
        return {**other, **test}
    command = test["command"].removesuffix(_END)
    return {**other, "command": rf"{command}(\s.*)?\s{test['word']}{_END}"}


def _line_test(line: Sequence[str]) -> Test:
    """Make the test for a command line: its first words, options in any order, operands."""
    at = next((i for i, word in enumerate(line) if word.startswith("-")), len(line))
    options = [word for word in line[at:] if word.startswith("-")]
    operands = [word for word in (*line[:at][2:], *line[at:]) if word not in options]
    bundle = bundle_of(" ".join(line[:at]), options) if len(options) > 1 else "".join(options)
    if options and not bundle:
        operands = list(line[at:])
    pattern = "^" + re.escape(" ".join(line[:at][:2]))
    for word in operands:
        pattern += rf"(\s.*)?\s{re.escape(word)}" + ("/?" if word == "." else "")
    test: Test = {"command": pattern + _END}
    if bundle and (valued := words.VALUED_OPTION.fullmatch(bundle)):
        name = re.escape(valued[1])
        value = re.escape(valued[2])
        between = "[= ]" if bundle.startswith("--") else " ?"
        return {"command": rf"{pattern}(\s.*)?\s{name}{between}{value}{_END}"}
    return test | _option_test(bundle) if bundle else test


def _come_first(options: Sequence[str], starts: Sequence[str], text: str) -> bool:
    """Whether the options are said before the programs: "--force with npm install or yarn add"."""
    last = max(text.find(each.lower()) for each in options)
    return all(text.find(each.lower()) > last for each in starts)


def _each_with_its_own(
    options: Sequence[str], starts: Sequence[str], text: str
) -> CallTests | None:
    """Make a test for each program with the option that follows it: "rm -rf or sudo".

    Returns None if the last word is an option, which may be for all: "npm install or pip --force".
    """
    places = {text.find(each.lower()): each for each in (*starts, *options)}
    said = [places[at] for at in sorted(places)]
    if len(said) < len(starts) + len(options) or said[-1] in options:
        return None
    when: list[Test] = []
    for before, each in zip(["", *said], said, strict=False):
        if each in starts:
            when.append({"command": rf"^{re.escape(each)}{_END}"})
        elif before in options:
            return None
        else:
            when[-1] |= _option_test(each)
    return CallTests(when)


def _are_alternatives(options: Sequence[str], text: str) -> bool:
    """Whether each option is forbidden by itself: "--force or -u"."""
    said = (re.escape(each.lower()) for each in options)
    between = r"\s*(?:(?:,|，|、|\bn?or\b|或者?)\s*)+(?:with\s+)?"
    return re.search(rf"(?<!\S){between.join(said)}(?![\w-])", text) is not None


def _option_test(option: str) -> Test:
    """Make the test for one option. A short option counts only in the letter case that was said."""
    return {"word": f"{option.lower()}(=.*)?" if option.startswith("--") else option}
