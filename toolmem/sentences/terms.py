"""What a text speaks of, as texts are compared: literals, names, things and what is done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass
from toolmem.sentences.said_literals import MARKED, Literals
from toolmem.sentences.said_words import (
    FAMILIES,
    FILLERS,
    NAMING,
    THINGS,
    base_forms,
    chinese_words,
    families_of,
    split,
)
from toolmem.sentences.split_text import small

_SAY_NOTHING = (
    FILLERS - split("run use file")
    | split(
        "he she they them him her it its this that these those may must can will would should rule rules ban bans "
        "limit limits again anymore longer mind changed actually thing things said good fine ok okay ask asking "
        "asked first person whenever every time each had have has been am was were did doing be being necessary "
        "required need needed permission approval free allowed permitted limited restricted second thought more most "
        "than own production-only just now still yet such people somebody off-limits dont cannot without not never "
        "only always stop about against regarding there too also straight directly applies gone lifted over off "
        "avoid back instruction instructions restriction restrictions what i'm i've you're you've don't before until "
        "instead here going forward made sorted"
    )
    | split(
        "代码 可以 不要 不准 不许 禁止 必须 只能 只 不用 不必 不需要 问 问我 先 规则 规定 限制 禁令 以后 现在 又 再 "
        "了 绝不要 绝不 别 使用 用 继续 重新 恢复 随便 直接 取消 解除 收回 忘掉 关于 那条 那个 之前 说的 允许 别的 "
        "其他 任何 不限于 不再 不得 超过 单笔 跑 我改主意了 改 主意 能 就 都 还 每次 和好 又 所以 给他 给她 他 她 它 "
        "从今以后 从现在起"
    )
)
_GENERIC = split("contact write reach message send notify 联系 通知")  # say nothing of the way
_CHANNELS = split("email message")
_KINDS = split("branch file folder command table database channel user person environment team")
_MARKS = late_pattern("[#@$€£¥,]")
_WORD = late_pattern("[\ue000-\uf8ff]|[a-z][a-z'_-]*|[\u3400-\u9fff]+|\\d+")


@dataclass(frozen=True, slots=True)
class Term:
    """A word that says something, or a literal."""

    text: str
    forms: frozenset[str]  # what it may be a form of
    families: frozenset[str] = frozenset()  # verbs that do the same
    things: frozenset[str] = frozenset()
    literal: str = ""  # what kind of literal it is

    @property
    def distinctive(self) -> bool:
        """A name, a literal, or a thing that the lists do not know."""
        return bool(self.literal) or not (self.families or self.things or self.is_kind)

    @property
    def is_kind(self) -> bool:
        """It says only what kind of thing a name names: "the main branch"."""
        return bool((self.forms | self.things) & _KINDS) and not self.literal

    def within(self, others: Iterable[Term]) -> bool:
        """Whether one of the others says it too."""
        return any(self._said_by(other) for other in others)

    def widened_by(self, others: Iterable[Term]) -> bool:
        """Whether one of the others says it or more: "contact" for "email"."""
        return self.within(others) or any(other.forms & _GENERIC and self.families & other.families for other in others)

    def _said_by(self, other: Term) -> bool:
        if self.forms & other.forms or self.things & other.things:
            return True
        if self.things & _CHANNELS or (other.things & _CHANNELS and not self.forms & _GENERIC):
            return False
        return bool(self.families & other.families) and not (self.literal or other.literal)


@lru_cache(maxsize=4096)
def terms_of(text: str) -> tuple[Term, ...]:
    """The words of a text that say something, in order."""
    marked = Literals(re.sub(r"(?<=\w)'s\b", "", text.replace("’", "'").replace("‘", "'")))
    return tuple(_terms(small(marked.text).replace("force-push", "force push"), marked))


def _terms(written: str, marked: Literals) -> Iterator[Term]:
    for found in _WORD.finditer(written):
        word = found[0]
        if MARKED.match(word):
            yield _literal(*marked[word])
        elif word[0] >= "\u3400":
            yield from _chinese(word)
        elif word.isdigit():
            yield Term(word, frozenset((word,)), literal="number")
        elif not set(base_forms(word)) & _SAY_NOTHING:
            yield _english(word)


def _english(word: str) -> Term:
    things = next((THINGS[form] for form in base_forms(word) if form in THINGS), frozenset[str]())
    return Term(word, frozenset(base_forms(word)), families_of(word), things)


def _literal(kind: str, text: str) -> Term:
    plain = small(text) if kind in ("email", "path", "quoted") else _MARKS.sub("", small(text))
    plain = re.sub(r"^https?://(?:www\.)?|^(?:usd|eur|rmb)\s*|[/.元]+$", "", plain.strip()).strip()
    plain = re.sub(r"(?<=\d)k$", "000", plain)
    words = frozenset(re.findall(r"[a-z][a-z_]+", plain)) if kind == "quoted" else frozenset()
    return Term(plain, frozenset((plain, *words)), literal=kind)


def _lexicon() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Word -> (families, things) of Chinese words; fillers have neither."""
    nothing = set(chinese_words(_SAY_NOTHING))
    known = dict.fromkeys(nothing, (frozenset[str](), frozenset[str]()))
    for word in {*chinese_words(FAMILIES), *chinese_words(THINGS)} - nothing:
        named = {thing for thing, parts in NAMING.items() if any(part in word for part in parts.split())}
        known[word] = (FAMILIES.get(word, frozenset()), THINGS.get(word, frozenset()) | named)
    return known


_LEXICON = _lexicon()
_LONGEST_WORD = max(map(len, _LEXICON))


def _chinese(run: str) -> Iterator[Term]:
    """The longest known word at each place; what lies between known words is a name."""
    at = name = 0
    while at < len(run):
        word = next((run[at : at + n] for n in range(_LONGEST_WORD, 0, -1) if run[at : at + n] in _LEXICON), "")
        if not word:
            at += 1
            continue
        if name < at:
            yield Term(run[name:at], frozenset((run[name:at],)))
        families, things = _LEXICON[word]
        if families or things:
            yield Term(word, frozenset((word,)), families, things)
        at += len(word)
        name = at
    if name < len(run):
        yield Term(run[name:], frozenset((run[name:],)))
