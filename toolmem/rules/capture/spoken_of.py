"""What a sentence speaks of: its verbs, things, names and literals, to compare one sentence with another.

Two sentences in different languages speak of the same where their verbs and things do and names are written alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from toolmem.guard.demands import MARKED, Literals
from toolmem.guard.lexicon import FAMILIES, THINGS, base_forms
from toolmem.guard.word_lists import CHINESE, table, turned
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass
from toolmem.rules.capture.cues import TABLES
from toolmem.rules.capture.english import small

LIFTING: dict[str, Any] = TABLES["lifting"]
_LISTS = {
    name: frozenset(word for of in LIFTING.values() for word in of["lists"][name])
    for name in ("fillers", "pronouns", "wild", "generic", "channel", "no_name")
}
_SAYS_NOTHING = _LISTS["fillers"] | _LISTS["pronouns"]
_CJK = "\u3400-\u9fff"
_WORD = late_pattern(rf"[\ue000-\uf8ff]|[a-z][a-z'_]*|[{_CJK}]+|\d+")
_MARKS = late_pattern("[#@$€£¥,]")
_POSSESSED = late_pattern(r"(\w)'s\b(?=\s+\w)")
_SEEN = 4096


@dataclass(frozen=True, slots=True)
class Term:
    """A word that says something, or a literal."""

    text: str
    start: int
    end: int
    forms: frozenset[str]  # what it may be a form of
    families: frozenset[str] = frozenset()  # verbs that do the same
    things: frozenset[str] = frozenset()
    literal: str = ""  # what kind of literal it is

    @property
    def channel(self) -> bool:
        """A verb or thing that says by what way somebody is reached: email, text."""
        return bool(self.things & _LISTS["channel"])

    @property
    def generic(self) -> bool:
        """A verb that says nothing of the way."""
        return bool(self.forms & _LISTS["generic"])

    @property
    def distinctive(self) -> bool:
        """A name, a literal, or a thing that the lists do not know."""
        return bool(self.literal) or not (self.families or self.things or self.forms & _LISTS["no_name"])

    def within(self, others: Iterable[Term]) -> bool:
        """Whether one of the others says it too; "contact" does not say "email"."""
        return any(self._said_by(other) for other in others)

    def widened_by(self, others: Iterable[Term]) -> bool:
        """Whether one of the others says it or more: "contact" for "email"."""
        return self.within(others) or any(
            self.channel and other.generic and not other.channel and bool(self.families & other.families)
            for other in others
        )

    def _said_by(self, other: Term) -> bool:
        if self.forms & other.forms or self.things & other.things:
            return True
        if self.channel or not self.families & other.families:
            return False
        return self.generic or not other.channel


@lru_cache(maxsize=_SEEN)
def terms_of(text: str) -> tuple[Term, ...]:
    """The words of a text that say something, in order; `start` and `end` are those of `normal`."""
    return tuple(_terms(*_marked(text)))


@lru_cache(maxsize=_SEEN)
def normal(text: str) -> str:
    """The text in which terms stand: small letters, phrases as one word, a mark for each literal."""
    return _marked(text)[0]


def _marked(text: str) -> tuple[str, Literals]:
    marked = Literals(text.replace("’", "'").replace("‘", "'"))
    written = small(marked.text)
    for pattern, word in PHRASES:
        written = pattern.sub(word, written)
    return written, marked


PHRASES = [(late_pattern(pattern), word) for of in LIFTING.values() for pattern, word in of["phrases"]]


def _terms(written: str, marked: Literals) -> Iterator[Term]:
    for found in _WORD.finditer(written):
        word, start = found[0], found.start()
        if MARKED.match(word):
            yield _literal(*marked[word], start)
        elif "\u3400" <= word[0] <= "\u9fff":
            yield from _chinese(word, start)
        elif word not in _SAYS_NOTHING:
            forms = frozenset((word,)) if word.endswith("'s") else frozenset(base_forms(word.strip("'")))
            if not forms & _LISTS["wild"]:
                yield _english(word, start, forms)


def _english(word: str, start: int, forms: frozenset[str]) -> Term:
    families = next((FAMILIES[form] for form in base_forms(word) if form in FAMILIES), frozenset())
    things = next((THINGS[form] for form in base_forms(word) if form in THINGS), frozenset())
    return Term(word, start, start + len(word), forms, families, things)


def _literal(kind: str, text: str, start: int) -> Term:
    plain = _MARKS.sub("", small(text)) if kind not in ("email", "path", "quoted") else small(text)
    plain = re.sub(r"^https?://(?:www\.)?|^(?:usd|eur|rmb)\s*|[/.]+$", "", plain.strip()).strip()
    plain = re.sub(r"(?<=\d)k$", "000", plain)
    words = frozenset(re.findall(r"[a-z][a-z_]+", plain)) if kind == "quoted" else frozenset()
    return Term(plain, start, start + 1, frozenset((plain, *words)), literal=kind)


# ---------------------------------------------------------------- Chinese


def _lexicon() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Word -> (families, things) of Chinese words; fillers have neither."""
    verbs, things = turned("verbs", CHINESE), turned("things", CHINESE)
    known = {word: (verbs.get(word, frozenset()), things.get(word, frozenset())) for word in {*verbs, *things}}
    for word, (families, own) in known.items():
        named = {thing for thing, parts in table("verbs_that_name_things", CHINESE).items() for p in parts if p in word}
        known[word] = (families, own | (named & _LISTS["channel"]))
    nothing: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    return known | dict.fromkeys((word for word in _SAYS_NOTHING | _LISTS["wild"] if not word.isascii()), nothing)


_LEXICON = _lexicon()
_LONGEST_WORD = max(map(len, _LEXICON))


def _chinese(run: str, start: int) -> Iterator[Term]:
    """The longest known word at each place; what lies between known words is a name."""
    at = name = 0
    while at < len(run):
        word = next((run[at : at + n] for n in range(_LONGEST_WORD, 0, -1) if run[at : at + n] in _LEXICON), "")
        if not word:
            at += 1
            continue
        if name < at:
            yield _named(run[name:at], start + name)
        families, things = _LEXICON[word]
        if (families or things) and word not in _LISTS["wild"]:
            yield Term(word, start + at, start + at + len(word), frozenset((word,)), families, things)
        at += len(word)
        name = at
    if name < len(run):
        yield _named(run[name:], start + name)


def _named(text: str, start: int) -> Term:
    return Term(text, start, start + len(text), frozenset((text,)))


def general(term: Term) -> bool:
    """A word that says only what kind of thing a name names: "the main branch"."""
    return bool(term.forms & _LISTS["no_name"]) and not term.literal


def said_together(written: str, one: Sequence[Term], other: Sequence[Term], joins: re.Pattern[str]) -> bool:
    """Whether a term of the one and a term of the other stand side by side in a list: "Sarah or Bob"."""
    ordered = sorted([*one, *other], key=lambda term: term.start)
    return any(
        (before in one) != (after in one) and joins.fullmatch(written[before.end : after.start].strip())
        for before, after in pairwise(ordered)
    )
