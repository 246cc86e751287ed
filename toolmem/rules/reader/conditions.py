"""Find the calls that a demand forbids, in the language of conditions.

A condition is made only if every word of the demand is understood; otherwise `unread` lists the
other words, and the demand only reminds. So a condition never stops more than was said.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any

from msgspec import Struct, field

from toolmem.errors import RequestError
from toolmem.models.tools import ToolSchema
from toolmem.rules.reader import words
from toolmem.rules.reader.commands import (
    OF_COMMANDS,
    CallTests,
    Term,
    Test,
    commands_forbidden,
)
from toolmem.rules.reader.tools import (
    Action,
    action_parameter,
    find_action,
    is_named,
    is_program,
    is_shell,
    name_words,
    values_of,
    with_argument,
)
from toolmem.text.forms import number_in
from toolmem.view.conditions import Match, read_conditions
from toolmem.view.parameters import is_target, names_file, words_of
from toolmem.view.shell_programs import RUNNERS
from toolmem.view.view import CallView


class _Reading(Struct):
    """What is understood of a demand."""

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
    """The conditions by tool, and the words that were not understood.

    `limited`: the sentence without its "never"; `text`: all of it in lower case; `only`: it forbids
    everything but what it names.
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
    """The condition on one tool, and the words that were not understood."""
    action = None if only or not action_parameter(tool) else find_action(tool, rest.lower())
    reading = _read(rest, terms, text, action.said if action else frozenset())
    values = [Term("value", word) for word in reading.unread if _takes(tool, word.lower())]
    if len(values) == len(reading.unread) and (action or _does(tool, reading.verb)):
        reading.terms += values
        reading.unread = []
    if terms and name_words(tool.name).intersection(
        *(words.stems(word) for word in reading.unread[:1]), words.SAME_ACTION
    ):
        reading.unread = reading.unread[1:]  # the verb, as in `restart_server`
    alone = reading.unread and not (terms or reading.terms)
    literal = _named_thing(rest, reading) if alone else None
    if reading.unread and literal is None:
        if terms or only or not _name_says_all(tool, reading):
            return None, reading.unread
        return CallTests([{"always": True}]), []
    reading.terms[:0] = terms if literal is None else [*terms, literal]
    reading.terms = [_with_its_action(each, reading.verb) for each in reading.terms]
    kinds = {each.kind for each in reading.terms if each.kind in OF_COMMANDS}
    if kinds == {"option"} and reading.verb in words.GIT_VERBS:
        reading.terms.insert(0, Term("command", f"git {reading.verb}"))
    made = _conditions(tool, reading, only, text, action)
    if made is None or not _stops_an_example(made, tool, reading, only, action):
        is_vague = action_parameter(tool) and not (action or reading.terms)
        return None, [f"which action of {tool.name} is meant"] if is_vague else []
    return made, []


def _named_thing(rest: str, reading: _Reading) -> Term | None:
    """The name or identifier that holds every word that was not understood, if there is one."""
    for found in words.NAMED.finditer(rest):
        before = found["before"] or ""
        is_object = (
            not before or before in words.BEFORE_NAMED or reading.verb in words.stems(before)
        )
        if is_object and set(_WORD.findall(found["name"])).issuperset(reading.unread):
            return Term("literal", found["name"])
    return None


def _takes(tool: ToolSchema, word: str) -> str:
    """The parameter that takes a word as its value: one of its enumeration, or an environment."""
    for name in tool.properties:
        is_listed = word in [each.lower() for each in values_of(tool, name)]
        is_place = word in words.ENVIRONMENTS and words_of(name) & {"env", "environment", "stage"}
        if name != action_parameter(tool) and (is_listed or is_place):
            return name
    return ""


def _name_says_all(tool: ToolSchema, reading: _Reading) -> bool:
    """Whether a tool's name holds all words of a demand: "change my password"."""
    names = name_words(tool.name)
    said = [frozenset(words.stems(word.lower())) for word in reading.unread]
    if not all(names & forms for forms in said):
        return False
    return _does(tool, reading.verb) or words_of(tool.name) <= frozenset().union(*said)


def _does(tool: ToolSchema, verb: str) -> bool:
    """Whether a tool does by its name what a verb says. A shell may do anything."""
    names = name_words(tool.name)
    listed = [each for each in words.ACTIONS.values() if verb in each]
    return not is_shell(tool) and any(names & each for each in listed)


def _read(
    rest: str, terms: Sequence[Term], text: str, understood: Collection[str] = ()
) -> _Reading:
    """Sort the words of a demand into its verb, its terms, and words not understood.

    `understood`: the words that say an action of the tool.
    """
    if words.CJK.search(rest):
        return _read_chinese(rest, text, understood)
    reading = _Reading()
    pushes = any(term.kind == "force" or term.text.endswith("push") for term in terms)
    before = ""  # the previous word in lower case; "name" after a name, "email" after its verb
    found = _WORD.findall(rest)
    for at, word in enumerate(found):
        lowered = word.lower()
        forms = frozenset(words.stems(word.lower()))
        known = lowered in words.FILLERS or bool(forms & words.NOUNS) or lowered in understood
        verbs = forms & words.VERBS
        named = word[0].isupper() and not known and not verbs
        kind = ""
        if named and (before == "name" or before in words.BEFORE_NAME):
            kind = "name"
        elif (
            lowered in words.PROGRAMS
            and (reading.verb in ("use", "run", "") or before in {"with", "or"})
        ) or (before in words.RUN and is_program(word)):
            kind = "program"
        elif before == "program" and not known and _is_subcommand(reading.terms[-1], word, rest):
            word = f"{reading.terms.pop().text} {word}"
            kind = "command"
        elif not reading.verb and verbs:
            reading.verb = next(form for form in words.stems(lowered) if form in verbs)
        elif before == "to" and (pushes or "push" in reading.verb) and not known:
            kind = "branch"
        elif before in {"channel", "table"} and not known:
            kind = "channel"
        elif before == "email" and at == len(found) - 1 and not known:
            kind = "name"
        elif not known and not (verbs and before in {"and", "or"}):
            reading.unread.append(word)
        if kind == "name" == before:
            word = f"{reading.terms.pop().text} {word}"
        if kind:
            reading.terms.append(Term(kind, word))
        before = "email" if reading.verb in forms & words.CONTACT else kind or lowered
    return reading


def _is_subcommand(program: Term, word: str, rest: str) -> bool:
    """Whether a word after a program ends the demand: "never run kubectl drain"."""
    if program.text not in words.PROGRAMS and program.text not in RUNNERS:
        return False  # "never use test data"
    ends = re.search(rf"\b{re.escape(word)}\W*$", rest) is not None
    is_plain = word.islower() and word not in words.NO_SUBCOMMAND and not word.endswith("s")
    return ends and is_plain


def _read_chinese(rest: str, text: str, understood: Collection[str]) -> _Reading:
    """Do the same in Chinese: what is left without the known words is a name or not understood."""
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
    """Make the condition for one tool; None where none can be made."""
    terms = reading.terms
    if any(_is_means(each, reading.verb) for each in terms):
        return None
    if not terms and action:
        return CallTests(action.limit([{"always": True}]))
    if not terms:
        acts = action_parameter(tool) and reading.verb not in ("", *words.RUN)
        whole = not only and not acts and _means_every_call(tool, reading.verb, text)
        return CallTests([{"always": True}]) if whole else None
    name = tool.name.lower()
    if name in text and all(term.text.lower() in name for term in terms):
        return CallTests([{"always": True}])
    programs = [each for each in terms if each.kind in OF_COMMANDS]
    others = [each for each in terms if each not in programs]
    tests = [_test(each, tool, reading.verb, text, action) for each in others]
    if any(test is None for test in tests) or (programs and not is_shell(tool)):
        return None
    amounts = [test for test in tests if test and test.keys() == {"arg"}]
    found = [test for test in tests if test and test not in amounts]
    if amounts:  # "no more than 500 to Sarah" means both
        pairs = product(found or [{}], amounts)
        found = [with_argument(test, amount["arg"]) for test, amount in pairs]
    if only:  # every other target of this kind is forbidden
        mails = name_words(tool.name) & {"mail", "email", "gmail"}
        kinds = {"email": "@", "host": "@" if mails else r"\w\.\w"}
        sort = kinds.get(terms[0].kind)
        return CallTests([{"target": sort}], found) if sort and not programs else None
    if action and action.is_sure and not any("writes" in test for test in found):
        found = action.limit(found)
    if programs:
        return commands_forbidden(programs, found, text)
    reads = [test for test in found if test.keys() == {"path"} and is_shell(tool)]
    if not reads or reading.verb in words.TOUCH:
        return CallTests(found)
    return CallTests(
        found, [{"command": words.NOT_READING}, *({"writes": t["path"]} for t in reads)]
    )


def _with_its_action(term: Term, verb: str) -> Term:
    """A program with what it is used for: "never push with git" means `git push`."""
    is_action = term.kind == "program" and verb in words.ACTIONS_OF_PROGRAMS
    return Term("command", f"{term.text.lower()} {verb}") if is_action else term


def _is_means(term: Term, verb: str) -> bool:
    """Whether a program is only a means: "never deploy with kubectl", but not "with sudo"."""
    is_use = verb in ("", "use", "run", "execute") or not verb.isascii()
    return term.kind == "program" and not is_use and term.text.lower() not in words.RUN_ANYTHING


def _means_every_call(tool: ToolSchema, verb: str, text: str) -> bool:
    """Whether every call is forbidden: "never use the browser", "never delete files"."""
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
    return meant and (_does(tool, verb) or verb in ("use", "run", "用", "使用"))


def _test(term: Term, tool: ToolSchema, verb: str, text: str, action: Action | None) -> Test | None:
    """The test that finds a term in the calls of a tool; None where there is none."""
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
            return _path_test(words.path_pattern(written, text), tool, verb, action)
        case "channel":
            return {where: rf"(^|[^\w-]){re.escape(written.lstrip('#'))}($|[^\w-])"}
        case "name":
            return {where: quoted if words.CJK.search(written) else whole}
        case "amount":
            name = _amount_parameter(tool)
            over = number_in(written.replace("￥", "¥"))
            return {"arg": {"name": name, "over": over}} if name and over is not None else None
        case "code":
            return {"text": whole}
        case "literal":
            declared = tool.properties
            is_sent = any(is_target(name, declared) for name in declared) and " about " not in text
            is_meant = action or _does(tool, verb)
            return {"target" if is_sent else "text": whole} if is_meant else None
        case "value":
            wide = "prod(uction)?" if written in ("prod", "production") else quoted
            return {"arg": {"name": _takes(tool, written), "matches": f"^{wide}$"}}
        case "branch":
            if not is_shell(tool):
                return {"text": rf"^{quoted}$"}
            return {"command": r"^git push\b", "word": rf"\+?(.*:)?(refs/heads/)?{quoted}"}
    return None


def _path_test(at: str, tool: ToolSchema, verb: str, action: Action | None) -> Test | None:
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


def _amount_parameter(tool: ToolSchema) -> str:
    """The parameter that takes an amount; "" where there is none, or more than one."""
    declared = tool.properties
    numbers = [
        name
        for name, schema in declared.items()
        if isinstance(schema, Mapping) and schema.get("type") in ("number", "integer")
    ]
    named = [name for name in declared if name_words(name) & words.AMOUNTS]
    found = named or numbers
    return found[0] if len(found) == 1 else ""


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
    """Arguments of a call that has the first term where calls of this tool would have it."""
    given = reading.terms
    declared = tool.properties
    if is_shell(tool):
        starts = [each.text for each in given if each.kind in ("program", "command", "quoted")]
        if any(each.kind == "force" for each in given):
            starts = ["git push --force"]
            given = [e for e in given if e.kind != "force"]
        others = [each.text for each in given if each.text not in starts][:2]
        by_verb = [
            run
            for action, run in words.EXAMPLE_PROGRAMS.items()
            if reading.verb in words.ACTIONS[action]
        ]
        pushes = any(each.kind == "branch" for each in given)
        start = starts[:1] or (["git push origin"] if pushes else by_verb[:1] or ["run"])
        name = next((each for each in declared if "command" in each or "cmd" in each), "command")
        return {name: " ".join([*start, *others])}
    example: dict[str, Any] = {}
    for each in given:
        if each.kind == "amount":
            example[_amount_parameter(tool)] = 10 * (number_in(each.text) or 1)
        if each.kind == "value":
            example[_takes(tool, each.text.lower())] = each.text
    first = next((each for each in given if each.kind not in ("amount", "value")), None)
    if first is None:
        return example
    text = first.text
    if only:
        text = words.OTHER_TARGET
    fits = names_file if first.kind == "path" else lambda name: is_target(name, declared)
    fitting = [name for name in declared if fits(name)] if declared else ["to", "path"]
    parameter = action_parameter(tool)
    acts = {parameter: "write" if reading.verb in words.ACTIONS["write"] else "read"}
    return {**dict.fromkeys(fitting or declared, text), **example, **(acts if parameter else {})}
