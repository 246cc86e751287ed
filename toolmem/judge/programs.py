"""Failures printed by shells and programs: exit codes, time-outs, signed complaints, tracebacks, builds, test runs.

What a program prints is data until it says otherwise, so the word "error" in a line proves nothing here. Proof is a
traceback that the run ended with, or the closing line of a build, a test run or the harness; and for shells a line
that a program of the command line itself signs.
"""

from __future__ import annotations

import re
from pathlib import Path

from toolmem.judge.expectation import Expectation
from toolmem.judge.failure_evidence import Evidence, in_text, line_end, windows
from toolmem.judge.wording import MEASURED
from toolmem.readers import words
from toolmem.readers.error_classes import error_class_of
from toolmem.readers.pattern_lists import sections
from toolmem.readers.shell import signers

_LISTS = dict(sections(Path(__file__).with_name("programs.txt")))
_EXIT = re.compile(
    r"^[\[({<*\s]{0,6}(?:(?:command|process|script|program|task|tool|it) )?(?:\w{1,30} ){0,3}?(?:exit(?:ed)?|"
    r"return(?:ed)?|exit_code|returncode|terminated|failed)(?: with)?(?: (?:a )?(?:non-?zero)?)?[\s_-]{0,3}(?:exit "
    r"code|exit status|return code|error code|status|code)?\s{0,3}(?:of )?[:=]?\s{0,3}(-?\d{1,6})\b",
    re.IGNORECASE | re.MULTILINE,
)
_SAYS_EXIT = re.compile(r"code|status|exited|returned", re.IGNORECASE)
_REPORTS_EXIT = re.compile(r"command|process|script|exit(?:ed)?[ _](?:with|code|status)", re.IGNORECASE)
_TIMED_OUT = re.compile(
    r"^[\[({<*\s]{0,6}(?:error:\s?)?(?:the )?(?:command|process|execution|request|operation|script|tool|connection|"
    r"session|query|task|job)(?: '[^'\n]{0,200}')? (?:has |was )?(?:timed?[ -]?out|killed|terminated after|"
    r"exceeded)[^\n]{0,300}",
    re.IGNORECASE | re.MULTILINE,
)
_EDGE = 400  # characters at the beginning and at the end where a harness reports

_TRACEBACK = re.compile(r"^[^\n]{0,200}Traceback \(most recent call last\)", re.MULTILINE)
_RAISED = re.compile(
    r"^(?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception|Exit|Interrupt|Timeout|Warning|"
    r"Iteration)\b(?::[^\n]*)?|^(?:[a-z_]\w{0,60}\.){1,6}[A-Z]\w{1,60}: [^\n]+",
    re.MULTILINE,
)
_SYNTAX_ERROR = re.compile(r"^(?:SyntaxError|IndentationError|TabError): [^\n]*", re.MULTILINE)
_STACK = re.compile("^" + _LISTS["uncaught"], re.MULTILINE)
_LISTED_LINE = re.compile(r"\s{0,20}(?:\d{1,7}[:\t|-]|[+>|#*-]\s)")  # a line of a listing, a diff or a quotation

_CLOSING = re.compile(r"(?:\[(?:INFO|ERROR)\]\s|[│|]\s)?" + _LISTS["closing line"])
_CLOSING_LINES = 12
_INTERPRETERS = words(
    "python python3 python2 node ruby perl php java pytest Rscript deno bun go cargo npm npx make cmake mvn gradle"
)
_WORD = re.compile(r"[\w.+-]{1,80}")

# "bash: line 1: foo: command not found", "/bin/sh: 1: cd: can't cd to x", "zsh:1: command not found: foo"
_SHELL_LINE = re.compile(
    r"^(?:(?:/(?:usr/)?bin/)?(?:ba|z|da|k|a|fi)?sh|-bash)(?::(?: ?line)? ?\d{1,6}|: -c){0,4}:[^\n]{0,400}"
    + _LISTS["shell complaint"],
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
_COMPLAINING = re.compile(_LISTS["complaint of a program"], re.IGNORECASE)
_USAGE = re.compile(r"(?:usage|syntax):\s", re.IGNORECASE)
_MAX_COMMAND = 4_000  # characters of a command line that are read
_TRY_HELP = re.compile(r"^Try '[^'\n]{1,80} --?h(?:elp)?' ", re.MULTILINE)
_ASKS_HELP = re.compile(r"(?:^|\s)(?:--?h(?:elp)?|-\?|/\?|help|man|--usage|--version|info)\b")


def check(text: str, expected: Expectation) -> Evidence | None:
    """The failure that the printed `text` gives away, if it does."""
    if expected.kind not in ("shell", "program", "unknown"):
        return _traceback(text, expected)
    return _harness(text, expected) or _shell(text, expected) or _traceback(text, expected) or _closing(text, expected)


def _harness(text: str, expected: Expectation) -> Evidence | None:
    """What the runner of the command says at the beginning or the end: an exit code, a time-out."""
    for offset in dict.fromkeys((0, max(0, len(text) - _EDGE))):
        window = text[offset : offset + _EDGE]
        for pattern, kind in ((_TIMED_OUT, "time-out"), (_EXIT, "exit code")):
            match = pattern.search(window)
            if match is None or not _at_edge(window, match, offset, len(text)):
                continue
            if kind == "time-out":
                return in_text(kind, text, offset + match.start(), offset + match.end(), "timeout")
            if int(match[1]) != 0 and _SAYS_EXIT.search(match[0]) and not _is_data(match[0], expected):
                name = {"124": "timeout", "127": "command_not_found"}.get(match[1], "")
                return in_text(kind, text, offset + match.start(), offset + match.end(), name)
    return None


def _at_edge(window: str, match: re.Match[str], offset: int, length: int) -> bool:
    first = offset == 0 and not window[: match.start()].strip()
    last = offset + len(window) >= length and "\n" not in window[match.end() :].strip()
    return first or last


def _is_data(match: str, expected: Expectation) -> bool:
    """The command printed it itself, or it is prose ("code 12")."""
    if expected.echoes:
        return match.strip() in expected.command or not _REPORTS_EXIT.search(match)
    return expected.kind == "unknown" and "exit" not in match.lower()


def _traceback(text: str, expected: Expectation) -> Evidence | None:
    """A traceback with which the output begins or ends, and the exception that it names."""
    if expected.echoes and not runs_something(expected.command):
        return None
    if expected.kind == "content" and not text[:200].lstrip().startswith(("Traceback", "---------")):
        return None
    slack = 0 if expected.kind == "content" else 600  # a log goes on after a traceback
    for offset, window in windows(text):
        found = _python_traceback(text, offset, window, slack)
        if found is not None:
            return found
        match = _SYNTAX_ERROR.search(window)
        if match is not None and _near_end(text, offset + match.end(), 200):
            return in_text("exception", text, offset + match.start(), offset + match.end(), "syntax_error")
        match = _STACK.search(window)
        if match is not None and expected.kind != "content":
            return _exception(text, offset + match.start())
    return None


def _python_traceback(text: str, offset: int, window: str, slack: int) -> Evidence | None:
    begin = _TRACEBACK.search(window)
    if begin is None or _LISTED_LINE.match(begin[0]):
        return None
    raised = max(_RAISED.finditer(window, begin.end()), key=re.Match.start, default=None)
    if raised is not None and _near_end(text, offset + raised.end(), slack):
        return _exception(text, offset + raised.start())
    if raised is None or (slack and not window[: begin.start()].strip()):
        return in_text("traceback", text, offset + begin.start(), offset + begin.end(), "exception")
    return None


def _near_end(text: str, position: int, slack: int) -> bool:
    return len(text.rstrip()) - position <= slack


def _exception(text: str, start: int) -> Evidence:
    end = line_end(text, start)
    name = error_class_of(text[start:end])
    return in_text("exception", text, start, end, "exception" if name == "error" else name)


def _closing(text: str, expected: Expectation) -> Evidence | None:
    """The last lines of a build, a test run or an installer."""
    if expected.kind == "unknown" and len(text) < 40:
        return None
    if expected.kind == "shell" and expected.echoes and not runs_something(expected.command):
        return None  # grep, cat, git log: its lines are data
    position = max(0, len(text) - 1_500)
    lines = []
    for line in text[position:].rstrip().split("\n"):
        lines.append((position, line))
        position += len(line) + 1
    for start, line in lines[-_CLOSING_LINES:]:
        if len(line) < 500 and _CLOSING.match(line) and not MEASURED.match(line):
            name = error_class_of(line)
            return in_text(
                "closing message", text, start, start + len(line), "failed_check" if name == "error" else name
            )
    return None


def runs_something(command: str) -> bool:
    """The command line calls an interpreter or a build tool, which may fail in its own ways."""
    return any(word in _INTERPRETERS for word in _WORD.findall(command[:2_000]))


# ---------------------------------------------------------------- shells


def _shell(text: str, expected: Expectation) -> Evidence | None:
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
    programs, hidden = signers(expected.command[:_MAX_COMMAND])
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
