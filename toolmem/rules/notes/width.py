"""Compare how much a condition stops with what its quote says: by words, and by ordinary calls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from toolmem.rules.notes.numbers import mentions_time, read_numbers
from toolmem.text.forms import normalized, word_set
from toolmem.view.conditions import PATTERNS, Alternative, Conditions
from toolmem.view.parameters import names_file, words_of
from toolmem.view.view import CallView

Call = tuple[str, Mapping[str, Any]]  # tool, arguments

# What people call the tools of a class or their objects | what they do with them.
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
# A verb names a tool only where it is about all that the tool does: "never edit anything".
_OF_ALL = (
    r"(?:s|ing|ed)?(?: (?:me|us))?(?:\W*$|[,;.!]|(?: \w+)?\s(?:any|anything|all|every\w*"
    r"|nothing|stuff|things?|scripts?|programs?|without|before|unless|yourself)\b|任何|东西|所有"
    r"|[，。！])"
)
# Words of a demand on a whole tool, beside the reader's fillers.
_PLAIN = word_set(
    "keep hands hand off leave us stay away out alone allowed permission permitted myself ever "
    "single stop quit refrain avoid more longer until told say so okay disk whatsoever whatever "
    "circumstances want touch do done doing going rather not without asked let"
)
_ZH_PLAIN = word_set("不要 别 不许 不准 不得 禁止 不能 绝 千万 再 我 你 问 同意 允许 自己 先")
_WORD = re.compile(r"[a-z0-9][a-z0-9_+-]*|[\u3400-\u9fff]")
_ESCAPED = re.compile(r"\\[a-zA-Z]|[\\^$.*+?()\[\]{}|]")
_TOO_COMMON = word_set("the and for not any all you are with this that from to")
_ENDING = re.compile(r"(?<=...)(?:ing|ed|es|s)$")


def names_tool(quote: str, tools: Sequence[str], conditions: Conditions) -> bool:
    """Whether a quote is about all calls of one of these tools or classes.

    Where it says something else beside that, the condition has to say it, too.
    """
    text, said = normalized(quote), set(_words(quote))
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
    if not is_named or _is_timed(quote, conditions):
        return is_named
    others = _other_words(quote, [*nouns, *verbs, *tools])
    return not others or not others.isdisjoint(_written(conditions))


def _is_about_all(verb: str, text: str) -> bool:
    return re.search(rf"(?<![a-z]){verb.removesuffix('e')}e?{_OF_ALL}", text) is not None


def _other_words(quote: str, of_tools: Sequence[str]) -> frozenset[str]:
    """The words of a demand that say more than that a tool is not to be used."""
    from toolmem.rules.reader.words import FILLERS, VERBS, ZH_FILLERS, stems  # takes long to load

    plain = {*_PLAIN, *FILLERS, *_words(" ".join(of_tools))}
    found = (word for word in _words(quote) if word < "\u3000" and len(word) > 1)
    latin = {word for word in found if plain.isdisjoint(stems(word))}
    chinese = re.sub(r"[^\u3400-\u9fff]+", " ", normalized(quote))
    known = {word for word in (*ZH_FILLERS, *_ZH_PLAIN, *VERBS, *of_tools) if word > "\u3000"}
    for word in sorted(known, key=len, reverse=True):
        chinese = chinese.replace(word, " ")
    return content_words(" ".join([*latin, chinese]))


def _objects(tool: str) -> list[str]:
    """The words of a tool's name without its verb: `flights` of search_flights."""
    words = tool.split("_")
    return words[1:] or words


def has_in_common(quote: str, conditions: Conditions, examples: Sequence[Call]) -> bool:
    """Whether the quote shares a word or number with the condition, or with calls it stops."""
    alternatives = (*conditions.when, *conditions.unless)
    if set(_bounds(alternatives)) & read_numbers(quote) or _is_timed(quote, conditions):
        return True
    shown = [_values_of(arguments) for _, arguments in examples]
    words = _written(conditions).union(*map(content_words, shown))
    return not content_words(quote).isdisjoint(words)


def _is_timed(quote: str, conditions: Conditions) -> bool:
    alternatives = (*conditions.when, *conditions.unless)
    return any(each.clock is not None for each in alternatives) and mentions_time(quote)


def _written(conditions: Conditions) -> frozenset[str]:
    """The words of a condition."""
    alternatives = (*conditions.when, *conditions.unless)
    texts = (text for each in alternatives for text in _literals(each))
    return frozenset().union(*map(content_words, texts))


def count_ordinary_stops(
    quote: str, classes: Iterable[str], stops: Callable[[CallView], bool]
) -> tuple[int, int]:
    """(stopped, all) ordinary calls of these classes; one that shares a word may be stopped."""
    said = content_words(quote)
    total = stopped = 0
    for name in classes:
        for view in _ordinary(name):
            total += 1
            text = _values_of(view.arguments)
            stopped += stops(view) and not said & content_words(text)
    return stopped, total


def _values_of(arguments: Mapping[str, Any]) -> str:
    """The values without the names: every call of a shell has a `command`."""
    return json.dumps(list(arguments.values()), ensure_ascii=False)


def plain_calls(tool: str, properties: Mapping[str, Any]) -> list[Call]:
    """Four calls of a tool with everyday values for its parameters; none without parameters."""
    if not properties:
        return []
    values = {name: _plain_values(name, schema) for name, schema in properties.items()}
    return [(tool, {name: four[at] for name, four in values.items()}) for at in range(4)]


def _plain_values(name: str, schema: Any) -> Sequence[Any]:
    """Four values of a parameter."""
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
    """The ordinary calls of a class; read once, as every note is checked against them."""
    text = Path(__file__).parents[2].joinpath("data/ordinary_calls.txt").read_text("utf-8")
    calls = text.partition(f"[{name}]\n")[2].partition("\n[")[0].splitlines()
    is_shell = name == "@shell"
    return [CallView(name, {"command": c} if is_shell else json.loads(c)) for c in calls]


def _literals(each: Alternative) -> Iterator[str]:
    for name in PATTERNS:
        yield _ESCAPED.sub(" ", getattr(each, name) or "")
    for argument in each.arguments:
        yield argument.name
        yield _ESCAPED.sub(" ", argument.matches or "")


def _bounds(alternatives: Iterable[Alternative]) -> Iterator[float]:
    """The numbers of a condition that a sentence may mention; an hour also on the 12-hour clock."""
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
    """The words that say what a text is about; of Chinese, pairs of adjacent characters."""
    words = _words(text)
    content = (word for word in words if len(word) > 1 and word not in _TOO_COMMON)
    latin = {form for word in content for form in (word, _ENDING.sub("", word))}
    pairs = {one + other for one, other in pairwise(words) if min(one, other) > "\u3000"}
    return frozenset(latin | pairs)


def _words(text: str) -> list[str]:
    found = _WORD.findall(normalized(text[:100_000]))
    return [part for word in found for part in {word, *re.split("[-_]", word)} if part]
