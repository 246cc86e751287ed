"""What a session tells its agent of one call: before it is made, or when it has just failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolmem.operations.call_advice import ToolCallAdvice, advise_tool_call

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp


class SessionAdvice:
    """The part of a session that advises."""

    app: ToolMemApp
    workspace_id: str
    session_id: str
    _ignores_store: bool

    async def advise(
        self, tool_name: str, arguments: Mapping[str, object] | str, error: str | None = None
    ) -> ToolCallAdvice:
        """Lines on a call that your own code runs; `error`: what it has just answered, where it failed.

        `str` of the answer goes below the tool's result, or is "" where nothing is known. Raises RequestError,
        StoreError.
        """
        if self._ignores_store:
            return ToolCallAdvice()
        asked = {"tool_name": tool_name, "input": arguments, "conversation_id": self.session_id, "error": error}
        given = {name: value for name, value in asked.items() if value is not None}
        return await advise_tool_call.run(self.app.services, {**given, "workspace_id": self.workspace_id})
