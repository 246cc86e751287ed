"""Which tools a sentence means: by exact name, or by the things and actions that it speaks of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from toolmem.light_models import ToolSchema
from toolmem.rules.capture.english_words import ACTION_VERBS, words_of
from toolmem.rules.capture.tool_words import Said, Table, parts_of_name, stems, words_said

_NAME_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[\u3400-\u9fff]+")
_WORD = re.compile(r"[a-z]+(?:[-'][a-z]+)*")
_UNSAID = words_of("the a an of to for in on by with and or tool tools function api v all my")
_VAGUE = 3  # tools; a thing that means so many of them means none in particular
# Verbs of tool names, beyond those of sentences.
_VERBS = ACTION_VERBS | words_of(
    """
    adjust arm assert calibrate crop decline decrypt deposit detect disarm draw eject extend feed finish flag follow
    freeze heat hide inspect label like lower mark mute name order pair park pause pin play prescribe preview
    quarantine raise record redeem refill rent rephrase reserve resize resume return ring rotate seal shorten
    silence snooze sort speak split spray summarize swap toggle transcribe turn unfollow unfreeze unmute upvote vote
    water wire
    """
)
# Too many tools do these for one of them to be meant by such a word alone.
_GENERIC = words_of(
    "set change start stop use make take go do put call apply turn keep move play mark name order open close"
)
_COMMON = words_of(
    """
    that this with from into your their which when where what have been will would about after before other given
    returns return using used user users name names list data value values must should only also each then than them
    they more
    """
)


@dataclass(frozen=True, slots=True)
class _Tool:
    name: str
    things: frozenset[str]
    actions: frozenset[str]
    description: frozenset[str]
    rare: frozenset[str]  # those of its actions that the table does not know

    @property
    def words(self) -> frozenset[str]:
        return self.things | self.actions


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The words of a text that speak for a tool."""

    things: frozenset[str]  # mean its thing
    weak: frozenset[str]  # may mean its thing
    actions: frozenset[str]  # mean its action
    alone: frozenset[str]  # mean its action, and no other tool's


def tools_named(written: str, texts: Sequence[str], tools: Sequence[ToolSchema], table: Table) -> tuple[str, ...]:
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


def able_too(demand: str, named: Sequence[str], tools: Sequence[ToolSchema], table: Table) -> tuple[str, ...]:
    """The tools beside those `named` that can do what the demand forbids: a shell runs git, and reaches a path."""
    profiles = [_profile(tool.name, tool.description, table) for tool in tools]
    meant = frozenset().union(*(tool.words for tool in profiles if tool.name in named))
    if not words_said(demand, table).by_path:
        meant -= {"file"}
    able = frozenset().union(*(table.also[word] for word in meant & table.also.keys()))
    return tuple(tool.name for tool in profiles if tool.name not in named and tool.words & able)


def _meant_at_last(texts: Sequence[str], tools: Sequence[_Tool], table: Table) -> tuple[str, ...]:
    """The first text that means anything decides; all the tools that it may mean are meant."""
    for text in texts:
        said = words_said(text, table).at_last(text, table)
        if found := tuple(tool.name for tool in tools if tool.words & said):
            return found
    return ()


def speaks_of_tools(text: str, table: Table) -> bool:
    """Does a text speak of any thing that tools are for, whether or not there is such a tool?"""
    said = words_said(text, table)
    return bool(table.core & said.things.keys() or said.by_path)


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
def _profile(name: str, description: str, table: Table) -> _Tool:
    words = [part for word in _NAME_WORD.findall(name) for part in parts_of_name(word.lower(), table)]
    words = [word for word in words if word not in _UNSAID and not word.isdigit()] or words
    actions = frozenset(word for word in words if word in table.action_words)
    rare = frozenset(word for word in words if word in _VERBS and word not in table.nouns) - actions
    if len(words) == len(rare | actions):
        rare = frozenset()  # a name of nothing but verbs: they are all that it can be meant by
    actions |= rare
    told = frozenset().union(*(stems(word) for word in _WORD.findall(description[:300].lower()) if len(word) > 3))
    return _Tool(name, frozenset(words) - actions, actions, told - _COMMON, rare - _GENERIC)


def _meant(said: Said, tools: Sequence[_Tool], table: Table) -> tuple[str, ...]:
    found = _meant_by_words(said, tools, table)
    # A path means file tools only where nothing else is meant: "run no commands that touch /etc" is about commands.
    return found if found or not said.by_path else _meant_by_words(said.with_paths(), tools, table)


def _meant_by_words(said: Said, tools: Sequence[_Tool], table: Table) -> tuple[str, ...]:
    evidence = _evidences(said, tools, table)
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


def _telling(tool: _Tool, said: frozenset[str], table: Table) -> frozenset[str]:
    return said & frozenset().union(*(table.telling.get(action, frozenset()) for action in tool.actions))


def _evidences(said: Said, tools: Sequence[_Tool], table: Table) -> list[_Evidence]:
    shared = Counter(word for tool in tools for word in tool.words)
    return [_evidence(said, tool, table, shared) for tool in tools]


def _evidence(said: Said, tool: _Tool, table: Table, shared: Mapping[str, int]) -> _Evidence:
    things: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()
    parts = 0  # of its name, said by words that alone would be too weak
    for word in tool.things:
        known = len(weak)
        own = frozenset(sorted(stems(word) & said.plain, key=len)[:1])
        if word in table.vague and word not in said.things:
            weak |= own
        else:
            things |= own
        things |= said.things.get(word, frozenset())
        weak |= said.weak.get(word, frozenset())
        parts += len(weak) > known
    if parts > 1:
        things |= weak  # "customer records" for update_customer_record
    by_action = {word: said.actions.get(word, frozenset()) | ({word} & said.plain) for word in tool.actions}
    # A rare verb that only one tool has in its name means that tool: "don't disarm it".
    alone = (by for word, by in by_action.items() if word in tool.rare and shared[word] == 1)
    return _Evidence(things, weak, frozenset().union(*by_action.values()), frozenset().union(*alone))


def _outdone(chosen: set[int], tools: Sequence[_Tool], said: Said) -> set[int]:
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


def _described(said: Said, tools: Sequence[_Tool]) -> tuple[str, ...]:
    """By the words of the descriptions, where names say nothing: the tools that share most, at least two."""
    shared = {tool.name: len(said.plain & tool.description) for tool in tools}
    most = max(shared.values(), default=0)
    return tuple(name for name, count in shared.items() if count == most) if most >= 2 else ()
