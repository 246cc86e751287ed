"""ToolMemoryCaptureHook: after each turn, what the user demanded and what kept failing become rules."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolmem.config.environment import capture_switch
from toolmem.errors import ConfigError
from toolmem.rules.drafts import RuleDraft
from toolmem.rules.failures import repeated_failures
from toolmem.rules.rule_store import ToolMemoryStore
from toolmem.rules.turns import Turn
from toolmem.schema import ToolMemoryRule

logger = logging.getLogger("toolmem.rules")

USER_EDICT = "user-edict"  # the tag of rules that a user spoke
Nouns = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class SessionRule:
    """A demand on this one task, object or moment: it binds for the rest of the session and is not stored."""

    tool_name: str
    rule: str


@dataclass(frozen=True, slots=True)
class Heard:
    """What one turn holds, before anything is stored."""

    drafts: tuple[RuleDraft, ...] = ()
    session: tuple[SessionRule, ...] = ()
    too_long: int = 0  # sentences that demand something and are too long to be a rule; none is cut


@dataclass(slots=True)
class Captured:
    """What became of a turn."""

    rules: list[ToolMemoryRule] = field(default_factory=list)  # as stored
    session: list[SessionRule] = field(default_factory=list)
    too_long: int = 0
    deleted: list[RuleDraft] = field(default_factory=list)  # the user deleted these once: not kept again
    failures: list[str] = field(default_factory=list)  # what the store could not keep, without the user's words


def hear(turn: Turn, *, workspace: str = "default", nouns: Nouns | None = None) -> Heard:
    """The rules that a turn gives, stored nowhere: decrees of the user's message, then repeated failures."""
    # The grammar of two languages takes a tenth of a second to load, which nothing else should wait for.
    from toolmem.rules.decrees import find_decrees

    found = find_decrees(turn.user_message, ran=turn.ran, catalogue=turn.tools, nouns=nouns)
    decrees = [
        RuleDraft(tool, decree.rule, priority="critical", source="user_explicit", tags=[USER_EDICT])
        for decree in found.standing
        for tool in decree.tool_names
    ]
    session = [SessionRule(tool, decree.rule) for decree in found.session for tool in decree.tool_names]
    return Heard((*decrees, *repeated_failures(workspace, turn.tool_calls)), tuple(session), found.too_long)


class ToolMemoryCaptureHook:
    """Call `after_turn` when a turn is over. It never raises for what a turn holds or a store does.

    `nouns`: words that mean a tool, beside the built-in table. `enabled` None: as the environment says
    (`TOOLMEM_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED`), otherwise on. Raises ConfigError where it says neither.
    """

    def __init__(self, rules: ToolMemoryStore, *, nouns: Nouns | None = None, enabled: bool | None = None) -> None:
        self._rules = rules
        self._nouns = nouns
        self.enabled = _switched_on() if enabled is None else enabled

    async def after_turn(self, turn: Turn) -> Captured:
        """Keep what the turn gives. A failure is logged and named in `failures`, never raised."""
        captured = Captured()
        if not self.enabled:
            return captured
        try:
            heard = hear(turn, workspace=self._rules.workspace, nouns=self._nouns)
        except Exception as error:
            captured.failures.append(f"the message could not be read: {type(error).__name__}")
            logger.error(
                "capture failed on a message of %d characters: %s", len(turn.user_message), type(error).__name__
            )
            return captured
        captured.session.extend(heard.session)
        captured.too_long = heard.too_long
        if heard.too_long:
            logger.warning("%d sentences with a demand are too long for a rule and were not captured", heard.too_long)
        for draft in heard.drafts:
            await self._keep(draft, captured)
        return captured

    async def _keep(self, draft: RuleDraft, captured: Captured) -> None:
        try:
            rule = await self._rules.capture_rule(draft)
        except Exception as error:
            captured.failures.append(f"a rule for {draft.tool_name!r} was not kept: {type(error).__name__}")
            logger.error("a rule of %d characters for a tool was not kept: %s", len(draft.rule), type(error).__name__)
            return
        if rule is None:
            captured.deleted.append(draft)
        else:
            captured.rules.append(rule)


def _switched_on() -> bool:
    try:
        switch = capture_switch(os.environ)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return True if switch is None else switch[0]
