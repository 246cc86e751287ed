"""What a failed call wrote: its error beside what only says that it failed, and what came of it all the same."""

from __future__ import annotations

import re

from toolmem.guard.word_lists import split
from toolmem.late import late_pattern

_SAYS_A_CODE = split(
    "a an by code command completed ended error errors exit exited failed finished has in job non non-zero nonzero of "
    "process program return returned script shell shellid signal status task terminated the tool was with"
)
_NAMES_IT = frozenset(("code", "exit", "exited", "signal", "status"))
_WORD = late_pattern(r"[A-Za-z]+(?:-[A-Za-z]+)*")
_LONGEST_LINE = 200  # characters of a line that says no more than a code
_MOST_LINES = 4  # such lines
_LOOKED_AT = 4000  # characters of the beginning of an output, and of its end
# What runners of tests count, whichever language they are for.
_TESTS_FAILED = late_pattern(
    r"\b[1-9]\d{0,6}\s(?:of\s\d{1,7}\s)?(?:tests?\s|specs?\s|examples?\s|assertions?\s|scenarios?\s|suites?\s)?"
    r"(?:have\s|has\s|are\s|is\s)?(?:failed|failing|failures?)\b"
    r"|\b(?:failed|failing|failures?)(?:\s(?:tests?|specs?))?\s?[=:]\s?[1-9]\d{0,6}\b"
    r"|\bfailed [1-9]\d{0,6} (?:of \d{1,7} )?tests?\b"
    r"|^\s{0,8}(?:--- FAIL\b|FAIL[\s:]|FAILED\b|not ok \d)|\btests? result: FAILED|\btests? (?:have )?failed\b"
    r"|(?-i:(?<!BUILD )\bFAIL(?:ED)?\b(?= (?:code|in)\b))"
    r"|\bfailing tests?\b|^\W{0,8}fail\s{1,8}[1-9]|测试(?:失败|未通过|没有通过)|个(?:测试|用例)(?:失败|未通过)",
    re.IGNORECASE | re.MULTILINE,
)
_NOT_YET = late_pattern(
    r"\bstill (?:running|building|processing|starting|pending|in progress|initiali[sz]ing|loading|deploying|open)\b"
    r"|\b(?:in progress|pending|queued|starting up|not yet|not ready|try again|please retry)\b"
    r"|尚未|正在(?:运行|处理|启动|构建)|稍后",
    re.IGNORECASE,
)
# Formatters, fixers and merges that end with a failure have written all the same.
_CHANGED = late_pattern(
    r"\bfiles? (?:were|was|have been|has been) (?:modified|changed|reformatted|updated|rewritten|fixed)\b"
    r"|\b[1-9]\d{0,6} (?:[a-z]{1,20} )?(?:reformatted|fixed|rewritten|modified|formatted)\b"
    r"|\b(?:fixed|formatted|reformatted|rewrote|fixing|modified):? (?:[1-9]\d{0,6} |\S{1,200}\.\w{1,8}\b)"
    r"|\bapplied [1-9]\d{0,6} (?:[a-z]{1,20} )?fix(?:es)?\b"
    r"|^CONFLICT \(|\bAutomatic merge failed\b|\bAuto-merging\b",
    re.IGNORECASE | re.MULTILINE,
)


def without_exit_code(output: str) -> tuple[str, str]:
    """An output without what stands at its beginning or end and says no more than an exit code; and that."""
    text, said = output.strip(), ""
    for _ in range(_MOST_LINES):
        first, last = text[:_LOOKED_AT].partition("\n")[0], text[-_LOOKED_AT:].rpartition("\n")[2]
        if text and _is_code(first):
            text, said = text[len(first) :].lstrip(), said or first
        elif text and _is_code(last):
            text, said = text[: len(text) - len(last)].rstrip(), said or last
        else:
            break
    return text, said.strip()


def says_tests_failed(output: str) -> bool:
    """Did tests run, and some of them fail? They may come out differently when they run again."""
    return _says(_TESTS_FAILED, output)


def says_not_yet(output: str) -> bool:
    """Does it wait for something that goes on elsewhere?"""
    return _says(_NOT_YET, output)


def says_it_changed(output: str) -> bool:
    """Has a call that failed written something all the same, as it says itself?"""
    return _says(_CHANGED, output)


def _is_code(line: str) -> bool:
    words = [word.lower() for word in _WORD.findall(line)] if len(line) <= _LONGEST_LINE else []
    return bool(words) and _SAYS_A_CODE.issuperset(words) and not _NAMES_IT.isdisjoint(words)


def _says(pattern: re.Pattern[str], output: str) -> bool:
    looked = output if len(output) <= 2 * _LOOKED_AT else f"{output[:_LOOKED_AT]}\n{output[-_LOOKED_AT:]}"
    return pattern.search(looked) is not None
