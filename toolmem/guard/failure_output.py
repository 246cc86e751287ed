"""Read an output: text without exit codes, signs of failure, and whether a repeat may differ."""

from __future__ import annotations

import re
from typing import Any

from toolmem.text.forms import word_set
from toolmem.text.patterns import late_pattern

_EXIT_CODE_WORDS = word_set(
    "a an by code command completed ended error errors exit exited failed finished has in job non "
    "non-zero nonzero of process program return returned script shell shellid signal status task "
    "terminated the tool was with"
)
_EXIT_CODE_NOUNS = frozenset(("code", "exit", "exited", "signal", "status"))
_WORD = late_pattern(r"[A-Za-z]+(?:-[A-Za-z]+)*")
_MAX_CODE_LINE = 200  # characters of a line with only an exit code
_MAX_CODE_LINES = 4
_ENDS = 4_000  # characters that are read of each end of an output
# Some tests failed, in the words of many test runners: next time they may pass.
TESTS_FAILED = late_pattern(
    r"\b[1-9]\d{0,6}\s(?:of\s\d{1,7}\s)?(?:tests?\s|specs?\s|examples?\s|assertions?\s|scenarios?\s"
    r"|suites?\s)?(?:have\s|has\s|are\s|is\s)?(?:failed|failing|failures?)\b"
    r"|\b(?:failed|failing|failures?)(?:\s(?:tests?|specs?))?\s?[=:]\s?[1-9]\d{0,6}\b"
    r"|\bfailed [1-9]\d{0,6} (?:of \d{1,7} )?tests?\b"
    r"|^\s{0,8}(?:--- FAIL\b|FAIL[\s:]|FAILED\b|not ok \d)|\btests? result: FAILED"
    r"|\btests? (?:have )?failed\b|(?-i:(?<!BUILD )\bFAIL(?:ED)?\b(?= (?:code|in)\b))"
    r"|\bfailing tests?\b|^\W{0,8}fail\s{1,8}[1-9]"
    r"|测试(?:失败|未通过|没有通过)|个(?:测试|用例)(?:失败|未通过)",
    re.I | re.M,
)
# Something else is still running or not ready.
PENDING = late_pattern(
    r"\bstill (?:running|building|processing|starting|pending|in progress|initiali[sz]ing|loading"
    r"|deploying|open)\b|\b(?:in progress|pending|queued|starting up|not yet|not ready|try again"
    r"|please retry)\b|尚未|正在(?:运行|处理|启动|构建)|稍后",
    re.I,
)
# Formatters, fixers and merges may change files and fail.
CHANGED = late_pattern(
    r"\bfiles? (?:were|was|have been|has been) (?:modified|changed|reformatted|updated|rewritten"
    r"|fixed)\b"
    r"|\b[1-9]\d{0,6} (?:[a-z]{1,20} )?(?:reformatted|fixed|rewritten|modified|formatted)\b"
    r"|\b(?:fixed|formatted|reformatted|rewrote|fixing|modified):?"
    r" (?:[1-9]\d{0,6} |\S{1,200}\.\w{1,8}\b)|\bapplied [1-9]\d{0,6} (?:[a-z]{1,20} )?fix(?:es)?\b"
    r"|^CONFLICT \(|\bAutomatic merge failed\b|\bAuto-merging\b",
    re.I | re.M,
)


def without_exit_code(output: str) -> tuple[str, str]:
    """Split an output into its text without exit-code lines, and the first such line."""
    text = output.strip()
    code = ""
    for _ in range(_MAX_CODE_LINES):
        first = text[:_ENDS].partition("\n")[0]
        last = text[-_ENDS:].rpartition("\n")[2]
        if text and _is_exit_code(first):
            text = text[len(first) :].lstrip()
            code = code or first
        elif text and _is_exit_code(last):
            text = text[: len(text) - len(last)].rstrip()
            code = code or last
        else:
            break
    return text, code.strip()


def occurs(pattern: re.Pattern[str], output: str) -> bool:
    """Whether a pattern is found in the first or last 4,000 characters of an output."""
    ends = output if len(output) <= 2 * _ENDS else f"{output[:_ENDS]}\n{output[-_ENDS:]}"
    return pattern.search(ends) is not None


def _is_exit_code(line: str) -> bool:
    words = {word.lower() for word in _WORD.findall(line)} if len(line) <= _MAX_CODE_LINE else set()
    return bool(words) and words <= _EXIT_CODE_WORDS and not words.isdisjoint(_EXIT_CODE_NOUNS)


def shows_failure(tool_name: str, arguments: Any, output: str) -> bool:
    """Whether the output of a call shows that it failed. False does not mean that it worked."""
    from toolmem.judge.check import find_evidence  # hooks need it seldom, and it takes time to load
    from toolmem.judge.expectation import expectation

    expected = expectation(tool_name, arguments)
    runs = expected.kind in ("shell", "program") and not expected.echoes  # files may hold the words
    if runs and occurs(TESTS_FAILED, output):
        return True
    return find_evidence(output, expected) is not None
