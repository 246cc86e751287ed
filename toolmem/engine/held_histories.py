"""The history of a conversation as its record holds it, read only where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolmem.guard.histories import ConversationHistory


class HeldHistory:
    """What `RecordChange` changes when calls have ended."""

    def __init__(self, of: ConversationHistory | None = None) -> None:
        self._of = of

    def end(self, decision: str, tool_name: str, arguments: Any, *, failed: bool | None) -> None:
        if self._of is not None:
            from toolmem.engine.call_histories import ended

            ended(self._of, decision, tool_name, arguments, failed=failed)

    def as_json(self) -> dict[str, Any]:
        return {} if self._of is None else self._of.as_json()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> HeldHistory:
        """Raises KeyError, TypeError or ValueError where it is none."""
        from toolmem.guard.histories import ConversationHistory

        return cls(ConversationHistory.from_json(value))
