"""A note of a demand becomes rules: verified, kept under each of its tools, told to the user in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from datetime import timedelta
from typing import Any, Literal

from toolmem.demands.note import DemandNote, ExampleCall, read_note
from toolmem.demands.quotes import without_found_lines
from toolmem.demands.verification import NotesHeld, Verified, verify
from toolmem.demands.width import Call
from toolmem.errors import LiftProposed, NoteRefused, RequestError
from toolmem.guard.alternatives import as_written
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, field
from toolmem.light_models import Said, Source, Speaker, ToolMemoryRule, ToolSchema
from toolmem.readers.plain_text import plain_line
from toolmem.rules.capture.pasted import MASK, mask_pasted
from toolmem.rules.drafts import USER_EDICT, RuleDraft
from toolmem.rules.identity import UNSCOPED
from toolmem.rules.kept_rules import location_of
from toolmem.rules.replaced_demands import NOTED as NOTED
from toolmem.rules.replaced_demands import put_instead, read_offline
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.stored_rules import THIS_SESSION

Earlier = Sequence[tuple["RuleStore", Sequence[ToolMemoryRule]]]  # rules by the store that has them
Outcome = Literal["kept", "proposed", "refused", "asked"]  # asked: the user is, whether a demand is lifted
SESSION_ENDS = timedelta(days=1)  # after which a demand of a session holds no longer, wherever the session is
_SHOWN = 160  # characters of a quote or a call in the line that the user is told
_CJK = late_pattern(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class DemandContext:
    """What the road that a note came by knows."""

    heard: Sequence[str] | None  # what the user typed in this conversation; None: nothing here hears the user
    tools: Sequence[str | ToolSchema] = ()
    session: str = ""
    turn: int | None = None
    noted_by: str = ""  # the agent or model
    speaker: Speaker = "user"  # who the quote is of, where it was heard
    kept: Sequence[Call] = ()  # calls of its tools that worked, the newest first
    beside: Sequence[str] = ()  # what the user typed that an agent's recording alone tells
    fresh: Sequence[str] | None = None  # of what was heard, what may take a demand back by itself; None: all
    hears_words: bool = False  # a message such as `lift k7qm` is followed there
    everywhere: RuleStore | None = None  # the user's own store, whose rules bind in all projects; None: none is known


@dataclass(slots=True)
class NotedDemand:
    """What became of a note, or of a demand that was taken back (kept: it is lifted)."""

    outcome: Outcome
    rules: list[ToolMemoryRule] = field(default_factory=list)  # as stored, one for each tool or class
    told: str = ""  # for the user, one line
    why: str = ""  # it only waits, or does less than the note says
    problems: list[tuple[str, str]] = field(default_factory=list)  # place in the note, what to change

    def __str__(self) -> str:
        return self.told or "; ".join(f"{place}: {problem}" for place, problem in self.problems)


async def note_demand(rules: RuleStore, given: Any, context: DemandContext) -> NotedDemand:
    """Verify a note and keep it. Raises nothing for what a note holds; StoreError where it cannot be kept."""
    now = rules.clock.now().astimezone()
    try:
        note = read_note(given)
        if note.lasting == "session" and not context.session:
            raise NoteRefused([("lasting", "no session is known here: name its conversation_id, or say always")])
        known = [(each, (await each.all_rules())[0]) for each in stores_of(rules, context)]
        earlier = _replaced(note, known)
        into = known[-1 if _is_everywhere(note) else 0][0]
        held = _held([rule for _, of_store in known for rule in of_store], context.session)
        verified = verify(
            note,
            context.heard,
            context.tools,
            now=now,
            own_words=own_words,
            kept=context.kept,
            held=held,
            beside=context.beside,
        )
    except NoteRefused as error:
        return NotedDemand("refused", problems=error.problems)
    except RequestError as error:
        return NotedDemand("refused", problems=[(error.field or "note", str(error))])
    return await _kept(known[0], into, verified, context, earlier)


def own_words(message: str) -> str:
    """A message with what its author only shows masked, character by character."""
    return without_found_lines(mask_pasted(message), MASK)


def _is_everywhere(note: DemandNote) -> bool:
    """A demand of this session stays in it, wherever it was said to hold."""
    return note.where == "everywhere" and note.lasting == "always"


def stores_of(rules: RuleStore, context: DemandContext) -> list[RuleStore]:
    """The one at hand, then the user's own where that is another."""
    own = context.everywhere
    if own is None or own.store is rules.store or location_of(own.store) == (location_of(rules.store) or None):
        return [_named(rules, context)]
    return [_named(rules, context), _named(own, context)]


def _named(rules: RuleStore, context: DemandContext) -> RuleStore:
    """The same rules: what the note asks of the user is asked in the agent's name."""
    named = copy(rules)
    named.agent = context.noted_by
    return named


def _replaced(note: DemandNote, known: Earlier) -> Earlier:
    """The demand that a note names, in each store that has it. Raises NoteRefused."""
    if not note.replaces:
        return []
    from toolmem.rules.lifted_demands import rule_meant  # which needs a DemandContext

    meant = rule_meant(note.replaces, [rule for _, of_store in known for rule in of_store], "replaces")
    return [(own, [rule for rule in of_store if rule in meant]) for own, of_store in known]


def _held(known: Sequence[ToolMemoryRule], session: str) -> NotesHeld:
    noted = [rule for rule in known if NOTED in rule.tags]
    quotes = {(rule.rule, rule.said.session if rule.said else "") for rule in noted}
    return NotesHeld(sum(of == session for _, of in quotes if session), len(quotes))


async def _kept(
    here: tuple[RuleStore, Sequence[ToolMemoryRule]],
    into: RuleStore,
    verified: Verified,
    context: DemandContext,
    earlier: Earlier,
) -> NotedDemand:
    """`here`: the rules at hand, and those that hold; `into`: the store that the note belongs into."""
    found = NotedDemand("kept" if verified.status == "active" else "proposed", why=verified.why)
    offline = _read_offline(here[1], verified, context) if found.outcome == "kept" else []
    replaced = [rule.id for rule in offline]
    try:
        for place in verified.places or (UNSCOPED,):
            found.rules.append(await _put(into.instead_of(replaced), place, verified, context))
    except LiftProposed as error:  # it would let a rule of the same words bind less
        return NotedDemand("proposed", found.rules, why=str(error))
    for rule in offline if into is not here[0] else _without(offline, found.rules):
        await here[0].instead_of(replaced).withdraw(rule, superseded_by=found.rules[0].id)
    found.told = " ".join([told_line(verified), *(await _told_beside(verified, context, found, earlier, into))])
    return found


def _read_offline(known: Sequence[ToolMemoryRule], verified: Verified, context: DemandContext) -> list[ToolMemoryRule]:
    note, message = verified.note, (context.session, context.turn)
    places = verified.places or (UNSCOPED,)
    return read_offline(note.quote, places, message, known, checks=note.conditions is not None)


async def _told_beside(
    verified: Verified, context: DemandContext, found: NotedDemand, earlier: Earlier, into: RuleStore
) -> list[str]:
    """Of a note that was kept: what it did not do, and what became of the demand that it names."""
    chinese = bool(_CJK.search(verified.note.quote))
    told: list[str] = []
    if _is_everywhere(verified.note) and context.everywhere is None:
        found.why = "; ".join(filter(None, (found.why, _ONLY_HERE[False])))
        told.append(_ONLY_HERE[chinese])
    if found.outcome == "kept":
        from toolmem.rules.lifted_demands import surely

        own = context.everywhere
        is_own = own is not None and into.store is own.store
        for rules, old in earlier:
            sure = rules.speaker != "agent" and surely(rules, old, context)
            as_far = into is rules or is_own  # what holds here alone replaces nothing everywhere
            left = _without(old, found.rules) if into is rules else old
            told += await put_instead(rules, left, found.rules, sure=sure, as_far=as_far, chinese=chinese)
    return told


def _without(old: Sequence[ToolMemoryRule], new: Sequence[ToolMemoryRule]) -> list[ToolMemoryRule]:
    ids = {rule.id for rule in new}
    return [rule for rule in old if rule.id not in ids]


async def _put(rules: RuleStore, place: str, verified: Verified, context: DemandContext) -> ToolMemoryRule:
    note = verified.note
    active = verified.status == "active"
    source: Source = "user_explicit" if active else "programmatic"
    here = note.lasting == "session"
    ends = [each for each in (note.until, rules.clock.now() + SESSION_ENDS if here else None) if each is not None]
    said = Said(
        by=context.speaker if active else "agent" if rules.speaker == "agent" else "program",
        sentence=note.quote,
        session=context.session,
        turn=context.turn,
        time=rules.clock.now(),
        noted_by=plain_line(context.noted_by, 80),
        understood=plain_line(note.rule, 500),
    )
    draft = RuleDraft(
        place,
        note.quote,
        priority="critical",
        source=source,
        tags=[NOTED, *([USER_EDICT] if active else []), *([THIS_SESSION] if here else [])],
        status="active" if active else "proposed",
        said=said,
        effect=note.effect,
        when=_condition(note),
        unchecked="" if note.conditions else "a reminder: no argument of a call tells it",
        expires_at=min(ends, default=None),
    )
    return await rules.put_noted(draft)


def _condition(note: DemandNote) -> dict[str, Any] | None:
    if note.conditions is None:
        return None
    return {**as_written(note.conditions), "stops": _written(note.stops), "passes": _written(note.passes)}


def _written(calls: Sequence[ExampleCall]) -> list[dict[str, Any]]:
    return [{"tool": each.tool, "arguments": dict(each.arguments)} for each in calls]


# ---------------------------------------------------------------- what the user is told


def told_line(verified: Verified) -> str:
    """One line, in the language of the quote, with a call that is stopped, one that is not, and the way back."""
    note = verified.note
    chinese = bool(_CJK.search(note.quote))
    words = _WORDS[chinese]
    quote = plain_line(note.quote, _SHOWN)
    if verified.status == "proposed":
        why = next((said for start, said in _WHY_WAITS.items() if verified.why.startswith(start)), verified.why)
        return words["proposed"].format(quote=quote, why=why if chinese else verified.why)
    told = words["kept_here" if note.lasting == "session" else "kept"].format(quote=quote)
    if note.effect != "remind":
        verb = words[note.effect]
        told += verb.format(stops=_shown(note.stops[0]), passes=_shown(note.passes[0]))
        if verified.would_stop[0]:
            stopped, of = verified.would_stop
            told += words["replayed"].format(stopped=stopped, of=of, example=plain_line(verified.for_example, _SHOWN))
    else:
        told += words["remind"]
    shortened = verified.why and note.lasting == "session"
    return told + words["longer" if shortened else "back"]


def _shown(call: ExampleCall) -> str:
    command = call.arguments.get("command")
    text = command if isinstance(command, str) else f"{call.tool} {_values(call.arguments)}"
    return plain_line(text, _SHOWN)


def _values(arguments: Mapping[str, Any]) -> str:
    return " ".join(str(each) for each in arguments.values() if isinstance(each, str | int | float))


_ONLY_HERE = {
    False: "It holds here alone, not everywhere: no store of the user's own is known here",
    True: "仅在此处有效，并非所有项目：此处没有您自己的存储",
}
_WHY_WAITS = {  # as the checks begin to say it
    "nothing here heard": "此处没有听到您这样说",
    "it stands in what the user pasted": "这句话出现在您粘贴或引用的内容中",
    "there are more than": "记下的要求已达上限",
}
_WORDS: Mapping[bool, Mapping[str, str]] = {
    False: {
        "kept": "Kept: “{quote}”",
        "kept_here": "Kept for this session: “{quote}”",
        "proposed": "Heard, and waits for you: “{quote}” ({why}); `toolmem rules review` shows it",
        "deny": " (stops `{stops}`, not `{passes}`)",
        "ask": " (asks you before `{stops}`, not before `{passes}`)",
        "remind": " (a reminder: no call is checked against it)",
        "replayed": "; it would have stopped {stopped} of your last {of} calls, for example `{example}`",
        "back": ". *undo*, or *just this time*",
        "longer": ". *always* keeps it for good, *undo* lifts it",
    },
    True: {
        "kept": "已记住：“{quote}”",
        "kept_here": "本次会话内有效：“{quote}”",
        "proposed": "已听到，等待您确认：“{quote}”（{why}）；`toolmem rules review` 可查看",
        "deny": "（会拦下 `{stops}`，不拦 `{passes}`）",
        "ask": "（执行 `{stops}` 前会先问您，`{passes}` 不问）",
        "remind": "（仅作提醒：不检查任何调用）",
        "replayed": "；您最近 {of} 次调用中有 {stopped} 次会被拦下，例如 `{example}`",
        "back": "。*撤销*，或 *仅这次*",
        "longer": "。*永远* 可长期保留，*撤销* 可取消",
    },
}
