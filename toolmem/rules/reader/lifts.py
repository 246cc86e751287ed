"""Find the rule that a plain sentence takes back: the only one that contains all its words.

A sentence that asks, reports, sets a condition or permits something once takes nothing back.
`possibly_lifted` finds the rule that another sentence may take back, for the user to decide.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolmem.models.rules import ToolMemoryRule
from toolmem.rules.reader.own_text import MAX_SENTENCE, Sentence, lower, own_sentences
from toolmem.rules.reader.words import CJK, FILLERS, NOUNS, VERBS, stems
from toolmem.text.forms import word_set

_PERMISSION = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|actually|fine|yes|so|from now on|please|i've changed my mind|we made up"
    r"|good news)\W+)*(?:you(?:'re| are)?(?: now)?(?: may| can| are allowed to| allowed to"
    r"| are free to| free to)(?! not|not)\b(.*)|feel free to (.*)|go back to (.*)|(?:forget|scrap"
    r"|drop|lift|lifting|cancel|disregard|remove|withdraw|take back)\b ((?:my|the|that|what i)\b.*)"
    r"|(.*)\b(?:is|are) (?:ok(?:ay)?|fine|allowed)\b (?:again|from now on|now)|(?:no need to"
    r"|you don't (?:have|need) to|you no longer have to|stop) (?:ask|asking)\b(.*)|(?:the"
    r"|my) (?:rule|ban|limit) (.*?)(?:no longer applies|is (?:gone|lifted|over)))"
)
_ZH_PERMISSION = re.compile(
    r"^\W*(?:好的?|行|我改主意了|以后|现在|从现在起|今后|从今以后|你|又|也|就|[,，\s])*(?:(?:可以"
    r"|能|允许你?)(?:再|重新|继续|随便)*(.*)|(?:取消|忘掉|忘记|撤销|解除|作废)(.*(?:规定|规则|限制"
    r"|禁令|说的).*)|(.*)(?:不用|不必|不需要)(?:再|每次|先)*问)"
)
# The permission holds for good.
_FOR_GOOD = re.compile(
    r"\b(?:again|from now on|any ?more|no longer|any longer|now|whenever|forget|scrap|drop|lift\w*"
    r"|disregard|withdraw|take back|gone|lifted)\b|以后|今后|从现在|又|了\W*$|再|恢复|取消|解除"
    r"|撤销|忘"
)
# It holds only under a condition, for a while or in part, or somebody else said it.
_LIMITED = re.compile(
    r"\b(?:if|unless|when(?!ever)|once|as soon as|provided|after|except|but|only|until|till|today"
    r"|tonight|tomorrow|for now|while|just|about|one time|never|this \w+|on \w+days?|says?"
    r"|said that|according|she|he|they|maybe|might)\b|如果|只要|等|但|除了|除非|只|之前|的时候"
    r"|这次|这一次|就这|今天|今晚|暂时|明天|说|也许|可能|周[一二三四五六日]|[吗?？]\W*$"
)
# It says that something is still forbidden, unless it also says that this is taken back.
_FORBIDS = re.compile(
    r"\b(?:can['’]?t|can ?not|(?:can|may) no longer|(?:not|no longer) (?:allowed|permitted|free to"
    r"|fine|ok(?:ay)?))\b|n['’]t (?:allowed|permitted|free to|fine|ok(?:ay)?)\b"
    r"|不再?(?:可以|能|允许)"
)
_TAKES_BACK = re.compile(
    r"\b(?:lift\w*|gone|forget|scrap|drop\w*|disregard|withdraw\w*|takes? back|revoke\w*|undo"
    r"|cancel\w*|applies|history|obsolete|over)\b|取消|解除|作废|收回|撤销|忘"
)
_HEAD = re.compile(r"\s*[^\W\d_][\w-]{0,20}\s*[:：].*\n")  # as of a mail: the rest may be pasted
_QUESTION = re.compile(
    r"^\W*(?:can|could|may|am|is|are|do|does|did|should|who|what|why|how|when)\b|\?\W*$|吗|是不是"
    r"|能不能"
)
# Words that do not say which rule is meant.
_NO_CONTENT = FILLERS | word_set(
    "rule rules ban limit again anymore longer mind changed actually said okay ok fine good free "
    "allowed whenever time have need no gone lifted applies against instruction write contact "
    "your so run running"
)
_ZH_NO_CONTENT = re.compile(
    r"可以|以后|现在|永远|不要|不许|不准|禁止|绝对?|只能|必须"
    r"|[再给了的把将向往在用去都就又先问我你每次之前]|规定|规则|取消|解除|不用|不必|继续|重新|随便"
    r"|使用|那条|关于"
)
# Words with which people take something back, in sentences of any form.
_MAY_LIFT = re.compile(
    r"\b(?:again|any ?more|no longer|lifted|history|obsolete|gone|takes? back|actually"
    r"|is (?:off|over|back|dead)|(?:is|are) (?:fine|ok(?:ay)?|allowed) now|make (?:that|it)|darf"
    r"|dürfen|wieder|nicht mehr)\b|可以|取消|恢复|解除|不用|不必|不再|作废|收回|改成|忘"
    r"|\b(?:undo|drop|scrap|forget|revoke|cancel|lift|raise|increase)\b.{0,40}"
    r"\b(?:rules?|bans?|limits?|things?|restrictions?|instructions?|what i said)\b"
)
_LIMITS = re.compile(
    r"\b(?:if|unless|provided|never|don'?t|must|only|stop (?!ask)"
    r"|(?:do|may|can|should|shall) not|says?|(?<!\bi )said|they|would|maybe|might)\b"
    r"|如果|只要|除非|不要|不许|不准|禁止|别|也许|可能"
)
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][\w'-]+|\b[\w]*\d[\w]*[-_]\w+")
_ZH_TOOL_WORDS = sorted((word for word in NOUNS | VERBS if CJK.match(word)), key=len, reverse=True)
_ZH_KNOWN = re.compile("|".join(_ZH_TOOL_WORDS))
_WORD = re.compile(r"[a-z][\w'@.-]*[\w]|\$?[\d,]{2,}")


def lifted(message: str, rules: Sequence[ToolMemoryRule]) -> ToolMemoryRule | None:
    """Find the rule that the user's message takes back; None when in doubt."""
    if _HEAD.match(message):
        return None
    for sentence in _short_sentences(message):
        text = lower(sentence.masked)
        permission = (_ZH_PERMISSION if CJK.search(text) else _PERMISSION).search(text)
        if not permission or _QUESTION.search(text) or _forbids(text):
            continue
        if not _FOR_GOOD.search(text) or _LIMITED.search(text):
            continue
        meant = _content(" ".join(group for group in permission.groups() if group))
        fitting = [rule for rule in rules if meant and meant <= _content(lower(rule.rule))]
        if len(fitting) == 1:
            return fitting[0]
    return None


def possibly_lifted(
    message: str, rules: Sequence[ToolMemoryRule]
) -> tuple[ToolMemoryRule, str] | None:
    """Find the rule that the message may take back, and the sentence that does so.

    It shares more words with the sentence than every other rule.
    """
    contents: list[set[str]] | None = None
    for sentence in _short_sentences(message):
        text = lower(sentence.masked)
        if not _MAY_LIFT.search(text) or _QUESTION.search(text) or _LIMITS.search(text):
            continue
        if _forbids(text):
            continue
        said = _particular(text)
        names = _content(lower(" ".join(_NAME.findall(sentence.text))))
        if contents is None:
            contents = [_particular(lower(rule.rule)) for rule in rules]
        shared = [len(said & own) if names <= own else 0 for own in contents]
        most = max(shared, default=0)
        if most and shared.count(most) == 1:
            return rules[shared.index(most)], sentence.text
    return None


def _forbids(text: str) -> bool:
    """Whether a sentence forbids what it names: "You can no longer push to main"."""
    return bool(_FORBIDS.search(text)) and not _TAKES_BACK.search(text)


def _particular(text: str) -> set[str]:
    """The words that say what is meant, without Chinese words for tools and what they do."""
    return _content(_ZH_KNOWN.sub(" ", text)) - {"over"}


def _short_sentences(message: str) -> list[Sentence]:
    """The user's own sentences but long ones, which the patterns search in quadratic time."""
    own = own_sentences(message, lambda _: False)
    return [each for each in own if len(each.text) <= MAX_SENTENCE]


def _content(text: str) -> set[str]:
    """The words that say what is meant; of Chinese, pairs of adjacent characters."""
    english = _WORD.findall(text.replace("-", " ").replace("e mail", "email"))
    words = {min(stems(word), key=len) for word in english if not _NO_CONTENT & set(stems(word))}
    chinese = re.sub(r"[^\u3400-\u9fff]", "", _ZH_NO_CONTENT.sub(" ", text))
    return words | {chinese[at : at + 2] for at in range(len(chinese) - 1)}
