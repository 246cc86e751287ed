"""Does a person go on speaking behind a colon ("Note: never push to main"), or does it introduce what others made?

A line of a log, a head of a mail, a key of a document and a script all have a name before the colon; a remark of a
person's has words that only speech has: I, we, you, "one thing", "for ...", "from now on". What names a text, a
program or its doing ("the hook said", "feedback on this") introduces another's words, however it is put. In doubt it
does.
"""

from __future__ import annotations

from toolmem.late import late_pattern

_LONGEST = 120  # characters before a colon
_FEW = 2  # words: fewer are a name
_LEAST = 2  # words behind a colon, one more behind a single word: fewer are a value
_MOST = 10  # colons of a message
_COLON = late_pattern(r"[:：]")
_ENDS = "\n.!?;。！？；:："
_BEFORE = late_pattern(r"(?:[^\W\d_]|['’,，、 -])+")  # words, and nothing that programs put there
_WORD = late_pattern(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SHOUTED = late_pattern(r"\b(?!OK\b|PS\b|FYI\b|BTW\b|NB\b)[A-Z]{2,}\b")
# Colons that part nothing: a smiley; a port or tag that begins with one; the port of a host, in a sentence.
_NO_COLON = late_pattern(
    r"(?<=\s):-?[)(DP](?=\s|$)|(?<=\s):[A-Za-z0-9][\w.-]{0,30}(?=[\s,.!?]|$)"
    r"|(?<= )[A-Za-z][A-Za-z.-]{0,60}:\d{2,5}(?=[\s,.!?]|$)"
)

# With these a person begins to speak; some of them stand alone.
_ALONE = late_pattern(
    "note|reminder|remember|always|never|ps|fyi|btw|nb|also|again|actually|correction|please|sorry|careful"
)
_FIRST = late_pattern(
    rf"{_ALONE.pattern}|ok|okay|so|just|anyway|besides|otherwise|seriously|for|about|regarding|concerning"
)
_SPEAKS = late_pattern("i(?:'m|'ve|'d|'ll)?|we(?:'re|'ve|'d|'ll)?|you(?:'re|'ve|'d|'ll)?|let's")
_A_THING = late_pattern(
    r"(?:one|an?other|last|first|two|three|a? ?few|couple|same) (?:\w+ )?(?:of )?(?:things?|exceptions?)\b"
)
_FROM_NOW = late_pattern(
    r"\b(?:from (?:now|here|today|tomorrow)(?: on)?|going forward|in general|in this session"
    r"|as (?:for|of now|an? \w+))\b"
)
# A text, who makes one, and that it was made or is shown.
_OTHERS = late_pattern(
    r"(?:from|by|per|via|according|says?|said|wr(?:ite|ote|itten)|tells?|told|reads?|prints?|returns?|shows?|shown|asks?"
    r"|answers?|repl(?:y|ies|ied)|respon[ds]e?s?|quotes?|states?|mentions?|gets?|got|getting|see|sees|saw|seen|find|found"
    r"|came?|comes?|appears?|receive[sd]?|sen[dt]|sends|fail(?:ure)?s?|complete[sd]?|finish|den(?:y|ies|ied)|blocks?"
    r"|follows?|below|examples?|instances?|messages?|e?-?mails?|comments?|feedback|outputs?|inputs?|results?|errors?"
    r"|warn(?:ings?)?|hints?|logs?|traces?|texts?|docs?|documentation|documents?|readme|wiki|summar(?:y|ies)|contents?"
    r"|reports?|reviews?|issues?|tickets?|descriptions?|titles?|subjects?|instructions?|prompts?|events?|hooks?"
    r"|notifications?|alerts?|polic(?:y|ies)|specs?|stdout|stderr|bots?|agents?|assistants?|users?|system|admins?|slack"
    r"|chat|threads?|channels?|news|announcements?|snippets?|help|more|details?|info|information|usage|references?)"
    r"(?:ed|ing)?"
)
# What demands are about, too.
_THINGS = late_pattern(
    r"(?:pages?|files?|requests?|tools?|tasks?|servers?|browser|terminal|console|screen|posts?|records?|codes?|commands?"
    r"|scripts?|tests?|builds?|jobs?|runs?)(?:ed|ing)?"
)
_CHINESE = late_pattern(r"[\u3400-\u9fff]")
_CHINESE_SPEECH = late_pattern(
    r"[我你您咱].|以后|今后|从现在|从今|关于|对于|至于|另外|还有|此外|补充|注意|提醒|记住|有一点|[一两几二三][件个]事|[一两几二三]点"
    r"|这块|这边|这次|本次"
)
_CHINESE_OTHERS = late_pattern(
    r"说|写|道|讲|问|答|复|告|通知|原话|如下|以下|下面|内容|标题|报错|错误|提示|警告|日志|邮件|消息|信息|评论|文档|规约|输出|返回|结果|显示"
    r"|系统|引用|摘自|抄|贴|群里|读|看到|收到|发来|发的|示例|例如|比如|反馈|代理|助手|用户|工具|任务|脚本"
)


def without_spoken_colons(text: str) -> str:
    """The text with the colons behind which its author goes on speaking, and those that part nothing, taken away."""
    bare = _NO_COLON.sub(" x", text)
    spoken = []
    for number, found in enumerate(_COLON.finditer(bare)):
        if number >= _MOST:
            break
        if _goes_on(bare, found.start()) and _is_speech(_before(bare, found.start()), bare[found.end() :][:_LONGEST]):
            spoken.append(found.start())
    marks = list(bare)
    for at in spoken:
        marks[at] = ","
    return "".join(marks)


def _goes_on(text: str, at: int) -> bool:
    """In the same line, parted from it as a person parts it."""
    rest = text[at + 1 : at + 3]
    return bool(rest.strip()) and rest[0] != "\n" and (text[at] == "：" or rest[0] == " ")


def _before(text: str, at: int) -> str:
    """What stands in the sentence before the colon; "" where that is long."""
    start = max(at - _LONGEST - 1, 0)
    before = text[start:at]
    begins = max(before.rfind(mark) for mark in _ENDS) + 1
    return "" if begins == 0 and start > 0 else before[begins:]


def _is_speech(before: str, after: str) -> bool:
    if _CHINESE.search(before):
        return bool(_CHINESE_SPEECH.search(before)) and not _CHINESE_OTHERS.search(before)
    if not _BEFORE.fullmatch(before) or _SHOUTED.search(before):
        return False
    said = before.casefold().replace("’", "'")
    words = _WORD.findall(_A_THING.sub(" thing ", _FROM_NOW.sub(" ", said)))
    follow = len(_WORD.findall(after.partition("\n")[0]))
    if follow < _LEAST or any(map(_OTHERS.fullmatch, words)):
        return False
    if _FROM_NOW.search(said) or _A_THING.search(said):
        return True
    if len(words) < _FEW:
        return bool(words) and _ALONE.fullmatch(words[0]) is not None and follow > _LEAST
    if _FIRST.fullmatch(words[0]):
        return True
    if any(map(_THINGS.fullmatch, words)):
        return False
    return any(map(_SPEAKS.fullmatch, words)) or (words[0] in {"this", "these"} and len(words) == _FEW + 1)
