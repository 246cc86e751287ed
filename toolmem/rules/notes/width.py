"""Compare what a condition stops with what its quote says: by words, and by ordinary calls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct

from toolmem.rules.notes.note import DemandNote, ExampleCall
from toolmem.rules.notes.numbers import (
    HOURS,
    TIME,
    fits_limit,
    limits_in,
    mentions,
    read_numbers,
    weekdays_in,
)
from toolmem.text.forms import normalized, word_set
from toolmem.view.conditions import PATTERNS, Alternative, Conditions
from toolmem.view.parameters import names_file, words_of
from toolmem.view.view import CallView

Call = tuple[str, Mapping[str, Any]]  # tool, arguments

# What people call the tools of a class and their objects | what they do with them.
_CLASS_WORDS = {
    "@shell": "command commands shell terminal bash console cli 命令 终端"
    " | run execute 执行 运行 跑",
    "@read": "file files 文件 | read open look 读 看 打开",
    "@write": "file files code 文件 代码 | write edit change create modify 写 改 编辑",
    "@delete": "file files 文件 | delete remove erase 删 删除 移除",
    "@fetch": "page pages site url link 网页 网站 链接 | fetch open visit browse 打开",
    "@web": "web internet online google 网上 上网 | search 搜 搜索",
    "@mail": "mail mails mailing email emails 邮件 邮箱 发信 | send reply forward contact 发 回复",
    "@chat": "message messages messaging chat slack dm 消息 私信 群"
    " | send post reply contact 发 回复",
}
# What follows a verb that names a tool.
_OF_ALL = (
    r"(?:s|ing|ed)?(?: (?:me|us))?(?:\W*$|[,;.!]|(?: \w+)?\s(?:any|anything|all|every\w*"
    r"|nothing|stuff|things?|scripts?|programs?|without|before|unless|yourself)\b|任何|东西|所有"
    r"|[，。！])"
)
# Words of a demand on a whole tool, in addition to the reader's fillers.
_PLAIN = word_set(
    "keep hands hand off leave us stay away out alone allowed permission permitted myself ever "
    "single stop quit refrain avoid more longer until told say so okay disk whatsoever whatever "
    "circumstances want touch do done doing going rather not without asked let"
)
_ZH_PLAIN = word_set("不要 别 不许 不准 不得 禁止 不能 绝 千万 再 我 你 问 同意 允许 自己 先")
_WORD = re.compile(r"[a-z0-9][a-z0-9_+-]*|[\u3400-\u9fff]")
_ESCAPED = re.compile(r"\\[a-zA-Z]|[\\^$.*+?()\[\]{}|]")
_ARTICLE = r"(?!(?:the|an?|my|our|this|that|it|any|all)\b)"
# Parts of calls that a sentence names: an option; an address, a channel or a file; a name.
_PART = re.compile(
    r"(?<![\w-])(?P<option>--?[A-Za-z][\w-]{0,40})"
    r"|(?P<place>[\w.+-]{1,64}@[\w.-]{1,64}\w|[#@][\w-]{1,64}"
    r"|(?<![\w./])(?=[\w-]{0,80}[./][\w-])[\w./-]{2,120})"
    rf"|(?:\b(?:to|into|onto|from|with|on|at) {_ARTICLE}|(?<=[到往给向在动推碰去])\s?"
    r"|(?<=[a-z,;] )(?=[A-Z][a-z]{2})|^(?=[A-Z]\w{1,40} (?:is|are|gets?|has|may|must|can|never)\b))"
    r"(?P<name>[A-Za-z][\w-]{1,40})"
)
_NO_PART = dict.fromkeys(_PART.groupindex)
_NUMBER = re.compile(r'(?<=: )"?-?\d[\d.,]{0,30}"?(?=[,}])')  # a value in JSON
_EXCEPT = re.compile(
    r"\b(?:only|except|outside|other than|but|unless|without|instead|use)\b|[只除外用]"
)
_EVERYTHING = re.compile(r"\b(?:nothing|nobody|no ?one|any\w*|only|all|every\w*)\b|[任只]|所有")
_DUTY = re.compile(
    r"\b(?:ha(?:s|ve) to be|must (?:be|have)|should (?:be|have)|needs? (?:an?|to be))\b|必须|务必"
)
_NEGATED = re.compile(r"\b(?:never|not?|nobody|nothing|none|without|\w{2,6}n't|stop)\b|[不别勿禁]")
_TOO_COMMON = word_set("the and for not any all you are with this that from to")
_ENDING = re.compile(r"(?<=...)(?:ing|ed|es|s)$")


def names_tool(quote: str, tools: Sequence[str], conditions: Conditions) -> bool:
    """Whether a quote names a tool or class and bans all its calls: "never use the shell".

    If the quote says more, as in "the shell for tests", the condition must have one such word.
    """
    text = normalized(quote)
    said = set(_words(quote))
    nouns: list[str] = []
    verbs: list[str] = []
    for tool in tools:
        called, _, done = _CLASS_WORDS.get(tool, " ".join(_objects(tool))).partition("|")
        nouns += called.split()
        verbs += done.split()
    is_named = (
        not said.isdisjoint(_words(" ".join(nouns)))
        or any(normalized(tool).removeprefix("@") in text for tool in tools)
        or any(_is_about_all(verb, text) for verb in verbs)
    )
    is_exception = conditions.unless and _EVERYTHING.search(text)
    if not is_named or is_exception or _is_timed(quote, conditions):
        return is_named
    others = _other_words(quote, [*nouns, *verbs, *tools])
    return not others or not others.isdisjoint(_condition_words(conditions))


def other_tool_named(quote: str, tools: Iterable[str], conditions: Conditions) -> str:
    """Return the first of `tools` that a quote names; "" if none, or if the conditions fit it."""
    said = frozenset() if has_in_common(quote, conditions) else content_words(quote)
    mail = content_words(_CLASS_WORDS["@mail"].partition("|")[0])
    for name in tools:
        if name == "@mail" and said & mail:
            return name
        if name[0] != "@" and said.issuperset(_objects(name)):
            return name
    return ""


def _is_about_all(verb: str, text: str) -> bool:
    """Whether a text says that a verb is about all that a tool does: "never edit anything"."""
    return re.search(rf"(?<![a-z]){verb.removesuffix('e')}e?{_OF_ALL}", text) is not None


def _other_words(quote: str, tool_words: Sequence[str]) -> frozenset[str]:
    """Return the words of a demand that say more than that a tool is forbidden."""
    from toolmem.rules.reader.words import FILLERS, VERBS, ZH_FILLERS, stems  # takes long to load

    plain = {*_PLAIN, *FILLERS, *_words(" ".join(tool_words))}
    found = (word for word in _words(quote) if word < "\u3000" and len(word) > 1)
    latin = {word for word in found if plain.isdisjoint(stems(word))}
    chinese = re.sub(r"[^\u3400-\u9fff]+", " ", normalized(quote))
    known = {word for word in (*ZH_FILLERS, *_ZH_PLAIN, *VERBS, *tool_words) if word > "\u3000"}
    for word in sorted(known, key=len, reverse=True):
        chinese = chinese.replace(word, " ")
    return content_words(" ".join([*latin, chinese]))


def _objects(tool: str) -> list[str]:
    """Return the words of a tool's name without its verb: `flights` of search_flights."""
    words = tool.split("_")
    return words[1:] or words


def has_in_common(quote: str, conditions: Conditions) -> bool:
    """Whether the quote shares a word, a number or a time with the condition."""
    if set(_bounds(conditions.alternatives)) & read_numbers(quote) or _is_timed(quote, conditions):
        return True
    return not content_words(quote).isdisjoint(_condition_words(conditions))


class QuoteComparison(Struct, frozen=True, kw_only=True):
    """Compares the condition of a note, as it will be kept, with the parts of the quote."""

    note: DemandNote
    conditions: Conditions
    is_stopped: Callable[[str, Any], bool]  # tool, arguments
    unit_of: Callable[[str], str]  # what the schemas say of an argument

    def contradiction(self) -> str:
        """Say which part of the quote the condition contradicts or does not test; "" if none."""
        return self._wrong_limit() or self._wrong_time() or self._wrong_part() or self._duty()

    def _stops_with(self, piece: re.Pattern[str], other: str) -> bool:
        """Whether all stopped examples with a piece stay stopped if `other` takes its place."""
        written = [(e.tool, json.dumps(e.arguments, ensure_ascii=False)) for e in self.note.stops]
        changed = [(tool, piece.sub(other, text)) for tool, text in written if piece.search(text)]
        try:
            calls = [(tool, json.loads(text)) for tool, text in changed]
        except ValueError:  # the piece was part of the JSON, such as `true`
            return False
        return bool(calls) and all(self.is_stopped(*each) for each in calls)

    def _wrong_limit(self) -> str:
        said = ", ".join(f"{number:g}" for number in sorted(limits_in(self.note.quote)))
        for test in (test for each in self.conditions.alternatives for test in each.arguments):
            unit = f"{test.name} {self.unit_of(test.name)}"
            for bound in (test.over, test.under):
                if bound is not None and not fits_limit(bound, self.note.quote, unit):
                    wrong = f"`arg` {test.name}: {bound:g} is not what the user said"
                    return f"{wrong} ({said}): write their number, in the unit of {test.name}"
        is_counted = any(each.more_than for each in self.conditions.alternatives)
        if said and not is_counted and all(self._stops_with(_NUMBER, n) for n in ("0", "9" * 12)):
            return f"any amount is stopped, and the user said {said}: test the amount by `arg`"
        return ""

    def _wrong_time(self) -> str:
        days = weekdays_in(self.note.quote)
        clocks = [each.clock for each in self.conditions.alternatives if each.clock is not None]
        if not clocks and (days or mentions(self.note.quote, HOURS)):
            is_thing = any(
                day in text for day in days for text in _condition_words(self.conditions)
            )
            return "" if is_thing else "it holds at any time, and the user named one: add `clock`"
        tested: set[str] = set()
        for each in clocks:
            tested |= {each.weekday} if isinstance(each.weekday, str) else set(each.weekday)
        is_wider = len(tested) == 7 or (len(days) == 1 and not mentions(self.note.quote, HOURS))
        if not days or not tested or _EXCEPT.search(normalized(self.note.quote)):
            return ""
        if days - tested or (is_wider and tested - days):
            return f"`clock`: the user said {', '.join(sorted(days))}: test these days"
        return ""

    def _wrong_part(self) -> str:
        """Say which part of calls the quote names and the condition does not test; "" if none."""
        found = [each.groupdict() for each in _PART.finditer(self.note.quote)]
        given = [value for each in self.note.stops for value in each.arguments.values()]
        values = {value.lower() for value in given if isinstance(value, str)}
        whole = (word for word in values & content_words(self.note.quote) if len(word) > 2)
        found += [{**_NO_PART, "name": word} for word in sorted(whole)]
        written = " ".join(
            text for each in self.conditions.alternatives for text in _literals(each)
        )
        tests_option = any(each["option"] and _find_part(each["option"], written) for each in found)
        stopped = _values_in(self.note.stops)
        passing = _values_in(self.note.passes)
        is_exception = _EXCEPT.search(normalized(self.note.quote)) is not None
        for each in found:
            part = (each["option"] or each["place"] or each["name"] or "").rstrip(".,/-")
            if piece := _find_part(part, stopped):
                is_tested = tests_option if each["option"] else is_exception
                others = [""] if each["option"] else _names_like(part, self.note.quote)
                if not is_tested and any(self._stops_with(piece, other) for other in others):
                    return f"calls with another than {part!r}, which the user named, are stopped"
            elif not is_exception and not _find_part(part.lstrip(".").partition(".")[0], written):
                is_tied = has_in_common(self.note.quote, self.conditions) and "@" not in part
                if not is_tied and (each["place"] or _find_part(part, passing)):
                    return f"the user named {part!r}, and neither `when` nor `stops` has it"
        return ""

    def _duty(self) -> str:
        """Say what is wrong if the quote is a duty and no passing example fulfils it; else ""."""
        text = normalized(self.note.quote)
        may_pass = any(each.earlier or each.clock for each in self.conditions.alternatives)
        if self.conditions.unless or may_pass or not _DUTY.search(text) or _NEGATED.search(text):
            return ""
        passing = content_words(_values_in(self.note.passes))
        everyday = any(self.is_stopped("@shell", view.arguments) for view in _ordinary("@shell"))
        if not everyday or passing & content_words(text):
            return ""
        return "the user asks for something: let through in `unless` what fulfils it, or remind"


def _names_like(part: str, quote: str) -> list[str]:
    """Return names to try in place of a part: a made-up name with its ending, and `dev`."""
    at = part.find("@") if "@" in part[1:] else part.rfind(".")
    made_up = "zzz" + (part[at:] if at > 0 else "")
    return [made_up] if "dev" in quote else [made_up, "dev"]


def _find_part(part: str, text: str) -> re.Pattern[str] | None:
    """Return a pattern that finds a part in a text, also shortened: `prod` of production."""
    word = part.lower() or "-"
    shorter = (word[:size] for size in range(len(word) - 1, 3, -1) if word.isalpha())
    for each in (word, *shorter):
        before, after = (r"(?<![^\W_])" if c.isalnum() else "" for c in (each[0], each[-1]))
        pattern = re.compile(f"{before}{re.escape(each)}{after.replace('?<!', '?!')}", re.I)
        if pattern.search(text):
            return pattern
    return None


def _is_timed(quote: str, conditions: Conditions) -> bool:
    """Whether quote and condition both name a time, or the same number of calls."""
    counted = [each.more_than for each in conditions.alternatives if each.more_than is not None]
    has_clock = any(each.clock is not None for each in conditions.alternatives)
    is_counted = not read_numbers(quote).isdisjoint(float(each.calls) for each in counted)
    return (has_clock and mentions(quote, TIME)) or is_counted


def _condition_words(conditions: Conditions) -> frozenset[str]:
    texts = (text for each in conditions.alternatives for text in _literals(each))
    return frozenset().union(*map(content_words, texts))


def ordinary_stops(
    quote: str, classes: Iterable[str], stops: Callable[[CallView], bool]
) -> tuple[list[CallView], int]:
    """Return ([ordinary calls that are stopped, sharing no word with the quote], number of all)."""
    said = content_words(quote)
    views = [view for name in classes for view in _ordinary(name)]
    others = (view for view in views if not said & content_words(_values_in([view])))
    return [view for view in others if stops(view)], len(views)


def _values_in(calls: Iterable[ExampleCall | CallView]) -> str:
    """Write the values of arguments as one text, without the arguments' names."""
    return json.dumps([list(each.arguments.values()) for each in calls], ensure_ascii=False)


def plain_calls(tool: str, properties: Mapping[str, Any]) -> list[Call]:
    """Make four calls of a tool with everyday values of its parameters; none without parameters."""
    if not properties:
        return []
    values = {name: _plain_values(name, schema) for name, schema in properties.items()}
    return [(tool, {name: four[at] for name, four in values.items()}) for at in range(4)]


def _plain_values(name: str, schema: Any) -> Sequence[Any]:
    """Return four everyday values that fit a parameter."""
    declared = schema if isinstance(schema, Mapping) else {}
    allowed = declared.get("enum")
    if isinstance(allowed, list) and allowed:
        return [allowed[at % len(allowed)] for at in range(4)]
    match declared.get("type"):
        case "integer" | "number":
            return (1, 10, 100, 1000)
        case "boolean":
            return (True, False, True, False)
    if names_file(name):
        return ("/srv/alpha.txt", "src/b.py", "docs/c.md", "d.txt")
    if words_of(name) & {"to", "email", "recipient", "recipients"}:
        return ("ann@acme.com", "bob@example.org", "team@acme.com", "Ann")
    return ("alpha", "Blue 7", "east-2", "2026-11-27")


@cache
def _ordinary(name: str) -> list[CallView]:
    """Return the ordinary calls of a class. They are read once, because every note needs them."""
    text = Path(__file__).parents[2].joinpath("data/ordinary_calls.txt").read_text("utf-8")
    calls = text.partition(f"[{name}]\n")[2].partition("\n[")[0].splitlines()
    is_shell = name == "@shell"
    return [CallView(name, {"command": c} if is_shell else json.loads(c)) for c in calls]


def _literals(each: Alternative) -> Iterator[str]:
    """Yield the texts in the tests of an alternative, without the signs of patterns."""
    for name in PATTERNS:
        yield _ESCAPED.sub(" ", getattr(each, name) or "")
    for argument in each.arguments:
        yield argument.name
        yield _ESCAPED.sub(" ", argument.matches or "")


def _bounds(alternatives: Iterable[Alternative]) -> Iterator[float]:
    """Yield a condition's numbers that a sentence may name; hours also as on the 12-hour clock."""
    for each in alternatives:
        for argument in each.arguments:
            yield from (float(n) for n in (argument.over, argument.under) if n is not None)
        if each.more_than is not None:
            yield float(each.more_than.calls)
        if each.clock is not None and each.clock.start and each.clock.end:
            for at in (each.clock.start, each.clock.end):
                hour = int(at.partition(":")[0])
                yield from (float(hour), float(hour % 12 or 12))


def content_words(text: str) -> frozenset[str]:
    """Return the words that say what a text is about; in Chinese, pairs of adjacent characters."""
    words = _words(text)
    content = (word for word in words if len(word) > 1 and word not in _TOO_COMMON)
    latin = {form for word in content for form in (word, _ENDING.sub("", word))}
    pairs = {one + other for one, other in pairwise(words) if min(one, other) > "\u3000"}
    return frozenset(latin | pairs)


def _words(text: str) -> list[str]:
    found = _WORD.findall(normalized(text[:100_000]))
    return [part for word in found for part in {word, *re.split("[-_]", word)} if part]
