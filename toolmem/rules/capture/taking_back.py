"""What a turn takes back or replaces among the rules that hold, and what to tell the user of it.

Only what the user said is taken back by what the user says: of a rule that a program or an agent put, the user is told
how to withdraw it. Where several different rules may be meant none is withdrawn, and each is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from toolmem.errors import LiftProposed, RequestError
from toolmem.late_dataclasses import dataclass, field, replace
from toolmem.light_models import Speaker, ToolMemoryRule
from toolmem.readers.plain_text import plain_line
from toolmem.rules.identity import folded_name, same_text
from toolmem.rules.rule_checks import said_text
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.section import tool_in_words
from toolmem.rules.speakers import AUTHORITY, allowed_speaker
from toolmem.rules.turns import Turn
from toolmem.sentences.rules_meant import Meaning, RuleSaid, replaces, rules_meant, says_the_same
from toolmem.sentences.split_text import CJK
from toolmem.sentences.taken_back import Fit, Lift

if TYPE_CHECKING:
    from toolmem.rules.capture.hook import SessionRule

_SHOWN = 300  # characters of a rule in a note
_NAMED = 5  # rules that a note names
_ID = 8  # characters of an id: enough for `toolmem rules reject`

_NOTES = {
    "withdrawn": (
        "{rules}: withdrawn; `toolmem rules approve {ids}` lets it hold again",
        "{rules}：已撤回；`toolmem rules approve {ids}` 可恢复",
    ),
    "replaced": ("{rules}: replaced by “{by}”", "{rules}：已由“{by}”取代"),
    "several": (
        "“{said}” may mean several rules, so none was withdrawn: {rules}; `toolmem rules reject ID` withdraws one",
        "“{said}”可能指多条规则，因此一条也没有撤回：{rules}；`toolmem rules reject ID` 可撤回其中一条",
    ),
    "perhaps": (
        "“{said}” may mean {rules}, which still holds; `toolmem rules reject {ids}` withdraws it",
        "“{said}”可能指{rules}，该规则仍然有效；`toolmem rules reject {ids}` 可撤回",
    ),
    "limited": (
        "“{said}” permits less, or not for good: {rules} still holds; `toolmem rules reject {ids}` withdraws it",
        "“{said}”只是部分或暂时的许可，{rules}仍然有效；`toolmem rules reject {ids}` 可撤回",
    ),
    "proposed": (
        "{rules}: still holds, as it cannot be told that you typed this; send just `lift {code}` to withdraw it",
        "{rules}：仍然有效，因为无法确认这是您输入的；请只发送“撤销 {code}”即可撤回",
    ),
    "others": (
        "“{said}” cannot withdraw {rules}: another put it; `toolmem rules reject {ids}` withdraws it",
        "“{said}”不能撤回{rules}，该规则由他人设置：`toolmem rules reject {ids}` 可撤回",
    ),
}


@dataclass(slots=True)
class TakenBack:
    """What became of the rules that held."""

    withdrawn: list[ToolMemoryRule] = field(default_factory=list)  # as stored
    superseded: list[ToolMemoryRule] = field(default_factory=list)
    proposed: list[ToolMemoryRule] = field(default_factory=list)  # hold on until their user accepts it
    told: list[str] = field(default_factory=list)  # for the user


Group = list[ToolMemoryRule]  # rules of several tools that came of the same sentence


class RulesInForce:
    """The rules that hold while one turn is read."""

    def __init__(self, store: RuleStore, turn: Turn) -> None:
        self._store = store
        self._turn = turn
        self._speaker: Speaker = "agent" if store.speaker == "agent" else allowed_speaker("user")
        self._rules: dict[str, ToolMemoryRule] = {}
        self._said_here: list[str] = []  # texts of this turn's instructions, in order

    async def load(self, tools: Iterable[str] | None = None) -> None:
        """Before anything of the turn is kept: the rules of these tools, None: of all."""
        if tools is None:
            rules = (await self._store.all_rules())[0]
        else:
            rules = []
            for tool in {folded_name(tool): tool for tool in tools}.values():
                with suppress(RequestError):  # no name of a tool: it has no rules
                    rules += await self._store.list_rules(tool)
        self._rules = {rule.id: rule for rule in rules}

    def surely_meant(self, lifts: Sequence[Lift], rules: Iterable[ToolMemoryRule]) -> list[ToolMemoryRule]:
        """Which of `rules`, that hold, a sentence is sure to take back; changes nothing."""
        _, fit, meant = self._surest(lifts, list(rules))
        return [rule for rule in meant[0] if self._is_own(rule)] if len(meant) == 1 and fit >= Fit.MOSTLY else []

    async def keep(self, rule: ToolMemoryRule) -> TakenBack:
        """A rule was kept of this turn: it takes the place of older ones on the same tool and target."""
        done, before = TakenBack(), self._rules.get(rule.id)
        self._rules[rule.id] = rule
        self._said_here.append(rule.rule)
        if not rule.is_users or rule.source != "user_explicit" or (before is not None and self._is_replay(before)):
            return done
        for older in list(self._rules.values()):
            if self._may_replace(rule, older) and replaces(said_text(rule), said_text(older)):
                await self._let_go(older, done, superseded_by=rule)
        return done

    def _is_replay(self, before: ToolMemoryRule) -> bool:
        said = before.said
        return said is not None and (said.session, said.turn) == (self._turn.session_id, self._turn.number)

    def _may_replace(self, rule: ToolMemoryRule, older: ToolMemoryRule) -> bool:
        same_tool = folded_name(older.tool_name) == folded_name(rule.tool_name)
        return older.id != rule.id and same_tool and self._is_own(older) and not self._is_later(older)

    async def take_back(self, lifts: Sequence[Lift], demanded: Sequence[ToolMemoryRule] = ()) -> TakenBack:
        """Of the clauses of one sentence the surest counts.

        `demanded`: rules that the same sentence made: "you may email Sarah again, but ask me first".
        """
        done = TakenBack()
        if self._speaker == "agent":
            return done
        if demanded:
            lifts = [replace(lift, limited=False) for lift in lifts]
        apart = {rule.id for rule in demanded}
        lift, fit, meant = self._surest(lifts, [rule for rule in self._rules.values() if rule.id not in apart])
        if len(meant) == 1 and fit >= Fit.MOSTLY and (own := [rule for rule in meant[0] if self._is_own(rule)]):
            for rule in own:
                by = next((new for new in demanded if same_tools(new, rule)), None)
                await self._let_go(rule, done, superseded_by=by)
            if done.withdrawn:
                done.told.append(note("withdrawn", lift, [done.withdrawn]))
            meant = [[rule for rule in meant[0] if rule not in own]]
        if any(meant) and not demanded:
            done.told.append(note(self._why_not(fit, meant), lift, meant))
        return done

    def _surest(self, lifts: Sequence[Lift], rules: Sequence[ToolMemoryRule]) -> tuple[Lift, Fit, list[Group]]:
        """What the clauses of a sentence take back; of several the one that says it best."""
        read = []
        for lift in lifts:
            groups = self._groups(lift, rules)
            meaning = meaning_of(lift, groups)
            read.append((lift, meaning.fit, as_one([groups[number] for number in meaning.meant])))
        return max(read, key=lambda each: (len(each[2]) == 1, each[1]))

    def _why_not(self, fit: Fit, meant: Sequence[Group]) -> str:
        if fit == Fit.LIMITED:
            return "limited"
        if len(meant) > 1:
            return "several"
        return "perhaps" if any(map(self._is_own, meant[0])) else "others"

    def _groups(self, lift: Lift, rules: Iterable[ToolMemoryRule]) -> list[Group]:
        groups: dict[str, Group] = {}
        for rule in rules:
            if not self._is_later(rule):
                groups.setdefault(same_text(said_text(rule)), []).append(rule)
        if lift.lifts != "back" and (lift.terms or lift.lifts != "release" or lift.of_all):
            return list(groups.values())
        return self._last_said(groups) or ([] if lift.lifts == "back" else list(groups.values()))

    def _last_said(self, groups: dict[str, Group]) -> list[Group]:
        """What the user demanded just before: in this message, else in the turn before it."""
        here = [groups[same_text(text)] for text in reversed(self._said_here) if same_text(text) in groups]
        if here or self._turn.number is None or not self._turn.session_id:
            return here[:1]
        before = (self._turn.session_id, self._turn.number - 1)
        return [group for group in groups.values() if any(_said_at(rule) == before for rule in group)]

    def _is_own(self, rule: ToolMemoryRule) -> bool:
        return rule.is_users and AUTHORITY[self._speaker] >= AUTHORITY[rule.by]

    def _is_later(self, rule: ToolMemoryRule) -> bool:
        """Said in a later turn of this session: this one is played again."""
        session, turn = _said_at(rule)
        number = self._turn.number
        same = bool(session) and session == self._turn.session_id
        return same and turn is not None and number is not None and turn > number

    async def _let_go(self, rule: ToolMemoryRule, done: TakenBack, *, superseded_by: ToolMemoryRule | None) -> None:
        try:
            gone = await self._store.withdraw(rule, superseded_by=superseded_by.id if superseded_by else "")
        except LiftProposed as proposed:
            done.proposed.append(rule)
            done.told.append(note("proposed", None, [[rule]], rule.rule, proposed.code))
            return
        self._rules.pop(rule.id, None)
        if gone is None:  # somebody else was faster
            return
        if superseded_by is None:
            done.withdrawn.append(gone)
        else:
            done.superseded.append(gone)
            done.told.append(note("replaced", None, [[gone]], superseded_by.rule))


def as_one(groups: Sequence[Group]) -> list[Group]:
    """One group where all of them demand the same in other words."""
    if len(groups) > 1 and all(says_the_same(said_text(groups[0][0]), said_text(group[0])) for group in groups[1:]):
        return [[rule for group in groups for rule in group]]
    return list(groups)


def meaning_of(lift: Lift, groups: Sequence[Group]) -> Meaning:
    """Which groups of rules a sentence takes back."""
    if lift.lifts == "back":
        return Meaning((0,), Fit.MOSTLY) if len(groups) == 1 else Meaning()
    said = [RuleSaid(said_text(group[0])) for group in groups]
    return rules_meant(lift, said)


def session_lifted(lifts: Iterable[Lift], holding: Sequence[SessionRule]) -> list[SessionRule]:
    """Which demands of the session a sentence lifts: what is permitted now need not be permitted for good."""
    texts = list(dict.fromkeys(each.rule for each in holding))
    gone: list[str] = []
    for lift in lifts:
        if lift.lifts == "back":
            gone += texts[-1:]
            continue
        meaning = rules_meant(replace(lift, for_good=True), [RuleSaid(text) for text in texts])
        gone += [texts[number] for number in meaning.meant] if meaning.surely else []
    return [each for each in holding if each.rule in gone]


def same_tools(one: ToolMemoryRule, other: ToolMemoryRule) -> bool:
    """Whether two rules stand under the same tool."""
    return folded_name(one.tool_name) == folded_name(other.tool_name)


def _said_at(rule: ToolMemoryRule) -> tuple[str, int | None]:
    return (rule.said.session, rule.said.turn) if rule.said is not None else ("", None)


def note(kind: str, lift: Lift | None, groups: Sequence[Group], by: str = "", code: str = "") -> str:
    """What the user is told, in the language of the sentence."""
    said = lift.sentence if lift is not None else by
    chinese = bool(CJK.search(said))
    shown = [_shown(group, chinese) for group in groups if group]
    more = len(shown) - _NAMED
    listed = "; ".join(shown[:_NAMED]) + (f" (+{more})" if more > 0 else "")
    ids = " ".join(rule.id[:_ID] for group in groups for rule in group)
    words = {"rules": listed, "ids": ids, "code": code, "said": plain_line(said, _SHOWN), "by": plain_line(by, _SHOWN)}
    return _NOTES[kind][chinese].format(**words)


def _shown(group: Group, chinese: bool) -> str:
    tools = ", ".join(dict.fromkeys(tool_in_words(rule.tool_name, chinese) for rule in group))
    rule, short = plain_line(group[0].rule, _SHOWN), group[0].id[:_ID]
    return f"“{rule}”（{tools}，{short}）" if chinese else f"“{rule}” ({tools}, {short})"
