"""Text in a message that its author only shows: quotes, code, forwarded mail, log lines. It never makes a rule."""

from __future__ import annotations

import re

MASK = "\ue000"  # a private character in place of each masked one, so that positions stay

_FENCE = re.compile(r"^\s*(?:```|~~~|(?:\"\"\"|'''|<<<+|>>>+)\s*$)")
_FORWARDED = re.compile(
    r"^\s*(?:-{2,}\s*(?:original|forwarded|原始邮件|转发).*"
    r"|begin forwarded message.*"
    r"|[-=*#+]{2,}\s*(?:begin|start)\b.*"
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
    r"|\[?\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d|\[?\d\d:\d\d(?::\d\d|\])"  # log lines with a time
    r"|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d|\d{1,3}(?:\.\d{1,3}){3} - |npm (?:ERR|WARN)"
    r"|[\w.]{2,60}(?:Error|Exception): "
    r"|File \"[^\"]{1,200}\", line|at [\w.$<>]{1,200}\(|Caused by:|[\[{]\s*[\"{\[]"
    r"|\[(?:WARN|WARNING|ERROR|INFO|DEBUG|FATAL|NOTICE|TRACE)\]"
    r"|(?:WARN|WARNING|ERROR|INFO|DEBUG|FATAL|NOTICE|CAUTION|TRACE|HINT)\b(?:\s*[:\-]|\s{1,8}\[)|Exception in thread "
    r"|Traceback \(|>>> |\$ |# |// |/\*|<!--|<\w+[^>]*>|@@ |[+-]{3} |diff --git)"
)
# Words before a colon that open a topic of one's own; any other name opens what that person says.
_TOPICS = (
    r"(?i:e-?mails?|mails?|slack|calendar|browser|shell|terminal|bash|git|sql|db|database|files?|payments?|refunds?"
    r"|deploys?|deployments?|web|api|note|rules?|important|ps|nb|update|todo|reminder|warning|question|task|context"
    r"|constraints?|goals?|aims?|background|limits?|conditions?|output|input|format|style|scope|deadline|budget|priority"
    r"|instructions?|requirements?|remember|never|always|first|second|third|finally|otherwise|reason|example"
    r"|please|also|flights?|hotels?|tickets?|orders?|travel|money|search|tools?|request|hi|hello|dear)\b"
)
_TOPICS_ZH = (
    "任务|限制|约束|目标|背景|条件|规则|规矩|重要|记住|输出|格式|风格|范围|预算|要点|第一|第二|第三|最后|原因"
    "|邮件|付款|退款|部署|日历|文件|注意|要求|规定|以后|终端|搜索|翻译|备注|另外"
)
# "Bob: don't push" beside "Alice: ok": a chat that is shown.
_SPEAKER = re.compile(
    rf"^\s*(?!{_TOPICS})(?:[A-Z][a-z]{{1,14}}|[QA]|[问答甲乙]"
    rf"|\[\d\d?:\d\d\] ?\w+|[一-鿿]{{2,3}}(?<!{_TOPICS_ZH}))[:：]\s*\S"
)
_STAMPED = re.compile(r"^\s*[^\s:：(（]{1,20} ?[(（\[]\d\d?:\d\d(?::\d\d)?[)）\]]\s*[:：]")  # Ana (10:01): hello
# Texts that run over several lines: how they begin, and how they end.
_COMMENTS = (("/*", "*/"), ("<!--", "-->"))
_TAG_OPENS = re.compile(
    r"^\s*<(?!(?:rules?|instructions?|constraints?|requirements?|guidelines?|task|request|question|user|important|note)\b)"
    r"([A-Za-z][\w-]{0,40})(?:\s[^<>]{0,300})?>"
)
_TAG_CLOSES = re.compile(r"</([A-Za-z][\w-]{0,40})>\s*$")
_DIFF = re.compile(r"^(?:\$ |>>> |diff --git |@@ |--- a/|\+\+\+ b/)")
# A letter: somebody but the agent is greeted, on a line of its own, and somebody signs.
_TO_AGENT = r"(?:there|again|agent|assistant|bot|ai|claude|chatgpt|gpt|copilot|gemini|qwen|buddy|mate|you)\b"
_GREETING = re.compile(
    rf"^\s*(?:(?:dear|hi|hello|hey|greetings|good (?:morning|afternoon|evening))[, ]+(?!{_TO_AGENT})\w"
    rf"(?:[^.!?:\n]|(?<=Mr|Ms|Dr)\.|(?<=Mrs)\.){{0,50}}"
    r"|to (?:all|whom)\b[^.!?:\n]{0,40})\s*[,!:]?\s*$"
    r"|^\s*(?:尊敬的|亲爱的|敬启者|致全体|各位|诸位|大家好)[^。！？\n]{0,30}\s*$"
    r"|^\s*(?:[小老阿][一-鿿]{1,2}|[一-鿿]{1,4}(?:先生|女士|小姐|经理|主任|老师|总))(?:您好|你好)?\s*[:：，,！!]\s*$",
    re.IGNORECASE,
)
_SIGNED = re.compile(
    r"^\s*(?:(?:with )?(?:my |the )?(?:best|kind(?:est)?|warm(?:est)?|many|friendly) (?:regards|wishes)|regards"
    r"|(?:yours )?(?:sincerely|faithfully|truly)(?: yours)?|yours|best|cheers|thanks(?: a lot| again| in advance)?"
    r"|thank you|cordially|respectfully|br|rgds|love|thx)\s*[,.!]?\s*$"
    r"|^\s*(?:yours (?:sincerely|faithfully|truly)|sincerely|(?:best|kind) regards|best wishes), [\w. ]{2,40}$"
    r"|^\s*(?:此致|敬礼|祝(?:您|你|大家)?(?:好|商祺|安|顺利|愉快|健康|安康|工作顺利|生活愉快|身体健康)|顺祝商祺|顺颂商祺|谨启|敬上|谢谢|多谢|.{1,12}(?:敬上|谨启|敬启))\s*[!！。]?\s*$",
    re.IGNORECASE,
)
_LOG_TAG = re.compile(r"\[(?:WARN|WARNING|ERROR|INFO|DEBUG|FATAL|NOTICE|TRACE)\].*")
_BULLET = re.compile(r"^\s*(?:[-*•·]|\d{1,3}[.)、])\s+")
_INDENTED = re.compile(r"^(?: {4,}|\t)\S")

_QUOTED = r"(?:[^%s\n]|\n(?!\s*\n)){1,500}"  # a quote may run over a line break, not over a blank line
# Pairs that quote. Straight single quotes only where they cannot be apostrophes.
_QUOTES = (
    re.compile(r"`[^`\n]{1,500}`"),
    re.compile(rf'(?<!\w)"(?=\S){_QUOTED % chr(34)}(?<=\S)"(?!\w)'),
    re.compile(r'"[^"\n]+"'),
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
    letter = _letter_from(lines)
    elsewhere = _over_lines(lines)
    for position, line in enumerate(lines):
        fence = bool(_FENCE.match(line))
        if not forwarded and not fenced and not fence:
            forwarded = position >= letter or _begins_forward(lines, position)
        shown = forwarded or fenced or fence or elsewhere[position] or bool(_SHOWN_LINE.match(line))
        shown = shown or (blank_before and bool(_INDENTED.match(line)) and not _BULLET.match(line))
        if fence:
            fenced = not fenced
        blank_before = not line.strip() or (shown and bool(_INDENTED.match(line)))
        masked.append(_cover(line) if shown else _LOG_TAG.sub(lambda tail: _cover(tail[0]), line))
    return "\n".join(masked)


def _letter_from(lines: list[str]) -> int:
    """The line with which a letter to somebody else begins; the number of lines where there is none.

    A greeting that opens the message may be the author's own, unless somebody signs too.
    """
    greeting = next((i for i, line in enumerate(lines) if len(line) < 80 and _GREETING.match(line)), len(lines))
    if greeting < len(lines) and not any(line.strip() for line in lines[:greeting]):
        signed = any(len(line) < 80 and _SIGNED.match(line) for line in lines[greeting + 1 :])
        return greeting if signed else len(lines)
    return greeting


def _over_lines(lines: list[str]) -> list[bool]:
    """Which lines stand in a comment, between tags, in a diff or in a dialogue."""
    closes = {match[1]: i for i, line in enumerate(lines) if (match := _TAG_CLOSES.search(line[-60:]))}
    inside = [False] * len(lines)
    until = -1  # the last line of what was opened
    comment = ""  # what ends it
    talk = diff = False  # these end with a blank line
    for position, line in enumerate(lines):
        if not comment and position > until and (tag := _TAG_OPENS.match(line)):
            until = max(until, closes.get(tag[1], -1))
        opened = comment or next((end for begin, end in _COMMENTS if line.lstrip().startswith(begin)), "")
        comment = "" if opened and opened in line else opened
        talk = bool(line.strip()) and (talk or _in_dialogue(lines, position))
        diff = bool(line.strip()) and (diff or bool(_DIFF.match(line)))
        inside[position] = position <= until or bool(opened) or talk or diff
    return inside


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
    if _STAMPED.match(lines[position]):
        return True
    if not _SPEAKER.match(lines[position]):
        return False
    return any(0 <= i < len(lines) and _SPEAKER.match(lines[i]) for i in (position - 1, position + 1))


def _cover(text: str) -> str:
    return MASK * len(text)
