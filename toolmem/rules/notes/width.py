"""Check that a condition is no wider than its quote: by common words, and by ordinary calls."""

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
from toolmem.view.view import CallView

Call = tuple[str, Mapping[str, Any]]  # tool, arguments

# What people call the tools of a class, and what they do with them.
_CLASS_WORDS = {
    "@shell": "command commands shell terminal bash console run runs running execute cli script "
    "命令 终端 执行 运行 跑",
    "@read": "read reads reading open opens look file files 读 看 打开 文件",
    "@write": "write writes writing edit edits editing change create file files modify code "
    "写 改 编辑 文件 代码",
    "@delete": "delete deletes deleting remove removes erase file files 删 删除 移除 文件",
    "@fetch": "fetch open visit browse page pages site url link 网页 网站 链接 打开",
    "@web": "search searches searching google web internet online 搜 搜索 上网 网上",
    "@mail": "mail mails mailing email emails send sends sending reply forward cc contact "
    "邮件 邮箱 发信 发 回复",
    "@chat": "message messages messaging chat post posts slack dm send reply contact "
    "消息 私信 群 发 回复",
}
_WORD = re.compile(r"[a-z0-9][a-z0-9_+-]*|[\u3400-\u9fff]")
_ESCAPED = re.compile(r"\\[a-zA-Z]|[\\^$.*+?()\[\]{}|]")
_TOO_COMMON = word_set("the and for not any all you are with this that from to")
_ENDING = re.compile(r"(?<=...)(?:ing|ed|es|s)$")


def names_tool(quote: str, tools: Iterable[str]) -> bool:
    """Whether a quote names one of these tools or classes, or what they do."""
    said = set(_words(quote))
    for tool in tools:
        known = _CLASS_WORDS.get(tool, tool.replace("_", " "))
        if said & set(_words(known)) or normalized(tool).removeprefix("@") in normalized(quote):
            return True
    return False


def has_in_common(quote: str, conditions: Conditions, examples: Sequence[Call]) -> bool:
    """Whether the quote shares a word or number with the condition, or with calls it stops."""
    alternatives = (*conditions.when, *conditions.unless)
    if set(_bounds(alternatives)) & read_numbers(quote):
        return True
    if any(each.clock is not None for each in alternatives) and mentions_time(quote):
        return True
    said = content_words(quote)
    written = [text for each in alternatives for text in _literals(each)]
    shown = [json.dumps(arguments, ensure_ascii=False) for _, arguments in examples]
    return any(said & content_words(text) for text in (*written, *shown))


def count_ordinary_stops(
    quote: str, classes: Iterable[str], stops: Callable[[CallView], bool]
) -> tuple[int, int]:
    """(stopped, all) ordinary calls of these classes; one that shares a word may be stopped."""
    said = content_words(quote)
    total = stopped = 0
    for name in classes:
        for view in _ordinary(name):
            total += 1
            text = json.dumps(view.arguments, ensure_ascii=False)
            stopped += stops(view) and not said & content_words(text)
    return stopped, total


@cache
def _ordinary(name: str) -> list[CallView]:
    """The ordinary calls of a class; read once, as every note is checked against them."""
    text = Path(__file__).with_name("ordinary_calls.txt").read_text(encoding="utf-8")
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
