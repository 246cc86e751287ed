"""Which tools a sentence means: by exact name, or by the things and actions that it speaks of.

The words of sentences, and the words of tool names that they mean, stand in `nouns.yaml`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from toolmem.late_dataclasses import dataclass
from toolmem.light_models import ToolSchema
from toolmem.rules.capture.cues import TABLES, Forms
from toolmem.rules.capture.english import ACTION_VERBS, stems
from toolmem.rules.capture.sentences import CJK

NOUNS: dict[str, Any] = TABLES["nouns"]
_FORM = Forms(NOUNS["forms"])
_SIGNS: dict[str, list[str]] = NOUNS["signs"]
_LONGEST_NAME = 40  # characters of a name's word that is looked into
_VAGUE = 3  # tools; a thing that means so many of them means none in particular
_VERBS = ACTION_VERBS | frozenset(NOUNS["name_verbs"].split())
_GENERIC, _UNSAID, _COMMON = (frozenset(NOUNS[name].split()) for name in ("generic_verbs", "unsaid", "common"))


@dataclass(frozen=True, slots=True)
class _Meanings:
    """Phrases of sentences -> the words of tool names that they mean."""

    words: Mapping[str, frozenset[str]]  # one English word
    phrases: Mapping[str, tuple[re.Pattern[str], frozenset[str]]]  # several English words
    chinese: Mapping[str, frozenset[str]]

    def said_in(self, text: str, stems: frozenset[str]) -> dict[str, frozenset[str]]:
        """Words of tool names that `text` means -> the phrases that mean them."""
        said = [(word, self.words[word]) for word in self.words.keys() & stems]
        said += [
            (phrase, names)
            for phrase, (pattern, names) in self.phrases.items()
            if phrase in text and pattern.search(text)
        ]
        if CJK.search(text):
            said += [(phrase, names) for phrase, names in self.chinese.items() if phrase in text]
        found: dict[str, frozenset[str]] = {}
        for phrase, names in said:
            found.update({name: found.get(name, frozenset()) | {phrase} for name in names})
        return found


@dataclass(frozen=True, slots=True, eq=False)
class NounTable:
    """Words of sentences -> words of tool names."""

    things: _Meanings
    weak: _Meanings  # words of tool names that alone mean no tool
    actions: _Meanings
    core: frozenset[str]  # the words of tool names that a sentence speaks of, whatever the catalogue
    nouns: frozenset[str]  # words of tool names that are things, though they may be verbs too
    telling: Mapping[str, frozenset[str]]  # actions whose words mean their tool alone
    last: _Meanings  # what is meant where nothing else is
    also: Mapping[str, frozenset[str]]  # what tools of a word do, tools of these words can do too
    known: frozenset[str]  # words of tool names that a joined name may hold
    modified: re.Pattern[str]  # a Chinese thing in 里的, 中的, 上的: what is meant comes after it


@dataclass(frozen=True, slots=True)
class WordsSaid:
    """Words of tool names that a text means -> the words that mean them."""

    things: Mapping[str, frozenset[str]]
    weak: Mapping[str, frozenset[str]]
    actions: Mapping[str, frozenset[str]]
    plain: frozenset[str]  # stems of all its words
    by_path: Mapping[str, frozenset[str]]  # what a path in it may mean

    def at_last(self, text: str, table: NounTable) -> frozenset[str]:
        """Words of tool names that `text` means where nothing else is meant by it."""
        small = text.lower()
        found = set(table.last.said_in(small, self.plain))
        if self.by_path:
            found.update(_SIGNS["path"], table.also["file"])
        if _FORM["sum"].search(small):
            found.update(_SIGNS["sum"])
        return frozenset(found)

    def with_paths(self) -> WordsSaid:
        """The same, a path counting as the thing that it may mean."""
        things = {name: self.things.get(name, frozenset()) | by for name, by in self.by_path.items()}
        return WordsSaid({**self.things, **things}, self.weak, self.actions, self.plain, {})


def load_table(nouns: Mapping[str, Sequence[str]] | None = None) -> NounTable:
    """The built-in table, and `nouns` beside it: word of a tool's name -> words of a sentence that mean it."""
    return _table(tuple(sorted((word.lower(), tuple(means)) for word, means in (nouns or {}).items())))


@lru_cache(maxsize=16)
def _table(nouns: tuple[tuple[str, tuple[str, ...]], ...]) -> NounTable:
    core: dict[str, list[str]] = {name: list(means) for name, means in NOUNS["things"].items()}
    for name, means in nouns:
        core.setdefault(name, []).extend([*means, name])
    things = {**{name: means for name, means in NOUNS["further_things"].items() if name not in core}, **core}
    chinese = sorted({word for words in things.values() for word in words if CJK.match(word)}, key=len, reverse=True)
    known = {*things, *NOUNS["weak"], *NOUNS["actions"], *NOUNS["stands_for"]}
    return NounTable(
        things=_meanings(things),
        weak=_meanings(NOUNS["weak"]),
        actions=_meanings(NOUNS["actions"]),
        core=frozenset(core),
        nouns=frozenset({*things, *NOUNS["weak"], *NOUNS["named_things"]}),
        telling={action: frozenset(words) for action, words in NOUNS["telling"].items()},
        last=_meanings(NOUNS["last"]),
        also={name: frozenset(words) for name, words in NOUNS["also"].items()},
        known=frozenset(word for word in known if len(word) > 2),
        modified=re.compile(rf"(?:{'|'.join(chinese)})(?:里面?|中|上面?|内|里头)的(?=[\u3400-\u9fff])"),
    )


def _meanings(means: Mapping[str, Iterable[str]]) -> _Meanings:
    turned: dict[str, set[str]] = {}
    for name, listed in means.items():
        for phrase in listed:
            turned.setdefault(phrase.lower(), set()).add(name)
    words: dict[str, frozenset[str]] = {}
    phrases: dict[str, tuple[re.Pattern[str], frozenset[str]]] = {}
    chinese: dict[str, frozenset[str]] = {}
    for phrase, names in turned.items():
        if CJK.match(phrase):
            chinese[phrase] = frozenset(names)
        elif " " in phrase:
            phrases[phrase] = (re.compile(rf"\b{re.escape(phrase)}s?\b"), frozenset(names))
        else:
            words[phrase] = frozenset(names)
    return _Meanings(words, phrases, chinese)


def words_said(text: str, table: NounTable) -> WordsSaid:
    """What a text speaks of; links count for nothing, an address may mean mail, a path a file."""
    small = _FORM["host"].sub(" ", _FORM["not_acts"].sub(" ", _FORM["link"].sub(" ", text.lower().replace("’", "'"))))
    words = _FORM["word"].findall(small)
    forms = {form for word in words for part in (word, *word.split("-")) for form in stems(part)}
    forms |= {first + second for first, second in pairwise(words)}  # "look up" for lookup, "call back" for callback
    plain = frozenset(forms)
    weak = table.weak.said_in(small, plain)
    for sign, written in (("address", text), ("channel", small)):
        if _FORM[sign].search(written):
            weak.update({name: weak.get(name, frozenset()) | {sign} for name in _SIGNS[sign]})
    by_path = {name: frozenset({"path"}) for name in _SIGNS["path"]} if _FORM["path"].search(small) else {}
    return WordsSaid(table.things.said_in(small, plain), weak, table.actions.said_in(small, plain), plain, by_path)


def without_modifiers(text: str, table: NounTable) -> str:
    """Chinese text without the things that only modify another: 邮件里的链接 is a link."""
    return table.modified.sub(" ", text)


# ---------------------------------------------------------------- the tools at hand


@dataclass(frozen=True, slots=True)
class _Tool:
    name: str
    things: frozenset[str]
    actions: frozenset[str]
    description: frozenset[str]
    rare: frozenset[str]  # those of its actions that the table does not know
    words: frozenset[str]  # of its name
    spoken: frozenset[str]  # what may be said of these in a sentence


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The words of a text that speak for a tool."""

    things: frozenset[str]  # mean its thing
    weak: frozenset[str]  # may mean its thing
    actions: frozenset[str]  # mean its action
    alone: frozenset[str]  # mean its action, and no other tool's


_NOTHING = _Evidence(frozenset(), frozenset(), frozenset(), frozenset())


def tools_named(written: str, texts: Sequence[str], tools: Sequence[ToolSchema], table: NounTable) -> tuple[str, ...]:
    """The tools that a sentence means, in the order of `tools`; empty where it means none.

    `written` is the sentence as typed (exact names count even in quotes); `texts` are parts of it, from the demand
    itself to the whole sentence: the first that means a tool decides, a later one may only narrow it.
    """
    if exact := named_exactly(written, tools):
        return exact
    profiles = [_profile(tool.name, tool.description, table) for tool in tools]
    found: tuple[str, ...] = ()
    for text in texts:
        meant = _meant(words_said(text, table), profiles, table)
        # "Hotels need my okay before you reserve them" is about reserving.
        if not found or (meant and set(meant) < set(found)):
            found = meant
        if len(found) == 1:
            break
    if found or not texts:
        return found
    return _described(words_said(texts[0], table), profiles) or _meant_at_last(texts, profiles, table)


def named_exactly(written: str, tools: Sequence[ToolSchema]) -> tuple[str, ...]:
    """The tools whose names a sentence holds, letter for letter."""
    exact = [tool.name for tool in tools if _is_identifier(tool.name) and _holds_name(written, tool.name)]
    exact += [tool.name for tool in tools if tool.name not in exact and _shows_name(written, tool.name)]
    return tuple(exact)


def able_too(demand: str, named: Sequence[str], tools: Sequence[ToolSchema], table: NounTable) -> tuple[str, ...]:
    """The tools beside those `named` that can do what the demand forbids: a shell runs git, and reaches a path."""
    profiles = [_profile(tool.name, tool.description, table) for tool in tools]
    meant = frozenset().union(*(tool.words for tool in profiles if tool.name in named))
    if not words_said(demand, table).by_path:
        meant -= {"file"}
    able = frozenset().union(*(table.also[word] for word in meant & table.also.keys()))
    return tuple(tool.name for tool in profiles if tool.name not in named and tool.words & able)


def speaks_of_tools(text: str, table: NounTable) -> bool:
    """Does a text speak of any thing that tools are for, whether or not there is such a tool?"""
    said = words_said(text, table)
    return bool(table.core & said.things.keys() or said.by_path)


def _meant_at_last(texts: Sequence[str], tools: Sequence[_Tool], table: NounTable) -> tuple[str, ...]:
    """The first text that means anything decides; all the tools that it may mean are meant."""
    for text in texts:
        said = words_said(text, table).at_last(text, table)
        if found := tuple(tool.name for tool in tools if tool.words & said):
            return found
    return ()


def _described(said: WordsSaid, tools: Sequence[_Tool]) -> tuple[str, ...]:
    """By the words of the descriptions, where names say nothing: the tools that share most, at least two."""
    shared = {tool.name: len(said.plain & tool.description) for tool in tools}
    most = max(shared.values(), default=0)
    return tuple(name for name, count in shared.items() if count == most) if most >= 2 else ()


def _is_identifier(name: str) -> bool:
    return bool(re.search(r"[_\-./:\d]|[a-z][A-Z]", name))


def _holds_name(written: str, name: str) -> bool:
    if name.lower() not in written.lower():
        return False
    return bool(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w])", written, re.IGNORECASE))


def _shows_name(written: str, name: str) -> bool:
    """A plain word is a tool's name where it is shown as one: `shell`, the shell tool."""
    small = written.lower()
    if name.lower() not in small or not ("`" in small or "tool" in small):
        return False
    shown = re.escape(name.lower())
    return bool(re.search(rf"`{shown}`|\btool [\"'“]?{shown}\b|(?<![\w-]){shown} tool\b", small))


@lru_cache(maxsize=4096)
def parts_of_name(word: str, table: NounTable) -> tuple[str, ...]:
    """The words that a word of a tool's name is joined of, `websearch` of web and search; itself where it is of none.

    Known words and fillers must make up all of it: chance substrings count for nothing.
    """
    stands_for: Mapping[str, Sequence[str]] = NOUNS["stands_for"]
    if word in stands_for:
        return (word, *stands_for[word])
    if len(word) > _LONGEST_NAME or word in table.known or word in NOUNS["whole"] or not word.isascii():
        return (word,)
    best: list[tuple[str, ...] | None] = [(), *[None] * len(word)]  # the parts up to each position
    for end in range(1, len(word) + 1):
        for start in range(end):
            before, part = best[start], word[start:end]
            if before is not None and (part in table.known or part in NOUNS["fillers"]):
                joined = (*before, part)
                best[end] = joined if best[end] is None or len(joined) < len(best[end] or ()) else best[end]
    parts = best[-1] or ()
    names = [name for part in parts if part in table.known for name in stands_for.get(part, (part,))]
    return tuple(dict.fromkeys(names)) or (word,)


@lru_cache(maxsize=4096)
def _profile(name: str, description: str, table: NounTable) -> _Tool:
    words = [part for word in _FORM["name_word"].findall(name) for part in parts_of_name(word.lower(), table)]
    words = [word for word in words if word not in _UNSAID and not word.isdigit()] or words
    actions = frozenset(word for word in words if word in NOUNS["actions"])
    rare = frozenset(word for word in words if word in _VERBS and word not in table.nouns) - actions
    if len(words) == len(rare | actions):
        rare = frozenset()  # a name of nothing but verbs: they are all that it can be meant by
    actions |= rare
    told = frozenset().union(
        *(stems(word) for word in _FORM["word"].findall(description[:300].lower()) if len(word) > 3)
    )
    things = frozenset(words) - actions
    spoken = actions.union(*map(stems, things))
    return _Tool(name, things, actions, told - _COMMON, rare - _GENERIC, things | actions, spoken)


def _meant(said: WordsSaid, tools: Sequence[_Tool], table: NounTable) -> tuple[str, ...]:
    found = _meant_by_words(said, tools, table)
    # A path means file tools only where nothing else is meant: "run no commands that touch /etc" is about commands.
    return found if found or not said.by_path else _meant_by_words(said.with_paths(), tools, table)


def _meant_by_words(said: WordsSaid, tools: Sequence[_Tool], table: NounTable) -> tuple[str, ...]:
    shared = Counter(word for tool in tools for word in tool.words)
    named = said.things.keys() | said.weak.keys() | said.actions.keys()
    evidence = [
        _evidence(said, tool, shared) if tool.spoken & said.plain or tool.words & named else _NOTHING for tool in tools
    ]
    whole = {i for i, of in enumerate(evidence) if of.actions and (of.things or of.weak)}
    whole -= _outdone(whole, tools, said)
    explained = frozenset().union(*(evidence[i].things | evidence[i].weak | evidence[i].actions for i in whole))
    by_thing = {i for i, of in enumerate(evidence) if i not in whole and of.things - explained}
    by_action = {
        i
        for i, of in enumerate(evidence)
        if i not in whole and not of.things and (_telling(tools[i], of.actions, table) | of.alone) - explained
    }
    if len(by_thing) >= _VAGUE and not any(evidence[i].actions for i in by_thing) and by_action:
        by_thing = set()  # "files" may mean all file tools; "translate no files" means one that translates
    chosen = whole | (by_thing or by_action)
    chosen -= _outdone(chosen, tools, said)
    return tuple(tool.name for i, tool in enumerate(tools) if i in chosen)


def _telling(tool: _Tool, said: frozenset[str], table: NounTable) -> frozenset[str]:
    return said & frozenset().union(*(table.telling.get(action, frozenset()) for action in tool.actions))


def _evidence(said: WordsSaid, tool: _Tool, shared: Mapping[str, int]) -> _Evidence:
    things: frozenset[str] = frozenset()
    parts: set[frozenset[str]] = set()  # for each word of its name, what said it that alone would be too weak
    for word in tool.things:
        own = frozenset(sorted(stems(word) & said.plain, key=lambda stem: (len(stem), stem))[:1])
        alone_too_weak = word in NOUNS["weak"] and word not in said.things
        things |= said.things.get(word, frozenset()) | (frozenset() if alone_too_weak else own)
        parts.add(said.weak.get(word, frozenset()) | (own if alone_too_weak else frozenset()))
    weak = frozenset().union(*parts)
    if len(parts - {frozenset()}) > 1:
        things |= weak  # "customer records" for update_customer_record
    by_action = {word: said.actions.get(word, frozenset()) | ({word} & said.plain) for word in tool.actions}
    # A rare verb that only one tool has in its name means that tool: "don't disarm it".
    alone = (by for word, by in by_action.items() if word in tool.rare and shared[word] == 1)
    return _Evidence(things, weak, frozenset().union(*by_action.values()), frozenset().union(*alone))


def _outdone(chosen: set[int], tools: Sequence[_Tool], said: WordsSaid) -> set[int]:
    """Of git_push and git_force_push only one is meant: the second where "force" is said, else the first."""
    words = [tool.words for tool in tools]
    lose = set()
    for i in chosen:
        for j, more in enumerate(words):
            if not words[i] < more:
                continue
            extra = more - words[i]
            said_all = all(word in said.plain or word in said.actions or word in said.things for word in extra)
            lose.add(i if said_all else j)
    return lose & chosen
