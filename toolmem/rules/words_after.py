"""Words by which a user answers what was kept of the message before: each is a whole message.

    undo                        it holds no longer                          撤销
    just this time              it holds in this session, and not for good  仅这次
    only today                  it holds until the day is over              仅今天
    always                      what was noted for this session holds on    永远
    yes, this once              the call that was stopped runs once         就这一次
    lift k7qm                   the rule of that code holds no longer       撤销 k7qm

Nothing that is kept is read from a longer message that holds such words. A bare yes is none of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from toolmem.late import late_pattern
from toolmem.light_models import ToolMemoryRule
from toolmem.readers.plain_text import plain_line
from toolmem.rules.stored_rules import THIS_SESSION

if TYPE_CHECKING:
    from toolmem.guard.decision import GuardDecision
    from toolmem.rules.rule_store import RuleStore
    from toolmem.stored import LoggedDecision

Word = Literal["", "undo", "session", "today", "once", "always"]

_LONGEST_WORD = 60  # characters of a message that may be one
_SHOWN, _MOST = 160, 5  # characters of a rule, rules of a line
_AROUND = " \t\r\n.!。！`\"'“”‘’「」"
_MARKS = late_pattern(r"[\s,，、.。!！~～`]+")
_CODED = late_pattern(r"(?:lift|撤销|解除)[\s:：]*((?=[a-z]*\d)[2-9a-z]{4})")
_CJK = late_pattern(r"[\u3400-\u9fff]")
_AGREED = late_pattern(r"(?:(?:yes|yeah|ok|okay|sure|fine|go ahead|do it|run it) |(?:好的?|可以|行|同意|是的?) ?)+")
_SAYS: dict[str, Word] = {
    **dict.fromkeys(("undo", "undo it", "undo that", "undo this", "撤销", "撤消", "撤回"), "undo"),
    **dict.fromkeys(("not for ever", "not forever", "just this time", "only this time"), "session"),
    **dict.fromkeys(("just this session", "only this session", "just for this session"), "session"),
    **dict.fromkeys(("仅这次", "仅此次", "只这次", "仅限这次", "仅限本次", "不要永远"), "session"),
    **dict.fromkeys(("only today", "just today", "just for today", "only for today", "today only"), "today"),
    **dict.fromkeys(("仅今天", "只今天", "仅限今天", "只限今天", "就今天"), "today"),
    **dict.fromkeys(("always", "for good", "keep it for good", "永远", "永远保留"), "always"),
    **dict.fromkeys(("this once", "just this once", "only this once", "allow it this once"), "once"),
    **dict.fromkeys(("就这一次", "就这次", "仅此一次", "只此一次", "这次可以", "这一次可以"), "once"),
}


def word_after(message: str) -> Word:
    """The word that the message is; "" where it is none."""
    if len(message) > _LONGEST_WORD:
        return ""
    said = _MARKS.sub(" ", message.casefold()).strip()
    agreed = _AGREED.match(said)
    word = _SAYS.get(said[agreed.end() :], "") if agreed else ""
    return word if word in ("once", "always") else _SAYS.get(said, "")


def code_to_lift(message: str) -> str:
    """The code of the rule that the message is to lift; "" where it is no such word."""
    coded = _CODED.fullmatch(message.casefold().strip(_AROUND)) if len(message) <= _LONGEST_WORD else None
    return coded[1] if coded else ""


async def lift_by_code(rules: RuleStore, code: str, session: str = "") -> list[ToolMemoryRule]:
    """The user's rules of one demand that were lifted; `session`: those said in it alone. Raises StoreError.

    A change that was proposed under the code is accepted. `rules` bear the evidence.
    """
    from toolmem.rules.identity import rule_key
    from toolmem.rules.kept_rules import location_of
    from toolmem.rules.users_decisions import accept
    from toolmem.store.journal_changes import code_of, journal_here, store_key

    location = location_of(rules.store)
    for each in journal_here().proposals(store_key(location)) if location and not session else ():
        if each.code == code and each.place.workspace == rules.workspace:
            done = await accept(rules, each)
            return [done] if done is not None else []
    meant = [rule for rule in (await rules.all_rules())[0] if rule.is_users and code_of(rule_key(rule.id)) == code]
    own = [rule for rule in meant if not session or (rule.said is not None and rule.said.session == session)]
    return [rule for rule in own if await rules.withdraw(rule) is not None]


class Before(NamedTuple):
    """The user's message before this one: what was kept of it can be undone."""

    session: str
    turn: int | None
    at: datetime


async def kept_of(rules: RuleStore, before: Before) -> list[ToolMemoryRule]:
    """The user's active rules that came of it, by the offline reader or by a note since. Raises StoreError."""
    return [rule for rule in (await rules.all_rules())[0] if rule.is_users and came_of(rule, before)]


def came_of(rule: ToolMemoryRule, before: Before) -> bool:
    """Was it said in that message? A note that tells no message came since then."""
    said = rule.said
    if said is None or not before.session or said.session != before.session:
        return False
    if said.turn is not None:
        return said.turn == before.turn
    return said.time is not None and said.time >= before.at


async def act_on(
    word: Word, rules: RuleStore, kept: Sequence[ToolMemoryRule], before: Before, *, chinese: bool
) -> list[str]:
    """What became of each, told in lines. `rules` bear the evidence. Raises StoreError, LiftProposed."""
    found: dict[str, list[ToolMemoryRule]] = {word: [], "already": [], "older": []}
    for rule in kept:
        if word == "always" and THIS_SESSION not in rule.tags:
            continue
        is_older = rule.created_at < before.at
        found["older" if is_older else word if await _act(word, rules, rule) else "already"].append(rule)
    return [line for what, of in found.items() for line in told(what, of, chinese=chinese)]


async def _act(word: Word, rules: RuleStore, rule: ToolMemoryRule) -> bool:
    """Whether anything had to be done."""
    from toolmem.rules.noted_demands import SESSION_ENDS
    from toolmem.rules.users_decisions import hold_for

    if word == "undo":
        if await rules.withdraw(rule) is not None:
            await _bring_back(rules, rule)
        return True
    if word == "always":
        tags = [tag for tag in rule.tags if tag != THIS_SESSION]
        return await hold_for(rules, rule, tags=tags, expires_at=None) is not None
    now = rules.clock.now()
    if word == "session" and THIS_SESSION in rule.tags:
        return False
    ends = now + SESSION_ENDS if word == "session" else end_of_day(now)
    if word == "today" and rule.expires_at is not None and rule.expires_at <= ends:
        return False
    tags = [*rule.tags, THIS_SESSION] if word == "session" else rule.tags
    await hold_for(rules, rule, tags=tags, expires_at=min(filter(None, (rule.expires_at, ends))))
    return True


async def _bring_back(rules: RuleStore, undone: ToolMemoryRule) -> None:
    """What it had taken the place of holds again, but for what came of the same message."""
    for each in (await rules.all_rules(inactive=True))[0]:
        if each.status == "superseded" and each.superseded_by == undone.id and not _of_one_message(each, undone):
            await rules.set_status(each.id, "active", each.tool_name)


def _of_one_message(one: ToolMemoryRule, other: ToolMemoryRule) -> bool:
    if one.said is None or other.said is None or not one.said.session or one.said.turn is None:
        return False
    return (one.said.session, one.said.turn) == (other.said.session, other.said.turn)


def end_of_day(now: datetime) -> datetime:
    """Of the user's day, as this machine has it."""
    tomorrow = now.astimezone().date() + timedelta(days=1)
    return datetime(tomorrow.year, tomorrow.month, tomorrow.day).astimezone()


# ---------------------------------------------------------------- what the user is told

_LINES: dict[str, tuple[str, str]] = {
    "lifted": ("Lifted, so it holds no longer: {}", "已解除，不再有效：{}"),
    "undo": ("Undone, so it holds no longer: {}", "已撤销，不再有效：{}"),
    "session": ("It holds in this session, and not for good: {}", "仅在本次会话内有效：{}"),
    "today": ("It holds until the end of today, and not for good: {}", "仅在今天之内有效：{}"),
    "always": ("Kept for good: {}", "已长期记住：{}"),
    "already": ("It holds no longer than that already: {}", "原本就只在此期间有效：{}"),
    "older": (
        "Not changed, as it was kept before your last message: {}. To lift it, say that it may be done",
        "未改动，因为它在您上一条消息之前就已记住：{}。如需解除，请说明可以这样做",
    ),
    "once": (
        "Let through once, before your next message: `{}`; what stopped it holds on",
        "下一条消息之前放行一次：`{}`；拦下它的规则仍然有效",
    ),
    "own": (
        "Not let through: `{}` would change what holds the agent, and only you can run that, in a terminal of yours",
        "未放行：`{}` 会改动约束代理的设置，只能由您在自己的终端中执行",
    ),
    "unseen": (
        "Not done, as nobody was seen to type it: say it by itself, in an agent of yours",
        "未执行，因为无法确认是您输入的：请在您自己的代理中单独说这句话",
    ),
}


def once_offered(decision: GuardDecision) -> str:
    """What the agent is told beside a reason: by which message its user lets the very call run once; "" where none
    does, as something else than their rules stops it.
    """
    stopping = [each for each in decision.sources if each.effective in ("ask", "deny")]
    if not decision.stops or not stopping or any(each.kind != "rule" for each in stopping):
        return ""
    word = "就这一次" if any(has_chinese(each.text) for each in stopping) else "yes, this once"
    return f"The user's message “{word}” lets it run once."


def told(what: str, rules: Iterable[ToolMemoryRule | str], *, chinese: bool) -> list[str]:
    """One line on these rules or sentences; none where there are none."""
    texts = list(dict.fromkeys(each if isinstance(each, str) else each.rule for each in rules))
    if not texts:
        return []
    shown = ", ".join(f"“{plain_line(each, _SHOWN)}”" for each in texts[:_MOST])
    more = f" (+{len(texts) - _MOST})" if len(texts) > _MOST else ""
    return [_LINES[what][chinese].format(shown + more)]


def told_of(what: str, message: str, shown: str = "") -> str:
    """`message`: of the user, whose language is answered in; `shown`: of a call, such as its command."""
    return _LINES[what][has_chinese(message)].format(plain_line(shown, _SHOWN))


def has_chinese(message: str) -> bool:
    """Whether it is answered in Chinese."""
    return bool(_CJK.search(message))


def call_in(logged: LoggedDecision) -> str:
    """The call of a decision, as its log has it."""
    try:
        given = json.loads(logged.input)
    except (ValueError, RecursionError):
        given = None
    return shown_call(logged.tool_name, given)


def shown_call(tool_name: str, arguments: Any) -> str:
    """A call in a line: its command, or its tool with what it is given."""
    given = arguments if isinstance(arguments, Mapping) else {}
    command = given.get("command")
    if isinstance(command, str):
        return command
    return " ".join([tool_name, *(str(each) for each in given.values() if isinstance(each, str | int | float))])
