"""Text in a message that its author only shows: quotes, code, forwarded mail, log lines. It never makes a rule."""

from __future__ import annotations

import re

MASK = "\ue000"  # a private character in place of each masked one, so that positions stay

_FENCE = re.compile(r"^\s*(```|~~~)")
_FORWARDED = re.compile(
    r"^\s*(?:-{2,}\s*(?:original|forwarded|原始邮件|转发).*"
    r"|begin forwarded message.*"
    r"|-{2,}\s*(?:原始邮件|转发的?邮件|以下是转发).*"
    r"|on\b.{4,100}\bwrote:\s*"
    r"|.{0,60}(?:写道|来信说)[:：]\s*"
    r"|.{0,80}\b(?:wrote|writes|says|said|reads|message|error|text|output|log|email|mail)\s*(?:is|was)?:\s*)$",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"^\s*(?:from|sent|to|cc|subject|date|reply-to|发件人|收件人|抄送|主题|日期|发送时间|时间)\s*[:：]", re.IGNORECASE
)
_SHOWN_LINE = re.compile(
    r"^\s*(?:[>＞|]|&gt;"  # quoted replies, tables
    r"|\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\[\d\d:\d\d"  # log lines with a time
    r"|\[(?:WARN|WARNING|ERROR|INFO|DEBUG|FATAL|NOTICE|TRACE)\]"
    r"|(?:WARN|WARNING|ERROR|INFO|DEBUG|FATAL|NOTICE|CAUTION|TRACE|HINT)\b\s*[:\-]"
    r"|Traceback \(|>>> |\$ |# |// |/\*|<!--|<\w+[^>]*>|@@ |[+-]{3} |diff --git)"
)
# Words before a colon that open a topic of one's own; any other name opens what that person says.
_TOPICS = (
    r"(?i:e-?mails?|mails?|slack|calendar|browser|shell|terminal|bash|git|sql|db|database|files?|payments?|refunds?"
    r"|deploys?|deployments?|web|api|note|rules?|important|ps|nb|update|todo|reminder|warning|question|task|context"
    r"|please|also|flights?|hotels?|tickets?|orders?|travel|money|search|tools?|request|hi|hello|dear)\b"
)
_TOPICS_ZH = "邮件|付款|退款|部署|日历|文件|注意|要求|规定|以后|终端|搜索|翻译|备注|另外"
# "Bob: don't push" beside "Alice: ok": a chat that is shown.
_SPEAKER = re.compile(
    rf"^\s*(?!{_TOPICS})(?:[A-Z][a-z]{{1,14}}|\[\d\d?:\d\d\] ?\w+|[一-鿿]{{2,3}}(?<!{_TOPICS_ZH}))[:：]\s*\S"
)
_LOG_TAG = re.compile(r"\[(?:WARN|WARNING|ERROR|INFO|DEBUG|FATAL|NOTICE|TRACE)\].*")
_BULLET = re.compile(r"^\s*(?:[-*•·]|\d{1,3}[.)、])\s+")
_INDENTED = re.compile(r"^(?: {4,}|\t)\S")

_QUOTED = r"(?:[^%s\n]|\n(?!\s*\n)){1,500}"  # a quote may run over a line break, not over a blank line
# Pairs that quote. Straight single quotes only where they cannot be apostrophes.
_QUOTES = (
    re.compile(r"`[^`\n]{1,500}`"),
    re.compile(rf'(?<!\w)"(?=\S){_QUOTED % chr(34)}(?<=\S)"(?!\w)'),
    re.compile(r'"[^"\n]{1,500}"'),
    re.compile(rf"[“„]{_QUOTED % '”“'}[”“]"),
    re.compile(rf"«{_QUOTED % '»'}»"),
    re.compile(r"「[^」\n]{1,500}」|『[^』\n]{1,500}』|《[^》\n]{1,200}》"),
    re.compile(r"(?<!\w)‘[^‘\n]{1,500}?’(?!\w)"),
    re.compile(r"(?<!\w)'(?=\S)[^'\n]{0,300}(?:\w'\w[^'\n]{0,300}){0,5}(?<=\S)'(?!\w)"),
)


def mask_pasted(message: str) -> str:
    """`message` with everything that is only shown replaced by MASK, character by character; line breaks stay."""
    masked = _mask_lines(message)
    for quote in _QUOTES:
        masked = quote.sub(lambda shown: MASK * len(shown[0]), masked)
    return masked


def _mask_lines(message: str) -> str:
    lines = message.split("\n")
    masked: list[str] = []
    fenced = forwarded = False
    blank_before = True
    for position, line in enumerate(lines):
        fence = bool(_FENCE.match(line))
        if not forwarded and not fenced and not fence:
            forwarded = _begins_forward(lines, position)
        shown = forwarded or fenced or fence or bool(_SHOWN_LINE.match(line)) or _in_dialogue(lines, position)
        shown = shown or (blank_before and bool(_INDENTED.match(line)) and not _BULLET.match(line))
        if fence:
            fenced = not fenced
        blank_before = not line.strip() or (shown and bool(_INDENTED.match(line)))
        masked.append(_cover(line) if shown else _LOG_TAG.sub(lambda tail: _cover(tail[0]), line))
    return "\n".join(masked)


def _begins_forward(lines: list[str], position: int) -> bool:
    """A line after which the rest of the message is somebody else's."""
    line = lines[position]
    if len(line) > 300:
        return False
    rest = position + 1 < len(lines)
    if _FORWARDED.match(line):
        return rest
    return rest and bool(_HEADER.match(line)) and bool(_HEADER.match(lines[position + 1]))


def _in_dialogue(lines: list[str], position: int) -> bool:
    """Does a name and a colon open this line and the one before or after it?"""
    speaker = _SPEAKER.match(lines[position])
    if speaker is None:
        return False
    return any(0 <= i < len(lines) and _SPEAKER.match(lines[i]) for i in (position - 1, position + 1))


def _cover(text: str) -> str:
    return MASK * len(text)
