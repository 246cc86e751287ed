"""A note takes the place of what the offline reader kept of the same message, and of the demand that it names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from toolmem.errors import LiftProposed
from toolmem.late import late_pattern
from toolmem.light_models import ToolMemoryRule
from toolmem.readers.plain_text import plain_line
from toolmem.rules.drafts import RuleDraft
from toolmem.rules.identity import namespace_of
from toolmem.rules.loosening import takes_its_place
from toolmem.rules.stored_rules import read_stored
from toolmem.store.holding import holds_agents

if TYPE_CHECKING:
    from datetime import datetime

    from toolmem.rules.rule_records import RuleRecords
    from toolmem.rules.rule_store import RuleStore

NOTED = "noted-demand"  # the tag of rules that came of a note
_WORD = late_pattern(r"\w+")
_PIECE = late_pattern(r"[^\W\u3400-\u9fff]+|[\u3400-\u9fff]")
# A further demand, a further act or object of one, a condition, or a name of something.
_MORE = late_pattern(
    r"\b(?:never|don['’]t|not?|must|stop|avoid|only|always|and|n?or|but|also|plus|neither|unless|except|if|when|until"
    r"|while|to|in|on|with|without|instead|ask)\b|[\d/@_`]|\w\.\w"
    r"|[不别禁准许必只仅永先问也和或并还但且除若如]|以外|之前|时候|、"
)
_SHOWN, _ID = 160, 8  # characters of a rule, of its id
_TOLD = {
    "taken": ("It takes the place of “{old}”", "取代“{old}”"),
    "stays": (
        "“{old}” holds on beside it: `toolmem rules reject {id}` lifts it",
        "“{old}”仍然有效：`toolmem rules reject {id}` 可撤销",
    ),
    "asked": (
        "“{old}” holds on beside it: say `lift {code}` to lift it",
        "“{old}”仍然有效：回复“撤销 {code}”可撤销",
    ),
}


# ---------------------------------------------------------------- the same message, read offline


def read_offline(
    quote: str, places: Collection[str], of: tuple[str, int | None], rules: Iterable[ToolMemoryRule], *, checks: bool
) -> list[ToolMemoryRule]:
    """The rules that the offline reader made of the words of a note, until the user's next message.

    `of`: session and turn of the note's message. `checks`: the note has a condition; a reminder takes the place of no
    rule that has one.
    """
    return [
        rule
        for rule in rules
        if NOTED not in rule.tags
        and _is_of(rule, *of)
        and (checks or not rule.checked)
        and _takes(quote, places, rule.rule, rule.tool_name)
    ]


async def noted_already(draft: RuleDraft, records: RuleRecords, now: datetime) -> ToolMemoryRule | None:
    """The rule that was noted of the words from which a sentence is captured now, in the same message."""
    of = (draft.said.session, draft.said.turn)
    if not draft.said.session or draft.said.turn is None:
        return None
    raw = [each for each in await records.raw(sorted(_spaces(draft.tool_name))) if NOTED in each.text]
    noted = (each for each in read_stored(raw).active(now) if NOTED in each.tags and _is_of(each, *of))
    fit = (each for each in noted if each.checked or draft.when is None)
    return next((each for each in fit if _takes(each.rule, [each.tool_name], draft.rule, draft.tool_name)), None)


def are_of_one_demand(one: ToolMemoryRule, other: ToolMemoryRule) -> bool:
    """The same words, or some of them, of the same message."""
    mine, others = _words(one.rule), _words(other.rule)
    if mine == others:
        return True
    of = (other.said.session, other.said.turn) if other.said is not None else ("", None)
    return _is_of(one, *of) and bool(mine and others) and (mine in others or others in mine)


def _is_of(rule: ToolMemoryRule, session: str, turn: int | None) -> bool:
    return (
        bool(session)
        and turn is not None
        and rule.said is not None
        and (rule.said.session, rule.said.turn) == (session, turn)
    )


def _takes(quote: str, places: Iterable[str], sentence: str, tool: str) -> bool:
    """Where one of them says more that may be another demand, they say the same of the same tools alone."""
    one, other = _words(quote), _words(sentence)
    if not one or not other or (one not in other and other not in one):
        return False
    shorter, longer = sorted((quote.casefold(), sentence.casefold()), key=len)
    if not _MORE.search(_beyond(shorter, longer)):
        return True
    return bool(_spaces(tool) & {space for each in places for space in _spaces(each)})


def _beyond(shorter: str, longer: str) -> str:
    """What stands in the longer text around the words of the shorter one; all of it where they do not stand there."""
    sought, found = _PIECE.findall(shorter), list(_PIECE.finditer(longer))
    run, words = f" {' '.join(sought)} ", f" {' '.join(each[0] for each in found)} "
    at = words.find(run)
    if at < 0:
        return longer
    first = words[:at].count(" ")
    return f"{longer[: found[first].start()]} {longer[found[first + len(sought) - 1].end() :]}"


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _spaces(tool: str) -> set[str]:
    from toolmem.guard.tool_classes import scopes_of

    return {namespace_of(each) for each in (tool, *scopes_of(tool))}


# ---------------------------------------------------------------- the demand that a note names


async def put_instead(
    rules: RuleStore,
    old: Sequence[ToolMemoryRule],
    new: Sequence[ToolMemoryRule],
    *,
    sure: bool,
    as_far: bool,
    chinese: bool,
) -> list[str]:
    """What is told of demands that a note names as replaced. Those that it binds as much as are superseded; where it
    loosens one, that needs what a lift needs. `sure`: the user's own words take it back; `as_far`: the note holds
    wherever the old demand does. Raises StoreError.
    """
    told: list[str] = []
    for each in old:
        heirs = [rule for rule in new if namespace_of(rule.tool_name) == namespace_of(each.tool_name)]
        if as_far and heirs and takes_its_place(each, heirs[0], rules.clock.now()):
            await rules.instead_of([each.id]).withdraw(each, superseded_by=heirs[0].id)
            became, code = "taken", ""
        else:
            became, code = await _loosened(rules, each, [*heirs, *new][0], sure=sure)
        told.append(_TOLD[became][chinese].format(old=plain_line(each.rule, _SHOWN), id=each.id[:_ID], code=code))
    return list(dict.fromkeys(told))


async def _loosened(rules: RuleStore, old: ToolMemoryRule, new: ToolMemoryRule, *, sure: bool) -> tuple[str, str]:
    """What became of it, and the code that lifts it."""
    if not sure and not holds_agents(rules.store):
        return "stays", ""
    try:
        own = rules if sure else rules.with_evidence(None)
        await own.withdraw(old, superseded_by=new.id)
    except LiftProposed as error:
        return ("asked" if error.code else "stays"), error.code
    return "taken", ""
