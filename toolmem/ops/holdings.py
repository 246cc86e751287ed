"""What a workspace holds, counted by kind."""

from __future__ import annotations

from collections import Counter

from toolmem.llm.ledger import NAMESPACE as LEDGER
from toolmem.ports import MemoryStore, RawRecord
from toolmem.rules.effectiveness import NAMESPACE as EFFECTIVENESS
from toolmem.rules.general_memory import MEMORY_PREFIX
from toolmem.rules.identity import RULE_PREFIX
from toolmem.rules.rows import read_rows

KINDS = ("tool_memories", "rules", "notes", "ledger_records", "tool_statistics")


async def held(store: MemoryStore, workspace: str) -> dict[str, int]:
    """Tool memories, rules (whatever their status), notes of agents, records of the ledger, statistics of tools."""
    records = await store.list_raw(workspace, None)
    counted = Counter(_kind(record) for record in records)
    rules = [record for record in records if record.key.startswith(RULE_PREFIX)]
    counted["rules"] = len(read_rows(rules).rules)
    counted["tool_memories"] = len(await store.tool_names(workspace))
    return {kind: counted[kind] for kind in KINDS}


def _kind(record: RawRecord) -> str:
    if record.key.startswith(MEMORY_PREFIX):
        return "notes"
    return {LEDGER: "ledger_records", EFFECTIVENESS: "tool_statistics"}.get(record.namespace, "")
