"""What of a message its author only shows: quotes, code, forwarded mail, log lines, a text to work on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice

from toolmem.late import late_pattern
from toolmem.late_dataclasses import replace
from toolmem.sentences.split_text import CJK, MASK, Sentence, small

_FENCE = late_pattern(r"\s*(?:```|~~~|(?:\"\"\"|'''|<<<+|>>>+)\s*$)")
_FORWARDED = late_pattern(
    r"\s*(?:-{2,}\s*(?:original|forwarded|原始邮件|转发|以下是转发).*|begin forwarded message.*"
    r"|[-=*#+]{2,}\s*(?:begin|start)\b.*|on\b.{4,100}\bwrote:\s*|.{0,60}(?:写道|来信说)[:：]\s*"
    r"|.{0,80}\b(?:wrote|writes|says|said|reads|message|error|text|output|log|email|mail)\s*(?:is|was)?:\s*)$",
    re.I,
)
_HEADER = late_pattern(
    r"\s*(?:from|sent|to|cc|subject|date|reply-to|发件人|收件人|抄送|主题|日期|发送时间|时间)\s*[:：]", re.I
)
_SHOWN_LINE = late_pattern(
    r"\s*(?:[>＞|]|&gt;|\[?\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d|\[?\d\d:\d\d(?::\d\d|\])"
    r"|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d|\d{1,3}(?:\.\d{1,3}){3} - |npm (?:ERR|WARN)|[\w.]{2,60}(?:Error"
    r"|Exception): |File \"[^\"]{1,200}\", line|at [\w.$<>]{1,200}\(|Caused by:|[\[{]\s*[\"{\[]|\[(?:WARN|WARNING|ERROR"
    r"|INFO|DEBUG|FATAL|NOTICE|TRACE)\]|(?:WARN|WARNING|ERROR|INFO|DEBUG|FATAL|NOTICE|CAUTION|TRACE|HINT)\b(?:\s*[:\-]"
    r"|\s{1,8}\[)|Exception in thread |Traceback \(|\$ |# |// |/\*|<!--|<\w+[^>]*>|@@ |[+-]{3} |diff --git)"
)
_SPEAKER = late_pattern(r"\s*(?:[A-Z][a-z]{1,14}|[QA]|[a-z]{2,10}(?=>)|[问答甲乙]|[\u4e00-\u9fff]{2,3})\s*[:：>]")
_NO_SPEAKER = late_pattern(
    r"\s*(?:e-?mails?|slack|calendar|browser|shell|git|sql|files?|payments?|refunds?|deploys?|note|rules?|important|ps"
    r"|nb|update|todo|reminder|warning|question|task|context|constraints?|goals?|background|limits?|output|input|format"
    r"|style|remember|never|always|first|second|third|finally|also|flights?|hotels?|orders?|tools?|request|hi|hello"
    r"|please|任务|限制|约束|目标|背景|规则|规矩|重要|记住|输出|格式|预算|第一|第二|最后|邮件|付款|退款|部署|日历|文件"
    r"|注意|要求|规定|"
    r"以后|终端|另外|其次|首先|还有|提醒|补充|说明|安全|请求)\s*[:：]",
    re.I,
)
_STAMPED = late_pattern(r"\s*(?:[^\s:：(（]{1,20} ?[(（]\d\d?:\d\d(?::\d\d)?[)）]|\[\d\d?:\d\d\] ?\w+)\s*[:：]")
_TAG = late_pattern(
    r"\s*[<\[](?!(?:rules?|instructions?|constraints?|requirements?|guidelines?|task|request|user|important|note)\b)"
    r"([A-Za-z][\w-]{0,40})(?:\s[^<>\]]{0,300})?[>\]]"
)
_TAG_ENDS = late_pattern(r"[<\[]/([A-Za-z][\w-]{0,40})[>\]]\s*$")
_DIFF = late_pattern(r"(?:\$ |>>> |diff --git |@@ |--- a/|\+\+\+ b/)")
_GREETING = late_pattern(
    r"\s*(?:(?:dear|hi|hello|hey|greetings|good (?:morning|afternoon|evening))[, ]+(?!(?:there|again|agent|assistant"
    r"|bot|ai|claude|gpt|you)\b)\w[^!?:\n]{0,50}|to (?:all|whom)\b[^.!?:\n]{0,40})[,!:]?\s*$|\s*(?:尊敬的|亲爱的|敬启者"
    r"|致全体|各位|诸位|大家好)[^。！？\n]{0,30}\s*$|\s*(?:[小老阿][一-鿿]{1,2}|[一-鿿]{1,4}(?:先生|女士|小姐|经理|主任"
    r"|老师"
    r"|总))(?:您好|你好)?\s*[:：，,！!]\s*$",
    re.I,
)
_SIGNED = late_pattern(
    r"\s*(?:(?:with )?(?:my |the )?(?:best|kind(?:est)?|warm(?:est)?|many|friendly) (?:regards|wishes)|regards"
    r"|(?:yours )?(?:sincerely|faithfully|truly)(?: yours)?|yours|best|cheers|thanks(?: a lot)?|thank you)\s*[,.!]?\s*$"
    r"|\s*(?:此致|敬礼|祝(?:您|你|大家)?(?:好|商祺|安|顺利)|谨启|敬上|谢谢|多谢|.{1,12}(?:敬上|谨启"
    r"|敬启))\s*[!！。]?\s*$",
    re.I,
)
_BULLET = late_pattern(r"\s*(?:[-*•·]|\d{1,3}[.)、])\s+")
_INDENTED = late_pattern(r"(?: {4,}|\t)\S")
_INSIDE = r"(?:[^{}\n]|\n(?!\s*\n)){{1,500}}"
_QUOTES = [
    late_pattern(pattern)
    for pattern in (
        r"`[^`\n]{1,500}`",
        rf"(?<!\w)\"(?=\S){_INSIDE.format(chr(34))}(?<=\S)\"(?!\w)",
        r"\"[^\"\n]+\"",
        rf"[“„]{_INSIDE.format('”“')}[”“]",
        rf"«{_INSIDE.format('»')}»",
        r"「[^」\n]{1,500}」|『[^』\n]{1,500}』|《[^》\n]{1,200}》",
        r"(?<!\w)‘[^‘\n]{1,500}?’(?!\w)",
        r"(?<!\w)'(?=\S)[^'\n]{0,300}(?:\w'\w[^'\n]{0,300}){0,5}(?<=\S)'(?!\w)",
    )
]
_COMMENTS = (("/*", "*/"), ("<!--", "-->"))


def mask_pasted(message: str) -> str:
    """`message` with everything that is only shown replaced by MASK, character by character; line breaks stay."""
    masked = _mask_lines(message)
    for quote in _QUOTES:
        masked = quote.sub(lambda shown: _hidden(shown[0]), masked)
    return masked


def _mask_lines(message: str) -> str:
    lines = message.split("\n")
    masked: list[str] = []
    fenced = forwarded = False
    blank_before = True
    letter, elsewhere = _letter_from(lines), _over_lines(lines)
    for at, line in enumerate(lines):
        fence = bool(_FENCE.match(line))
        if not forwarded and not fenced and not fence:
            forwarded = at >= letter or _begins_forward(lines, at)
        shown = forwarded or fenced or fence or elsewhere[at] or bool(_SHOWN_LINE.match(line))
        shown = shown or (blank_before and bool(_INDENTED.match(line)) and not _BULLET.match(line))
        fenced ^= fence
        blank_before = not line.strip() or (shown and bool(_INDENTED.match(line)))
        masked.append(MASK * len(line) if shown else line)
    return "\n".join(masked)


def _letter_from(lines: list[str]) -> int:
    """The line with which a letter to somebody else begins; one that opens the message is one where somebody signs."""
    greeting = next((i for i, line in enumerate(lines) if len(line) < 80 and _GREETING.match(line)), len(lines))
    if greeting < len(lines) and not any(line.strip() for line in lines[:greeting]):
        signed = any(len(line) < 80 and _SIGNED.match(line) for line in lines[greeting + 1 :])
        return greeting if signed else len(lines)
    return greeting


def _over_lines(lines: list[str]) -> list[bool]:
    """Which lines stand in a comment, between tags, in a diff or in a dialogue."""
    closes = {match[1]: i for i, line in enumerate(lines) if (match := _TAG_ENDS.search(line[-60:]))}
    inside = [False] * len(lines)
    until, comment = -1, ""  # the last line of what was opened; what ends a comment
    talk = diff = False  # these end with a blank line
    for at, line in enumerate(lines):
        if not comment and at > until and (tag := _TAG.match(line)):
            until = max(until, closes.get(tag[1], -1))
        opened = comment or next((end for begin, end in _COMMENTS if line.lstrip().startswith(begin)), "")
        comment = "" if opened and opened in line else opened
        talk = bool(line.strip()) and (talk or _in_dialogue(lines, at))
        diff = bool(line.strip()) and (diff or bool(_DIFF.match(line)))
        inside[at] = at <= until or bool(opened) or talk or diff
    return inside


def _begins_forward(lines: list[str], at: int) -> bool:
    if len(lines[at]) > 300 or at + 1 >= len(lines):
        return False
    return bool(_FORWARDED.match(lines[at]) or (_HEADER.match(lines[at]) and _HEADER.match(lines[at + 1])))


def _in_dialogue(lines: list[str], at: int) -> bool:
    """Does a name and a colon open this line and the one before or after it?"""
    speaks = [
        0 <= i < len(lines) and _SPEAKER.match(lines[i]) and not _NO_SPEAKER.match(lines[i])
        for i in (at - 1, at, at + 1)
    ]
    return bool(_STAMPED.match(lines[at]) or (speaks[1] and (speaks[0] or speaks[2])))


# ---------------------------------------------------------------- texts that are announced

_TEXT = (
    r"(?:(?:e-?mail|mail|message|letter|text|article|post|page|site|doc|document|contract|clause|report|ticket"
    r"|complaint|review|comment|log|error|result|tweet|sentence|paragraph|guideline|commit|note|opinion|answer|quote"
    r"|rule)s?|documentation|readme\S*|manual|polic(?:y|ies)|feedback|trace|traceback|output|response|transcript"
    r"|conversation|chat|thread|passage|section|excerpt|snippet|notice|newsletter|speech|essay|story|poem|draft|caption"
    r"|headline|slogan|statement|json|html|yaml|stdout|stderr|prompt|repl(?:y|ies)|wiki|code|function|class|diff"
    r"|minutes|entry|issue|announcement|observation|row|attach\w+|terms|fwd|fyi|description|thoughts|data|banner|popup"
    r"|screen|content|handbook|items|system|user|assistant|human|bot|question|proposal|vendor|customer|spam|list|typos"
    r"|words|邮件|来信|信|消息|短信|文字|文本|文章|原帖|帖|网页|页面|网站|主页|文档|手册|合同|条款|政策|报告|工单|投诉"
    r"|评论|评价|反馈|日志|报错|错误|输出|回复|答复|记录|对话|聊天|句|段|章节|下文|摘录|公告|通知|结果|内容|代码|函数"
    r"|描述|纪要|百科|标签|请求|作业|作文|故事|推文|草稿|海报|附件|注释|原文|正文|信息|响应|版本|笔记|错别字|文件|助手"
    r"|数据|名言|广告|说法|准则|待办|要点|三点|发票|群里|readme)"
)
_WORK = (
    r"(?:summari[sz]e|sum up|recap|condense|shorten|translat\w+|explain|interpret|proofread|fact-?check|paraphrase"
    r"|rephrase|reword|tl;?dr|rewrite|polish|classify|categori[sz]e|triage|analy[sz]e|assess|evaluate|simplify|annotate"
    r"|answer|reply|respond|react|review|grade|label|correct|grammar|understand|look at|read|extract|convert|turn"
    r"|put this|make this|boil|describe|compare|rate|score|tag|anonymi\w+|draft|handle|archive|count|continue|thoughts"
    r"|opinion|gist|tone|sentiment|legit|find|tell me|what|which|who|should|any red|typos|copying|翻译|翻成|译成|总结"
    r"|概括|解释|分析|润色|改|回复|答|归|分类|评|打分|判断|提取|整理|列|讲|续写|转|理解|处理|什么|谁|怎么|匿名|接受|摘"
    r"|缩|比较|解析|读一下|检查|看看|通顺|矛盾|做成|排一?下|起个|写)"
)
_TOLD = (
    r"(?:says?|said|reads?|states?|wrote|writes|returns?|returned|prints?|printed|respond\w*|repl(?:ies|ied)"
    r"|shows?|told|texted|claims?|sent"
    r"|according|goes|left|was|写着|写道|说|写的|复制的|找到的|打印|显示|返回|贴着|告诉我|如下|发了|发来|是)"
)
_POINTS = (
    r"(?:\b(?:this|these|the following|below|underneath|attached|here|as follows|follows|from)\b|这|以下|下面"
    r"|下列|如下|下文|里面|附|摘自|来自|【)"
)
# What speaks of the user's own rules, or demands something itself.
_OWN = late_pattern(
    r"\b(?:my|our|new|some|few|two|three|ground|house|basic|general|one|another|last|today's|own"
    r"|these are the)(?: \w+)? (?:rules?|guidelines?|constraints?|requirements?|conditions?|demands?|expectations?"
    r"|restrictions?|bans?|principles?|preferences?|things?|points?|remarks?|requests?|wish(?:es)?|words?|polic(?:y"
    r"|ies)|instructions)\b|^\W*(?:rules?|constraints?|conditions|guidelines|instructions|listen|note"
    r"|(?:\w+ )?(?:rules?|policy|note|context))\W*(?::|$)|\b(?:a|the following) rules?\b|\brules of the\b|\b(?:remember"
    r"|(?:keep|bear) in mind|follow\b|obey|stick to|keep to|repeat|forgot to|let me add|before (?:you|we|i)|once more"
    r"|also|from me|do (?:this|it like this)|in this (?:repo|project)|about \w+ and|happened|important to me|thanks"
    r"|input|i (?:said|told you|expect|want|ask|insist)|you (?:must|should|need to|have to)|how (?:we|i) work)\b"
    r"|\b(?:don't|do not|never|must not|only)\b|我的(?:规|要|指|原)|规则：|规矩|家规|几条准则|约定|记住|牢记|注意|强调"
    r"|再说|补充|另外|还有|提醒你|你(?:要|必须|得|应)|我(?:说|要求|希望|忘)|这样做|工作|做到|生效|关于|规定(?:：|很|$)"
    r"|规则(?:$|：)|安全提示|不要|不许|不准|禁止|必须|只能"
)
_NO_SPACE = r"(?:\b|(?<=[\u3400-\u9fff]))"
_OPENS_AT_COLON = late_pattern(
    rf"{_NO_SPACE}{_TEXT}(?:\b|(?=[\u3400-\u9fff]|$))|{_NO_SPACE}{_TOLD}(?:\b|(?=[\u3400-\u9fff]|$))"
    rf"|{_NO_SPACE}{_WORK}|\b(?:forward|post|send|put|make|got|popped|sign|email)\b|里发$|发到"
)
_TITLE = (
    rf"^\W*(?:[\w'/.-]+\s+){{0,3}}{_TEXT}(?: [\d/]+)?[^\w.!?。！？]*$|^\W*[a-z]+-\d+\W*$|^.{{0,14}}{_TEXT}$"
    rf"|\w\.(?:md|txt|pdf|docx?)\b|#\d+\W*$|^【"
)
_OPENS_LINE = late_pattern(
    rf"{_TITLE}|{_POINTS}.{{0,60}}{_TEXT}|{_TEXT}.{{0,40}}{_POINTS}|{_WORK}.{{0,60}}{_POINTS}|^changelog\W*$"
    rf"|什么意思|\b(?:was|is|said|says)\W*$|(?:写着|发了|的说法|怎么?说的|是)\W*$"
)
_OPENS_BLOCK = late_pattern(
    rf"\b{_POINTS}|\b{_WORK}\b.*\b{_TEXT}\b|^\W*(?:thoughts|what|who|which|any|how|should|do we|does|is (?:this|that"
    rf"|it))\b.*\?|\b{_TOLD}\b.*\b(?:this|me)\b|^\W*(?:please |pls )?{_WORK}(?:\W+\w+){{0,3}}\W*$|^\W*{_WORK} it\b"
    rf"|^\W*(?:fyi|action items.*|spell ?check.*|to whom.*|make it \w+.*|.*\b(?:states|answered|she wrote))\W*$"
)
_OPENS_BLOCK_ZH = late_pattern(
    rf"{_WORK}(?!一?下?(?:流水|服务器|日历|会议))|{_TEXT}[\s。：:]*$|{_TOLD}[\s。：:]*$|^【|这"
)
_OPENS_HERE = late_pattern(
    rf"\b{_WORK}\b.{{0,60}}\b(?:the following|this|these)(?: \w+)? {_TEXT}\b|\b(?:what follows|(?:is|of|translate"
    rf"|does) the following|here are .*'s)\b|\b(?:summari[sz]e|tone|language|{_TEXT}) .{{0,20}}\bbelow\b|\b(?:landed"
    rf"|popped up|came in)\b|\bwhat language is this\b|\b(?:out )?of this text\b|\bbelow you\b|用这段"
    rf"|这是.{{0,4}}{_TEXT}|{_WORK}.{{0,8}}(?:以下|下面|下文|这[段句封篇条]|这个|下一段).{{0,8}}|(?:以下|如下"
    rf"|下面)(?:是(?!我)|的|引用|这?{_TEXT}|这段)|这句话通顺"
)
_BACK = late_pattern(
    rf"\babove\b|^\W*\^|^\W*(?:{_WORK}|please|can you|does|do|what).{{0,40}}\b(?:this|that|the) (?:\w+"
    rf" )?{_TEXT}\b|\breply to this\b|\bthe tone of that\b"
    r"|\bdoes that \w+ look\b|\bthat was the\b|^\W*what does (?:he|she|it) (?:mean|want)|\bshould i worry\b"
    r"|以上|上面|上述|^↑|(?:总结|回复|觉得|翻译).{0,4}这|看看这语气"
)
_COLON = late_pattern(r":(?=\s|$|[\u3400-\u9fff]|\ue000)|：")
_SPAN = 400  # characters at either end of a sentence that are looked at


def own_sentences(sentences: Sequence[Sentence], demands: Callable[[Sentence], object]) -> list[Sentence]:
    """Those before the first that opens a shown text; without those that a later one points back at.

    What is itself a demand opens none, unless it asks to work on a text.
    """
    own: list[Sentence] = []
    for at, sentence in enumerate(sentences):
        text = small(sentence.masked)
        text = f"{text[:_SPAN]} {text[-_SPAN:]}" if len(text) > 2 * _SPAN else text
        if own and sentence.line > own[0].line and _BACK.search(text) and not _OWN.search(text):
            own.clear()
        lead = _lead(text)
        masked = (
            sentence.masked if lead is None else sentence.masked[: len(lead)] + _hidden(sentence.masked[len(lead) :])
        )
        own.append(replace(sentence, masked=masked))
        if lead is not None and not (sentence.breaks and text[len(lead) + 1 :].strip() and at):
            break
        if at + 1 < len(sentences) and _opens(text, sentence.breaks, sentence.question) and not demands(sentence):
            break
    return own


def _lead(text: str) -> str | None:
    """What stands before a colon that opens a text: "post this in Slack: ..."."""
    for colon in islice(_COLON.finditer(text), 6):
        lead = text[: colon.start()]
        if _OPENS_AT_COLON.search(lead) and not _OWN.search(lead):
            return lead
    return None


def _opens(text: str, breaks: int, question: bool) -> bool:
    """Does what follows this sentence, after so many line breaks, belong to somebody else?"""
    if _OWN.search(text) and not (question and _OPENS_HERE.search(text)):
        return False
    block = _OPENS_BLOCK_ZH if CJK.search(text) else _OPENS_BLOCK
    return bool(
        _OPENS_HERE.search(text)
        or (breaks and _OPENS_LINE.search(text))
        or (breaks > 1 and (question or block.search(text)))
    )


def _hidden(text: str) -> str:
    return re.sub(r"[^\n]", MASK, text)
