"""ToolMemoryCaptureHook: after each turn, what the user demanded and what kept failing become rules."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from toolmem.config.environment import capture_switch
from toolmem.errors import ConfigError
from toolmem.late import late_logger
from toolmem.late_dataclasses import dataclass, field, replace
from toolmem.light_models import Said, ToolMemoryRule
from toolmem.readers.plain_text import plain_line
from toolmem.readers.weight import aside
from toolmem.rules.capture.durations import without_duration
from toolmem.rules.capture.kept_aloud import IN_WORDS, SaidAloud, left_to_keep, refusal, said_aloud
from toolmem.rules.capture.repeated_failures import repeated_failures
from toolmem.rules.drafts import USER_EDICT, RuleDraft
from toolmem.rules.evidence import typed_here
from toolmem.rules.identity import UNSCOPED, same_text
from toolmem.rules.rule_checks import Check, checks_of
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.turns import Turn
from toolmem.rules.words_after import has_chinese

if TYPE_CHECKING:
    from toolmem.rules.capture.instructions import Instruction, InstructionsFound
    from toolmem.rules.capture.taking_back import RulesInForce, TakenBack
    from toolmem.sentences.taken_back import Lift

logger = late_logger("toolmem.rules")

# What the user is told of a session's demand.
KEPT_FOR_SESSION = (
    "{}: kept for this session; say 'always' to keep it",
    "{}：在本次会话内有效；回复“永远”即可长期保留",
)
_OFF = (
    "Not kept for good: what is said here is not captured as a rule",
    "没有长期记住：此处所说的话不会记为规则",
)
_HEARD = ("“{}:” was heard, but {}", "已听到“{}：”，但未记住：{}")
_NOTED = 500  # characters of a demand in a note
MAX_MESSAGE = 100_000  # characters of a message that is read for demands
Nouns = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class SessionRule:
    """A demand on this one task, object or moment: it binds for the rest of the session and is not stored."""

    tool_name: str
    rule: str


@dataclass(frozen=True, slots=True)
class SaidStep:
    """One sentence of a turn that demands something, or takes it back."""

    drafts: tuple[RuleDraft, ...] = ()
    session: tuple[SessionRule, ...] = ()
    lifts: tuple[Lift, ...] = ()  # one for each clause that takes something back

    @property
    def replaces(self) -> bool:
        """Whether what it demands stands in the place of what it takes back: "you may, but ask me first"."""
        return bool(self.drafts) and not any(lift.instead and not lift.bounds for lift in self.lifts)

    def is_of(self, quotes: Sequence[str]) -> bool:
        """Whether it demands what stands in one of these, or these in it."""
        own = {each.rule for each in self.drafts} | {each.rule for each in self.session}
        pairs = ((same_text(sentence), same_text(quote)) for sentence in own for quote in quotes)
        return any(sentence in quote or quote in sentence for sentence, quote in pairs)


@dataclass(frozen=True, slots=True)
class Extracted:
    """What one turn holds, before anything is stored."""

    said: tuple[SaidStep, ...] = ()  # in the order in which it was said
    failed: tuple[RuleDraft, ...] = ()  # rules on repeated failures
    too_long: int = 0  # sentences that demand something and are too long to be a rule; none is cut
    unread: str = ""  # why the message was not read at all; "" where it was
    keeps: bool = False  # the message says that what was demanded before holds for good: "always"

    @property
    def drafts(self) -> tuple[RuleDraft, ...]:
        return (*(draft for step in self.said for draft in step.drafts), *self.failed)

    @property
    def session(self) -> tuple[SessionRule, ...]:
        return tuple(dict.fromkeys(each for step in self.said for each in step.session))


@dataclass(slots=True)
class Captured:
    """What became of a turn."""

    rules: list[ToolMemoryRule] = field(default_factory=list)  # as stored
    stops: dict[str, str] = field(
        default_factory=dict
    )  # by the id of a rule: a call that it stopped on trial, in words
    session: list[SessionRule] = field(default_factory=list)
    too_long: int = 0
    deleted: list[RuleDraft] = field(default_factory=list)  # the user deleted these once: not kept again
    withdrawn: list[ToolMemoryRule] = field(default_factory=list)  # the turn took these back, as stored
    superseded: list[ToolMemoryRule] = field(default_factory=list)  # a rule of this turn took their place
    lifted: list[SessionRule] = field(default_factory=list)  # demands of the session that hold no longer
    told: list[str] = field(default_factory=list)  # what the user is told of rules that were or were not taken back
    failures: list[str] = field(default_factory=list)  # what the store could not keep, without the user's words
    unasked: str = ""  # where a model was to read the message: why none did, or why its reply counts for nothing

    @property
    def notes(self) -> list[str]:
        """What to tell the user: which demands hold for this session only, and which rules hold no longer."""
        return [*session_notes(each.rule for each in self.session), *self.told]

    def add(self, taken: TakenBack) -> None:
        """What a sentence of the turn took back."""
        self.withdrawn += taken.withdrawn
        self.superseded += taken.superseded
        self.told += taken.told


def session_notes(demands: Iterable[str]) -> list[str]:
    """Tell the user of each demand that it holds for this session only."""
    shown = (plain_line(demand, _NOTED) for demand in dict.fromkeys(demands))
    return [KEPT_FOR_SESSION[has_chinese(demand)].format(demand) for demand in shown]


def extract(turn: Turn, *, workspace: str = "default", nouns: Nouns | None = None) -> Extracted:
    """The rules that a turn gives, stored nowhere: instructions of the user's message, then repeated failures."""
    # The grammar of two languages takes a tenth of a second to load, which nothing else should wait for.
    from toolmem.rules.capture.instructions import find_instructions, says_always

    unread = _unread(turn.user_message)
    aloud = None if unread else said_aloud(turn.user_message)
    if aloud is not None:
        turn = replace(turn, user_message=aloud.spelled)
    message = "" if unread else turn.user_message
    read = turn
    if turn.by_class:
        from toolmem.rules.capture.class_rules import with_classes

        read = with_classes(turn)
    found = find_instructions(message, ran=read.ran, catalogue=read.tools, nouns=nouns)
    places = sorted({each.at for each in (*found.standing, *found.session)} | {lift.at for lift in found.lifts})
    said = [_step(found, at, turn, read) for at in places]
    if aloud is not None and not found.too_long:
        reminder, unread = _kept_anyway(aloud, said, turn)
        said += reminder
    return Extracted(
        tuple(said),
        tuple(repeated_failures(workspace, turn.tool_calls)),
        found.too_long,
        unread,
        says_always(message),
    )


def _kept_anyway(aloud: SaidAloud, said: Sequence[SaidStep], turn: Turn) -> tuple[list[SaidStep], str]:
    """A reminder of what the reader made nothing of, or why there is none."""
    if any(step.lifts for step in said):
        return [], ""
    kept = [draft.rule for step in said for draft in step.drafts] + [
        each.rule for step in said for each in step.session
    ]
    left = left_to_keep(aloud, kept)
    if not left and kept:
        return [], ""
    chinese = has_chinese(turn.user_message) or aloud.is_chinese
    if why := refusal(left, chinese=chinese):
        word = "记住" if aloud.is_chinese else aloud.word
        return [], "" if kept else _HEARD[chinese].format(word, why)
    return [SaidStep((_draft(UNSCOPED, left, turn, Check("remind", None, IN_WORDS)),))], ""


def _step(found: InstructionsFound, at: int, turn: Turn, read: Turn) -> SaidStep:
    standing = [each for each in found.standing if each.at == at]
    session = [each for each in found.session if each.at == at]
    return SaidStep(
        tuple(
            _draft(tool, each.rule, turn, check)
            for each in standing
            for tool, check in _checks(each, turn, read).items()
        ),
        tuple(SessionRule(tool, each.rule) for each in session for tool in each.bound),
        tuple(lift for lift in found.lifts if lift.at == at),
    )


def _checks(each: Instruction, turn: Turn, read: Turn) -> Mapping[str, Check]:
    """`read`: the turn as the sentence was read, perhaps for classes of tools."""
    if turn.by_class:
        from toolmem.rules.capture.class_rules import checks_by_name, without_files

        if named := checks_by_name(each.rule, turn):
            return named
    checks = checks_of(each.rule, each.bound, (*read.tools, *read.ran), guessed=each.guessed)
    return without_files(checks) if turn.by_class else checks


def _unread(message: str) -> str:
    if len(message) <= MAX_MESSAGE:
        return ""
    if has_chinese(message[:MAX_MESSAGE]):
        return f"消息有 {len(message):,} 个字符，超过 {MAX_MESSAGE:,} 就不会从中读取要求：请只发送您自己写的内容"
    return (
        f"user_message: {len(message):,} characters; over {MAX_MESSAGE:,} it is not read for demands, as nobody types "
        f"so much: send what the user wrote, without what was pasted or attached"
    )


def _draft(tool: str, rule: str, turn: Turn, check: Check) -> RuleDraft:
    return RuleDraft(
        tool,
        rule,
        priority="critical",
        source="user_explicit",
        tags=[USER_EDICT],
        said=Said(by="user", sentence=rule, session=turn.session_id, turn=turn.number),
        effect=check.effect,
        when=check.when,
        unchecked=check.unchecked,
        stops=check.stops,
    )


class ToolMemoryCaptureHook:
    """Call `after_turn` when a turn is over. It never raises for what a turn holds or a store does.

    `nouns`: words that mean a tool, beside the built-in table. `enabled` None: as the environment says
    (`TOOLMEM_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED`), otherwise on. Raises ConfigError where it says neither.
    `hears`: the user types the messages of the turns into this very process.
    """

    def __init__(
        self, rules: RuleStore, *, nouns: Nouns | None = None, enabled: bool | None = None, hears: bool = False
    ) -> None:
        self._rules = rules
        self._hears = hears
        self._nouns = nouns
        self.enabled = _switched_on() if enabled is None else enabled
        self._offered: tuple[str, tuple[SessionRule, ...]] = ("", ())  # the last session's demands: "always" keeps them

    def offer(self, session_id: str, demands: Iterable[SessionRule]) -> None:
        """What another process told the user of: an "always" in the next message of the session keeps it."""
        self._offered = (session_id, tuple(demands))

    async def after_turn(
        self, turn: Turn, *, holding: Iterable[SessionRule] = (), noted: Sequence[str] = ()
    ) -> Captured:
        """Keep what the turn gives; withdraw what it takes back.

        `holding`: the demands of the session so far, which a sentence may lift too. `noted`: what of the message a
        model has noted, and is kept: it stands in the place of what these words would give. A failure is logged and
        named in `failures`, never raised.
        """
        captured = Captured()
        if not self.enabled:
            message = turn.user_message[:MAX_MESSAGE]
            captured.told += [_OFF[has_chinese(message)]] if said_aloud(message) else []
            return captured
        if self._hears:
            evidence = typed_here(turn.user_message[:MAX_MESSAGE], turn.session_id)
            self._rules = self._rules.as_told_by(evidence)
        try:
            read = functools.partial(extract, turn, workspace=self._rules.workspace, nouns=self._nouns)
            found = await aside(turn.user_message, read)
        except Exception as error:
            captured.failures.append(f"the message could not be read: {type(error).__name__}")
            logger.error(
                "capture failed on a message of %d characters: %s", len(turn.user_message), type(error).__name__
            )
            return captured
        captured.too_long = found.too_long
        captured.failures += [found.unread] if found.unread else []
        if found.too_long:
            logger.warning("sentences with a demand, too long for a rule and not captured: %d", found.too_long)
        found = replace(found, said=tuple(step for step in found.said if not step.is_of(noted)))
        await self._take(found, turn, captured, self._kept_for_good(found, turn), tuple(holding))
        return captured

    async def _take(
        self,
        found: Extracted,
        turn: Turn,
        captured: Captured,
        further: Sequence[RuleDraft],
        holding: tuple[SessionRule, ...],
    ) -> None:
        from toolmem.rules.capture.taking_back import RulesInForce

        force = RulesInForce(self._rules, turn)
        try:
            if any(step.lifts for step in found.said):
                await force.load()
            else:  # a newer instruction replaces older ones of its tool alone
                await force.load(draft.tool_name for step in found.said for draft in step.drafts)
        except Exception as error:  # what is demanded is kept all the same
            captured.failures.append(f"the rules that hold could not be read: {type(error).__name__}")
            logger.error("the rules could not be read: nothing is taken back (%s)", type(error).__name__)
        for step in (*found.said, SaidStep((*found.failed, *further))):
            await self._take_step(step, force, captured, holding)
        gone = {rule.id for rule in (*captured.withdrawn, *captured.superseded)}
        captured.rules = [rule for rule in captured.rules if rule.id not in gone]
        captured.session = [each for each in captured.session if each not in captured.lifted]

    async def _take_step(
        self, step: SaidStep, force: RulesInForce, captured: Captured, holding: tuple[SessionRule, ...]
    ) -> None:
        """One sentence: what it demands is kept, then what it takes back is withdrawn.

        Where all that it says is that something need not be done, it takes back and demands nothing.
        """
        if step.lifts:
            from toolmem.rules.capture.taking_back import session_lifted

            lifted = session_lifted(step.lifts, (*holding, *captured.session))
            captured.lifted += [each for each in lifted if each not in captured.lifted]
        try:
            if step.lifts and not step.replaces:
                taken = await force.take_back(step.lifts)
                captured.add(taken)
                if taken.withdrawn or taken.proposed:
                    return
            kept = [rule for draft in step.drafts if (rule := await self._keep(draft, captured)) is not None]
            for rule in kept:
                captured.add(await force.keep(rule))
            if step.lifts and step.replaces:
                captured.add(await force.take_back(step.lifts, kept))
        except Exception as error:
            captured.failures.append(f"what was taken back could not be withdrawn: {type(error).__name__}")
            logger.error("a rule was not withdrawn: %s", type(error).__name__)
        captured.session += [each for each in step.session if each not in captured.session]

    def _kept_for_good(self, found: Extracted, turn: Turn) -> list[RuleDraft]:
        """What the user was told to say "always" to, where that is what the user says."""
        session, offered = self._offered
        if found.session:
            self._offered = (turn.session_id, found.session)
        kept = offered if found.keeps and session == turn.session_id else ()
        if not kept:
            return []
        from toolmem.rules.capture.class_rules import with_classes

        tools = (*(with_classes(turn) if turn.by_class else turn).tools, *turn.ran)
        bound: dict[str, list[str]] = {}
        for each in kept:
            bound.setdefault(without_duration(each.rule), []).append(each.tool_name)
        return [
            _draft(tool, rule, turn, check)
            for rule, names in bound.items()
            for tool, check in checks_of(rule, names, tools).items()
        ]

    async def _keep(self, draft: RuleDraft, captured: Captured) -> ToolMemoryRule | None:
        try:
            rule = await self._rules.capture_rule(draft)
        except Exception as error:
            captured.failures.append(f"a rule for {draft.tool_name!r} was not kept: {type(error).__name__}")
            logger.error("a rule of %d characters for a tool was not kept: %s", len(draft.rule), type(error).__name__)
            return None
        if rule is None:
            captured.deleted.append(draft)
        else:
            captured.rules.append(rule)
            captured.stops |= {rule.id: draft.stops} if draft.stops and rule.when == draft.when else {}
        return rule


async def withdrawn_by(rules: RuleStore, turn: Turn) -> Captured:
    """What a turn takes back among rules that it adds none to. Never raises for what a turn holds or a store does."""
    captured = Captured()
    try:
        steps = [step for step in extract(turn).said if step.lifts] if _switched_on() else []
        if steps:
            from toolmem.rules.capture.taking_back import RulesInForce

            force = RulesInForce(rules, turn)
            await force.load()
            for step in steps:
                lifts = [replace(lift, limited=False) for lift in step.lifts] if step.replaces else step.lifts
                captured.add(await force.take_back(lifts))
    except Exception as error:
        captured.failures.append(f"what was taken back could not be withdrawn: {type(error).__name__}")
        logger.error("a rule was not withdrawn: %s", type(error).__name__)
    return captured


def _switched_on() -> bool:
    try:
        switch = capture_switch(os.environ)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return True if switch is None else switch[0]
