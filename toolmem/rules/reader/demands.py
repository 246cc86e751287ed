"""Find the sentences that limit what the agent does with its tools, and for how long.

A form ("never", "don't", "only", "ask me before") counts if it addresses the agent: as an
imperative that opens a clause, or after "you must", "I want you". Elsewhere the same words report
something. A demand holds for the conversation if it says so ("for now") or is about an object of
the task at hand ("this order"). Otherwise, or with a word such as "never", it holds for good.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from toolmem.models.rules import UNSCOPED, Effect
from toolmem.models.tools import ToolSchema
from toolmem.rules.reader import words
from toolmem.rules.reader.call_tests import CallTests
from toolmem.rules.reader.conditions import find_conditions
from toolmem.rules.reader.own_text import MAX_SENTENCE, Sentence, own_sentences, takes_dot
from toolmem.rules.reader.pasted import copied
from toolmem.rules.reader.tools import acting_tools, action_parameter, catalogue_of, tools_meant
from toolmem.rules.reader.words import lower
from toolmem.text.forms import word_set

Kind = Literal["ban", "only", "ask"]
MAX_COPIED = 3  # lines that look copied and are named to the user
_NAME_AND_TIME = re.compile(r"^(?:.*[\]:：]\s?|\W*)")
_ONE_STEP = "it is about this one step"
_COPIED = "it looks copied from a chat or a page; in a sentence of your own it is kept"


class Demand(Struct, frozen=True):
    """A sentence that limits what the agent does."""

    sentence: str  # as it was said, without its final stop
    tools: list[str]  # which it is about; UNSCOPED where no tool is known
    effect: Effect = "remind"
    session: bool = False  # it holds for this conversation, not for good
    today: bool = False  # it holds until the end of the day
    conditions: dict[str, CallTests] = {}  # by tool: the calls that it forbids
    unread: list[str] = []  # words that no condition could be made of; it only reminds then


class Form(Struct, frozen=True):
    """The words that make a sentence a demand. Positions are indexes into the sentence."""

    kind: Kind
    at: int  # where the form begins
    start: int  # where the words begin that say what is limited
    end: int  # where the form ends; its verb comes after that


_VERB = r"([a-z][a-z'-]+)"
_ADVERBS = r"(?:(?:you|ever|even|just|simply|again|automatically|always|please|really|directly) )*"
_IMPERATIVE = re.compile(
    rf"\bnever(?: ever)? {_ADVERBS}{_VERB}|\b(?:under no circumstances|in no case"
    rf"|on no account),? (?:\w+ you (?:to )?)?{_ADVERBS}{_VERB}|\b(?:stop|quit|cease|avoid"
    rf"|refrain from) {_ADVERBS}([a-z-]+ing)\b|\bno longer ([a-z-]+)|\b(?:don'?t|do not"
    rf"|do n't) {_ADVERBS}{_VERB}"
)
_ADDRESSED = re.compile(
    r"\byou (?:really |absolutely )?(?:must(?:n't| not| never)|may(?: not| never)|should(?:n't| not"
    r"| never)|are (?:not|never|no longer) (?:to|allowed to)) "
    rf"(?:ever )?{_VERB}"
    r"|\bi (?:really )?(?:don'?t|do not|never) (?:ever )?want you (?:to )?(?:ever )?([a-z-]+)"
    r"|\bi(?:'d| would) (?:rather|prefer)(?: if)?(?: you(?: to)?)? (?:not|never|didn't"
    r"|don't) (?:be |ever |to )*([a-z-]+)"
)
# Verbs of idioms that do something to what is named: "never look at ~/.ssh", "never stop db-1".
_ACTS_ON = re.compile(r"(?:look(?:ing)?|stop) [^,;.!?]{0,40}?(?:[~/]|`|\w[.-]\w)")
_ONLY = re.compile(
    r"(?:^|\b(?:you may|you can|you should|please) )(?:only|exclusively) (?!one|two|if|when"
    r"|the\b)([a-z]+)"
)
_ASK = re.compile(
    r"\b(?:always )?(?:(?:ask|check with|confirm with) (?:me|us)(?=\b.{0,40}\b(?:before|first|when"
    r"|whenever|for|every time)\b)|show me(?= .{2,40} before you\b)|ask(?= (?:first|before)\b)"
    r"|without (?:first )?asking(?: me| us)?|(?:without|needs?) my (?:ok(?:ay)?|approval"
    r"|permission|consent|confirmation))\b"
)
_FORMS: tuple[tuple[Kind, bool, re.Pattern[str]], ...] = (
    ("ask", False, _ASK),
    ("ban", False, _ADDRESSED),
    ("ban", True, _IMPERATIVE),  # counts only where it opens a clause
    ("only", True, _ONLY),
)
# Words before an imperative in its clause. The group is possessive, so that it never backtracks.
_LEAD = re.compile(
    r"(?:(?:\W+|please|pls|plz|and|but|so|also|then|ok(?:ay)?|hey|hi|hello|just|now|again|first"
    r"|listen|look|note(?: that)?|remember(?: to)?|reminder|(?:new |one |house |my )?rule|important"
    r"|btw|by the way|seriously|actually|really|kindly|oh|well|anyway|or|from (?:now|here|today) on"
    r"|going forward|in (?:the )?future|for (?:now|today|good|the moment)|at all times|as a rule"
    r"|in (?:this|our) (?:session|chat)|today|thanks|(?:could|can|would|will) you|you|agent|let's"
    r"|always|make sure(?: to| that| you)*|dont|no(?: way)?|nope|nah|wait|hold on|hang on|stop"
    r"|sorry|fine|yes|yeah|yep|sure|right|alright|great|good|hm+|um+|uh+|correction|careful"
    r"|one (?:more|other) thing)\b|[,:;.!\s-]+)*+"
)
_ZH_LEAD = re.compile(
    r"(?:不行?|不对|等等|等一?下|停|对了?|嗯|行|好的?|哦|算了|抱歉)[，,：:!！\s]+"
)
_BOUNDARY = re.compile(r"[,;:()—–]|(?<=\s)-(?=\s)|\b(?:and|but|so|because|then|however|or)\b")
_QUESTION = re.compile(
    r"^\W*(?:who|what|why|when|where|which|how|is|are|was|were|does|did|has|had|am|should|shall)\b"
)
_POLITE = re.compile(
    r"\b(?:can|could|would|will) you (?:please )?(?:stop|not|avoid|always|only|no longer)\b"
    r"|, (?:ok(?:ay)?|please|alright)\?"
)
_REPORT = re.compile(
    r"\b(?:says?|told|claims?|wrote|states?|according to|suppose|imagine|pretend|heard|(?:he|she"
    r"|they|boss) said|used to|what if)\b"
)
_FOR_A_TIME = re.compile(
    r"^\W*(?:until|till|while|during|after|before|from|as long as)\b[^,]{1,60}?"
    r"(?<!\bi )(?<!\bit )(?<!\bwe )(?<!\bhe )(?<!\bthey )\b(?:never|don'?t|do not) [a-z]"
)
_CONDITION = re.compile(r"^\W*(?:if|in case|unless|should)\b")
# A demand inside of what is to be made: "write a parser that never fails".
_TASK = re.compile(
    r"^\W*(?:please |then |and )*(?:add|implement|write|create|build|generate|draft"
    r"|document)\b(?!.{0,40}\b(you|yet)\b)|(?:帮我|加一|写一|实现|说明|生成|起个)"
)
# "You need not" is no demand; it may lift one.
_NO_NEED = re.compile(
    r"\b(?:don'?t|do not|no longer|needn't) (?:have|need) to\b|\b(?:stop|no need to) (?:asking|ask"
    r"|check\w*)\b|(?:不用|无需|不必|不需要|没必要|别再?)(?:每次)?[都再先]*问"
)
_FOR_GOOD = re.compile(
    r"\b(?:ever|again|any ?more|from (?:now|today) on|for good|in (?:the )?future|at all|always"
    r"|never|every time)\b|永远|以后|今后|从今|每次|一律|再也|所有"
)
# Without one of these, a demand counts only where it names a tool or an action.
_LASTING = re.compile(
    rf"{_FOR_GOOD.pattern}|\b(?:must|under|no|avoid|only|without|ask)\b|禁止|严禁|不[准许得]|绝|千万|只|问"
)
_FOR_A_WHILE = re.compile(
    r"\b(?:yet|(?:for|right) now|(?:at|for) the moment|for the time being|today|tonight|until|till"
    r"|this (?:time|once|morning|afternoon|evening|weekend)|temporarily|still|as long as|(?:in|for"
    r"|during|within) (?:the rest of )?(?:this|our|the current) (?:session|conversation|chat|thread"
    r"|task|run)|while (?:i|we)|before (?:i|we|i've|we've)\b)\b|先(?:[别不停]|等)|暂时|目前|今天"
    r"|今晚|这周|明天|这一?[次封张条笔单]|[本此]次|这里|那[封个份张条笔次]|期间|正在|等.{1,14}(?:再"
    r"|之后|以后|后)|还没|周[一二三四五六日]前|给[他她](?!们)|(?:订单|发票) ?[A-Za-z]{0,3}-?\d"
)
_TODAY = re.compile(r"\btoday\b(?! (?:or|and)\b)|今天")
# Today as the day on which a lasting demand begins.
_FROM_TODAY = re.compile(
    r"\b(?:from|since|starting|beginning|as of|effective|not (?:just|only)) today\b"
    r"|今天(?:起|开始)|不[只仅]今天"
)
# Today as the whole time for which a "never" holds.
_NEVER_TODAY = re.compile(
    r"^\W*(?:for |just |only )?today\b(?!['’])|(?<!even )(?<!until )(?<!till )\btoday\W*$"
)
_NOW = re.compile(
    r"\b(?:yet|until|till|for now|for the moment|this session)\b"
    r"|(?<![只仅])今天(?!起|开始)|先别|本次"
)
_OBJECT = (
    r"(?:order|e-?mail|mail|message|draft|invoice|file|document|report|payment|ticket|booking"
    r"|meeting|event|commit|query|one)"
)
_AT_HAND = re.compile(
    r"^\W*(?:this|these|those|it|them|him|her)\b(?! (?:team|company|channel|repo|person|account))"
    rf"|^.{{0,40}}\b(?:this|that|these) (?:\w+ )?{_OBJECT}\b"
    r"|^.{0,30}\b(?:order|invoice|ticket|booking|pr|issue|case)s? #?(?=[\w-]*\d)[\w-]+"
    r"|^\W*the (?:order|e-?mail|message|draft|invoice|payment|booking|meeting|report|release"
    r"|refund)\b(?!s)"
)
# For `unkept`: words of demands; "only" and "always" that open a clause; statements; behaviour.
_DEMANDING = re.compile(r"\b(?:never|don'?t|do not|only|always)\b|不要|别")
_POSITIVE = re.compile(
    r"(?:^|(?<=[\s,;:(—–]))(?:you (?:should|must|need to|have to) )?(?:only|always) ([a-z]+)"
)
_STATES = re.compile(
    r"^\W*\w+ (?:\w+ )?(?:is|are|was|were|can|could|has|have|had|will|would|does|did)\b"
)
_BEHAVIOUR = re.compile(
    r"\b(?:don'?t|do not|never) (?:be (?!afraid|sorry|silly|shy|surprised)|say|trust|stop)\b"
)
_NO_VERB = word_set("same one two my our his her its this that there here when if with")
_ZH_FORM = re.compile(
    r"(?:永远不要|永远别|绝不要|绝对不要|绝不能|绝对不能|不[能可](?=超过)|千万不要|千万别|不要再|别再|再也不要|禁止|严禁"
    r"|不准(?=[\u3400-\u9fff])|不许|不得|请勿|停止|不要|别)|(?P<only>只能|只准|只许|仅限)"
    r"|(?P<ask>(?:必须|务必|一定|都|要|得)?先?(?:问过?我|问一?[下声]我|[跟和向]我确认|征求我的?同意"
    r"|经过?我同意))|(?:之前|前)?(?:必须|务必)先"
)
_ZH_NO_DEMAND = re.compile(
    r"(?:不要|别)(?:[紧脸急怕忘谢慌墅处扭名致笑猜]|人(?!员)|客气|担心|着急|犹豫|介意|误会|在意|紧张"
    r"|管我|生气|难过)|不要了|对不起|[区特级个分告性]别|别的|别人|停止了|不停|不准时|只能这样"
    r"|要不要|是不是|能不能"
)
_ZH_REPORT = re.compile(
    r"(?:[我他她它]|咱们|客户|用户|系统|医生|大家|有人|老板|公司|网站|页面|程序)们?(?:也|都|从来|还"
    r"|就|已经|一直|一般)?$|(?:说|要求|写着?|表示|提示|规定|告诉)|如果|要是|假如|万一|从来|以为"
    r"|觉得"
)
_ZH_QUESTION = re.compile(r"[?？]\W*$|为什么|是不是|能不能|要不要|吗\W*$|呢\W*$")
_ZH_POLITE = re.compile(r"(?:能不能|可不可以|可以|麻烦).{0,4}(?:不要|别)|好吗|可以吗")
_ZH_CLAUSE_END = re.compile(r"[，,；;。！!？?：:]")
_FINAL_STOP = re.compile(r"[\s.。!！;；,，]+$")


def demands(
    message: str, ran: Sequence[str] = (), tools: Sequence[str | ToolSchema] = ()
) -> list[Demand]:
    """Find what the user's message demands of the agent.

    `ran`: the tools that the turn called, in order; `tools`: all tools of the agent. A demand is
    about the tools that it names or means, else the first that ran, else no known one (UNSCOPED).
    """
    catalogue = catalogue_of(ran, tools)
    found: dict[str, Demand] = {}
    for sentence in own_sentences(message, _forms):
        demand = _read(sentence, ran, catalogue)
        if demand is not None:
            found.setdefault(demand.sentence, demand)
    return list(found.values())


def _read(
    sentence: Sentence, ran: Sequence[str], catalogue: Mapping[str, ToolSchema]
) -> Demand | None:
    """Read the demand of one sentence; return None if the sentence demands nothing."""
    said = sentence.text
    text = lower(sentence.masked)
    forms = _forms(sentence)
    if not forms or _is_question(text, sentence.question):
        return None
    if _NO_NEED.search(text) or _TASK.match(text[: min(form.at for form in forms)]):
        return None
    kinds = {form.kind for form in forms}
    demanded = text[min(form.start for form in forms) :]
    meant = tools_meant(said, demanded, catalogue)
    acting = [tool for tool in catalogue.values() if action_parameter(tool)]
    meant = list(dict.fromkeys([*meant, *acting_tools(said, demanded, acting)]))
    acts = words.mentions(demanded, words.words_in(demanded), words.VERBS)
    if not meant and (words.STYLE.search(demanded) or not (acts or _LASTING.search(text))):
        return None  # "don't guess", "stop wasting my time"
    bound = meant or list(ran[:1]) or [UNSCOPED]
    schemas = [catalogue[name.lower()] for name in bound if name.lower() in catalogue]
    conditions: dict[str, CallTests] = {}
    unread: list[str] = []
    if len(forms) <= 2:
        limited = _without_forms(said, text, forms)
        conditions, unread = find_conditions(limited, text, "only" in kinds, schemas)
    effect: Effect = "ask" if "ask" in kinds else "deny"
    return Demand(
        sentence=_without_stop(said),
        tools=bound,
        effect=effect if conditions else "remind",
        session=_is_for_session(text, forms),
        today=_ends_today(text),
        conditions=conditions,
        unread=unread,
    )


def _without_stop(said: str) -> str:
    """Return a sentence without its final stop; the dot of `git add .` belongs to the command."""
    if said.endswith("..") or (said[-1] == "." and takes_dot(said[:-1])):
        return said
    return _FINAL_STOP.sub("", said)


def _without_forms(sentence: str, text: str, forms: Sequence[Form]) -> str:
    """Blank out the forms of a sentence, and the words that lead up to them."""
    spans = [(form.at, form.end) for form in forms]
    if lead := (_ZH_LEAD if words.CJK.search(text) else _LEAD).match(text):
        spans.append(lead.span())
    for start, end in spans:
        sentence = sentence[:start] + " " * (end - start) + sentence[end:]
    return sentence


def _is_question(text: str, marked: bool) -> bool:
    """Whether a sentence is a question; a polite request ("could you please stop ...?") is none."""
    if words.CJK.search(text):
        return bool((marked or _ZH_QUESTION.search(text)) and not _ZH_POLITE.search(text))
    return bool(_QUESTION.match(text) or (marked and not _POLITE.search(text)))


def _is_for_session(text: str, forms: Sequence[Form]) -> bool:
    """Whether a demand holds for a while, or is about an object of the task at hand."""
    if _FOR_GOOD.search(text) or _FROM_TODAY.search(text):
        return bool(_NOW.search(text))
    if _FOR_A_WHILE.search(text):
        return True
    objects = [text[form.end :].partition(" ")[2] for form in forms]
    return not words.CJK.search(text) and any(_AT_HAND.search(each) for each in objects)


def _ends_today(text: str) -> bool:
    """Whether a demand ends with the day, even with a "never": "Never push to main today"."""
    if not _TODAY.search(text) or _FROM_TODAY.search(text):
        return False
    lasting = {found[0] for found in _FOR_GOOD.finditer(text)}
    return not lasting or (lasting <= {"never", "ever"} and bool(_NEVER_TODAY.search(text)))


def unkept(message: str, kept: Collection[str]) -> list[tuple[str, str]]:
    """List the user's sentences with never, don't, only, always, 不要 or 别 that made no demand.

    Each comes with the reason, in words for the user. Questions, idioms and statements are left
    out. `kept`: the sentences of the demands that were made.
    """
    reasons: dict[str, str] = {}
    for sentence in own_sentences(message, _forms):
        said = _without_stop(sentence.text)
        if said not in kept and (reason := _why_unkept(sentence)):
            reasons.setdefault(said, reason)
    lines = message.splitlines()
    marked = zip(lines, copied(lines), strict=True)
    pasted = [line.strip() for line, is_copied in marked if is_copied]
    short = [line for line in pasted if len(line) <= MAX_SENTENCE]
    named = [line for line in short if _forms_within(_NAME_AND_TIME.sub("", lower(line)))]
    return [*reasons.items(), *((line, _COPIED) for line in named[:MAX_COPIED])]


def _why_unkept(sentence: Sentence) -> str:
    """Say why a sentence that reads like a demand makes none; "" for other sentences."""
    text = lower(sentence.masked)
    if len(sentence.text) > MAX_SENTENCE:
        return f"it is longer than {MAX_SENTENCE} characters" if _has_form(sentence) else ""
    if not _DEMANDING.search(text) or _is_question(text, sentence.question):
        return ""
    forms = _forms_within(text)
    if _NO_NEED.search(text) or any(_is_statement(text, form) for form in forms):
        return ""
    if forms and _TASK.match(text[: min(form.at for form in forms)]):
        return _ONE_STEP
    if forms or _opens_clause(_BEHAVIOUR, text):
        return "it says nothing about a tool"
    if _CONDITION.match(text) and _forms_within(text.partition(",")[2]):
        return "it is a condition"
    if _FOR_A_TIME.match(text):
        return "it begins with a time or a condition: begin with never or don't"
    if text.strip(" .!") == "never":
        return "it does not say what"
    if found := _opens_clause(_POSITIVE, text):
        idle = (words.IDLE | _NO_VERB) - {"be"}
        is_done = idle.isdisjoint(words.stems(found[1]))
        finite = re.search(r"(?<!s)s$", found[1]) or _STATES.match(text[found.start(1) :])
        return "it says what to do, not what to leave" if is_done and not finite else ""
    first = re.match(r"[a-z]+", _LEAD.sub("", text, count=1))
    asks = first and first[0] in words.VERBS and not _STATES.match(text)
    return _ONE_STEP if asks and re.search(r"\b(?:only|always)\b", text) else ""


def _is_statement(text: str, form: Form) -> bool:
    """Whether an "only" states something: "only admins can see it", "only works on Linux"."""
    after = text[form.end :]
    verb = re.match(r"\W*([a-z]+)", after)
    is_finite = bool(verb and not words.IDLE.isdisjoint(words.stems(verb[1])))
    return form.kind == "only" and (is_finite or _STATES.match(after) is not None)


def _opens_clause(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the first match of a pattern if this match begins a clause."""
    found = pattern.search(text)
    return found if found and _is_clause_start(text, found.start()) else None


def _is_clause_start(text: str, at: int) -> bool:
    return _LEAD.fullmatch(_BOUNDARY.split(text[:at])[-1]) is not None


def too_long(message: str) -> int:
    """Count the user's own sentences that demand something and are too long to be kept."""
    own = own_sentences(message, _forms)
    return sum(len(each.text) > MAX_SENTENCE and _has_form(each) for each in own)


def _forms(sentence: Sentence) -> list[Form]:
    """Find the forms of demand in a sentence; return none for a sentence that is too long."""
    return [] if len(sentence.text) > MAX_SENTENCE else _forms_within(lower(sentence.masked))


def _has_form(sentence: Sentence) -> bool:
    """Whether a long sentence has a form. It is read in parts, as a search takes quadratic time."""
    starts = range(0, min(len(sentence.masked), 20 * MAX_SENTENCE), MAX_SENTENCE)
    parts = (lower(sentence.masked[at : at + MAX_SENTENCE + 50]) for at in starts)
    return any(map(_forms_within, parts))


def _forms_within(text: str) -> list[Form]:
    return list(_chinese_forms(text) if words.CJK.search(text) else _english_forms(text))


def _english_forms(text: str) -> Iterator[Form]:
    for kind, imperative, pattern in _FORMS:
        for match in pattern.finditer(text):
            at = match.start()
            verb = match.lastindex
            idle = verb and _is_idle(match[verb]) and not _ACTS_ON.match(text, match.start(verb))
            if _REPORT.search(text[:at]) or idle:
                continue
            if imperative and not _is_clause_start(text, at):
                continue
            if imperative and not match[0].startswith("never") and _CONDITION.match(text[:at]):
                continue  # it holds only in one case
            end = match.start(verb) if verb else match.end()
            yield Form(kind, at, 0 if kind == "ask" else at, end)


def _is_idle(verb: str) -> bool:
    """Whether a verb belongs to an idiom, the mind or a report: "never mind", "never received"."""
    if verb in words.IDLE or verb.removesuffix("ing") in words.IDLE:
        return True
    return verb.endswith("ed") and verb not in {"embed", "feed", "transferred"}


def _chinese_forms(text: str) -> Iterator[Form]:
    idioms = [match.span() for match in _ZH_NO_DEMAND.finditer(text)]
    for match in _ZH_FORM.finditer(text):
        at = match.start()
        clause = max((end.end() for end in _ZH_CLAUSE_END.finditer(text, 0, at)), default=0)
        if _ZH_REPORT.search(text[clause:at]) or any(start <= at < end for start, end in idioms):
            continue
        kind: Kind = "only" if match["only"] else "ban"
        if match["ask"]:
            kind = "ask"
        yield Form(kind, at, clause, match.end())
