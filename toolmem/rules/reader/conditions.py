"""Find the calls that a demand forbids, in the language of conditions.

A condition is made only if every word of the demand is understood; otherwise `unread` lists the
other words, and the demand only reminds. So a condition never stops more than was said.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from toolmem.errors import RequestError
from toolmem.models.tools import ToolSchema
from toolmem.rules.reader import words
from toolmem.rules.reader.call_tests import (
    OF_COMMANDS,
    CallTests,
    Term,
    Test,
    commands_forbidden,
    tests_of,
)
from toolmem.rules.reader.tools import (
    Action,
    action_parameter,
    amount_parameter,
    does_by_name,
    find_action,
    is_named,
    is_program,
    is_shell,
    name_words,
    value_parameter,
)
from toolmem.text.forms import number_in
from toolmem.view.conditions import Match, read_conditions
from toolmem.view.parameters import is_target, names_file, words_of
from toolmem.view.shell_programs import RUNNERS
from toolmem.view.view import CallView


class _Reading(Struct):
    """What was understood of a demand, and the words that were not."""

    verb: str = ""
    terms: list[Term] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


_SUBWORD = rf"(?!(?:with|or|and|nor|on|in|{'|'.join(words.NO_SUBCOMMAND)})\b)[a-z][\w-]*"
_TERMS = re.compile(
    r"(?:more than|over|above|exceeding|超过|大于)\s*(?P<amount>[$€£¥￥]?\d[\d,]*(?:\.\d+)?k?)"
    r"(?:\s*(?:dollars?|usd|euros?|eur|元|块|美元))?"
    r"(?: (?:in|per|at) (?:(?:one|a single|any|a) )?(?:transfer|payment|transaction|go)\b)?"
    r"|`(?P<quoted>[^`]{1,200})`|(?P<force>\bforce[- ]?push(?:ing)?\b|强制?推送?)"
    r"|(?P<email>[\w.%+-]{1,64}@(?:[\w-]+\.)+[a-z]{2,20})"
    rf"|(?P<command>(?<![\w./-])(?:{'|'.join(sorted(words.PROGRAMS))}) "
    rf"(?:{_SUBWORD}(?: {_SUBWORD})?(?= --?[a-z])"
    rf"|(?:{'|'.join(sorted(words.SUBCOMMANDS))})\b(?: \.(?!\S))?))"
    r"|(?P<option>(?<!\S)--?[a-z][\w-]*(?:=[\w./:-]*\w)?)"
    r"|(?P<path>(?<![\w/@.])(?:~|\.{1,2})?/[\w.~/-]*[\w~/-]"
    r"|(?<![\w/@.])[\w-]+/[\w./-]*[\w/-]|(?<![\w@.])\.[a-z]\w+|\b[\w-]+\.(?:json|ya?ml|toml|md|py"
    r"|txt|lock|env|cfg|conf|sh|sql)\b)"
    r"|(?P<host>(?:https?://)?(?<![\w@.-])(?:[\w-]+\.)+[a-z]{2,20}\b"
    r"|(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\d))|(?P<channel>#[\w-]+)"
    r"|(?P<code>\b(?=[\w-]*\d)[\w-]{2,40}\b)"
    r"|[\"“「](?P<literal>[^\"“”「」\n]{2,80})[\"”」]",
    re.I | re.A,
)
_WORD = re.compile(r"[A-Za-z][\w'-]*|\d+")


def find_conditions(
    limited: str, text: str, only: bool, tools: Sequence[ToolSchema]
) -> tuple[dict[str, CallTests], list[str]]:
    """Return (conditions by tool name, []) or, if none was made, ({}, words not understood).

    `limited`: the sentence without its "never"; `text`: the whole sentence in lower case; `only`:
    whether the sentence forbids everything but what it names.
    """
    limited = words.ALTERNATIVE.sub("", limited)
    terms = [Term(m.lastgroup or "", m[m.lastgroup or 0]) for m in _TERMS.finditer(limited)]
    rest = words.REASON.sub("", _TERMS.sub(lambda match: " " * len(match[0]), limited))
    for tool in tools:
        if is_named(tool.name, limited) or tool.name.lower() not in words.VERBS:
            rest = re.sub(rf"(?<!\w){re.escape(tool.name)}(?!\w)", " ", rest, flags=re.I)
    if not tools:
        return {}, _read(rest, terms, text).unread
    found: dict[str, CallTests] = {}
    unread: dict[str, None] = {}
    for tool in tools:
        made, left = _condition_of(tool, rest, terms, only, text)
        unread.update(dict.fromkeys(left))
        if made:
            found[tool.name] = made
    return found, [] if found else list(unread)


def _condition_of(
    tool: ToolSchema, rest: str, terms: Sequence[Term], only: bool, text: str
) -> tuple[CallTests | None, list[str]]:
    """Return the condition on one tool, and the words that were not understood."""
    action = None if only or not action_parameter(tool) else find_action(tool, rest.lower())
    reading = _reading_for(tool, rest, terms, text, action)
    is_alone = not (terms or reading.terms)
    literal = _named_thing(rest, reading) if reading.unread and is_alone else None
    if reading.unread and literal is None:
        if terms or only or not _name_says_all(tool, reading):
            return None, reading.unread
        return CallTests([{"always": True}]), []
    _add_terms(reading, terms if literal is None else [*terms, literal])
    made = _conditions(tool, reading, only, text, action)
    if made is None or not _stops_an_example(made, tool, reading, only, action):
        is_vague = action_parameter(tool) and not (action or reading.terms)
        return None, [f"which action of {tool.name} is meant"] if is_vague else []
    return made, []


def _reading_for(
    tool: ToolSchema, rest: str, terms: Sequence[Term], text: str, action: Action | None
) -> _Reading:
    """Read the words of a demand, including words that have a meaning only for this tool."""
    reading = _read(rest, terms, text, action.said if action else frozenset())
    values = [Term("value", word) for word in reading.unread if value_parameter(tool, word.lower())]
    if len(values) == len(reading.unread) and (action or does_by_name(tool, reading.verb)):
        reading.terms += values
        reading.unread = []
    if terms and reading.unread:
        forms = words.SAME_ACTION.keys() & set(words.stems(reading.unread[0]))
        if forms & name_words(tool.name):  # the verb, as in `restart_server`
            reading.unread = reading.unread[1:]
    return reading


def _add_terms(reading: _Reading, terms: Sequence[Term]) -> None:
    """Put terms before those of a reading, and complete commands by the verb."""
    found = [*terms, *reading.terms]
    reading.terms = [_with_its_action(each, reading.verb) for each in found]
    kinds = {each.kind for each in reading.terms if each.kind in OF_COMMANDS}
    if kinds == {"option"} and reading.verb in words.GIT_VERBS:
        reading.terms.insert(0, Term("command", f"git {reading.verb}"))


def _named_thing(rest: str, reading: _Reading) -> Term | None:
    """Return the name or identifier that holds every word not understood, if there is one."""
    for found in words.NAMED.finditer(rest):
        before = found["before"] or ""
        follows_verb = reading.verb in words.stems(before)
        is_object = not before or before in words.BEFORE_NAMED or follows_verb
        if is_object and set(_WORD.findall(found["name"])).issuperset(reading.unread):
            return Term("literal", found["name"])
    return None


def _name_says_all(tool: ToolSchema, reading: _Reading) -> bool:
    """Whether a tool's name holds all words of a demand: "change my password"."""
    names = name_words(tool.name)
    said = [frozenset(words.stems(word.lower())) for word in reading.unread]
    if not all(names & forms for forms in said):
        return False
    return does_by_name(tool, reading.verb) or words_of(tool.name) <= frozenset().union(*said)


def _read(
    rest: str, terms: Sequence[Term], text: str, understood: Collection[str] = ()
) -> _Reading:
    """Sort the words of a demand into its verb, its terms, and words not understood.

    `understood`: the words that stand for an action of the tool.
    """
    if words.CJK.search(rest):
        return _read_chinese(rest, text, understood)
    return _EnglishReader(rest, terms, understood).read()


class _EnglishReader:
    """Sorts English words one after the other: what a word is depends on the words before it."""

    def __init__(self, rest: str, terms: Sequence[Term], understood: Collection[str]) -> None:
        self._reading = _Reading()
        self._rest = rest
        self._understood = understood
        self._pushes = any(term.kind == "force" or term.text.endswith("push") for term in terms)
        # The last word: "email" for a verb of contact, else the kind of its term, else itself.
        self._before = ""

    def read(self) -> _Reading:
        found = _WORD.findall(self._rest)
        for number, word in enumerate(found, 1):
            self._add(word, is_last=number == len(found))
        return self._reading

    def _add(self, word: str, *, is_last: bool) -> None:
        reading = self._reading
        lowered = word.lower()
        forms = list(words.stems(lowered))
        verbs = [form for form in forms if form in words.VERBS]
        is_known = lowered in words.FILLERS or lowered in self._understood
        is_known = is_known or not words.NOUNS.isdisjoint(forms)
        is_verb = bool(verbs) and not reading.verb
        kind = self._kind_by_word(word, is_known=is_known, has_verb=bool(verbs))
        if not kind and not is_known and not is_verb:
            kind = self._kind_by_place(is_last=is_last)
        if kind:
            self._add_term(kind, word)
        elif is_verb:
            reading.verb = verbs[0]
        elif not is_known and not (verbs and self._before in {"and", "or"}):
            reading.unread.append(word)
        is_contact = reading.verb in forms and reading.verb in words.CONTACT
        self._before = "email" if is_contact else kind or lowered

    def _kind_by_word(self, word: str, *, is_known: bool, has_verb: bool) -> str:
        """Return which kind of term a word is by itself: a name, a program, a subcommand, or ""."""
        before = self._before
        follows_name = before == "name" or before in words.BEFORE_NAME
        if follows_name and word[0].isupper() and not is_known and not has_verb:
            return "name"
        is_used = self._reading.verb in ("use", "run", "") or before in {"with", "or"}
        if word.lower() in words.PROGRAMS and is_used:
            return "program"
        if before in words.RUN and is_program(word):
            return "program"
        if before != "program" or is_known:
            return ""
        program = self._reading.terms[-1]
        return "command" if _is_subcommand(program, word, self._rest) else ""

    def _kind_by_place(self, *, is_last: bool) -> str:
        """Return which kind of term an unknown word is, judged by the word before it."""
        if self._before == "to" and (self._pushes or "push" in self._reading.verb):
            return "branch"
        if self._before in {"channel", "table"}:
            return "channel"
        return "name" if self._before == "email" and is_last else ""

    def _add_term(self, kind: str, word: str) -> None:
        """Add a term. A subcommand, or a further word of a name, extends the term before it."""
        terms = self._reading.terms
        if kind == "command" or (kind == "name" and self._before == "name"):
            word = f"{terms.pop().text} {word}"
        terms.append(Term(kind, word))


def _is_subcommand(program: Term, word: str, rest: str) -> bool:
    """Whether a word after a program is its subcommand: "never run kubectl drain"."""
    if program.text not in words.PROGRAMS and program.text not in RUNNERS:
        return False  # "never use test data"
    ends = re.search(rf"\b{re.escape(word)}\W*$", rest) is not None
    is_plain = word.islower() and word not in words.NO_SUBCOMMAND and not word.endswith("s")
    return ends and is_plain


def _read_chinese(rest: str, text: str, understood: Collection[str]) -> _Reading:
    """Sort Chinese words. What remains beside known words is a name, or was not understood."""
    reading = _Reading()
    left = re.sub(r"[\s，,。！!、：:；;]", " ", rest)
    known = words.ZH_FILLERS | {word for word in words.NOUNS | words.VERBS if not word.isascii()}
    known = known.union(word for word in understood if not word.isascii())
    for word in sorted(known, key=len, reverse=True):
        if word in left:
            reading.verb = reading.verb or (word if word in words.VERBS else "")
            left = left.replace(word, " ")
    for word in left.split():
        called = rf"(?:给|向|联系|通知|跟)\s*(?:\S+ 的 )?{re.escape(word)}|的 {re.escape(word)}"
        if words.ZH_NAME.fullmatch(word) and re.search(called, text, re.I):
            reading.terms.append(Term("name", word))
        elif word.lower() in words.PROGRAMS:
            reading.terms.append(Term("program", word.lower()))
        elif re.search(rf"推送?\s*到\s*{re.escape(word)}", text, re.I):
            reading.terms.append(Term("branch", word))
        else:
            reading.unread.append(word)
    return reading


def _conditions(
    tool: ToolSchema, reading: _Reading, only: bool, text: str, action: Action | None
) -> CallTests | None:
    """Make the condition for one tool; return None if none can be made."""
    terms = reading.terms
    if any(_is_means(each, reading.verb) for each in terms):
        return None
    if not terms:
        return _without_terms(tool, reading.verb, only, text, action)
    name = tool.name.lower()
    if name in text and all(term.text.lower() in name for term in terms):
        return CallTests([{"always": True}])
    commands = [each for each in terms if each.kind in OF_COMMANDS]
    others = [each for each in terms if each.kind not in OF_COMMANDS]
    if commands and not is_shell(tool):
        return None
    tests = tests_of(others, tool, reading.verb, text, action)
    if tests is None:
        return None
    if only:
        return None if commands else _others_forbidden(tool, terms[0], tests)
    if action and action.is_sure and not any("writes" in test for test in tests):
        tests = action.limit(tests)
    if commands:
        return commands_forbidden(commands, tests, text)
    reads = [test for test in tests if test.keys() == {"path"} and is_shell(tool)]
    if not reads or reading.verb in words.TOUCH:
        return CallTests(tests)
    not_reading = {"command": words.NOT_READING}
    return CallTests(tests, [not_reading, *({"writes": test["path"]} for test in reads)])


def _without_terms(
    tool: ToolSchema, verb: str, only: bool, text: str, action: Action | None
) -> CallTests | None:
    """Make a condition if nothing is named: on every call, or on every call with the action."""
    if action:
        return CallTests(action.limit([{"always": True}]))
    acts = action_parameter(tool) and verb not in ("", *words.RUN)
    is_whole = not only and not acts and _means_every_call(tool, verb, text)
    return CallTests([{"always": True}]) if is_whole else None


def _others_forbidden(tool: ToolSchema, term: Term, allowed: list[Test]) -> CallTests | None:
    """Make the condition that forbids every target but the allowed one, if it is a mail or host."""
    is_mail = name_words(tool.name) & {"mail", "email", "gmail"}
    kinds = {"email": "@", "host": "@" if is_mail else r"\w\.\w"}
    target = kinds.get(term.kind)
    return CallTests([{"target": target}], allowed) if target else None


def _with_its_action(term: Term, verb: str) -> Term:
    """Add what a program is used for: "never push with git" means `git push`."""
    is_action = term.kind == "program" and verb in words.ACTIONS_OF_PROGRAMS
    return Term("command", f"{term.text.lower()} {verb}") if is_action else term


def _is_means(term: Term, verb: str) -> bool:
    """Whether a program is only a means: "never deploy with kubectl", but not "with sudo"."""
    is_use = verb in ("", "use", "run", "execute") or not verb.isascii()
    return term.kind == "program" and not is_use and term.text.lower() not in words.RUN_ANYTHING


def _means_every_call(tool: ToolSchema, verb: str, text: str) -> bool:
    """Whether a demand forbids every call: "never use the browser", "never delete files"."""
    text = text.replace(f"the {tool.name.lower()} tool", tool.name.lower())
    names = name_words(tool.name)
    said = words.words_in(text)
    if any(match[0] not in names for match in words.ONLY_SOME.finditer(text)):
        return False
    if (name := tool.name.lower()) in text:
        return not words.words_in(text.replace(name, " ")) & words.NOUNS
    if is_shell(tool):
        return bool(words.WHOLE_SHELL.search(text))
    spoken = words.mentioned(text, said, words.SPOKEN)
    meant = any(names & words.IN_NAMES[name] for name in spoken)
    return meant and (does_by_name(tool, verb) or verb in ("use", "run", "用", "使用"))


def _stops_an_example(
    made: CallTests, tool: ToolSchema, reading: _Reading, only: bool, action: Action | None
) -> bool:
    """Whether the condition stops an example call that does what the demand forbids."""
    example = dict(_example(tool, reading, only))
    if action:
        example[action.parameter] = action.example
    view = CallView(tool.name, example, tool.parameters)
    try:
        conditions = read_conditions(made.when, made.unless)
    except RequestError:  # a pattern that is too long
        return False
    return conditions.check(view, datetime.now(UTC)) is Match.YES


def _example(tool: ToolSchema, reading: _Reading, only: bool) -> Mapping[str, Any]:
    """Return the arguments of a call that has the first term where this tool expects it."""
    declared = tool.properties
    if is_shell(tool):
        name = next((each for each in declared if "command" in each or "cmd" in each), "command")
        return {name: _example_line(reading)}
    example: dict[str, Any] = {}
    for each in reading.terms:
        if each.kind == "amount":
            example[amount_parameter(tool)] = 10 * (number_in(each.text) or 1)
        if each.kind == "value":
            example[value_parameter(tool, each.text.lower())] = each.text
    others = [each for each in reading.terms if each.kind not in ("amount", "value")]
    if not others:
        return example
    text = words.OTHER_TARGET if only else others[0].text
    is_path = others[0].kind == "path"
    fitting = [each for each in declared if names_file(each)] if is_path else []
    if not is_path:
        fitting = [each for each in declared if is_target(each, declared)]
    if not declared:
        fitting = ["to", "path"]
    example = {**dict.fromkeys(fitting or declared, text), **example}
    if parameter := action_parameter(tool):
        example[parameter] = "write" if reading.verb in words.ACTIONS["write"] else "read"
    return example


def _example_line(reading: _Reading) -> str:
    """Write a command line with the terms: a program, then at most two other terms."""
    terms = [each for each in reading.terms if each.kind != "force"]
    starts = [each.text for each in terms if each.kind in ("program", "command", "quoted")]
    if len(terms) < len(reading.terms):
        starts = ["git push --force"]
    others = [each.text for each in terms if each.text not in starts][:2]
    if not starts and any(each.kind == "branch" for each in terms):
        starts = ["git push origin"]
    if not starts:
        listed = words.EXAMPLE_PROGRAMS.items()
        starts = [run for action, run in listed if reading.verb in words.ACTIONS[action]]
    return " ".join([*(starts or ["run"])[:1], *others])
