"""The calls of a session are judged beside it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolmem.errors import ToolMemError
from toolmem.models import ToolSchema
from toolmem.rules.turns import Tools

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp

log = logging.getLogger("toolmem.session")


class SessionJudging:
    """Which tools have calls that wait, and the task that has them judged."""

    def __init__(self, app: ToolMemApp, workspace_id: str, session_id: str, tools: Tools) -> None:
        self._app = app
        self._workspace = workspace_id
        self._session = session_id
        self._tools = tools
        self._waiting: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self.errors: list[str] = []

    def add(self, tools: Iterable[str]) -> None:
        """Tools with calls that were stored; begins in the background, unless that is deferred."""
        self._waiting |= set(tools)
        if self._app.settings.session.judging == "background" and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._judge(), name=f"toolmem judging {self._session}")

    async def finish(self) -> None:
        """Until nothing waits."""
        if self._task is not None:
            await asyncio.wait([self._task])
        await self._judge()

    async def _judge(self) -> None:
        """Judge what waits, until nothing does. What fails stays unjudged and is taken up by the next run."""
        while self._waiting:
            tools, self._waiting = sorted(self._waiting), set()
            schemas = [tool for tool in self._tools if isinstance(tool, ToolSchema)]
            try:
                response = await self._app.run_flow(
                    "retry_evaluations", workspace_id=self._workspace, tool_names=tools, tools=schemas
                )
            except ToolMemError as error:
                self.errors.append(str(error))
                log.error("calls stay unjudged (tools: %d): %s", len(tools), error)
                return
            self.errors += [failure["error"] for failure in response.metadata["evaluation"]["failures"]]
