"""What the user deleted: rules that capture must not bring back from the same sentence.

A tombstone holds no text, only the id that the sentence would get. An explicit put of the rule clears it.
"""

from __future__ import annotations

from toolmem.ports import MemoryStore
from toolmem.rules.identity import namespace_of, text_id
from toolmem.schema import ToolMemoryRule

NAMESPACE = "tool_rule_tombstones"
REPEATED_FAILURE = "repeated-failure"  # the tag of rules on repeated failures


def tombstone_key(workspace: str, rule: ToolMemoryRule) -> str:
    """Of a rule on repeated failures its id, because its text counts them; of any other the tool and the text."""
    if rule.source == "post_turn" and REPEATED_FAILURE in rule.tags:
        return rule.id
    return text_id(workspace, namespace_of(rule.tool_name), rule.rule)


async def bury(store: MemoryStore, workspace: str, rule: ToolMemoryRule) -> None:
    tool = rule.tool_name.strip().lower()
    await store.put(workspace, NAMESPACE, tombstone_key(workspace, rule), {"tool": tool, "rule_id": rule.id})


async def is_buried(store: MemoryStore, workspace: str, key: str) -> bool:
    return await store.get(workspace, NAMESPACE, key) is not None


async def dig_up(store: MemoryStore, workspace: str, key: str) -> None:
    """Nothing happens where there is no tombstone: reading costs less than a write."""
    if await is_buried(store, workspace, key):
        await store.delete(workspace, NAMESPACE, key)
