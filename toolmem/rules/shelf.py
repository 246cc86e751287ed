"""The rules of one tool, as a writer finds them."""

from __future__ import annotations

from toolmem.rules.identity import RULE_PREFIX, same_text
from toolmem.rules.rows import Rows, StoredRule


class Shelf(Rows):
    """What one tool has when a write is decided."""

    def with_id(self, rule_id: str) -> StoredRule | None:
        return next((row for row in self.rules if row.rule.id == rule_id), None)

    def with_text(self, text: str) -> StoredRule | None:
        wanted = same_text(text)
        same = [row for row in self.rules if same_text(row.rule.rule) == wanted]
        return min(same, key=lambda row: (row.rule.created_at, row.rule.id), default=None)

    def spelling(self, tool_name: str) -> str:
        """As the first put wrote the tool's name."""
        first = min(self.rules, key=lambda row: (row.rule.created_at, row.rule.id), default=None)
        return tool_name if first is None else first.rule.tool_name

    def is_buried(self, sentence: str) -> bool:
        return any(grave.sentence == sentence for grave in self.graves)

    def free_version(self, rule_id: str) -> int:
        """At which a new rule of this id is written: over its grave, over a damaged record, or as the first."""
        versions = {grave.rule_id: grave.version for grave in self.graves}
        versions |= {each.key.removeprefix(RULE_PREFIX): each.version for each in self.damaged}
        return versions.get(rule_id, 0)

    def taken(self, sentence: str) -> set[str]:
        """Ids that a new rule of this sentence cannot get: of rules, of what is damaged, of other sentences' graves."""
        return {
            *(row.rule.id for row in self.rules),
            *(each.key.removeprefix(RULE_PREFIX) for each in self.damaged),
            *(grave.rule_id for grave in self.graves if grave.sentence not in ("", sentence)),
        }
