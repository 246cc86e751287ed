"""Text in a message that its author only shows: quotes, code, forwarded mail, log lines. It never makes a rule."""

from __future__ import annotations

from toolmem.rules.capture.cues import TABLES, Forms

MASK = "\ue000"  # a private character in place of each masked one, so that positions stay

# The forms of such lines stand in `shown_text.yaml`.
_LINES = TABLES["shown_text"]["lines"]
_FORM = Forms(_LINES)
_QUOTES = sorted(name for name in _LINES if name.startswith("quote_"))
# Texts that run over several lines: how they begin, and how they end.
_COMMENTS = (("/*", "*/"), ("<!--", "-->"))


def mask_pasted(message: str) -> str:
    """`message` with everything that is only shown replaced by MASK, character by character; line breaks stay."""
    masked = _mask_lines(message)
    for quote in _QUOTES:
        masked = _FORM[quote].sub(lambda shown: MASK * len(shown[0]), masked)
    return masked


def _mask_lines(message: str) -> str:
    lines = message.split("\n")
    masked: list[str] = []
    fenced = forwarded = False
    blank_before = True
    letter = _letter_from(lines)
    elsewhere = _over_lines(lines)
    for position, line in enumerate(lines):
        fence = bool(_FORM["fence"].match(line))
        if not forwarded and not fenced and not fence:
            forwarded = position >= letter or _begins_forward(lines, position)
        shown = forwarded or fenced or fence or elsewhere[position] or bool(_FORM["shown_line"].match(line))
        shown = shown or (blank_before and bool(_FORM["indented"].match(line)) and not _FORM["bullet"].match(line))
        if fence:
            fenced = not fenced
        blank_before = not line.strip() or (shown and bool(_FORM["indented"].match(line)))
        masked.append(_cover(line) if shown else _FORM["log_tag"].sub(lambda tail: _cover(tail[0]), line))
    return "\n".join(masked)


def _letter_from(lines: list[str]) -> int:
    """The line with which a letter to somebody else begins; the number of lines where there is none.

    A greeting that opens the message may be the author's own, unless somebody signs too.
    """
    greeting = next((i for i, line in enumerate(lines) if len(line) < 80 and _FORM["greeting"].match(line)), len(lines))
    if greeting < len(lines) and not any(line.strip() for line in lines[:greeting]):
        signed = any(len(line) < 80 and _FORM["signed"].match(line) for line in lines[greeting + 1 :])
        return greeting if signed else len(lines)
    return greeting


def _over_lines(lines: list[str]) -> list[bool]:
    """Which lines stand in a comment, between tags, in a diff or in a dialogue."""
    closes = {match[1]: i for i, line in enumerate(lines) if (match := _FORM["tag_closes"].search(line[-60:]))}
    inside = [False] * len(lines)
    until = -1  # the last line of what was opened
    comment = ""  # what ends it
    talk = diff = False  # these end with a blank line
    for position, line in enumerate(lines):
        if not comment and position > until and (tag := _FORM["tag_opens"].match(line)):
            until = max(until, closes.get(tag[1], -1))
        opened = comment or next((end for begin, end in _COMMENTS if line.lstrip().startswith(begin)), "")
        comment = "" if opened and opened in line else opened
        talk = bool(line.strip()) and (talk or _in_dialogue(lines, position))
        diff = bool(line.strip()) and (diff or bool(_FORM["diff"].match(line)))
        inside[position] = position <= until or bool(opened) or talk or diff
    return inside


def _begins_forward(lines: list[str], position: int) -> bool:
    """A line after which the rest of the message is somebody else's."""
    line = lines[position]
    if len(line) > 300:
        return False
    rest = position + 1 < len(lines)
    if _FORM["forwarded"].match(line):
        return rest
    return rest and bool(_FORM["header"].match(line)) and bool(_FORM["header"].match(lines[position + 1]))


def _in_dialogue(lines: list[str], position: int) -> bool:
    """Does a name and a colon open this line and the one before or after it?"""
    if _FORM["stamped"].match(lines[position]):
        return True
    if not _FORM["speaker"].match(lines[position]):
        return False
    return any(0 <= i < len(lines) and _FORM["speaker"].match(lines[i]) for i in (position - 1, position + 1))


def _cover(text: str) -> str:
    return MASK * len(text)
