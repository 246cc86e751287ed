"""What a text of guidance names: for which class of error which kind of repair. One reader for every author.

The text is cut to the token budget by whole sentences (`toolmem.guidance.fitting`) and read in units: a list item or a
line is one unit; a line of more than three sentences is read as every two neighbouring sentences. A heading, or a line
that ends with a colon, lends its words about errors to the units below it, until the next one.

A unit names the repair of a failure where it does both:

* It is about the failure's class of error: it holds the class's name or one of its phrases (`CLASS_PHRASES`), or it
  quotes the message: half of the words that the masked message begins with (two at least, where it has two).
  A unit about failures of whatever kind ("after any failure", "任何失败之后") counts for every class, but only the
  first GENERIC_UNITS of a text, and only where they are short: naming everything for everything is not knowing what
  repairs.
* It names one of the failure's kinds of repair: the parameter by its name with a word for adding, leaving out or
  changing; the statement, program or action that worked, unless it is only what to keep or to avoid; a noun for the
  identifier with a word for changing; a clause or flag with a word for adding or dropping; sending the call again,
  unless the unit says not to.

Known errors, in both directions. A unit with two errors and two repairs is read as naming both for both. A repair that
is named in other words than the vocabulary's is missed, and so is one whose error is named in an earlier sentence of
another line. Names of parameters that are plain short words (`to`, `q`) are only read in backticks or quotation marks.
A unit that names the right parameter with the wrong value counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from toolmem.guidance.counted.repairs import Repair
from toolmem.guidance.fitting import fit
from toolmem.models import Claim, Guidance
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.research.backtest import vocabulary as words
from toolmem.research.backtest.opportunities import Opportunity

GENERIC_UNITS = 2  # sentences about any failure that are read
GENERIC_WORDS = 40  # words of such a sentence (a Chinese character counts as half a word)
MESSAGE_WORDS = 8  # words of a message by which it is recognized
PLAIN_NAME = 4  # letters of a parameter's name that is read without quotation marks
READ_AHEAD = 512  # texts that are kept read

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`“\"'(*])|(?<=[。！？；])")
_ITEM = re.compile(r"^\s*(?:[-*•+]|\d+[.)、])\s+")
_HEADING = re.compile(r"^\s*#|^\s*\*\*[^*]+\*\*:?\s*$|[:：]\s*$")
QUOTED = re.compile(r"“[^”]*”|「[^」]*」|\"[^\"\n]*\s[^\"\n]*\s[^\"\n]*\"")
_WORD = re.compile(r"[a-z][a-z_']+|[\u4e00-\u9fff]{2}")
_CJK = re.compile(r"[\u4e00-\u9fff]")
_SENTENCES_OF_A_UNIT = 3


class Reading:
    """One text, cut and taken apart once; `names` answers are kept per class of error and kind of repair."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._units = [_Unit(*pair) for pair in _units(text)]
        generic = [unit for unit in self._units if unit.generic]
        self._generic = [unit for unit in generic if unit.words <= GENERIC_WORDS][:GENERIC_UNITS]
        self._known: dict[tuple[str, str, frozenset[Repair], bool], bool] = {}

    def names(self, opportunity: Opportunity, *, strict: bool = False) -> bool:
        """Whether a unit names, for the failure's class of error, one of the kinds of repair that worked.

        `strict`: units about any failure count for nothing.
        """
        key = (opportunity.error_class, opportunity.message, opportunity.repairs, strict)
        if (known := self._known.get(key)) is None:
            known = self._known[key] = any(
                unit.names_repair(repair)
                for unit in self._about(opportunity.error_class, opportunity.message, strict)
                for repair in opportunity.repairs
            )
        return known

    def _about(self, error_class: str, message: str, strict: bool) -> Iterable[_Unit]:
        patterns = _class_pattern(error_class)
        quoted = _telling_words(message)
        yield from (unit for unit in self._units if not unit.generic and unit.is_about(patterns, quoted))
        yield from () if strict else self._generic


class _Unit:
    """A sentence or list item, in lower case, with the heading above it."""

    def __init__(self, text: str, heading: str) -> None:
        self._error = f"{heading}\n{text}".lower()
        self._words = frozenset(_words(self._error))
        self._said = QUOTED.sub(" … ", text).lower()
        self.words = len(re.findall(r"[a-z0-9_]+", self._said)) + len(_CJK.findall(self._said)) // 2
        self.generic = words.GENERIC.search(self._said) is not None

    def is_about(self, phrases: re.Pattern[str] | None, quoted: tuple[str, ...]) -> bool:
        if phrases is not None and phrases.search(self._error):
            return True
        held = sum(word in self._words for word in quoted)
        return bool(quoted) and held >= min(2, len(quoted)) and 2 * held >= len(quoted)

    def names_repair(self, repair: Repair) -> bool:
        said, kind = self._said, repair.kind
        if kind == "added":
            return bool(_name(repair.path).search(said) and words.ADD.search(said))
        if kind == "dropped":
            return bool(_name(repair.path).search(said) and words.DROP.search(said))
        if kind == "changed":
            return bool(_name(repair.path).search(said) and words.CHANGE.search(said))
        if kind == "renamed":
            names = _name(repair.path).search(said) and _name(repair.before).search(said)
            return bool(names and words.RENAME.search(said))
        if kind in {"statement", "program", "action"}:
            return self._names_action(repair.after, kind)
        if kind in words.STATEMENT_NOUNS:
            return bool(re.search(words.STATEMENT_NOUNS[kind], said) and words.CHANGE.search(said))
        if kind == "arguments":
            keeps = not repair.before or _whole(repair.before).search(said) is not None
            return bool(keeps and words.ARGUMENT_NOUNS.search(said) and words.CHANGE.search(said))
        if kind in {"clause_added", "flag_added"}:
            return bool(_part(repair.after).search(said) and words.ADD.search(said))
        if kind in {"clause_dropped", "flag_dropped"}:
            return bool(_part(repair.after).search(said) and words.DROP.search(said))
        if kind == "rewritten":
            return words.REWRITE.search(said) is not None
        if kind == "repeated":
            return words.REPEAT.search(words.REPEAT_FORBIDDEN.sub(" ", said)) is not None
        return False

    def _names_action(self, after: str, kind: str) -> bool:
        if not after:
            return False  # text that begins with no statement or program: nothing that could be advised
        if kind == "action" and not words.USE.search(self._said):
            return False
        left = _unused(after).sub(" ", self._said)
        return _whole(after).search(left) is not None and words.USE.search(left) is not None


def named(opportunity: Opportunity, guidance: Guidance | str | None, budget: int, *, strict: bool = False) -> bool:
    """Whether `guidance`, cut to `budget` tokens, names the repair of `opportunity`; None and "" name nothing.

    Cheap where the same guidance is asked about again: the newest texts stay read.
    """
    return bool(guidance) and read_within(guidance, budget).names(opportunity, strict=strict)


def read_within(guidance: Guidance | str | None, budget: int) -> Reading:
    """`guidance` cut to `budget` tokens (Qwen's tokenizer) by whole sentences, and taken apart."""
    if guidance is None:
        return _reading("", (), budget)
    if isinstance(guidance, str):
        return _reading(guidance, (), budget)
    return _reading(guidance.text, tuple(claim.text for claim in guidance.claims), budget)


@lru_cache(maxsize=READ_AHEAD)
def _reading(text: str, claims: tuple[str, ...], budget: int) -> Reading:
    kept = [Claim(text=claim, k=0, n=0, call_ids=()) for claim in claims]
    spread = text if claims else "\n".join(_spread(line) for line in text.splitlines())
    whole = Guidance(text=spread, claims=kept, author="", prompt_version="")
    return Reading(fit(whole, budget, QwenTokenizer().count))


def _spread(line: str) -> str:
    """A paragraph as one sentence per line, so that a budget can cut it between sentences."""
    sentences = _SENTENCE_END.split(line)
    if _ITEM.match(line) or _HEADING.search(line) or len(sentences) <= _SENTENCES_OF_A_UNIT:
        return line
    return "\n".join(sentence for sentence in sentences if sentence.strip())


def units_of(text: str) -> list[str]:
    """The units of a text, without their headings."""
    return [unit for unit, _ in _units(text)]


def _units(text: str) -> list[tuple[str, str]]:
    """(unit, the heading above it)."""
    units: list[tuple[str, str]] = []
    heading = previous = ""
    for line in text.splitlines():
        if not line.strip():
            previous = ""
            continue
        if _HEADING.search(line):
            heading, previous = line, ""
            continue
        item = _ITEM.match(line) is not None
        sentences = _SENTENCE_END.split(line)
        if len(sentences) > _SENTENCES_OF_A_UNIT:
            units += [(f"{a} {b}", heading) for a, b in pairwise(sentences)]
        else:
            units.append((line if item or not previous else f"{previous} {line}", heading))
        previous = "" if item else line
    return units


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.lower()) if word not in words.STOP_WORDS]


@lru_cache(maxsize=4096)
def _telling_words(message: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_words(message)))[:MESSAGE_WORDS]


@lru_cache(maxsize=256)
def _class_pattern(error_class: str) -> re.Pattern[str] | None:
    if error_class in {"", "error"}:
        return None
    phrases = words.CLASS_PHRASES.get(error_class, ())
    name = re.escape(error_class).replace("_", "[_ -]")
    return re.compile("|".join([rf"\b{name}\b", *phrases]))


@lru_cache(maxsize=4096)
def _name(path: str) -> re.Pattern[str]:
    """A parameter by its path or its last name; spaces may stand for underscores, and a plural s may be missing."""
    leaf = path.rpartition(".")[2] or "input"
    quoted = rf"[`'\"“「]{re.escape(path.lower() or 'input')}[`'\"”」]|[`'\"“「]{re.escape(leaf.lower())}[`'\"”」]"
    if len(leaf) < PLAIN_NAME or leaf.lower() in words.STOP_WORDS:
        return re.compile(quoted)
    spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", leaf).lower() if "_" not in leaf else leaf.lower()
    loose = re.escape(spelled).replace("_", "[_ -]?")
    loose = f"{loose[:-1]}s?" if loose.endswith("s") else loose
    return re.compile(rf"{quoted}|(?<![a-z0-9_]){loose}(?![a-z0-9_])")


@lru_cache(maxsize=4096)
def _whole(word: str) -> re.Pattern[str]:
    """A program, statement or value as a word of its own."""
    return re.compile(rf"(?<![a-z0-9_-]){re.escape(word.lower())}(?![a-z0-9_-])")


@lru_cache(maxsize=4096)
def _unused(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z0-9_]){words.UNUSED}{re.escape(word.lower())}(?![a-z0-9_-])")


@lru_cache(maxsize=4096)
def _part(part: str) -> re.Pattern[str]:
    """A clause by its words; a flag with its program, or alone."""
    if part in words.CLAUSE_WORDS:
        return re.compile(words.CLAUSE_WORDS[part].lower())
    flag = part.rpartition(" ")[2]
    if flag.startswith("-"):
        return re.compile(rf"(?<![a-z0-9_-]){re.escape(flag.lower())}(?![a-z0-9_-])")
    return re.compile(rf"(?<![a-z0-9_-]){re.escape(part.lower())}(?![a-z0-9_-])")
