"""A rule as a caller hands it over, checked; and what becomes of a stored rule that meets one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from toolmem.rules.identity import namespace_of, read_id, read_tags, read_text, read_tool_name, text_id
from toolmem.rules.rows import PRIORITIES, RANK, SOURCES, Priority, Source, merged_tags, read_choice
from toolmem.schema import ToolMemoryRule

REPEATED_FAILURE = "repeated-failure"  # the tag of rules on repeated failures


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """None, and "" for the id: left out."""

    tool_name: str
    rule: str
    priority: Priority | None = None
    source: Source | None = None
    tags: Iterable[str] | None = None
    id: str = ""

    def checked(self) -> RuleDraft:
        """Trimmed and complete. Raises RequestError that names the field."""
        return RuleDraft(
            tool_name=read_tool_name(self.tool_name),
            rule=read_text(self.rule),
            priority=read_choice(self.priority, "priority", PRIORITIES),
            source=read_choice(self.source, "source", SOURCES),
            tags=None if self.tags is None else read_tags(self.tags),
            id=read_id(self.id),
        )

    def as_new(self, rule_id: str, tool_name: str, now: datetime) -> ToolMemoryRule:
        return ToolMemoryRule(
            id=rule_id,
            tool_name=tool_name,
            rule=self.rule,
            priority=self.priority or "normal",
            source=self.source or "programmatic",
            tags=list(self.tags or ()),
            created_at=now,
            updated_at=now,
        )

    def over(self, stored: ToolMemoryRule, now: datetime, *, captured: bool) -> ToolMemoryRule:
        """The stored rule with what the draft says. A captured one raises the priority, and never lowers it."""
        update = {"rule": self.rule, "updated_at": max(now, stored.created_at)}
        raised = self.priority is not None and RANK[self.priority] < RANK[stored.priority]
        if self.priority is not None and (raised or not captured):
            update["priority"] = self.priority
        if self.source is not None and (raised or not captured):
            update["source"] = self.source
        if self.tags is not None:
            update["tags"] = merged_tags(stored.tags, self.tags) if captured else list(self.tags)
        return stored.model_copy(update=update)


def sentence_of(workspace: str, rule: RuleDraft | ToolMemoryRule) -> str:
    """By what capture knows a rule again that the user deleted.

    Of a rule on repeated failures that is its id, because its text counts them; of any other its tool and its text.
    """
    if rule.source == "post_turn" and REPEATED_FAILURE in (rule.tags or ()):
        return rule.id
    return text_id(workspace, namespace_of(rule.tool_name), rule.rule)
