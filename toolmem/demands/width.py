"""Is a condition wider than what was said? Against ordinary calls of its class, and by what both have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from toolmem.demands.said_numbers import numbers_said, speaks_of_time
from toolmem.guard.alternatives import Alternative, Conditions
from toolmem.guard.view import View, plain, view_of
from toolmem.late import late_pattern

MOST_ORDINARY = 0.03  # share of ordinary calls of a class that an unnamed demand may stop
MOST_KEPT = 0.5  # share of the tool's own calls that worked
_SHORTEST_STEM = 2
LEAST_KEPT = 5  # such calls before their share says anything

Call = tuple[str, Mapping[str, Any]]  # tool, arguments
Stops = Callable[[Call, View | None], bool]  # the view where it is known

# What people call the classes of tools, and what these do.
_CLASS_WORDS = {
    "shell": "command commands shell terminal bash console run runs running execute cli script 命令 终端 执行 运行 跑",
    "read": "read reads reading open opens look file files 读 看 打开 文件",
    "write": "write writes writing edit edits editing change create file files modify code 写 改 编辑 文件 代码",
    "delete": "delete deletes deleting remove removes erase file files 删 删除 移除 文件",
    "fetch": "fetch open visit browse page pages site url link 网页 网站 链接 打开",
    "web": "search searches searching google web internet online 搜 搜索 上网 网上",
    "mail": "mail mails mailing email emails send sends sending reply forward cc contact 邮件 邮箱 发信 发 回复",
    "chat": "message messages messaging chat post posts slack dm send reply contact 消息 私信 群 发 回复",
}
_WORD = late_pattern(r"[a-z0-9][a-z0-9_+-]*|[\u3400-\u9fff]")
_ESCAPED = late_pattern(r"\\[a-zA-Z]|[\\^$.*+?()\[\]{}|]")
_TOO_COMMON = frozenset(("the", "and", "for", "not", "any", "all", "you", "are", "with", "this", "that", "from", "to"))


def named_in(quote: str, tools: Iterable[str]) -> bool:
    """Does a quote name one of these tools or classes, or speak of what they do?"""
    said = set(_words(quote))
    for tool in tools:
        known = _CLASS_WORDS.get(tool.removeprefix("@"), "") if tool.startswith("@") else tool.replace("_", " ")
        if said & set(_words(known)) or plain(tool).removeprefix("@") in plain(quote):
            return True
    return False


def have_in_common(quote: str, conditions: Conditions, examples: Sequence[Call]) -> bool:
    """Is a word or number of the quote among those of the condition, or of the calls that it stops?"""
    said = telling_words(quote)
    if _bounds(conditions) & numbers_said(quote):
        return True
    if any(each.clock is not None for each in (*conditions.when, *conditions.unless)) and speaks_of_time(quote):
        return True
    written = [text for each in (*conditions.when, *conditions.unless) for text in _literals(each)]
    shown = [json.dumps(arguments, ensure_ascii=False) for _, arguments in examples]
    return any(said & telling_words(text) for text in (*written, *shown))


def ordinary_stopped(quote: str, classes: Iterable[str], stops: Stops) -> tuple[int, int]:
    """(stopped, of how many) among the ordinary calls of these classes that share no word with the quote."""
    said = telling_words(quote)
    counted = stopped = 0
    for scope in classes:
        for call, view in _ordinary(scope.removeprefix("@")):
            counted += 1
            stopped += stops(call, view) and not said & telling_words(json.dumps(call[1], ensure_ascii=False))
    return stopped, counted


@cache
def _ordinary(name: str) -> list[tuple[Call, View]]:
    """Of a class; seen once, since every note is held against them."""
    return [(call, view_of(*call)) for call in _packaged().get(name, ())]


@cache
def _packaged() -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = {}
    name = ""
    for line in files("toolmem.demands").joinpath("ordinary_calls.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name = line.strip("[]")
        elif line and not line.startswith("#"):
            given = {"command": line} if name == "shell" else json.loads(line)
            found.setdefault(name, []).append((f"@{name}", given))
    return found


def _literals(alternative: Alternative) -> Iterator[str]:
    for pattern in (*alternative.patterns.values(), *(each.matches for each in alternative.arguments)):
        yield _ESCAPED.sub(" ", pattern)
    yield from (each.name for each in alternative.arguments)


def _bounds(conditions: Conditions) -> frozenset[float]:
    """The numbers of a condition that a sentence may say."""
    told: list[float | None] = []
    for each in (*conditions.when, *conditions.unless):
        told += [bound for test in each.arguments for bound in (test.over, test.under)]
        told += [each.more_than.calls] if each.more_than is not None else []
        hours = (
            [at.hour for at in (each.clock.start, each.clock.end) if at is not None] if each.clock is not None else []
        )
        told += [said for hour in hours for said in (hour, hour % 12 or 12)]
    return frozenset(float(bound) for bound in told if bound is not None)


def telling_words(text: str) -> frozenset[str]:
    """The words of a text that say what it is about; of Chinese each two that follow one another."""
    words = _words(text)
    latin = {form for word in words if len(word) > 1 and word not in _TOO_COMMON for form in (word, _stem(word))}
    pairs = {one + other for one, other in pairwise(words) if min(one, other) > "\u3000"}
    return frozenset(latin | pairs)


def _stem(word: str) -> str:
    """Without what makes it a plural or a form of a verb."""
    ends = (end for end in ("ing", "ed", "es", "s") if word.endswith(end) and len(word) - len(end) > _SHORTEST_STEM)
    return word.removesuffix(next(ends, ""))


def _words(text: str) -> list[str]:
    found = _WORD.findall(plain(text)[:100_000])
    return [part for word in found for part in {word, *word.replace("-", "_").split("_")} if part]
