"""Find the failures that shells and programs print: exit codes, time-outs, tracebacks, builds.

The word "error" in what a program prints proves nothing. These prove a failure: an exit code or
time-out from the harness that ran it, a traceback at the end, the report of a failed build or test,
a usage text that nobody asked for, and a complaint that begins with the name of a shell or program.
"""

from __future__ import annotations

import re
from itertools import dropwhile, zip_longest

from toolmem.judge.evidence import Evidence, in_line, in_text, line_end
from toolmem.judge.expectation import Expectation
from toolmem.judge.text import WORDS
from toolmem.text.error_lines import error_class_of
from toolmem.text.forms import word_set
from toolmem.text.patterns import late_pattern

EDGE = 400  # characters at the beginning and at the end where a harness reports
WINDOW = 6_000  # characters at the beginning and at the end of a long text that are read
CLOSING_LINES = 12  # last lines among which the closing line may be
LONGEST_COMMAND = 4_000  # characters of a command line that are read

_EXIT_CLASSES = {"124": "timeout", "127": "command_not_found"}
_SAYS_EXIT = re.compile(r"code|status|exited|returned", re.IGNORECASE)
_REPORTS_EXIT = re.compile(
    r"command|process|script|exit(?:ed)?[ _](?:with|code|status)", re.IGNORECASE
)
_TRACEBACK = re.compile(r"^[^\n]{0,200}Traceback \(most recent call last\)", re.MULTILINE)
_RAISED = re.compile(
    r"^(?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception|Exit|Interrupt|Timeout|Warning|"
    r"Iteration)\b(?::[^\n]*)?|^(?:[a-z_]\w{0,60}\.){1,6}[A-Z]\w{1,60}: [^\n]+",
    re.MULTILINE,
)
_SYNTAX_ERROR = re.compile(r"^(?:SyntaxError|IndentationError|TabError): [^\n]*", re.MULTILINE)
_LISTED_LINE = re.compile(r"\s{0,20}(?:\d{1,7}[:\t|-]|[+>|#*-]\s)")  # of a listing, a diff
_INTERPRETERS = word_set(
    "python python3 python2 node ruby perl php java pytest Rscript deno bun go cargo npm npx make "
    "cmake mvn gradle"
)
# "ls: cannot access 'x'", "/usr/bin/sort[12]: 3: ..."
_SIGNED = re.compile(
    r"^(?:[\w.+-]{0,80}/){0,20}([\w.+-]{1,40})(?:\[\d{1,8}\])?: (?:\d{1,6}: )?([^\n]{1,400})",
    re.MULTILINE,
)
_USAGE = re.compile(r"(?:usage|syntax):\s", re.IGNORECASE)
_TRY_HELP = re.compile(r"^Try '[^'\n]{1,80} --?h(?:elp)?' ", re.MULTILINE)
_ASKS_FOR_HELP = re.compile(r"(?:^|\s)(?:--?h(?:elp)?|-\?|/\?|help|man|--usage|--version|info)\b")
_QUOTED = late_pattern(r"'[^']*'|\"(?:[^\"\\]|\\.)*+\"", re.DOTALL)
_COMMENT = late_pattern(r"^[^\S\n]*+#[^\n]*", re.MULTILINE)
_JOINT = late_pattern(r"\|\||&&|\||;|\n|&(?!\d)|\$\(|`|(?<!\\)\)")  # `$(...)` holds another command
_WORD = late_pattern(r"[\w./+-]{1,80}")
_WRAPPER = late_pattern(  # a word before the program: `sudo`, a keyword of the shell, a variable
    r"(?:sudo|env|time|nohup|exec|command|builtin|then|do|else|if|elif|while|until|!)\Z"
    r"|[A-Za-z_]\w*="
)
_HIDES = frozenset(("|", ";", "\n", "||"))  # the exit status of `a | b` and of `a ; b` is that of b


def check(text: str, expected: Expectation) -> Evidence | None:
    """Find the failure that the printed `text` shows; return None if it shows none."""
    if expected.kind not in ("shell", "program", "unknown"):
        return _traceback(text, expected)
    return (
        _harness_report(text, expected)
        or _shell_message(text, expected)
        or _signed_message(text, expected)
        or _usage(text, expected)
        or _traceback(text, expected)
        or _closing_line(text, expected)
    )


def _only_echoes(expected: Expectation) -> bool:
    """Whether a command only prints data (grep, cat, git log) and runs no code or build."""
    return expected.echoes and _INTERPRETERS.isdisjoint(_WORD.findall(expected.command[:2_000]))


def _windows(text: str) -> list[tuple[int, int]]:
    """Return (begin, end) of the parts to read: the whole text, or both ends of a long text."""
    if len(text) <= 2 * WINDOW:
        return [(0, len(text))]
    cut = len(text) - WINDOW
    line = text.find("\n", cut, cut + 2_000)
    return [(0, WINDOW), (line + 1 or cut, len(text))]


def _harness_report(text: str, expected: Expectation) -> Evidence | None:
    """Find the exit code or time-out that the harness reports at the beginning or the end."""
    for offset in dict.fromkeys((0, max(0, len(text) - EDGE))):
        edge = text[offset : offset + EDGE]
        is_end = offset + len(edge) >= len(text)
        for name in ("timed out", "exit code"):
            match = WORDS[name].search(edge)
            if match is None:
                continue
            first = offset == 0 and not edge[: match.start()].strip()
            last = is_end and "\n" not in edge[match.end() :].strip()
            if not (first or last):
                continue
            start, end = offset + match.start(), offset + match.end()
            if name == "timed out":
                return in_text("time-out", text, start, end, "timeout")
            code = match["exit"]
            if int(code) != 0 and _SAYS_EXIT.search(match[0]) and not _is_data(match[0], expected):
                return in_text("exit code", text, start, end, _EXIT_CLASSES.get(code, ""))
    return None


def _is_data(report: str, expected: Expectation) -> bool:
    """Whether a report is not the harness's own: the command printed it, or it is prose."""
    if expected.echoes:
        return report.strip() in expected.command or not _REPORTS_EXIT.search(report)
    return expected.kind == "unknown" and "exit" not in report.lower()


def _shell_message(text: str, expected: Expectation) -> Evidence | None:
    """Find the shell's own message: `bash: line 1: foo: command not found`, `foo: not found`."""
    few_lines = len(text) <= 300 and text.strip().count("\n") < 3
    for begin, end in _windows(text):
        match = WORDS["shell message"].search(text, begin, end)
        if match is None and expected.kind == "shell" and few_lines:
            match = WORDS["unknown program"].search(text)
        if match and (expected.kind == "shell" or not text[begin : match.start()].strip()):
            error_class = "syntax_error" if ": -c:" in match[0] else ""
            return in_line("shell message", text, match.start(), error_class)
    return None


def _signed_message(text: str, expected: Expectation) -> Evidence | None:
    """Find a complaint that begins with the name of a program of the command line.

    If a pipe or `;` hides the exit status of that program, only the first line counts.
    """
    names, hidden = _programs(expected.command)
    for begin, end in _windows(text) if names else ():
        for match in _SIGNED.finditer(text, begin, end):
            if match[1] not in names or not WORDS["complaint of a program"].search(match[2]):
                continue
            if match[1] not in hidden or not text[begin : match.start()].strip():
                return in_line("message of a program", text, match.start())
    return None


def _usage(text: str, expected: Expectation) -> Evidence | None:
    """Find a usage text that the command did not ask for: a sign of wrong arguments."""
    if expected.kind != "shell" or _ASKS_FOR_HELP.search(expected.command):
        return None
    head = text[:1_000]
    match = _TRY_HELP.search(head) or _USAGE.match(head, len(head) - len(head.lstrip()))
    return in_line("usage text", text, match.start(), "syntax_error") if match else None


def _traceback(text: str, expected: Expectation) -> Evidence | None:
    """Find a traceback at the beginning or end of the output, and the exception that it names."""
    is_content = expected.kind == "content"
    opens = text[:200].lstrip().startswith(("Traceback", "---------"))
    if (is_content and not opens) or _only_echoes(expected):
        return None
    for begin, end in _windows(text):
        found = _python_traceback(text, begin, end, 0 if is_content else 600)
        if found is not None:
            return found
        match = _SYNTAX_ERROR.search(text, begin, end)
        if match is not None and _is_near_end(text, match.end(), 200):
            return in_text("exception", text, *match.span(), "syntax_error")
        match = None if is_content else WORDS["uncaught exception"].search(text, begin, end)
        if match is not None:
            return _exception(text, match.start())
    return None


def _python_traceback(text: str, begin: int, end: int, slack: int) -> Evidence | None:
    """Find the exception of a Python traceback. `slack`: most characters that may follow it."""
    opened = _TRACEBACK.search(text, begin, end) if "Traceback" in text else None
    if opened is None or _LISTED_LINE.match(opened[0]):
        return None
    raised = max(_RAISED.finditer(text, opened.end(), end), key=re.Match.start, default=None)
    if raised is not None and _is_near_end(text, raised.end(), slack):
        return _exception(text, raised.start())
    if raised is None or (slack and not text[begin : opened.start()].strip()):
        return in_text("traceback", text, *opened.span(), "exception")
    return None


def _is_near_end(text: str, position: int, slack: int) -> bool:
    return len(text.rstrip()) - position <= slack


def _exception(text: str, start: int) -> Evidence:
    error_class = error_class_of(text[start : line_end(text, start)], "exception")
    return in_line("exception", text, start, error_class)


def _closing_line(text: str, expected: Expectation) -> Evidence | None:
    """Find the line in which a build, a test run or an installer ends with a failure."""
    if (expected.kind == "unknown" and len(text) < 40) or _only_echoes(expected):
        return None
    lines = text[max(0, len(text) - 1_500) :].rstrip().split("\n")[-CLOSING_LINES:]
    start = len(text.rstrip()) - len("\n".join(lines))
    for line in lines:
        is_closing = len(line) < 500 and WORDS["closing line"].match(line)
        if is_closing and not WORDS["measured"].match(line):
            error_class = error_class_of(line, "failed_check")
            return in_text("closing message", text, start, start + len(line), error_class)
        start += len(line) + 1
    return None


def _programs(command: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return (words that may be programs, programs whose exit status a later part hides)."""
    command = command[:LONGEST_COMMAND]
    names = frozenset(word.rsplit("/", 1)[-1] for word in _WORD.findall(command))
    bare = _QUOTED.sub("''", _COMMENT.sub("", command))
    joints = _JOINT.findall(bare)
    hidden: set[str] = set()
    shown: set[str] = set()
    for part, joint in zip_longest(_JOINT.split(bare), joints, fillvalue=""):
        if word := next(dropwhile(_WRAPPER.match, part.split()), ""):
            name = word.lstrip("(").rsplit("/", 1)[-1]
            (hidden if joint in _HIDES else shown).add(name)
    return names, frozenset(hidden - shown)
