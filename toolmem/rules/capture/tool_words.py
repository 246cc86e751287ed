"""Words of sentences and the words of tool names that they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from toolmem.rules.capture import cues
from toolmem.rules.capture.english_words import IRREGULAR

_WORD = re.compile(r"[a-z]+(?:[-'][a-z]+)*")
_CJK = re.compile(r"[\u3400-\u9fff]")
_LINK = re.compile(
    r"https?://\S+|[\w.+-]+@[\w-]+\.[\w.-]+|\b[\w-]+(?:\.[\w-]+)+:\d\S*|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io"
    r"|dev)\b\S*"
)
_PATH = re.compile(
    r"(?:^|[\s(])(?:(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]*)*|[\w.-]+/(?=[\s,;)]|$)|[\w.-]+/[\w.-]+/[\w./-]*)"
    r"|(?:^|\s)\.[a-z]{2,6}\b|\b[\w-]+\.(?:[a-z]{2,4}|json|yaml|toml|docx|xlsx|lock|tar\.gz)\b"
)
_PATH_MEANS = ("file", "path", "directory", "folder")
_ADDRESS = re.compile(r"[\w.+-]{1,64}@")
_ADDRESS_MEANS = ("mail", "email", "gmail")
_CHANNEL = re.compile(r"(?<!\S)#[a-z][\w-]*")
_CHANNEL_MEANS = ("slack", "discord", "teams", "channel", "message")
_HOST = re.compile(r"\b[a-z]+-\d+\b")  # web-01 is no web
_SUM = re.compile(
    r"\b(?:above|over|beyond|exceed(?:s|ing)?|costs? more than)\s+"
    r"(?:[$€£¥]\s?\d|\d[\d.,]{0,20}k?\s?(?:euros?|eur|dollars?|usd|pounds?|gbp|yuan|rmb|chf|francs?|bucks|€|\$|£|¥))"
)
_SUM_MEANS = ("payment", "pay", "purchase", "buy")
_NOT_ACTS = re.compile(r"会议室|实付|应付|已付|未付|到付|对付|付出")  # their characters look like a thing or an action
_LONGEST_NAME = 40  # characters of a name's word that is looked into
_ENDINGS = ("ing", "ed", "es", "s", "d")


@dataclass(frozen=True, slots=True)
class Meanings:
    """Phrases of sentences -> the words of tool names that they mean."""

    words: Mapping[str, frozenset[str]]  # one English word
    phrases: Mapping[str, tuple[re.Pattern[str], frozenset[str]]]  # several English words
    chinese: Mapping[str, frozenset[str]]

    def said_in(self, text: str, stems: frozenset[str]) -> dict[str, frozenset[str]]:
        """Words of tool names that `text` means -> the phrases that mean them."""
        found: dict[str, set[str]] = {}
        for word in self.words.keys() & stems:
            _note(found, self.words[word], word)
        for phrase, (pattern, names) in self.phrases.items():
            if phrase in text and pattern.search(text):
                _note(found, names, phrase)
        if _CJK.search(text):
            for phrase, names in self.chinese.items():
                if phrase in text:
                    _note(found, names, phrase)
        return {name: frozenset(by) for name, by in found.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Words of sentences -> words of tool names."""

    things: Meanings
    weak: Meanings
    actions: Meanings
    core: frozenset[str]  # the words of tool names that a sentence speaks of, whatever the catalogue
    vague: frozenset[str]  # words of tool names that alone mean no tool
    action_words: frozenset[str]  # words of tool names that are actions
    nouns: frozenset[str]  # words of tool names that are things, though they may be verbs too
    telling: Mapping[str, frozenset[str]]  # actions whose words mean their tool alone
    last: Meanings  # what is meant where nothing else is
    also: Mapping[str, frozenset[str]]  # what tools of a word do, tools of these words can do too
    stands_for: Mapping[str, tuple[str, ...]]  # programs and services -> words of tool names
    known: frozenset[str]  # words of tool names that a joined name may hold
    fillers: frozenset[str]  # and what may stand beside them there
    whole: frozenset[str]  # names that only look as if they were joined
    modified: re.Pattern[str]  # a Chinese thing in 里的, 中的, 上的: what is meant comes after it


@dataclass(frozen=True, slots=True)
class Said:
    """Words of tool names that a text means -> the words that mean them."""

    things: Mapping[str, frozenset[str]]
    weak: Mapping[str, frozenset[str]]
    actions: Mapping[str, frozenset[str]]
    plain: frozenset[str]  # stems of all its words
    by_path: Mapping[str, frozenset[str]]  # what a path in it may mean

    def at_last(self, text: str, table: Table) -> frozenset[str]:
        """Words of tool names that `text` means where nothing else is meant by it."""
        small = text.lower()
        found = set(table.last.said_in(small, self.plain))
        if self.by_path:
            found.update(_PATH_MEANS, table.also["file"])
        if _SUM.search(small):
            found.update(_SUM_MEANS)
        return frozenset(found)

    def with_paths(self) -> Said:
        """The same, a path counting as the thing that it may mean."""
        things = {name: self.things.get(name, frozenset()) | by for name, by in self.by_path.items()}
        return Said({**self.things, **things}, self.weak, self.actions, self.plain, {})


def load_table(nouns: Mapping[str, Sequence[str]] | None = None) -> Table:
    """The built-in table, and `nouns` beside it: word of a tool's name -> words of a sentence that mean it."""
    return _table(tuple(sorted((word.lower(), tuple(means)) for word, means in (nouns or {}).items())))


@lru_cache(maxsize=16)
def _table(nouns: tuple[tuple[str, tuple[str, ...]], ...]) -> Table:
    built_in = cues.table("nouns")
    core: dict[str, list[str]] = {name: list(means) for name, means in built_in["things"].items()}
    for name, means in nouns:
        core.setdefault(name, []).extend([*means, name])
    things = {**{name: means for name, means in built_in["further_things"].items() if name not in core}, **core}
    chinese = sorted({word for words in things.values() for word in words if _CJK.match(word)}, key=len, reverse=True)
    stands_for = {name: tuple(words) for name, words in built_in["stands_for"].items()}
    known = {*things, *built_in["weak"], *built_in["actions"], *stands_for}
    return Table(
        last=_meanings(built_in["last"]),
        also={name: frozenset(words) for name, words in built_in["also"].items()},
        stands_for=stands_for,
        known=frozenset(word for word in known if len(word) > 2),
        fillers=frozenset(built_in["fillers"]),
        whole=frozenset(built_in["whole"]),
        things=_meanings(things),
        weak=_meanings(built_in["weak"]),
        actions=_meanings(built_in["actions"]),
        core=frozenset(core),
        vague=frozenset(built_in["weak"]),
        action_words=frozenset(built_in["actions"]),
        nouns=frozenset({*things, *built_in["weak"], *built_in["named_things"]}),
        telling={action: frozenset(words) for action, words in built_in["telling"].items()},
        modified=re.compile(rf"(?:{'|'.join(chinese)})(?:里面?|中|上面?|内|里头)的(?=[\u3400-\u9fff])"),
    )


def _meanings(means: Mapping[str, Iterable[str]]) -> Meanings:
    turned: dict[str, set[str]] = {}
    for name, listed in means.items():
        for phrase in listed:
            turned.setdefault(phrase.lower(), set()).add(name)
    words: dict[str, frozenset[str]] = {}
    phrases: dict[str, tuple[re.Pattern[str], frozenset[str]]] = {}
    chinese: dict[str, frozenset[str]] = {}
    for phrase, names in turned.items():
        if _CJK.match(phrase):
            chinese[phrase] = frozenset(names)
        elif " " in phrase:
            phrases[phrase] = (re.compile(rf"\b{re.escape(phrase)}s?\b"), frozenset(names))
        else:
            words[phrase] = frozenset(names)
    return Meanings(words, phrases, chinese)


def _note(found: dict[str, set[str]], names: Iterable[str], phrase: str) -> None:
    for name in names:
        found.setdefault(name, set()).add(phrase)


def words_said(text: str, table: Table) -> Said:
    """What a text speaks of; links count for nothing, an address may mean mail, a path a file."""
    small = _HOST.sub(" ", _NOT_ACTS.sub(" ", _LINK.sub(" ", text.lower().replace("’", "'"))))
    words = _WORD.findall(small)
    forms = {form for word in words for part in (word, *word.split("-")) for form in stems(part)}
    forms |= {first + second for first, second in pairwise(words)}  # "look up" for lookup, "call back" for callback
    plain = frozenset(forms)
    weak = table.weak.said_in(small, plain)
    if _ADDRESS.search(text):
        weak.update({name: weak.get(name, frozenset()) | {"an address"} for name in _ADDRESS_MEANS})
    if _CHANNEL.search(small):
        weak.update({name: weak.get(name, frozenset()) | {"a channel"} for name in _CHANNEL_MEANS})
    return Said(
        table.things.said_in(small, plain),
        weak,
        table.actions.said_in(small, plain),
        plain,
        {name: frozenset({"a path"}) for name in _PATH_MEANS} if _PATH.search(small) else {},
    )


@lru_cache(maxsize=4096)
def parts_of_name(word: str, table: Table) -> tuple[str, ...]:
    """The words that a word of a tool's name is joined of, `websearch` of web and search; itself where it is of none.

    Known words and fillers must make up all of it: chance substrings count for nothing.
    """
    if word in table.stands_for:
        return (word, *table.stands_for[word])
    if len(word) > _LONGEST_NAME or word in table.known or word in table.whole or not word.isascii():
        return (word,)
    best: list[tuple[str, ...] | None] = [(), *[None] * len(word)]  # the parts up to each position
    for end in range(1, len(word) + 1):
        for start in range(end):
            before, part = best[start], word[start:end]
            if before is not None and (part in table.known or part in table.fillers):
                joined = (*before, part)
                best[end] = joined if best[end] is None or len(joined) < len(best[end] or ()) else best[end]
    parts = best[-1] or ()
    names = [name for part in parts if part in table.known for name in table.stands_for.get(part, (part,))]
    return tuple(dict.fromkeys(names)) or (word,)


def without_modifiers(text: str, table: Table) -> str:
    """Chinese text without the things that only modify another: 邮件里的链接 is a link."""
    return table.modified.sub(" ", text)


@lru_cache(maxsize=4096)
def stems(word: str) -> frozenset[str]:
    """The word and what its base form may be."""
    found = {word, IRREGULAR.get(word, word)}
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            stem = word[: -len(ending)]
            found |= {stem, stem + "e"} if ending != "s" else {stem}
            if len(stem) > 2 and stem[-1] == stem[-2]:
                found.add(stem[:-1])
            if stem.endswith("i") and ending in ("es", "ed"):
                found.add(stem[:-1] + "y")
    return frozenset(found)
