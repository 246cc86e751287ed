"""Sentences that take a rule back, and which; and which rule a newer one replaces. In doubt nothing is taken back.

A permission takes a rule back only where everything that it speaks of stands in the rule too: "you may email Sarah
about the invoice" leaves "never email Sarah" as it is. It counts where it is said to the agent and for good: not in a
question, a report, under a condition, for this once, or of somebody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Literal, NamedTuple

from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass
from toolmem.sentences.split_text import CJK, MASK, Sentence, small
from toolmem.sentences.terms import Term, terms_of

Kind = Literal["permission", "unneeded", "unbound", "release", "back"]
_LONGEST = 500  # characters of a sentence
_SHORT_QUOTE = late_pattern(rf"(?<!{MASK}){MASK}{{1,120}}(?!{MASK})")
_ASKS = r"(?:ask(?:ing)?|(?:check|confirm)(?:ing)? with)(?: me| us)?(?: again| first| every time| each time)*"
_YOU = r"(?:agent|you)"
_NOW = r"(?:now |again |also |from now on |once more )*"
_FREE = r"(?:now |again )?(?:allowed|permitted|free|welcome) to"
_OK = r"(?:ok(?:ay)?|fine|allowed|permitted|alright|all right|no problem)"
_RULE = r"(?:rules?|bans?|instructions?|restrictions?|limits?|prohibitions?|demands?|requirements?)"


class _Form(NamedTuple):
    """How a sentence takes something back; its group "what" says what is meant, else the rest of the clause does."""

    kind: Kind
    pattern: re.Pattern[str]
    instead: bool  # it would read as a demand itself


def _form(kind: Kind, pattern: str) -> _Form:
    return _Form(kind, late_pattern(pattern), kind != "permission" and "without" not in pattern)


_EN = (
    _form(
        "back",
        r"\bi take (?:that|it|this) back\b|\bscratch that\b|\bforget (?:that|it|what i (?:just )?said)\W*$"
        r"|\b(?:actually|no),? you may\W*$",
    ),
    _form("unneeded", rf"\bstop {_ASKS}(?P<what>.*)"),
    _form("unneeded", rf"(?P<what>.*)\bwithout {_ASKS}"),
    _form(
        "unneeded",
        rf"\b(?:{_YOU} (?:don't|do not|no longer|needn't)(?: (?:have|need) to)?|no need to)(?: {_ASKS})?(?P<what>.*)",
    ),
    _form("unbound", rf"\b{_YOU}(?: are|'re)? ?(?:n't|not|no longer) (?:limited|restricted|bound) to (?P<what>.*)"),
    _form(
        "release",
        r"\b(?:forget|scrap|drop|lift|lifting|cancel|ignore|disregard|remove|revoke|withdraw|delete|undo|tak(?:e"
        r"|ing) back) "
        rf"(?:about )?(?P<what>(?:my|the|that|this|what i|all)\b.*(?:\b{_RULE}\b|said|told).*|my .*|all .*)",
    ),
    _form(
        "release",
        rf"\b(?P<what>(?:the|my|that|our) .*\b{_RULE}\b.*)(?:(?:no longer|doesn't) (?:appl(?:ies|y)|holds|stands)"
        r"|(?:is|are) (?:gone|lifted|over|off|cancelled|revoked|history))\b",
    ),
    _form(
        "permission",
        rf"\b{_YOU}(?: {_NOW})? ?(?:may|can(?!'t|not)|could|are {_FREE}|'re {_FREE}|have (?:my )?permission to) "
        rf"{_NOW}(?P<what>.*)",
    ),
    _form(
        "permission",
        r"\b(?:feel free to|go back to|i(?:'m| am) (?:ok(?:ay)?|fine|good) with you|i (?:no longer"
        r"|don't) mind (?:if )?you"
        rf"|it(?:'s| is) {_OK} (?:again )?(?:to|if you|for you to)) {_NOW}(?P<what>.*)",
    ),
    _form("permission", rf"^\W*(?P<what>.*?)\b(?:(?:is|are) (?:now |again )?{_OK}|can be used)\b(?P<after>.*)"),
)
_ZH_TIME = r"(?:这次|就这一次|今天|以后|现在|从今以后|从现在起|今后|从今天起|我改主意了|你|又|也|就|都|,|，|\s)*"
_ZH_RULE = r"(?:规定|规则|限制|禁令|要求)"
_ZH = (
    _form("back", r"我收回(?:刚才|之前)?(?:的话|那句话)?\W*$|当我没说"),
    _form("unbound", r"(?:不用|不必|不再)只(?:能)?(?P<what>.*)|可以(?P<other>.*(?:别的|其他).*)|可以(?P<any>.*任何.*)"),
    _form(
        "unneeded",
        r"(?P<what>.*?)(?:不用|不必|无需|不需要|没必要)[再先]*(?:每次)?先?(?:问过?我|征求我同意)?(?P<after>.*)",
    ),
    _form("unneeded", r"(?:别再?|不要再?|停止)(?:每次)?(?P<what>.*?)都?先?来?问我"),
    _form("release", rf"(?:取消|忘掉|忘记|撤销|收回|解除|废除)(?P<what>.*(?:{_ZH_RULE}|说的).*)"),
    _form("release", rf"(?P<what>.*{_ZH_RULE}.*)(?:已经)?(?:解除|取消|作废|撤销|不再有效|失效)"),
    _form("release", r"不再禁止(?P<what>.*)"),
    _form(
        "permission",
        rf"^{_ZH_TIME}(?:(?:可以|能|允许你?|准许你?)(?:再|重新|继续|随便|直接)*|恢复)(?P<what>.*)",
    ),
    _form(
        "permission",
        r"^(?P<what>[^，,]*?)(?:又|现在)?可以(?:再|继续)?用了?\W*$|^(?P<fine>[^，,]*?)(?:没问题|也行|也可以)了?\W*$",
    ),
)
_PAIRS = {False: _EN, True: _ZH}
_QUESTION = late_pattern(
    r"^\W*(?:can|could|may|am i|is|are|do|does|did|should|shall|who|what|why|how|when|where|which)\b"
    r"|是不是|能不能|可不可以|要不要|是否|吗\W*$"
)
_POLITE = late_pattern(r"\W*(?:can|could|would|will) you (?:please )?(?:forget|drop|lift|scrap|stop|ignore|remove)\b")
_TAG = late_pattern(r"[,.]? *(?:ok(?:ay)?|alright|right)\?\W*$|[，,]?(?:好吗|好吧)[?？]?\W*$")
_REPORT = late_pattern(
    r"\b(?:says?|said that|told|according to|claims?|heard|wonder|maybe|perhaps|whether|used to|reads|write (?:an?|the)"
    r"|checks? that|if i|suppose|might|thinks?|asked)\b|说(?!的)|也许|可能|不知道|写[着一个]|据说|检查|或许|大概|公告"
)
_NEGATED = late_pattern(
    r"\b(?:haven't|have not|hasn't|didn't|did not|not yet|don't|do not|never|won't)\s+(?:\w+ )?$"
    r"|(?:别|不要|还没|没有|未|尚未|不能)$"
)
_PASSING = late_pattern(
    r"\b(?:once|one time|this (?:time|week|month|morning|afternoon)|today|tonight|tomorrow|until|till"
    r"|for (?:now|the moment)|just now|temporarily|on (?:mon|tues|wednes|thurs|fri|satur|sun)days?|while)\b"
    r"|这次|这一次|就这|今天|今晚|暂时|周[一二三四五六日]|明天|本周|仅此"
)
_LIMITED = late_pattern(
    r"\b(?:if|unless|when(?!ever)|once|as soon as|provided|after|except|excluding|but|only|as long as|at most|up to"
    r"|about|regarding|with)\b|如果|只要|等|但|除了|除非|只|之前|以内|的时候|完成|(?<!以)后可以"
)
_FOR_GOOD = late_pattern(
    r"\b(?:again|from now on|any ?more|any longer|no longer|in (?:the )?future|whenever|now)\b"
    r"|以后|今后|从今|从现在|又|了\W*$|再|重新|恢复"
)
_ASKED = late_pattern(r"\bask|\bcheck with|问|确认")
_BOUNDED = late_pattern(r"\b(?:but|only|never|don't|do not|must|always)\b|但|必须|先")
_EVERY = late_pattern(r"\b(?:all|every|everything|any)\b|所有|全部")


class Fit(IntEnum):
    """How well a rule fits what a sentence takes back."""

    NONE = 0
    LIMITED = 1  # it permits a part of what the rule forbids, or for once
    PERHAPS = 2
    MOSTLY = 3  # the rule says more
    EXACTLY = 4


@dataclass(frozen=True, slots=True)
class Lift:
    """What a sentence takes back, before the rules are looked at."""

    sentence: str
    lifts: Kind
    meant: str  # the words that say what
    around: str = ""  # the rest of the sentence: what a pronoun may stand for
    limited: bool = False  # under a condition, or with exceptions: nothing is taken back by it
    passing: bool = False  # for once, or for a while: nor by this
    for_good: bool = False  # "again", "from now on"
    at: int = 0  # which sentence of its message
    instead: bool = False  # what else its words demand does not count

    @property
    def terms(self) -> tuple[Term, ...]:
        return terms_of(self.meant)

    @property
    def bounds(self) -> bool:
        """Whether the rest of the sentence demands something in its place: ", but ask me first"."""
        return bool(_BOUNDED.search(small(self.around)))

    @property
    def of_all(self) -> bool:
        return bool(_EVERY.search(small(self.meant)))


def find_lifts(own: Sequence[Sentence]) -> list[Lift]:
    """What each sentence takes back, in order."""
    return [lift for at, sentence in enumerate(own) if len(sentence.text) <= _LONGEST for lift in _lifts(sentence, at)]


def _lifts(sentence: Sentence, at: int) -> Iterator[Lift]:
    # Short quotes are shown again: "forget 'never email Sarah'" takes back what it quotes.
    written = (
        _SHORT_QUOTE.sub(lambda quote: sentence.text[quote.start() : quote.end()], sentence.masked)
        .strip()
        .rstrip(".。!！")
    )
    text, own = small(written), small(sentence.masked)
    in_chinese = bool(CJK.search(text))
    if tag := _TAG.search(text):
        text = text[: tag.start()]
    elif (sentence.question or _QUESTION.match(text) or (in_chinese and _QUESTION.search(text))) and not _POLITE.match(
        text
    ):
        return
    if _PAIRS[in_chinese][0].pattern.search(text):
        yield Lift(sentence.text.strip(), "back", "", at=at, instead=True)
        return
    start = 0
    for clause in re.split(r"(?<=[,;:，；：])(?!\d)\s*|\b(?=(?:and|so|but)\b)(?:and|so)?|(?:所以)", text):
        begin = text.find(clause, start)
        start = begin + len(clause)
        found = _lift_of(clause, in_chinese)
        if found is None:
            continue
        kind, meant, instead, lead = found
        before, after = text[:begin] + lead, text[start:]
        hidden = MASK in own[begin:start] and kind == "permission"
        if (
            hidden
            or _REPORT.search(before)
            or _NEGATED.search(before)
            or (kind == "permission" and _REPORT.search(clause))
        ):
            return
        whole = kind in ("release", "back")
        limits = " ".join((before, clause.replace("only ", ""), *(() if kind == "unneeded" else (after,))))
        around = before + " " + after
        yield Lift(
            sentence.text.strip(),
            kind,
            meant,
            around,
            limited=not whole and bool(_LIMITED.search(limits)) and not _asks_no_more(kind, text),
            passing=bool(_PASSING.search(text)),
            for_good=kind == "release" or bool(_FOR_GOOD.search(text)),
            at=at,
            instead=instead,
        )
        return


def _asks_no_more(kind: Kind, text: str) -> bool:
    return kind in ("unneeded", "unbound") and not re.search(r"\b(?:if|unless|except)\b|如果|除非|除了", text)


def _lift_of(clause: str, in_chinese: bool) -> tuple[Kind, str, bool, str] | None:
    """(kind, the words that say what, it reads as a demand itself, what stands before)"""
    for kind, pattern, instead in _PAIRS[in_chinese]:
        found = pattern.search(clause)
        if found is None:
            continue
        lead = clause[: found.start()]
        words = " ".join(part for part in found.groupdict().values() if part)
        if kind in ("permission", "unbound") and (_lead_says(lead) or _not_to_agent(words)):
            continue
        if (
            kind == "unneeded"
            and not in_chinese
            and (terms_of(lead) or not (_ASKED.search(clause) or re.search("have to|need to|needn't", clause)))
        ):
            continue
        if found.groupdict().get("after") and kind == "permission" and terms_of(found["after"]):
            continue  # "emailing Sarah is fine on Mondays"
        return kind, words, instead, lead
    return None


def _lead_says(lead: str) -> bool:
    return bool(
        terms_of(re.sub(r"\b(?:good news|ok|okay|well|so|and|news|yes|sure|thanks|fine|we made up)\b", " ", lead))
    )


def _not_to_agent(words: str) -> bool:
    return bool(re.match(r"\s*(?:not|never|only|still not)\b|\s*(?:不|吗)", words))
