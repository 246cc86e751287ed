"""Read the numbers and times in a sentence, in digits or in words, English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolmem.text.forms import normalized

_MAX_READ = 4_000  # characters
_SCALES = {"k": 1_000, "hundred": 100, "thousand": 1_000, "million": 10**6}
_SCALES |= {"百": 100, "千": 1_000, "万": 10_000}
_IN_DIGITS = re.compile(
    r"(?<![a-z0-9_.])(\d{1,15}(?:,\d{3}){0,5}(?:\.\d{1,9})?)"
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
_DIGITS = {"零": 0, "两": 2} | {sign: at + 1 for at, sign in enumerate("一二三四五六七八九")}
_IN_CHINESE = re.compile(r"[零一二两三四五六七八九十百千万]{1,20}")
_TIME = re.compile(
    r"\b(?:hours?|o'?clock|am|pm|a\.m|p\.m|mornings?|noon|midday|afternoons?|evenings?|nights?"
    r"|overnight|midnight|weekends?|weekdays?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b"
    r"|\d ?[ap]m\b|\d:\d\d|[点早晚夜周]|星期|礼拜|中午|下午|凌晨"
)


def read_numbers(text: str) -> frozenset[float]:
    """Read the numbers of a text: "5,000", "5k", "five thousand", 五千, 5千."""
    text = normalized(text[:_MAX_READ])
    digits = {
        float(number.replace(",", "")) * _SCALES.get(scale, 1)
        for number, scale in _IN_DIGITS.findall(text)
    }
    return frozenset({*digits, *_in_words(text), *map(_in_chinese, _IN_CHINESE.findall(text))})


def mentions_time(text: str) -> bool:
    """Whether a text names a time of day, or a day of the week."""
    return _TIME.search(normalized(text[:_MAX_READ])) is not None


def _in_words(text: str) -> Iterator[float]:
    """Read adjacent words as one number: "two hundred fifty"."""
    total = part = 0.0
    end = 0
    for each in _IN_WORDS.finditer(text):
        if end and each.start() - end > 1:
            yield total + part
            total = part = 0.0
        word, end = each[0], each.end()
        if word in _WORDS:
            part += _WORDS[word]
        elif word == "hundred":
            part = (part or 1) * _SCALES[word]
        else:
            total, part = total + (part or 1) * _SCALES[word], 0.0
    if end:
        yield total + part


def _in_chinese(run: str) -> float:
    total = part = digit = 0.0
    for sign in run:
        if sign in _DIGITS:
            digit = _DIGITS[sign]
        elif sign == "万":
            total, part, digit = (total + part + digit) * _SCALES[sign], 0.0, 0.0
        else:
            part, digit = part + (digit or 1) * (10 if sign == "十" else _SCALES[sign]), 0.0
    return total + part + digit
