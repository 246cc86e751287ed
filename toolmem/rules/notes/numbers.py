"""Read numbers, limits and days in English and Chinese sentences, in digits or in words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolmem.text.forms import normalized, number_in

_MAX_READ = 4_000  # characters
_SCALES = {"k": 1_000, "hundred": 100, "thousand": 1_000, "million": 10**6}
_SCALES |= {"百": 100, "千": 1_000, "万": 10_000}
_IN_DIGITS = re.compile(
    r"(?<![a-z0-9_.])(\d{1,15}(?:,\d{3}){0,5}(?:\.\d{1,9})?)(?!\d)"
    r"\s?(k\b|hundred\b|thousand\b|million\b|[百千万])?"
)
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS = {word: at for at, word in enumerate(_UNITS.split())}
_WORDS |= {word: 20 + 10 * at for at, word in enumerate(_TENS.split())}
_IN_WORDS = re.compile(rf"\b(?:{'|'.join([*_WORDS, 'hundred', 'thousand', 'million'])})\b")
_IN_CHINESE = re.compile(r"[零一二两三四五六七八九十百千万]{1,20}")
TIME = re.compile(
    r"\b(?:hours?|o'?clock|am|pm|a\.m|p\.m|mornings?|noon|midday|afternoons?|evenings?|nights?"
    r"|overnight|midnight|weekends?|weekdays?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b"
    r"|\d ?[ap]m\b|\d:\d\d|[点早晚夜周]|星期|礼拜|中午|下午|凌晨"
)
# Numbers that limit nothing: times, dates, counts of events, "in one go".
_NO_LIMIT = re.compile(
    r"\d{1,2}(?::\d\d| ?[ap]\.?m\b| ?o'?clock| ?点)|\d{4}-\d\d-\d\d|\b\w{1,20} times\b"
    r"|(?<!than )\bone\b|half an? (?:hundred|thousand|million)|(?<![十百千万过])一(?![百千万十])"
)
_COMPARED = re.compile(
    r"\b(?:over|above|than|under|below|exceed\w*|beyond|past|at (?:most|least)|up to|max\w*|min\w*"
    r"|limit\w*)\b|[高低大小多少]于|超|以[上下]|最[多少高低]|至[多少]|不到"
)
_SHARE = re.compile(r"[%％‰]|\bper ?cent\b|百分之")
_MONEY = re.compile(r"[$€£¥元块]|\b(?:eur|usd|gbp|euros?|dollars?|bucks|pounds?|yuan)\b")
_OTHER_UNIT = re.compile(
    r"(?:\d|hundred|thousand|\b(?:two|three|five|ten|twenty|thirty|sixty)) ?(?:m?s|h|[kmgt]i?b"
    r"|(?:second|min|minute|hour|day|week|month|byte)s?)\b|[\d两-龥] ?(?:秒|分钟|小时|天|周|个月)"
)
_CENTS = re.compile(r"(?<![a-z])(?:cents?|minor|pence|penn(?:y|ies)|fen)(?![a-z])|分")
_WEEK = ["mon", "tue", "wed", "thu", "fri", "sat", "sun", "一", "二", "三", "四", "五", "六", "日"]
# A day on which a demand holds; not one that names its end, or a thing ("the Friday report").
_DAY = re.compile(
    r"(?P<not>\b(?:until|till?|by|since|last|next|before|the|to|through)\s)?(?:\b(?P<en>mon|tues"
    r"|wednes|thurs|fri|satur|sun|weekend)(?:days?|s)?\b(?!['’])"
    r"|(?:周|星期|礼拜)(?P<zh>[一二三四五六日天末])(?![前到至]))"
)
# Hours of the day in which alone a demand holds, and the day with which it ends.
HOURS = re.compile(
    r"\b(?:after|before|past|between) (?:\d{1,2} ?(?:[ap]\.?m\b|o'?clock\b|:\d\d)|hours|noon)"
    r"|\bat night\b|\d ?点[半钟]?(?:以|之)?[前后]|晚上|半夜|夜里|下班[前后]"
)
TODAY = re.compile(r"(?<!from )(?<!since )(?<!as of )\btoday\b(?!['’])|今天(?![起开的])")


def read_numbers(text: str) -> frozenset[float]:
    """Read the numbers of a text: "5,000", "5k", "five thousand", 五千, 5千."""
    text = normalized(text[:_MAX_READ])
    digits = {
        float(number.replace(",", "")) * _SCALES.get(scale, 1)
        for number, scale in _IN_DIGITS.findall(text)
    }
    chinese = map(number_in, _IN_CHINESE.findall(text))
    return frozenset({*digits, *_in_words(text), *(n for n in chinese if n is not None)})


def limits_in(text: str) -> frozenset[float]:
    """Return the numbers that a demand sets as limits: 500 for "at most 500 euros per order"."""
    text = normalized(text[:_MAX_READ])
    if not any(each.search(text) for each in (_COMPARED, _MONEY, _SHARE)):
        return frozenset()
    return read_numbers(_NO_LIMIT.sub(" ", text))


def fits_limit(bound: float, text: str, unit: str) -> bool:
    """Whether a bound in a condition agrees with a demand: 499 and 500 do with "at least 500".

    Any bound agrees if no limit is named. `unit`: the name and description of the argument.
    """
    text = normalized(text[:_MAX_READ])
    unit = normalized(unit.replace("_", " "))
    factors: tuple[float, ...] = (1,)
    if _SHARE.search(text):
        factors = (10,) if "mille" in unit else (1, 0.01)
    elif _CENTS.search(unit):
        factors = (1, 100) if _CENTS.search(text) else (100,)
    elif _OTHER_UNIT.search(text):
        return True  # of many units; the examples show what is meant
    limits = [number * factor for number in limits_in(text) for factor in factors]
    return not limits or any(abs(abs(bound) - n) <= (1 if n >= 10 else 0) for n in limits)


def weekdays_in(text: str) -> frozenset[str]:
    """Return the days of the week on which a demand holds: {"sat", "sun"} for "at weekends"."""
    found = [each for each in _DAY.finditer(normalized(text[:_MAX_READ])) if not each["not"]]
    names = {(each["en"] or each["zh"])[:3].replace("天", "日") for each in found}
    if names & {"wee", "末"}:
        names |= {"sat", "sun"}
    return frozenset(_WEEK[_WEEK.index(name) % 7] for name in names - {"wee", "末"})


def mentions(text: str, times: re.Pattern[str]) -> bool:
    """Whether a text names a time that the pattern `times` (TIME, HOURS or TODAY) matches."""
    return times.search(normalized(text[:_MAX_READ])) is not None


def _in_words(text: str) -> Iterator[float]:
    """Yield numbers; adjacent words make one number: "two hundred fifty"."""
    total = part = 0.0
    end = 0
    for each in _IN_WORDS.finditer(text):
        if end and each.start() - end > 1:
            yield total + part
            total = part = 0.0
        word = each[0]
        end = each.end()
        if word in _WORDS:
            part += _WORDS[word]
        elif word == "hundred":
            part = (part or 1) * _SCALES[word]
        else:
            total += (part or 1) * _SCALES[word]
            part = 0.0
    if end:
        yield total + part
