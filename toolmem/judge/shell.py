"""Failures that shell commands tell: the shell's own messages, complaints that a program signs, usage texts."""

from __future__ import annotations

import re

from toolmem.judge.evidence import Evidence, in_text, line_end, windows
from toolmem.judge.expectation import Expectation
from toolmem.readers.shell import signers

# the texts of strerror(3), and what shells say of programs
STRERROR = (
    r"(?:no such file or directory|permission denied|is a directory|not a directory|file exists|command not found|"
    r"operation not permitted|no such process|no such device|argument list too long|text file busy|directory not empty|"
    r"read-only file system|too many open files|no space left on device|disk quota exceeded|input/output error|"
    r"connection (?:refused|timed out|reset by peer)|name or service not known|broken pipe|cannot execute binary file|"
    r"exec format error|bad file descriptor|invalid argument|resource temporarily unavailable|device or resource busy|"
    r"not found|network is unreachable|no route to host|invalid cross-device link|too many levels of symbolic links)"
)
# "bash: line 1: foo: command not found", "/bin/sh: 1: cd: can't cd to x", "zsh:1: command not found: foo"
_SHELL_LINE = re.compile(
    r"^(?:(?:/(?:usr/)?bin/)?(?:ba|z|da|k|a|fi)?sh|-bash)(?::(?: ?line)? ?\d{1,6}|: -c){0,4}:[^\n]{0,400}(?:"
    rf"{STRERROR}|can't cd to|syntax error|unexpected EOF|unbound variable|bad substitution|ambiguous redirect|"
    r"not a valid identifier|unexpected token|unexpected end of file|invalid option|unexpected operator|"
    r"event not found|parse error|未找到命令|没有那个文件|权限不够)",
    re.IGNORECASE | re.MULTILINE,
)
# a shell that runs "sh -c ..." under another name: "files: -c: line 1: syntax error: unexpected end of file"
_DASH_C = re.compile(r"^[^\n]{0,300}: -c: line \d{1,6}: (?:syntax error|unexpected|`)", re.MULTILINE)
_UNKNOWN_PROGRAM = re.compile(
    r"^(?:[\w./+-]{1,80}: (?:command )?not found|[^\n]{0,200}is not recognized as (?:an internal|"
    r"the name)[^\n]{0,200}|[^\n:]{1,80}：未找到命令)\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_SIGNED = re.compile(
    r"^(?:[\w.+-]{0,80}/){0,20}([\w.+-]{1,40})(?:\[\d{1,8}\])?: (?:\d{1,6}: )?([^\n]{1,400})", re.MULTILINE
)
_COMPLAINING = re.compile(
    rf"{STRERROR}|\b(?:cannot|can't|could not|couldn't|unable to|failed|failure|invalid|unrecognized|unknown|missing|"
    r"illegal|fatal|error|refusing|omitting directory|extra operand|requires an argument|must (?:be|precede|specify)|"
    r"may not|bad\b|unexpected|syntax|too many|too few|not (?:found|a |an |permitted|allowed|supported|in|set)|"
    r"does not|doesn't|did not|no (?:such|matching|input|job|rule|process)|unterminated|unmatched|runaway|malformed|"
    r"ambiguous|conflict|denied|usage|possible unquoted|only one|warning: skipping|are the same file|out of|abort|"
    r"timed out|not specified|expected|nothing to|only root|are you root|permission)|\*\*\*",
    re.IGNORECASE,
)
_USAGE = re.compile(r"(?:usage|syntax):\s", re.IGNORECASE)
MAX_COMMAND = 4_000  # characters of a command line that are read
_TRY_HELP = re.compile(r"^Try '[^'\n]{1,80} --?h(?:elp)?' ", re.MULTILINE)
_ASKS_HELP = re.compile(r"(?:^|\s)(?:--?h(?:elp)?|-\?|/\?|help|man|--usage|--version|info)\b")


def check(text: str, expected: Expectation) -> Evidence | None:
    """The failure that a shell or one of its programs tells in `text`."""
    found = _shell_line(text, expected)
    if found is not None or expected.kind != "shell":
        return found
    return _signed(text, expected) or _usage(text, expected)


def _shell_line(text: str, expected: Expectation) -> Evidence | None:
    for offset, window in windows(text):
        match = _SHELL_LINE.search(window) or _DASH_C.search(window)
        if match is None and expected.kind == "shell" and len(text) <= 300 and text.strip().count("\n") < 3:
            match = _UNKNOWN_PROGRAM.search(window)
        if match is None or (expected.kind != "shell" and window[: match.start()].strip()):
            continue
        start = offset + match.start()
        name = "syntax_error" if ": -c:" in match[0] else ""
        return in_text("shell message", text, start, line_end(text, start), name)
    return None


def _signed(text: str, expected: Expectation) -> Evidence | None:
    """A complaint signed by a program of the command line."""
    programs, hidden = signers(expected.command[:MAX_COMMAND])
    for offset, window in windows(text):
        for match in _SIGNED.finditer(window):
            if match[1] not in programs or not _COMPLAINING.search(match[2]):
                continue
            alone = not window[: match.start()].strip()
            if match[1] in hidden and not alone:
                continue
            start = offset + match.start()
            return in_text("message of a program", text, start, line_end(text, start))
    return None


def _usage(text: str, expected: Expectation) -> Evidence | None:
    """A usage text that nobody asked for."""
    if _ASKS_HELP.search(expected.command):
        return None
    head = text[:1_000]
    begin = len(head) - len(head.lstrip())
    match = _TRY_HELP.search(head) or _USAGE.match(head, begin)
    if match is None:
        return None
    return in_text("usage text", text, match.start(), line_end(text, match.start()), "syntax_error")
