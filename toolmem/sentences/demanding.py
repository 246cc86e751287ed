"""Is a sentence a demand on what the agent does, and for how long? English and Chinese.

A form ("don't", "never", "stop ...ing", "only", "ask me before") counts where it is said to the agent: as an
imperative that opens a clause, after "you must", or after "I want you". Elsewhere the same words tell of something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass
from toolmem.sentences.said_words import FAMILIES, base_forms, chinese_words, families_of, split
from toolmem.sentences.split_text import CJK, Sentence, small

Kind = Literal["standing", "session"]


@dataclass(frozen=True, slots=True)
class Form:
    """A form by which a sentence forbids or bounds something."""

    pattern: re.Pattern[str]  # its group "verb", where it has one, is the verb of what is demanded
    opens: bool  # counts where it opens a clause that is said to the agent
    lasting: bool  # holds for good where nothing says otherwise; else its object decides
    named: bool  # is one only where it names a tool
    whole: bool  # what stands before it in its clause says what is meant


@dataclass(frozen=True, slots=True)
class Demanded:
    """A demand inside a sentence, before tools are looked for."""

    kind: Kind
    start: int  # where it begins in the sentence
    end: int  # where its reason begins
    named: bool  # is a demand only where it names a tool


def _form(pattern: str, said: str = "opens lasting") -> Form:
    return Form(late_pattern(pattern), *(word in said.split() for word in ("opens", "lasting", "named", "whole")))


_ADVERB = r"(?:(?:you|ever|even|just|simply|again|dare(?: to)?|automatically|always|also|please|really|directly) )*"
_VERB = r"(?P<verb>[a-z][a-z'-]+)"
_OF_ME = r"(?:with |by )?(?:me|us|my|our)\b"
_CONSENT = r"(?:ok(?:ay)?|approval|permission|consent|confirmation|go-ahead|sign-?off|say-so|agreement|green light)"
_NOT_ANY_MORE = r"(?:not|no longer|never|didn't|don't|stopped|stop|wouldn't)"
_EN = (
    _form(rf"\bnever(?:,? ever)?(?:,[^,]{{1,30}},)? {_ADVERB}{_VERB}"),
    _form(rf"\b(?:don'?t|do not|do n't|let's not)(?:,[^,]{{1,30}},)? {_ADVERB}{_VERB}", "opens"),
    _form(rf"\b(?:stop|quit|cease|avoid|(?:refrain|abstain) from) {_ADVERB}(?P<verb>[a-z-]+ing)\b"),
    _form(r"\b(?:stop (?:that|this|it)|hold off on|wait with)\b(?=.*\b(?:until|till|for|before)\b)", "opens"),
    _form(rf"\bno longer {_VERB}"),
    _form(rf"\b(?:under no circumstances|in no case|on no account|at no time),? (?:\w+ you (?:to )?)?{_ADVERB}{_VERB}"),
    _form(
        r"(?<!if )(?<!when )(?<!that )\b(?:you|u|agents?|assistant)(?: really| absolutely)?"
        r"(?:'re (?:not|never|no longer)| (?:must|should|may|shall|are|need)(?:n't| not| never| no longer)) "
        rf"(?:to |ever |be |allowed to |permitted to |supposed to )*{_VERB}",
        "",
    ),
    _form(
        rf"\byou(?:'re| are)? (?:(?:may|can|should|must|will|are to|allowed to) only|only(?: ever)?) {_VERB}"
        r"|\byou (?:may|can) (?P<bounded>[a-z]+) .{0,60}\b(?:at most|no more than|only|nowhere else)\b",
        "lasting",
    ),
    _form(rf"\byou are to {_VERB}", "lasting named"),
    _form(
        r"\bi (?:really |also )?(?:don'?t|do not|never|no longer|wouldn't) (?:ever )?(?:want|like|wish) "
        rf"(?:(?:you|u) (?:to )?|to (?:see you |see |be |get |have )|it when you )(?:ever )?{_VERB}"
        r"|\bi(?:'m| am) not (?:comfortable|ok(?:ay)?|happy|fine) with you (?P<gerund>[a-z-]+ing)\b"
        r"|\bi (?:won't|can't) have you (?P<had>[a-z-]+ing)\b",
        "",
    ),
    _form(
        r"\b(?:i(?:'d| would) (?:much |really )?(?:rather|prefer|like)(?: it)?(?: if| that)?(?: you(?: to)?)?"
        r"|(?:grateful|appreciate|help\b.{0,20}|nice|great)(?: it)? if (?:in future )?you(?:'d| would| could)?)"
        rf" {_NOT_ANY_MORE} (?:be |get |ever |to )*{_VERB}",
        "lasting",
    ),
    _form(r"\bi (?:hate|can't stand) it when(?:ever)? you\b|\bi forbid (?:you|any)\b|\bthe last time you\b", "lasting"),
    _form(r"\b(?:that|this|it) (?:must|may|should)(?:n't| never| not)(?: ever)? happen\b", "lasting"),
    _form(
        r"\b(?:keep (?:your )?(?:hands|fingers) off|hands off|(?:stay|keep) (?:off|out of|away from|clear of)"
        r"|steer clear of|enough with|avoid (?=the |my |our ))\b"
    ),
    _form(
        r"\b(?:is|are|'s|stays?|as) (?:now |strictly |completely )?(?:off[- ]?limits|forbidden|prohibited|banned"
        r"|taboo|off the table|(?:a )?(?:big |total )?no-go|not (?:allowed|ok(?:ay)?|acceptable))\b"
        r"|\b(?:has|have|needs) to stop\b|\b(?:may|can|must) only (?:be|go)\b|\b(?:may|must) be \w+ .{0,40}\bonly\b",
        "lasting named whole",
    ),
    _form(
        r"\b(?:only|exclusively) (?:ever )?(?!(?:one|two|three|the|a|some|you|if|when)\b)"
        rf"{_VERB}|\b(?P<first>[a-z][a-z'-]+) (?:\S+ ){{0,3}}only\b"
    ),
    _form(
        r"\b(?:no|at most|max(?:imum)?) (?:more )?(?:than )?[a-z0-9-]+"
        r"(?! ?(?:\w+ )?(?:arrived|came|comes|was|were|is|are|has|had|will|left|found|luck)\b)",
        "opens named",
    ),
    _form(
        rf"\b(?:ask|check with|consult|show|tell|inform|confirm with|run .{{1,30}} (?:by|past)|get) {_OF_ME}.{{0,60}}\b"
        r"(?:before|first|whenever|when|above|if|for|every time|each time)\b|\b(?:ask|(?:check|confirm) with) (?:me"
        r"|us)\b"
    ),
    _form(
        r"\b(?:from (?:now|today|here) on|going forward|in (?:the )?future),? (?:please |you )*"
        rf"(?!(?:\w+ing|you|please|may|can|are|i|we|the|it|nothing|no|is)\b){_VERB}",
        "lasting named",
    ),
    _form(rf"\balways {_ADVERB}{_VERB}", "opens lasting named"),
    _form(
        rf"\b(?:needs?|requires?|only (?:with|after)) (?:my|our|an?)(?: \w+){{0,2}} {_CONSENT}\b"
        r"|\b(?:must|have to) go through (?:me|us)\b"
        r"|\b(?:has|have|needs?|must) (?:to )?be (?:approved|confirmed|cleared) (?:by|with) (?:me|us)\b"
        r"|(?<!that )(?<!which )(?<!who )\b(?:must|may|should|shall|can|are|is)(?:n't| never| not| no longer) "
        r"(?:ever )?(?:to )?(?:be|get|go|leave|touch|take|send|write)\b"
        r"|\b(?:nothing|nobody|no one|no \w+) (?:\w+ ){1,8}without (?:my|our|asking|me)\b",
        "lasting named whole",
    ),
    _form(rf"\b(?:not|never) (?:ok(?:ay)?|acceptable|allowed|fine) to {_VERB}", "lasting"),
)
# Words that may stand between the beginning of a clause and an imperative
_LEAD = late_pattern(
    r"(?:\W+|please|pls|plz|and|but|so|also|then|ok(?:ay)?|hey|hi|hello|just|now|again|first|listen|look|note(?: that)?"
    r"|nb|remember(?: to)?|reminder|(?:new |one |house |my )?rule|important|p\.?s\.?|btw|by the way|seriously|honestly"
    r"|actually|really|kindly|oh|well|anyway|or|that|to|from (?:now|here|today|this (?:day|moment|point))"
    r"(?: on(?:wards?)?)?|going forward|in (?:the )?future|for (?:the moment|now|good|today|the time being)"
    r"|at all times|as a rule|in general|generally|(?:in|for) (?:this|the rest of this) (?:session|chat|conversation"
    r"|task)|today|tonight|this (?:time|once)|with (?:that|this)|thanks|(?:could|can|would|will) you|you|agent"
    r"|assistant|folks|guys|let's|let us|if possible|always|you better|be sure to|make sure (?:to|that|you|that you)"
    r"|ensure(?: that)?(?: you)?|see to it that you|you are to)\b|[,:;.!\s-]+"
)
_BOUNDARY = late_pattern(r"[,;:()—–]|(?<=\s)-(?=\s)|\b(?:and|but|so|because|then|however|or)\b|\.{2,}")
_QUESTION = late_pattern(
    r"\W*(?:who|what|why|when|where|which|how|is|are|was|were|does|did|has|had|am|don't (?:you|we|i)(?! ever))\b"
)
_POLITE = late_pattern(
    r"\b(?:can|could|would|will) you (?:\w+ )?(?:please )?(?:\w+ )?(?:stop|not|avoid|always|make sure|only|no longer)\b"
)
_TAG = late_pattern(r"[,.]? *(?:ok(?:ay)?|alright|right|please|understood|got it|clear|yes|w(?:ill|ould) you)\?\W*$")
_NO_DEMAND = late_pattern(
    r"^\W*(?:let's )?(?:suppose|imagine|what if|assume|pretend|if i (?:told|said|asked)|say i)\b"
    r"|\b(?:haha|lol|or so (?:i|they) (?:heard|say)|, i (?:read|heard|think|guess))\W*$|\btake (?:it|that) back\b"
    r"|\bno longer (?:need|have|applies|required)\b|\bused to (?:say|tell)\b|\b(?:i|he|she|they|we) (?:always|never)"
    r" (?:say|said|tell|told)\b"
)
_IDLE = split(
    "mind worry know hesitate forget bother think care panic sweat understand feel believe remember get knock be "
    "being is was been have had has having fear trust say saying see hear mean need want like expect seem look sound "
    "appear happen matter work works worked exist cease fail despair underestimate judge count rush give-up regret "
    "stress shoot blame"
)
_PAST = split(
    "received got went came saw did had was were been heard seen done gone said told made found knew took gave thought "
    "felt left kept sent lost met paid ran sat understood won wrote written eaten grew slept spoke the a an any in "
    "on at for to too so"
)
_ACTS = split(
    "do doing does take taking touch use using go going let start keep handle act change move skip hand store export "
    "import log sign connect assign approve schedule put ever call transfer switch turn make set apply create show ask "
    "check wait mix break tag assume retry repeat rely bypass phone ring give disable enable ignore modify exceed "
    "hard-code force force-push push-force cancel end"
)
_STYLE = late_pattern(
    r"\b(?:emo(?:j|tic)\w+|bullets?|bullet points?|headings?|bold|markdown|italics|tables?|tone|(?:in)?formal|polite\w*"
    r"|apologi\w+|sorry|(?:low|upp)ercase|caps|english|german|french|spanish|chinese|jargon|exclamation|summar\w+"
    r"|concise|brief|verbose|short|words?|answers?|answering|explain|repeat|sir|prose|units|metric|jokes?|chatty"
    r"|lecture)\b"
)
_NOW_WORDS = (
    r"yet|(?:for|right) now|(?:at|for) the moment|for the time being|tonight|this (?:time|once|morning|afternoon"
    r"|evening|weekend)|just (?:this )?once|for a (?:moment|minute|while|bit|second)|temporarily|for this (?:one"
    r"|answer)|(?:in|for|during|within|on) (?:the rest of )?(?:this|our|the current) (?:session|conversation|chat"
    r"|thread|task|run|booking|trip|order|ticket|answer|question)"
)
_NOW = late_pattern(rf"\b(?:{_NOW_WORDS})\b")
_UNTIL = late_pattern(r"\b(?:until|till|while (?:i|we|they|he|she|the))\b")
_PASSING = late_pattern(
    rf"\b(?:{_NOW_WORDS}|today|now(?! on)|until|till|still|tomorrow|meanwhile|hold on|so far|as long as|while (?:i|we"
    rf"|they"
    r"|it|the|he|she)|in the next \w+|before (?:i|i've|we|we've|he|she|they|the|my|our|\w+day|noon)\b"
    r"(?!.{0,30}\b(?:approved?|seen|ok)))\b"
)
_FOR_GOOD = late_pattern(
    r"\b(?:ever|again|any ?more|any longer|from (?:now|here|today) on(?:wards)?|for good|in (?:the )?future"
    r"|going forward|at all|always|never|whenever|(?:every|each) time|as a rule|in general|on my behalf)\b"
)
_THINGS_AT_HAND = (
    r"(?:order|e-?mail|mail|message|draft|invoice|file|report|payment|refund|ticket|booking|reservation|meeting|event"
    r"|document|commit|query|sql|release|reply|letter|post|page|table|request|flight|package|call|transfer|attachment"
    r"|footnotes|branch|build|pr|item|one|rest|changes?|article|title|chapter|section|command|line)"
)
_SYSTEMS = (  # "the" one of these is no object of the task at hand
    r"(?:\w+ ){0,2}?(?:shell|terminal|browser|web|internet|database|db|inbox|calendar|api|cluster|server|network|press"
    r"|team|company|client|customer|boss|production|prod|staging|main|master|branch|channel|account|card|board"
    r"|department|staff|management|office|family|media|repo\w*|system|folder|directory|public|tool|command|word|user"
    r"|same|whole|original|\w+s|_\w+|\w+_\w+)\b"
)
_AT_HAND = late_pattern(
    r"\W*(?:this|these|those|it|them|him|her|that(?! (?:you|i|we|they|he|she|is|are|was|were|ha[sd]|have|can|do"
    r"|does)\b))\b(?! (?:team|company|channel|repo|client|customer|man|guy|person|account|address)\b)"
    rf"|.{{0,40}}\b(?:this|that|these|those) (?:\w+ )?{_THINGS_AT_HAND}\b|.{{0,40}}\b(?:to|on|for|with|about|in) "
    r"(?:this|that|it)(?:\W*$|[,.;])"
    rf"|\W*(?:the|my|his|her|their|your|our) (?:\w+ ){{0,2}}{_THINGS_AT_HAND}\b(?!s)|\W*the (?!{_SYSTEMS})[\w-]+\b"
    r"|.{0,30}\b(?:order|invoice|ticket|booking|pr|issue|case|flight|refund)s? #?(?=[\w-]*\d)[\w-]+"
    r"|\W*(?:\w+ )?[\w-]+\.(?:xlsx?|docx?|pdf|csv|txt|md|pptx?|png|jpe?g|html)\b"
)
_REPORTED = late_pattern(
    r"\b(?:says?|told|claims?|wrote|states?|according to|suppose|pretend|agreed|heard|reads?|yelled"
    r"|shouted)\b(?<!i say)|\b(?:he|she|they|boss) (?:said|thinks)\b"
)
_IDIOM = late_pattern(
    r"(?:don'?t|do not|never|stop) (?:give up|tell me|ask(?:\W*$| me why| why)|stop\b|wast\w+|get me wrong|guess|rush"
    r"|bother|be (?:shy|afraid|so)|make me|take this wrong|even think|cancel me)"
)
_REASON = late_pattern(
    r"(?:,|;|\s[-–—]|:)\s+(?:(?:he|she|they|we|there|i|nobody|otherwise|please|thanks|it's|it|that's|this|that)\b)"
    r"|\b(?:because|since|otherwise|as i|as we)\b"
)
_CONDITION = late_pattern(r"\W*(?:if|in case|should|once|when)\b")
_BEFORE_IT = r"\s*(?:if|when|whenever|before|after|unless|while|until|for|on|in|with|as|since|at|during|even)\b"

# ---------------------------------------------------------------- the same in Chinese

_ZH_BAN = (
    r"(?:永远|绝对|千万|一定|一律|再也|都|以后|务必|先)?(?:不要|不许|不准(?!确|时)|不得(?!不|了|已)|不可以?|不应该?|别"
    r"|请勿|切勿|勿|严禁|禁止|绝不(?!会)|决不(?!会)|永不|停止|不再|避免|不用|少)(?:再|去|把)?"
)
_ZH_FORM = late_pattern(
    rf"(?P<ban>(?<![特区分性识类级个告辨鉴派要]){_ZH_BAN}|(?:绝对|千万|都|你|一律|以后|再)不能再?"
    r"|不能(?:再|(?=[把给向对往])))"
    r"|(?P<wish>我们?(?:永远|绝对|真的|再也)?(?:不想|不希望|不愿意?|不允许|不许|不准)再?(?:被|你|看到你))"
    r"|(?P<most>最多|至多|不能超过)|(?P<only>只(?:能|可以?|准|许|允许|(?=[给用在往发]))|仅[能可限])"
    r"|(?P<ask>(?:没有?|未|未经|不经|没经过|除非|征得|经过?|得到)我?的?(?:同意|允许|批准|确认|许可)"
    r"|(?:必须|先|事先|提前|都要|要|得|需要?|应该|务必)先?(?:[问给让跟和向经由请]|告诉|通知|征求)过?我|问(?:过|一下"
    r"|一声)?我|先.{1,12}给我看|我来?(?:确认|批准|同意|点头|过目))"
    r"|(?P<must>必须先|务必先|一律|必须|总是|记得每次|每次都)"
)
_ZH_NONE = late_pattern(  # no demand, though it reads like one
    r"(?:不要|别)(?:[紧脸急怕忘谢慌的墅处扭名致笑猜]|人(?!员)|客气|担心|着急|犹豫|介意|误会|在意|紧张|管我|提了|说了"
    r"|生气|难过|理他|瞎猜|浪费|说(?!出)|看他|搞错)|不要了|只能这样|对不起|(?:不用|不必|无需|不需要|没必要|别|不要"
    r"|停止)再?(?:每次.{0,8})?都?先?问|区别|不停|不准时|不少|至少|多少|减少|缺少|少了|不用(?!我|[a-z]|再)|不再(?:需要"
    r"|禁止|限制)|不(?:要求|需要|用|必)我|只能(?:返回|显示|支持|看到|[等说是有靠怪])|停止(?!自动|使用"
    r"|[再给向对往在删发])"
)
_ZH_QUESTION = late_pattern(r"为什么|是不是|能不能|要不要|可不可以|是否|吗\W*$|呢\W*$|^怎么")
_ZH_POLITE = late_pattern(r"(?:能不能|可不可以|可以|能|麻烦).{0,4}(?:不要|别)再?|(?:好|可以|行)吗\W*$")
_ZH_REPORT = late_pattern(
    r"(?:[我他她它路店锅机]|咱们|客户|用户|系统|医生|大家|有人|孩子|老板|公司|网站|页面|程序|服务器|会议室|这里|妈妈?"
    r"|爸爸?|老师|学校|小区)们?(?:也|都|从来|还|就|已经|一直|一般|平时|真的|其实|当然|因为.{0,6})?$"
    r"|(?:[他她信里上]|老板|客户|系统|医生|经理|同事|朋友|牌子|邮件|页面|文档|公告|妈妈?|爸爸?)们?(?:说|要求|写|表示"
    r"|提示|告诉|规定|提醒)|(?:告诉|提醒|通知)(?!我)|要求大家|如果|要是|假如|万一|若|从来|本来|原来|以为|听说"
    r"|觉得.{0,4}$|会$"
)
_ZH_CASE = late_pattern(r"如果|要是|假如|(?:他|她|老板|客户|公司)们?说[，,：:]?$")
_ZH_STRONG = late_pattern(r"永远|绝|千万|禁止|严禁|不许|不准|停止")
_ZH_FOR_GOOD = late_pattern(
    r"永远|以后|今后|从今|从此|从现在|任何情况|每[次笔封]|凡是|一律|永不|长期|平时|所有|千万别再|再也|(?:不要|别|不许"
    r"|不准|不能)再"
)
_ZH_PASSING = late_pattern(
    r"先(?:[别不停]|等)|暂时|目前|暂且|现在.{0,3}[别不]|今天|今晚|今早|这周|明天(?!起)|这一?(?:[次回封张份条笔单篇批]"
    r"|文件|邮件|订单|个(?!分支|仓库|项目|库|目录|文件夹|表|频道|群|账号|账户|环境|服务器|地址|人|客户))|[本此]次"
    r"|这里|那[两几]?[封个份张条笔次]|这件|期间|接下来|正在|[\w-]+\.(?:docx?|xlsx?|txt|pdf|csv|ya?ml|md|pptx?)"
    r"|等.{1,14}(?:再|之后|以后|后)|(?<![以点])之?前[先都请你]*[别不]|(?:订单|发票) ?[a-z]{0,3}-?\d|刚才|还没|下周"
    r"|周[一二三四五六日]前|一会儿|本轮|本会话|我的(?:订单|包裹|预订)|给[他她](?!们)"
)
_ZH_LASTS = late_pattern(r"永远|以后|今后|从今|从此|从现在|任何情况|每次|凡是")
_ZH_STYLE = late_pattern(
    r"回答|表情|语气|格式|标题|表格|加粗|啰嗦|客气|废话|列表|简短|中文|英文|口吻|道歉|敬语|markdown|总结|字数|措辞"
    r"|解释|词"
)
_ZH_ACT = late_pattern(
    "这样|[打做动碰弄跑搞干写读改加约排退订寄放存导接转拉推发调拿点传开关拍续]|处理|操作|继续|"
    + "|".join(chinese_words(FAMILIES))
)
_ZH_BOUNDARY = late_pattern(r"[，,；;。！!？?\n]")
_ZH_REASON = late_pattern(
    r"[,，;；](?:因为|由于|否则|不然|要不然|他们?|[她它]|这是|那|我们?(?!同意|确认|批准)|大家|每次都|有事|烦|已经)"
)


def demanded_in(sentence: Sentence) -> list[Demanded]:
    """What a sentence demands, by each of its forms; empty where it demands nothing."""
    text = small(sentence.masked)
    if CJK.search(text):
        asks = (sentence.question or _ZH_QUESTION.search(text)) and not _ZH_POLITE.search(text)
        return [] if asks else list(_chinese(text))
    if sentence.question:
        tag = _TAG.search(text)
        if tag is not None and not _QUESTION.match(text):
            text = text[: tag.start()]
        elif not _POLITE.search(text):
            return []
    elif _QUESTION.match(text):
        return []
    return [] if _NO_DEMAND.search(text) else list(_english(text))


def _english(text: str) -> Iterator[Demanded]:
    bounds = [0, *(match.end() for match in _BOUNDARY.finditer(text))]
    for form in _EN:
        for match in form.pattern.finditer(text):
            start = match.start()
            clause = max(bound for bound in bounds if bound <= start)
            verb = next((word for word in match.groups() if word), "")
            if form.opens and not _is_addressed(text, bounds, start, verb):
                continue
            if _IDIOM.match(text, start) or (verb and _is_idle(verb, told=form.opens)):
                continue
            case = not form.lasting and _CONDITION.match(text[:start])
            if case and not re.search(r"\bever\b|\bwhen(?:ever)? i\b", text):
                continue  # "if it rains, don't book": about this one case
            if _REPORTED.search(text[:start]):
                continue
            reason = _REASON.search(text, match.end())
            end = reason.start() if reason is not None else len(text)
            lasting = form.lasting or bool(_FOR_GOOD.search(text, start, end) and not _UNTIL.search(text, start))
            passing = _NOW.search(text) if lasting else _PASSING.search(text) or _AT_HAND.match(text[match.end() : end])
            styled = bool(_STYLE.search(text, start, end)) and not families_of(verb) & {"delete"}
            named = form.named or styled or bool(verb and not _acts(verb))
            yield Demanded("session" if passing else "standing", clause if form.whole else start, end, named)


def _is_addressed(text: str, bounds: list[int], start: int, verb: str) -> bool:
    """Does nothing but such words stand before it in its clause, or in the clauses that lead up to it?"""
    for bound in reversed([each for each in bounds if each <= start]):
        lead = text[bound:start]
        at = 0
        while at < len(lead) and (word := _LEAD.match(lead, at)) and word.end() > at:
            at = word.end()
        if not lead[at:].strip():
            return bound == 0 or not verb or _acts(verb)
        if bound == 0 and re.fullmatch(r"\W*(?:after|before|on|in|for|at|during|between) (?:\S+ ){1,5}", lead):
            return True
        if not re.match(_BEFORE_IT, lead):
            return False
    return False


def _is_idle(verb: str, *, told: bool) -> bool:
    """A verb that tells of no act; `told`: an imperative, which no past form is."""
    past = verb in _PAST or (verb.endswith("ed") and verb not in {"embed", "feed", "shred"})
    return bool(set(base_forms(verb)) & _IDLE) or (told and past)


def _acts(verb: str) -> bool:
    return any(form in FAMILIES or form in _ACTS for form in (*base_forms(verb), *verb.split("-")))


def _chinese(text: str) -> Iterator[Demanded]:
    bounds = [0, *(match.end() for match in _ZH_BOUNDARY.finditer(text))]
    silent = [match.span() for match in _ZH_NONE.finditer(text)]
    for_good, passing = bool(_ZH_FOR_GOOD.search(text)), _ZH_PASSING.search(text)
    for match in _ZH_FORM.finditer(text):
        clause = max(bound for bound in bounds if bound <= match.start())
        before = text[clause : match.start()]
        if any(start < match.end() and match.start() < end for start, end in silent):
            continue
        if _ZH_REPORT.search(before) or (_ZH_CASE.search(text[:clause]) and not for_good):
            continue
        reason = _ZH_REASON.search(text, match.end())
        end = reason.start() if reason is not None else len(text)
        strong = bool(_ZH_STRONG.match(match[0]))
        lasting = not match["ban"] or for_good or strong
        bare = not lasting and len(text[match.end() : end].strip(" ，,。.!！了吧")) <= 1  # "the title, don't translate"
        weak = match["must"] or match["most"] or match[0] in {"不用", "少", "不可", "不应", "不应该", "只"}
        weak = weak or _ZH_STYLE.search(text, clause, end)
        if match["ask"] or match["must"] or match["only"] or match["most"]:
            clause, end = 0, len(text)
        acts = (
            strong or match["wish"] or _ZH_ACT.search(text, clause, end) or re.search("[a-z]", text[match.end() : end])
        )
        named = bool(weak or not acts)
        kind: Kind = "session" if (passing or bare) and not _ZH_LASTS.search(text) else "standing"
        yield Demanded(kind, clause, end, named)
