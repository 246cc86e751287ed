"""Records that a store keeps for itself, whatever the backend, and which records are rules.

Namespaces that begin with a dot are not listed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta

from toolmem.models.decisions import Decision
from toolmem.models.records import Record
from toolmem.store.storable import decoder

VERDICTS = ".verdicts"  # that were paid for
DECISIONS = ".decisions"
DECISIONS_READ = 2_000  # the newest: a filter looks at no others
GUIDANCE = ".guidance"  # the documents of tools
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(micros: int) -> datetime:
    """The moment so many microseconds after 1970, UTC."""
    return _EPOCH + micros * _MICROSECOND


def is_rule(namespace: str, key: str) -> bool:
    """Whether a record is a rule on a tool, for good or for one session."""
    return namespace.startswith(("tool-", ".session-rules")) and key.startswith("rule/")


def decision_key(decision: Decision) -> str:
    """Sorted by time."""
    return f"{micros(decision.time):020d}-{decision.id}"


def fitting_decisions(
    newest: Iterable[Record],
    ids: Collection[str] | None,
    conversation: str | None,
    tool: str | None,
    limit: int,
) -> list[Decision]:
    """Of the newest decisions, oldest first, the last that fit."""
    read = decoder(Decision)
    found = [
        each
        for each in (read(record.value) for record in newest)
        if (ids is None or each.id in ids)
        and conversation in (None, each.conversation_id)
        and tool in (None, each.tool_name)
    ]
    return found[-limit:] if limit > 0 else []
