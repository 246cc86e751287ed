"""The calls that a demand forbids, in the language of conditions.

A condition is made only where every word of the demand is understood; a word that is not is told
in `unread`, and the demand is a reminder then. So a condition never stops more than was said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any

from msgspec import Struct, field

from toolmem.errors import RequestError
from toolmem.models.tools import ToolSchema
from toolmem.rules.reader import words
from toolmem.rules.reader.tools import is_shell, name_words
from toolmem.text.forms import number_in
from toolmem.view.conditions import Match
from toolmem.view.conditions import read_conditions as checked_conditions
from toolmem.view.parameters import is_target, names_file
from toolmem.view.view import CallView

Test = dict[str, Any]


class Conditions(Struct, frozen=True):
    """Alternatives of tests: `when` stops a call of one tool, `unless` lets it through."""

    when: list[Test]
    unless: list[Test] = []


class Literal(Struct, frozen=True):
    """A part of a demand that stands in a call as it is written."""

    kind: str  # a group of _LITERALS, or "name", "program", "branch"
    text: str


class _Reading(Struct):
    """What is understood of a demand."""

    verb: str = ""
    literals: list[Literal] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


_LITERALS = re.compile(
    r"(?:more than|over|above|exceeding|超过|大于)\s*(?P<amount>[$€£¥￥]?\d[\d,]*(?:\.\d+)?k?)"
    r"(?:\s*(?:dollars?|usd|euros?|eur|元|块|美元))?"
    r"(?: (?:in|per|at) (?:(?:one|a single|any|a) )?(?:transfer|payment|transaction|go)\b)?"
    r"|`(?P<quoted>[^`]{1,200})`|(?P<email>[\w.%+-]{1,64}@(?:[\w-]+\.)+[a-z]{2,20})"
    rf"|(?P<command>(?<![\w./-])(?:{'|'.join(sorted(words.PROGRAMS))}) "
    rf"(?:{'|'.join(sorted(words.SUBCOMMANDS))})\b)"
    r"|(?P<option>(?<!\S)--?[a-z][\w-]*)|(?P<path>(?<![\w/@.])(?:~|\.{1,2})?/[\w.~/-]*[\w~/-]"
    r"|(?<![\w/@.])[\w-]+/[\w./-]*[\w/-]|(?<![\w@.])\.[a-z]\w+|\b[\w-]+\.(?:json|ya?ml|toml|md|py"
    r"|txt|lock|env|cfg|conf|sh|sql)\b)"
    r"|(?P<host>(?:https?://)?(?<![\w@.-])(?:[\w-]+\.)+[a-z]{2,20}\b)|(?P<channel>#[\w-]+)"
    r"|(?P<code>\b(?=\w*\d)[\w-]{2,40}\b)",
    re.I | re.A,
)
# What a text holds, not where it goes: "never mention x@y.com in the channel".
_CONTENT = re.compile(
    r"\b(?:mention|include|put|paste|disclose|reveal|quote"
    r"|write(?! (?:\w+ )?(?:e-?mails?|mails?|messages?|to)\b))\b.*\b(?:in|into|to)\b"
    r"|写进|写上|提到|放进"
)
_REASON = re.compile(
    r"[,;]\s(?:he|she|it|they|that|this|because|since|i|we|there)\b.*$|[，,](?:因为|他|她|它|这"
    r"|那).*$",
    re.I,
)
# Some objects of a kind: "don't send the email", "never email new users".
_SOME = re.compile(
    r"\b(?:this|that|these|those|it|them|their|there|your|users?|codes?|links?|new|b?cc"
    r"|newsletters?|announcements?|invoices?|card)\b|[这那它新]|用户|抄送"
    r"|\bthe (?!shell|terminal|console|command|browser|web|internet)"
)
_WORD = re.compile(r"[A-Za-z][\w'-]*|\d+")
_WHOLE_SHELL = re.compile(
    r"\b(?:us(?:e|ing)|run(?:ning)?)\b.*\b(?:shell|terminal|command)|终端|命令"
)
_ZH_NAME = re.compile(r"[A-Z][a-z]+|[\u3400-\u9fff]{2,4}")
_CONTACT = frozenset({"email", "mail", "contact", "message", "dm", "text", "notify"})
_BEFORE_NAME = frozenset({"to", "with", "from", "at", "and", "or", "nor", "email"})
_AMOUNTS = frozenset({"amount", "sum", "total", "price", "value"})
_TOUCH = frozenset({"touch", "access", "use", "碰", "动"})
_USE = frozenset({"use", "run", "用", "使用"})
_ANY_USE = frozenset({"use", "run", ""})
# Commands that only show an option or a text.
_PRINTING = r"^(?:echo|printf|grep|rg|cat|less|man|git (?:log|grep|help))\b"
_PATH_COMMANDS = {
    "delete": r"^(rm|rmdir|unlink|shred|truncate|git rm|find\b.*-delete)\b",
    "read": r"^(cat|less|more|head|tail|grep|rg|bat|xxd|strings|sed|awk)\b",
}
_EXAMPLES = {"delete": "rm", "read": "cat", "write": "tee"}  # where a file is named, no program
_ELSEWHERE = "somebody@elsewhere.example"  # an address, and a host in it


def read_conditions(
    limited: str, text: str, only: bool, tools: Sequence[ToolSchema]
) -> tuple[dict[str, Conditions], list[str]]:
    """The conditions by tool, and the words of which none could be made.

    `limited` is the sentence without the form that forbids; `text` is the whole in lower case.
    """
    literals = [
        Literal(match.lastgroup or "", match[match.lastgroup or 0])
        for match in _LITERALS.finditer(limited)
    ]
    rest = _REASON.sub("", _LITERALS.sub(lambda match: " " * len(match[0]), limited))
    for tool in tools:
        rest = re.sub(rf"(?<!\w){re.escape(tool.name)}(?!\w)", " ", rest, flags=re.I)
    reading = _read_chinese(rest, text) if words.CJK.search(text) else _read_english(rest, literals)
    if reading.unread:
        return {}, reading.unread
    reading.literals[:0] = literals
    found: dict[str, Conditions] = {}
    for tool in tools:
        made = _conditions(tool, reading, only, text)
        if made and _stops_an_example(made, tool, reading, only):
            found[tool.name] = made
    return found, []


def _read_english(rest: str, literals: Sequence[Literal]) -> _Reading:
    """Sort the words of a demand into its verb, literals and what is not understood."""
    reading = _Reading()
    pushes = any(literal.text.endswith("push") for literal in literals)
    before = ""  # the word before in lower case; "name" behind a name, "email" behind its verb
    said = _WORD.findall(rest)
    for at, word in enumerate(said):
        small, forms = word.lower(), frozenset(words.stems(word.lower()))
        known = small in words.FILLERS or bool(forms & words.NOUNS)
        verbs = forms & words.VERBS
        named = word[0].isupper() and not known and not verbs
        kind = ""
        if named and (before == "name" or before in _BEFORE_NAME):
            kind = "name"
        elif small in words.PROGRAMS and (reading.verb in _ANY_USE or before in {"with", "or"}):
            kind = "program"
        elif not reading.verb and verbs:
            reading.verb = next(form for form in words.stems(small) if form in verbs)
        elif before == "to" and (pushes or "push" in reading.verb) and not known:
            kind = "branch"
        elif before in {"channel", "table"} and not known:
            kind = "channel"
        elif before == "email" and at == len(said) - 1 and not known:
            kind = "name"
        elif not known and not (verbs and before in {"and", "or"}):
            reading.unread.append(word)
        if kind == "name" == before:
            word = f"{reading.literals.pop().text} {word}"
        if kind:
            reading.literals.append(Literal(kind, word))
        before = "email" if reading.verb in forms & _CONTACT else kind or small
    return reading


def _read_chinese(rest: str, text: str) -> _Reading:
    """The same in Chinese: known words are taken out, what is left is a name or not understood."""
    reading = _Reading()
    left = re.sub(r"[\s，,。！!、：:；;]", " ", rest)
    known = words.ZH_FILLERS | {word for word in words.NOUNS | words.VERBS if not word.isascii()}
    for word in sorted(known, key=len, reverse=True):
        if word in left:
            reading.verb = reading.verb or (word if word in words.VERBS else "")
            left = left.replace(word, " ")
    for word in left.split():
        called = rf"(?:给|向|联系|通知|跟)\s*(?:\S+ 的 )?{re.escape(word)}|的 {re.escape(word)}"
        if _ZH_NAME.fullmatch(word) and re.search(called, text, re.I):
            reading.literals.append(Literal("name", word))
        elif word.lower() in words.PROGRAMS:
            reading.literals.append(Literal("program", word.lower()))
        else:
            reading.unread.append(word)
    return reading


def _conditions(tool: ToolSchema, reading: _Reading, only: bool, text: str) -> Conditions | None:
    """The condition on the calls of one tool; None where none can be made."""
    literals = reading.literals
    if not literals:
        whole = not only and _means_every_call(tool, reading.verb, text)
        return Conditions([{"always": True}]) if whole else None
    name = tool.name.lower()
    if name in text and all(literal.text.lower() in name for literal in literals):
        return Conditions([{"always": True}])
    programs = [
        each for each in literals if each.kind in ("program", "command", "quoted", "option")
    ]
    others = [each for each in literals if each not in programs]
    tests = [_test(each, tool, reading.verb, text) for each in others]
    if any(test is None for test in tests) or (programs and not is_shell(tool)):
        return None
    found = [test for test in tests if test]
    if only:  # every other target of this kind is forbidden
        mails = name_words(tool.name) & {"mail", "email", "gmail"}
        kinds = {"email": "@", "host": "@" if mails else r"\w\.\w"}
        sort = kinds.get(literals[0].kind)
        return Conditions([{"target": sort}], found) if sort and not programs else None
    return _with_programs(programs, found) if programs else Conditions(found)


def _means_every_call(tool: ToolSchema, verb: str, text: str) -> bool:
    """Is the tool as a whole forbidden: "never use the browser", "never delete files"?"""
    names, said = name_words(tool.name), words.words_in(text)
    if any(match[0] not in names for match in _SOME.finditer(text)):
        return False
    if (name := tool.name.lower()) in text:
        return not words.words_in(text.replace(name, " ")) & words.NOUNS
    if is_shell(tool):
        return bool(_WHOLE_SHELL.search(text))
    spoken = words.mentioned(text, said, words.SPOKEN)
    meant = any(names & words.IN_NAMES[name] for name in spoken)
    does = any(verb in listed and names & listed for listed in words.ACTIONS.values())
    return meant and (does or verb in _USE)


def _with_programs(programs: Sequence[Literal], others: Sequence[Test]) -> Conditions | None:
    """Each program that is named, with one of the options and of the other literals."""
    options = [each.text for each in programs if each.kind == "option"]
    starts = [each for each in programs if each.kind != "option"]
    if len(options) > 1 or (options and any("word" in test for test in others)):
        return None
    commands: list[Test] = [{"command": rf"^{re.escape(each.text)}(\s|$)"} for each in starts]
    option: Test = {}
    if options:  # a short one counts in the letter case that was said: -d is not -D
        long = options[0].startswith("--")
        option = {"word": f"{options[0].lower()}(=.*)?" if long else options[0]}
    when = [
        {**command, **option, **other}
        for command, other in product(commands or [{}], others or [{}])
    ]
    return Conditions(when, [{"command": _PRINTING}] if options and not commands else [])


def _test(literal: Literal, tool: ToolSchema, verb: str, text: str) -> Test | None:
    """The test by which a call of the tool shows a literal; None where it cannot."""
    where = "text" if _CONTENT.search(text) else "target"
    written = literal.text.lower()
    quoted = re.escape(written.removeprefix("www."))
    match literal.kind:
        case "email":
            return {where: rf"(^|[^\w.+-]){quoted}($|[^\w.-])"}
        case "host":
            return {where: rf"(^|[@./]){quoted}($|[/:?#])"}
        case "path":
            return _path_test(written, tool, verb)
        case "channel":
            return {where: rf"(^|[^\w-]){re.escape(written.lstrip('#'))}($|[^\w-])"}
        case "name":
            bounded = not words.CJK.search(written)
            return {where: rf"(^|[^\w]){quoted}($|[^\w])" if bounded else quoted}
        case "amount":
            name, over = _amount_parameter(tool), number_in(written.replace("￥", "¥"))
            return {"arg": {"name": name, "over": over}} if name and over is not None else None
        case "code":
            return {"text": rf"(^|[^\w]){quoted}($|[^\w])"}
        case "branch":
            if "force" in text or "强" in text:
                return None  # a push without force is not meant
            if not is_shell(tool):
                return {"text": rf"^{quoted}$"}
            return {"command": r"^git push\b", "word": rf"\+?(.*:)?(refs/heads/)?{quoted}"}
    return None


def _path_test(path: str, tool: ToolSchema, verb: str) -> Test | None:
    at = ("^" if path[0] in "/~" else "(^|/)") + re.escape(path.rstrip("/")) + "(/|$)"
    if not is_shell(tool) or verb in _TOUCH:
        return {"path": at}
    if verb in words.ACTIONS["write"]:
        return {"writes": at}
    for action, command in _PATH_COMMANDS.items():
        if verb in words.ACTIONS[action]:
            return {"command": command, "path": at}
    return None


def _amount_parameter(tool: ToolSchema) -> str:
    """The parameter of a tool that says how much; "" where none, or several may be meant."""
    declared: Mapping[str, Any] = tool.parameters.get("properties") or {}
    numbers = [
        name
        for name, schema in declared.items()
        if isinstance(schema, Mapping) and schema.get("type") in ("number", "integer")
    ]
    named = [name for name in declared if name_words(name) & _AMOUNTS]
    found = named or numbers
    return found[0] if len(found) == 1 else ""


def _stops_an_example(made: Conditions, tool: ToolSchema, reading: _Reading, only: bool) -> bool:
    """Whether a call of the tool that does what is forbidden is stopped: its arguments show it."""
    if any("always" in test for test in made.when):
        return True
    arguments = _example(tool, reading, only)
    view = CallView(tool.name, arguments, tool.parameters)
    try:
        conditions = checked_conditions(made.when, made.unless)
    except RequestError:  # a pattern that is too long
        return False
    return conditions.check(view, datetime.now(UTC)) is Match.YES


def _example(tool: ToolSchema, reading: _Reading, only: bool) -> Mapping[str, Any]:
    """Arguments in which the first literal of a demand stands where calls of the tool have it."""
    given = reading.literals
    declared: Mapping[str, Any] = tool.parameters.get("properties") or {}
    if is_shell(tool):
        starts = [each.text for each in given if each.kind in ("program", "command", "quoted")]
        others = [each.text for each in given if each.text not in starts][:2]
        by_verb = [
            run for action, run in _EXAMPLES.items() if reading.verb in words.ACTIONS[action]
        ]
        pushes = any(each.kind == "branch" for each in given)
        start = starts[:1] or (["git push origin"] if pushes else by_verb[:1] or ["run"])
        name = next((each for each in declared if "command" in each or "cmd" in each), "command")
        return {name: " ".join([*start, *others])}
    first = given[0]
    text = first.text
    if first.kind == "amount":
        return {_amount_parameter(tool): 10 * (number_in(text) or 1)}
    if only:
        text = _ELSEWHERE
    fits = names_file if first.kind == "path" else lambda name: is_target(name, declared)
    fitting = [name for name in declared if fits(name)] if declared else ["to", "path"]
    return dict.fromkeys(fitting or declared, text)
