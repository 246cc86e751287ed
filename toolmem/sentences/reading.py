"""A sentence taken apart, word by word: the one parse of English and Chinese, which has no spaces between words."""

from __future__ import annotations

import re

from toolmem.late import late_pattern
from toolmem.sentences.said_literals import MARKED, Demand, Literals, currency, money
from toolmem.sentences.said_words import USES
from toolmem.sentences.split_text import CJK
from toolmem.sentences.word_reader import WordReader

_CONSENT = r"(?:ok(?:ay)?|approval|permission|consent|confirmation|go-ahead|sign-?off|say-so|agreement)"
_ZH_CONSENT = r"(?:同意|允许|批准|确认|许可)"
REASON = late_pattern(
    r"(?:,|;|\s[-–—]|:)\s+(?:(?:he|she|it|they|that|this|these|those|we|there|i|nowhere|nobody|no\s+one|not\s+even|ever"
    r"|no\s+matter|otherwise|please|thanks|ok|okay|period|understood)\b|(?:because|since|as|so)\b).*$"
    r"|\s(?:because|otherwise|no matter|whatever happens|or else)\b.*$"
    r"|[,，;；](?:因为|由于|否则|不然|要不然|他|她|它|这|那|我们).*$",
    re.I | re.S,
)
ASK = late_pattern(
    r"\b(?:always\s+)?(?:ask|check(?: in)?|confirm|clear it|verify)(?:\s+(?:with|by))?\s+(?:me|us)\b"
    r"(?:\s+(?:first|beforehand|for (?:permission|confirmation|approval|my ok(?:ay)?)))?"
    r"|\b(?:without|unless|before|until|except with|only (?:after|with|if))\s+"
    r"(?:(?:first|explicitly|you|you've|i|i've|having)\s+)*(?:ask(?:ed|ing)?|check(?:ed|ing)?|confirm(?:ed|ing)?"
    r"|approv(?:e|ed|ing)|agree[d]?|sa(?:y|id) (?:so|yes|ok(?:ay)?)"
    rf"|(?:get|getting|got|my|having)(?: my| our)?\s+(?:explicit\s+)?{_CONSENT}"
    rf"|(?:my|our)(?:\s+(?:explicit|prior|express|written))*\s+{_CONSENT})"
    r"(?:\s+(?:it|this|them|me|us|with me|first|for it|beforehand))*"
    rf"|\b(?:always\s+)?(?:needs?|requires?|wants?)\s+(?:my|our|an?)\s+(?:explicit\s+)?{_CONSENT}(?:\s+first)?"
    r"|\b(?:run|get)\s+(?:it|them|this)\s+(?:by|past)\s+me(?:\s+first)?"
    rf"|\bget my {_CONSENT}(?:\s+first)?|\b(?:i|we) (?:must|need to|want to|have to) (?:approve|confirm"
    rf"|sign off)(?:\s+on)?"
    r"|(?:都|也)?(?:必须|务必|一定|一律|总是|都|应该|需要|需|要|得|请)*(?:先|事先|提前)?(?:问过?我|问一?[下声]我"
    rf"|[跟和]我说一?声?|告诉我一?声?|征求我的?(?:同意|意见)|(?:征得|经过?|得到)我的?{_ZH_CONSENT}|[跟和向找]我确认"
    rf"|[让要由给]我先?(?:{_ZH_CONSENT}|看一?眼|过目))(?:才行|才可以|才能|一下)?"
    rf"|(?:没有?|未|未经|不经|没经过|未经过|除非)(?:我|本人)?的?先?(?:{_ZH_CONSENT}|点头|授权)(?:之前|前|的话"
    rf"|的情况下|时)?"
    r"|(?:没有?|不|未)先?问过?我(?:之前|前|的话|的情况下)?",
    re.I | re.S,
)
NOT = late_pattern(
    r"\bnever(?:\s+ever)?\b|\b(?:do|does|must|may|should|can|could|will|shall|are|is)(?:\s?n['o]t|n't|nt|\s+not"
    r"|\s+never)\b(?:\s+(?:ever|dare(?:\s+to)?|be))?|\bcannot\b|\bcan't\b|\bwon't\b|\bdon't\b|\bdont\b|\bmustn't\b"
    r"|\bunder no circumstances\b|\bin no case\b|\bat no time\b|\bon no account\b"
    r"|\b(?:not|no longer) (?:allowed|permitted|supposed) to\b|\b(?:forbidden|prohibited)(?:\s+(?:to|from))?\b"
    r"|\bi (?:forbid|prohibit)(?:\s+you)?(?:\s+(?:to|from))?\b|\bstop\b(?=\s+\w+ing\b)|\b(?:refrain|abstain"
    r"|desist)\s+from\b|\bavoid\b(?=\s+\w+ing\b)|\bno more\b|^\s*no\b"
    r"|\bi(?:'d| would)? (?:never|don't|do not) (?:ever )?(?:want|like)(?: you)?(?: to)?\b|\bkeep (?:away|off) from\b"
    r"|(?:永远|绝对|千万|一定|以后|今后|从此|任何时候|无论如何|再也)?都?(?:(?:不要|别|不许|不准|不能|不得|不可)再?"
    r"|不可以|不允许"
    r"|不应该?|不会|请勿|切勿|勿|甭|严禁|禁止|绝不|决不|永不|停止|不再|避免)[去再]?",
    re.I | re.S,
)
ONLY = late_pattern(
    r"\bonly\b|\bexclusively\b|\bnothing but\b|只(?:能|可以|可|准|许|允许|应该?|要|会)?|仅(?:能|可以|可|限)?",
    re.I | re.S,
)
_BEFORE = late_pattern(
    r"\b(?:before|prior to|whenever|when|if)\s+(?:you\s+)?(?:ever\s+|want to\s+|need to\s+|have to\s+)?", re.I | re.S
)
_EXCEPT = late_pattern(
    r"\b(?:except(?:\s+(?:for|to))?|other than|but(?:\s+(?:to|for))?|apart from|besides|outside(?:\s+of)?)"
    r"\b(?=\s+(?:to\s+|at\s+|for\s+)?(?:the\s+)?[\ue000-\uf8ff])",
    re.I | re.S,
)
_LIMITS_NOTHING = late_pattern(  # how long, how often, on whose behalf
    r"\b(?:from (?:now|here|today|this (?:day|point|moment)) (?:on|onwards?|forward)|in (?:the )?future"
    r"|(?:for|as of) (?:now on|good)|any ?more|ever again|again|at all|at any time|in any (?:case|way|form)"
    r"|for any reason|whatsoever|under any circumstances|on my behalf|for me|by yourself|on your own|no matter what"
    r"|ok(?:ay)?\?|i repeat|as a rule|in general|going forward|starting (?:now|today)|at once|in total|each|a ?piece"
    r"|(?:in|per|for|with|at) (?:(?:a|one|any|each|every)(?: single)?|single) "
    r"(?:transfer|transaction|payment|order|purchase|go|time|call|refund|booking))\b"
    r"|\baddress(?:es)?\s+(?=(?:at|from|in|of|outside|ending|on|with)\b)"
    r"|[,，](?:其他|别的|其它)的?(?:地方|人|地址|网站|一律|都|一概)*(?:不行|不可以|不要|不许|不能|免谈)?$",
    re.I | re.S,
)
_BOUND = late_pattern(
    r"(?:(?P<more>\b(?:more than|over|above|exceed(?:ing|s)?|greater than|larger than|beyond|higher than"
    r"|in excess of)\s|超过|高于|大于|多于|超出)|(?P<most>\b(?:at most|no more than|not more than|up to|a maximum of"
    r"|max(?:imum)?|within"
    r"|below|under|less than)\s))?\s*(?P<mark>[\ue000-\uf8ff])(?P<above>\s*以上)?",
    re.I | re.S,
)
_NOBODY_WRITTEN_TO = late_pattern(r"\b(?:write|writing)\s+(?:anything|a\s+word|nothing)\s*$", re.I)
_COUNTED = late_pattern(r"\s+(?!(?:to|in|per|on|for|at|from|with|a|an|each|total|by|of|or|and|without)\b)[A-Za-z]")
_REPLY_ALL = late_pattern(r"\breply(?:ing)?[ -]+(?:to[ -]+)?all\b(?!\s+\w)", re.I)
_FROM = late_pattern(r"\b(?:from|rows?|records?)\b", re.I)


def read(sentence: str, vocabulary: frozenset[str]) -> Demand:
    """A sentence taken apart; `vocabulary`: the things that tools at hand speak of."""
    marked = Literals(sentence.replace("’", "'").strip().rstrip(".!。！"))
    demand = Demand()
    text = _LIMITS_NOTHING.sub(" ", _without_reasons(marked.text))
    if _REPLY_ALL.search(text):
        demand.unread.append("reply all")  # to whom, not whether
    if ASK.search(text):
        demand.effect = "ask"
        text = NOT.sub(" ", _BEFORE.sub(" ", ASK.sub(" ", text)))
    elif NOT.search(ONLY.sub(" ", text)):
        demand.effect = "deny"
        text = NOT.sub(" ", text)
        if _EXCEPT.search(text):
            demand.only, text = True, _EXCEPT.sub(" ", text)
    elif ONLY.search(text):
        demand.effect, demand.only = "deny", True
        text = ONLY.sub(" ", text)
    else:
        return demand
    text = _amounts(text, marked, demand)
    WordReader(demand, vocabulary).read(text, marked)
    demand.rows = "delete" in demand.families and _FROM.search(text) is not None
    if USES & set(demand.verbs) and {each.kind for each in demand.literals} == {"path"}:
        demand.families = {"read", "write", "delete"}  # to touch a file is each of them
    if "write" in demand.families and _NOBODY_WRITTEN_TO.search(text):
        demand.families.discard("send")
    return demand


def _without_reasons(text: str) -> str:
    """A sentence without the clause that says why: what follows it limits nothing."""
    cut = REASON.sub(lambda why: why[0] if CJK.search(why[0]) and MARKED.search(why[0]) else "", text)
    return cut if any(form.search(cut) for form in (NOT, ONLY, ASK)) else text


def _amounts(text: str, marked: Literals, demand: Demand) -> str:
    """The bound on an amount, where there is one."""
    for found in _BOUND.finditer(text):
        kind, said = marked[found["mark"]]
        value = money(said) if found["more"] or found["most"] or found["above"] else None
        if value is None or (kind != "money" and _COUNTED.match(text, found.end())):
            continue  # "more than 100 shares" is a count, not an amount
        demand.currency = currency(said)
        keyword = "exclusiveMaximum" if found["most"] else "exclusiveMinimum"
        if found["most"] and demand.only:
            keyword, demand.only = "exclusiveMinimum", False  # "only up to 50": more than 50 is denied
        demand.bound = (keyword, value)
        return text[: found.start()] + " " + text[found.end() :]
    return text
