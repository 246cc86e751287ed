"""Who writes guidance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from toolmem.ports.metering import Purpose
from toolmem.schema import Guidance, ToolCallResult


class GuidanceWriter(Protocol):
    """Distils the judged calls of one tool into guidance."""

    @property
    def author(self) -> str:
        """ "backend/model"."""
        ...

    @property
    def prompt_version(self) -> str: ...

    async def write(
        self, tool_name: str, calls: Sequence[ToolCallResult], old: Guidance | None, purpose: Purpose
    ) -> Guidance:
        """`calls`: the window, oldest first, all judged. Raises ModelError."""
        ...

    @property
    def edit_version(self) -> str:
        """The prompt version of `edit`; `prompt_version` where both prompts come from one file."""
        ...

    async def edit(
        self, tool_name: str, window: Sequence[ToolCallResult], new: Sequence[int], old: Guidance, purpose: Purpose
    ) -> Guidance:
        """Change `old` by what the calls `new` (seqs in `window`) say; it sees no other call.

        The rest of `window` serves to count what a whole summary would have cost. Raises ReplyUnreadable where the
        changes cannot be read or made, else ModelError.
        """
        ...
