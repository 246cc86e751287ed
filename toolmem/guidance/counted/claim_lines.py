"""The lines of data-driven guidance, read back: which phrase a line is, what it names, and its counts.

A phrase's template is turned round: what was filled in is found again. Numbers are counts, everything else is what the
line is about; two lines are about the same where phrase and words are the same, whatever their counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from string import Formatter

from toolmem.guidance.counted.phrases import PHRASES
from toolmem.guidance.counted.sentences import Part
from toolmem.guidance.counted.wording import Wording
from toolmem.models import Claim

COUNTS = frozenset({"k", "n", "ok", "on", "named"})
# Phrases by the kind of their claim, and the part of the text where they stand ("" = by whether the counts are good).
_KINDS: dict[str, tuple[str, ...]] = {
    "overall": ("overall",),
    "schema": ("purpose",),
    "usage": ("usage_none", "usage_optional", "usage", "mix", "answers"),
    "parameter": ("pattern",),
    "empty_pattern": ("pattern_useful",),
    "advice": ("advice_avoid", "advice_prefer_calls", "advice_prefer", "advice_leave_out", "advice_give"),
    "sequence": ("advice_first",),
    "refused": ("refused_value", "refused_unlike", "refused_type", "refused_above", "refused_under"),
    "error_class": ("error",),
    "empty_answer": ("empty",),
    "rule_out": ("rule_out",),
    "unrecovered": ("unrecovered",),
    "example": ("worked",),
    "repeat": ("repeat", "retry"),
    "repair": ("repair_widely", "repair_any", "repair_once", "repair"),
    "repair_since": ("repair_widely_since", "repair_any_since", "repair_since"),
    "target": ("target_named", "target_wanted", "target_only"),
}
_PARTS: dict[str, Part] = {
    "schema": "core",
    "usage": "core",
    "refused": "success",
    "example": "success",
    "empty_pattern": "issues",
    "error_class": "issues",
    "empty_answer": "issues",
    "advice": "practices",
    "sequence": "practices",
    "rule_out": "practices",
    "unrecovered": "practices",
    "repeat": "practices",
    "repair": "practices",
    "repair_since": "practices",
    "target": "practices",
}


About = tuple[str, tuple[tuple[str, str], ...]]
_ERRORS = frozenset({"error", "message"})  # placeholders that hold an error message
_QUOTED = re.compile(r"'[^']*'|`[^`]*`|\"[^\"]*\"")
_VARIES = "'…'"
_NUMBER = re.compile(r"[0-9]+")


_LOOSE = frozenset({"example", "recovered", "rest"})  # placeholders that two lines about the same may fill differently
_EXAMPLE = re.compile(r"(?:, e\.g\. |，例如 ).*?(?= and | 并|$)", re.DOTALL)


def _gist(name: str, text: str) -> str:
    """What a placeholder's text comes down to, without examples and without the things that an error names."""
    if name in _ERRORS:
        return _kind_of(text)
    return _EXAMPLE.sub("", text) if name == "repair" else text


def _kind_of(error: str) -> str:
    """An error message without the things that it names: a few calls do not show what varies in it."""
    return _QUOTED.sub(_VARIES, error)


@dataclass(frozen=True, slots=True)
class Line:
    """One claim, read. `phrase` is "" where no phrase fits: such a line is kept as it is."""

    claim: Claim
    phrase: str
    words: tuple[tuple[str, str], ...]  # what it is about, by placeholder
    counts: Mapping[str, int]

    @property
    def about(self) -> About:
        """Equal for lines that say the same of the same. A repair seen once and one with counts are alike."""
        phrase = "repair" if self.phrase in {"repair_once", "repair_widely"} else self.phrase
        return phrase, tuple((name, _gist(name, text)) for name, text in self.words if name not in _LOOSE)

    @property
    def error(self) -> str:
        """The kind of error that a line on repairs is about."""
        return _kind_of(dict(self.words).get("error", ""))

    @property
    def part(self) -> Part:
        if self.phrase == "pattern":
            c = self.counts
            return "success" if c["k"] * c["on"] > c["ok"] * c["n"] else "issues"
        return _PARTS.get(self.claim.kind, "issues")

    @property
    def recovered(self) -> int:
        """Of an error: how many of its failures were recovered."""
        told = _NUMBER.search(dict(self.words).get("recovered", ""))
        return int(told[0]) if told else 0

    def with_recovered(self, more: int, say: Wording) -> Line:
        """The line of an error with `more` recovered failures; its counts are said when it is `recounted`."""
        if "recovered" not in dict(self.words) or not more:
            return self
        told = say.say("recovered", r=self.recovered + more)
        return replace(self, words=tuple((name, told if name == "recovered" else text) for name, text in self.words))

    def recounted(self, say: Wording, ids: tuple[str, ...] = (), **counts: int) -> Line:
        """The same line with other counts; `ids`: calls that are further evidence."""
        now = {**self.counts, **counts}
        phrase = "repair" if self.phrase == "repair_once" and now["n"] > 1 else self.phrase
        text = say.say(phrase, **dict(self.words), **now)
        known = dict.fromkeys((*self.claim.call_ids, *ids))
        k, n = now.get("k", now.get("n", 0)), now.get("n", 0)
        if self.claim.kind == "refused":
            k = now.get("named", 0)
        claim = self.claim.model_copy(update={"text": text, "k": k, "n": n, "call_ids": tuple(known)})
        return replace(self, claim=claim, counts=now, phrase=phrase)


def read_line(claim: Claim, language: int) -> Line:
    """`language`: 0 English, 1 Chinese. Never raises: what is not understood has no phrase."""
    for phrase in _KINDS.get(claim.kind, ()):
        pattern = _inverse(phrase, language)
        found = pattern.fullmatch(claim.text) if pattern is not None else None
        if found is not None:
            fields = found.groupdict()
            counts = {name: int(value) for name, value in fields.items() if name in COUNTS}
            words = tuple(sorted((name, value) for name, value in fields.items() if name not in COUNTS))
            return Line(claim, phrase, words, counts or {"k": claim.k, "n": claim.n})
    return Line(claim, "", (("text", claim.text),), {"k": claim.k, "n": claim.n})


# What may stand for a placeholder that follows another one.
_FORMS = {"message": ".+?", "cls": r"(?: \([^()]*\))?", "recovered": r"(?:; [0-9]+ [^;]*|；[^；]*)?"}


@cache
def _inverse(phrase: str, language: int) -> re.Pattern[str] | None:
    """A pattern that finds the fields of a phrase; None where there is no such phrase."""
    if phrase not in PHRASES:
        return None
    parts: list[str] = []
    for literal, name, nouns, _ in Formatter().parse(PHRASES[phrase][language]):
        parts.append(re.escape(literal))
        if name is not None:
            parts.append(f"(?P<{name}>{'[0-9]+' if name in COUNTS else _FORMS.get(name, '.*?')})")
        if nouns:
            longest_first = sorted(nouns.split("|"), key=len, reverse=True)  # `failures` is not `failure` and an s
            parts.append(f" (?:{'|'.join(map(re.escape, longest_first))})")
    return re.compile("".join(parts), re.DOTALL)
