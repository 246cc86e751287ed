"""Failures told in a sentence: openings, short complaints, HTTP and markup answers; and answers that say "nothing".

Three readings, from the surest to the least sure. An *opening* ("Error: ...", "ValueError: ...", "HTTP/1.1 404")
counts wherever an answer begins with it. A *complaint* ("... does not exist", "cannot ...") counts in an answer that
is one short message. In a text written by somebody else (a page, a mail, a log) it must also stand at its beginning.
"""

from __future__ import annotations

import re

from toolmem.judge import wording
from toolmem.judge.expectation import Expectation
from toolmem.judge.failure_evidence import Evidence, in_text, line_end
from toolmem.readers.error_classes import class_of_status, error_class_of

HEAD = 1_500  # characters from the beginning in which an opening is looked for
SHORT = 420  # characters up to which an answer counts as one message
SHORT_LINES = 5

_DECORATION = re.compile(r"[\s\[(<{*_#>`'\"❌✗✘⚠️🚫❗-]{0,40}")
_QUOTED = re.compile(r"\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」")
_NUMBER_LIKE = re.compile(r"[-+\d.,:%\s]+")
_HEADER = re.compile(r"(?:From|To|Subject|Date|Title|Author|Summary|Source|URL|Description|Content):\s", re.IGNORECASE)
_RULED_TABLE = re.compile(r"^[\s|+:=-]{0,200}[-=+|]{3}", re.MULTILINE)
_COMMA_ROW = re.compile(r"^[^\n,]{0,200},[^\n,]{0,200},", re.MULTILINE)
_LISTED = re.compile(r"^[\w.-]{1,40}: \S", re.MULTILINE)
_REPR_LIST = re.compile(
    r"\s{0,20}(?:\[[A-Z]\w{1,60}\(|#{1,6}\s[^\n]{1,200}\n)"
)  # a printed list of objects, a Markdown page
_FILE_LINE = re.compile(r"\s{0,20}[^\s:]{1,200}\.\w{1,6}:\d{1,7}:")
_NUMBERED = re.compile(r"^\s{0,8}(?:\d{1,4}[.)、]|[-*•])\s", re.MULTILINE)
_FILE_NAME = re.compile(r"\b[\w-]{1,60}\.[a-z]{1,5}\d?\b(?![.\w])")
_ADVICE = re.compile(
    r"(?:please|check|make sure|try|did you mean|see|available|valid|expected|ensure)\b",
    re.IGNORECASE,
)
_APOLOGY = re.compile(r"\s*(?:(?:i'?m |i am )?(?:very )?sorry|oops|apologies|抱歉|对不起)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?]\s+[A-Z]|[。！？]\s*\S")
_LONG_MESSAGES = ("Traceback (most recent", "For further information visit")  # of Python and of pydantic
_VAGUE = frozenset({"error", "errors", "failure", "exception", "unexpected"})


def is_empty_text(text: str) -> bool:
    """ "No results found.", "(empty)", "Empty set": ran well, nothing to show."""
    return len(text) <= 200 and text.count("\n") <= 2 and wording.EMPTY_ANSWER.match(text) is not None


def check(text: str, expected: Expectation) -> Evidence | None:
    """The failure that `text` tells as a message, if it tells one."""
    head = text[:HEAD]
    decoration = _DECORATION.match(head)
    start = decoration.end() if decoration else 0
    first = head[start:]
    if not first.strip():
        return None
    if head.lstrip()[:1] == "<":
        return _in_markup(text)
    if is_empty_text(text) and not (expected.changes and "found" in text):
        return None
    return (
        _http_line(text, first, start)
        or _opening(text, first, start, expected)
        or _complaint(text, expected)
        or _chinese(text, expected)
    )


def _in_markup(text: str) -> Evidence | None:
    window = text[:4_000]
    begin = len(window) - len(window.lstrip())
    if (opened := wording.XML_ERROR.match(window, begin)) is not None:
        told = wording.XML_MESSAGE.search(window)
        if told is not None:
            return in_text("XML error message", text, told.start(1), told.end(1))
        return in_text("XML error", text, begin, min(opened.end() + 200, len(text)))
    told = wording.XML_MESSAGE.search(window) if ":Fault" in window else None
    if told is not None:
        return in_text("SOAP fault", text, told.start(1), told.end(1))
    title = wording.HTML_TITLE.search(window)
    if title is None:
        return None
    code = title[1] or title[3]
    name = class_of_status(int(code)) if code else ""
    return in_text("HTML error page", text, title.start(), title.end() - 1, name)


def _http_line(text: str, first: str, start: int) -> Evidence | None:
    match = wording.HTTP_LINE.match(first)
    if match is None or (len(text) > SHORT and not first.upper().startswith("HTTP")):
        return None
    if match.end() == match.end(1) and not match[0].lower().startswith(("http", "status", "error")):
        return None  # a bare number
    return in_text("HTTP status line", text, start, line_end(text, start), class_of_status(int(match[1])))


def _opening(text: str, first: str, start: int, expected: Expectation) -> Evidence | None:
    strict = expected.kind in ("content", "shell", "program")
    pattern = wording.STRICT_OPENING if strict else wording.OPENING
    match = pattern.match(first) or wording.FORM_REFUSED.match(first)
    if match is None or _REPR_LIST.match(text) or wording.MEASURED.match(first) or wording.HARMLESS.match(first):
        return None
    rest = text[start + match.end() : start + match.end() + 40]
    if rest.strip() and _NUMBER_LIKE.fullmatch(rest) and "error" in match[0].lower() and match[0][0].islower():
        return None  # printed by a program that measures: "error: 3"
    if (expected.kind == "content" or expected.echoes) and not _may_open_content(text):
        return None
    end = line_end(text, start)
    if end - start < len(match[0]) + 2:  # "ERROR:" alone on its line: the message is on the next one
        end = line_end(text, min(end + 1, len(text)))
    name = error_class_of(text[start:end])
    return in_text(
        "error message", text, start, end, name if name != "error" else error_class_of(text[start : end + 300])
    )


def _may_open_content(text: str) -> bool:
    """In a page or file "Error: ..." is a heading, unless it stands alone or is of a kind that runs over many lines."""
    if _is_short(text) and text.strip().count("\n") <= 1:
        return True
    return any(mark in text[:HEAD] for mark in _LONG_MESSAGES) and not text.lstrip().startswith("Traceback")


def _complaint(text: str, expected: Expectation) -> Evidence | None:
    if expected.kind in ("shell", "program") or not _is_short(text):
        return None  # what programs print is read line by line in programs.py
    if _looks_like_data(text) or (expected.asks and len(_SENTENCE_END.findall(text)) > 1):
        return None  # three sentences are an answer
    bare = wording.HARMLESS.sub(_blank, _FILE_NAME.sub(_blank, _QUOTED.sub(_blank, text)))
    told = _first_sentence(bare)
    match = wording.COMPLAINT.search(told)
    if match is None:
        return None
    done = wording.DONE.match(bare) or wording.DID.match(bare)
    if done is not None and done.end() <= match.start() + 1:
        return None
    if expected.kind == "content" and not _opens_with(bare, match, 4 if expected.renders else 1):
        return None
    status = wording.HTTP_IN_MESSAGE.search(bare)
    name = class_of_status(int(status[1])) if status else ""
    return in_text("message", text, len(text) - len(text.lstrip()), len(text.rstrip()), name)


def _first_sentence(text: str) -> str:
    """What a message about the call says first. A question is not one."""
    begin = len(text) - len(text.lstrip())
    line = text[: line_end(text, begin)]
    end = _SENTENCE_END.search(line, begin)
    if end is None:
        return "" if line.rstrip().endswith(("?", "？")) else line
    if end[0][0] in "?？":
        return ""
    sorry = _APOLOGY.match(line, begin)
    return line if sorry is not None and end.start() <= sorry.end() + 1 else line[: end.start() + 1]


def _looks_like_data(text: str) -> bool:
    """A mail, a table, rows of values, a numbered list, a listing of "name: value" or "file:line:" lines."""
    if (
        _HEADER.match(text.lstrip()[:40])
        or _REPR_LIST.match(text)
        or _FILE_LINE.match(text)
        or len(_LISTED.findall(text)) > 1
    ):
        return True
    if "\n" not in text.strip():
        return False
    return _RULED_TABLE.search(text) is not None or max(len(_COMMA_ROW.findall(text)), len(_NUMBERED.findall(text))) > 1


def _opens_with(text: str, match: re.Match[str], fewest: int) -> bool:
    """One line, and the complaint stands where a message about the call has it: in the first words."""
    line = text.strip()
    if "\n" in line or len(line) > 200:
        return False
    sentence = _SENTENCE_END.search(line)
    if sentence is not None and not _ADVICE.match(line, sentence.end() - 1):
        return False
    if line.startswith(("I ", "I'", "We ")) or match[0].lower() in _VAGUE or len(line.split()) < fewest:
        return False
    return len(text[: match.start()].split()) <= 4


def _chinese(text: str, expected: Expectation) -> Evidence | None:
    if len(text) > 100 or text.count("\n") > 2 or len(_NUMBERED.findall(text)) > 1:
        return None
    match = wording.COMPLAINT_ZH.search(text)
    if match is None or (wording.DONE_ZH.search(text) and "失败" not in text[: match.end()]):
        return None
    if expected.kind == "content" and (match.start() > 12 or len(text) > 40 or match[0] == text.strip()):
        return None
    prose = text.count("，") + text.count("。") > 3 or (match.start() == 0 and "。" in text[:-1])
    if prose:
        return None
    return in_text("message", text, len(text) - len(text.lstrip()), len(text.rstrip()))


def _is_short(text: str) -> bool:
    return len(text) <= SHORT and text.strip().count("\n") < SHORT_LINES


def _blank(match: re.Match[str]) -> str:
    return " " * (match.end() - match.start())
