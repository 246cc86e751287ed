"""Who judges a call."""

from __future__ import annotations

from typing import Protocol

from toolmem.ports.metering import Purpose
from toolmem.schema import JudgeIdentity, ToolCallResult, ToolSchema, Verdict


class Judge(Protocol):
    """Judges one tool call."""

    @property
    def identity(self) -> JudgeIdentity: ...

    @property
    def paid(self) -> bool:
        """Its verdicts cost requests: each is cached as soon as it is read."""
        ...

    async def judge(self, call: ToolCallResult, schema: ToolSchema | None, purpose: Purpose) -> Verdict:
        """Raises ModelError (ReplyUnreadable among them)."""
        ...
