"""The memory behind a proxy: it decides on calls, stores them, and describes tools.

Failures of the memory are logged and fail no call. `on_error` decides on calls that cannot be
checked.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from toolmem.config.sections import WORKSPACE
from toolmem.errors import RequestError
from toolmem.guard import Guard
from toolmem.guard.decision import fallback_decision
from toolmem.guard.stores import Stores
from toolmem.models.calls import ToolCallResult
from toolmem.models.decisions import Decision
from toolmem.models.tools import ToolSchema
from toolmem.server.proxy.call import CallOutcome, ToolCall

Result = TypeVar("Result")

log = logging.getLogger("toolmem.proxy")
GUIDANCE_TOKENS = 200  # of one tool, in its description
MAX_TOOLS = 10_000  # of a server
LOG_INTERVAL = 60.0  # seconds between two logs of the same failure


class ProxyMemory:
    """Decides on calls and stores them. Opens the stores when they are first needed.

    `name`: of the server, kept with each call. `shadow`: only record; stop no call, add no text.
    """

    def __init__(
        self,
        open_stores: Callable[[], Stores],
        *,
        name: str = "mcp",
        shadow: bool = False,
        on_error: Literal["open", "closed"] = "open",
    ) -> None:
        self.name = name
        self.shadow = shadow
        self.on_error = on_error
        self.conversation = f"mcp-{uuid.uuid4().hex}"
        self.folder = os.getcwd()
        self._open_stores = open_stores
        self._lock = threading.Lock()
        self._stores: Stores | None = None
        self._guards: list[Guard] = []
        self._asking_guards: list[Guard] = []
        self._schemas: dict[str, ToolSchema] = {}
        self.descriptions: dict[str, str] = {}  # by tool, until the server's list changes
        self._logged: dict[str, float] = {}  # by failure: seconds of a monotonic clock

    @property
    def stores(self) -> Stores:
        """The stores, opened at the first use. After a StoreError, the next use tries again."""
        with self._lock:
            if self._stores is None:
                stores = self._open_stores()
                self._guards = stores.guards(self.on_error, shadow=self.shadow)
                self._asking_guards = [] if self.shadow else stores.asking_guards()
                stores.mark_guarded(f"proxy of {self.name}")
                stores.keep_copies()
                for line in filter(None, (stores.untrusted, *stores.moved, *stores.lost)):
                    log.warning("%s", line)
                self._stores = stores
            return self._stores

    def _all_guards(self) -> list[Guard]:
        return [*self._guards, *self._asking_guards]

    def close(self) -> None:
        """Close the stores, if they were opened."""
        if self._stores is not None:
            self._stores.close()

    def decide(self, call: ToolCall) -> list[Decision]:
        """Decide on a call, once for each store. Never raises: `on_error` decides instead."""

        def work() -> list[Decision]:
            assert self.stores  # opens them
            return [
                guard.before(
                    call.tool,
                    call.arguments,
                    conversation_id=self.conversation,
                    schema=self._schemas.get(call.tool),
                    folder=self.folder,
                    force=None,
                )
                for guard in self._all_guards()
            ]

        fallback = fallback_decision(call.tool, self.conversation, datetime.now(UTC), self.on_error)
        return self._try("calls cannot be checked", work, [fallback])

    def keep(self, call: ToolCall, outcome: CallOutcome) -> str:
        """Store an ended call. Returns advice on its error, or ""."""
        about = {"conversation_id": self.conversation, "server": self.name}
        record = ToolCallResult(
            tool_name=call.tool,
            create_time=datetime.now(UTC),
            input=call.arguments if isinstance(call.arguments, dict | list | str) else {},
            output=outcome.output,
            success=outcome.success,
            time_cost=time.perf_counter() - call.began,
            id=call.record_id,
            metadata={**about, "ending": outcome.ending},
        )

        def advise() -> str:
            from toolmem.guard.shown_guidance import permitted_lines
            from toolmem.guidance.advice import BUDGET, advice_lines, known_of
            from toolmem.guidance.shown import within

            known = known_of(self.stores.main, WORKSPACE, call.tool)
            found = advice_lines(known, record)
            guards = self._all_guards()
            place = self.conversation, self.folder
            lines = permitted_lines(found, call.tool, guards, "", *place)
            return "\n".join(line.text for line in within(lines, BUDGET))

        def store() -> None:
            self.stores.keep_call(record, call.arguments, self._guards, call.decisions)

        advice = ""
        if record.failed and not self.shadow:  # before `store`, which adds this very call
            advice = self._try("there is no advice on a failure", advise, "")
        self._try("a call cannot be kept", store, None)
        return advice

    def describe(self, tools: Sequence[Any]) -> Mapping[str, str]:
        """Return rules and guidance by tool. Hosts cache them: they stay until the list changes."""
        from toolmem.formats.records import read_schemas

        new = []
        for tool in tools[:MAX_TOOLS]:
            try:
                (schema,) = read_schemas([tool]).values()
            except RequestError:  # it passes unchanged
                continue
            self._schemas[schema.name] = schema
            if schema.name not in self.descriptions:
                new.append(schema)
        if new and not self.shadow:
            self._try("nothing is added to descriptions", lambda: self._describe(new), None)
        return self.descriptions

    def _describe(self, tools: Sequence[ToolSchema]) -> None:
        from toolmem.guard.shown_guidance import permitted_records
        from toolmem.guidance.shown import guidance_section
        from toolmem.rules.identity import folded_name
        from toolmem.rules.prompt import choose, render_rules
        from toolmem.view.tool_classes import classes_of

        listing = self.stores.listing()
        records = self.stores.main.records(WORKSPACE, [tool.name for tool in tools])
        guards = self._all_guards()
        permitted = permitted_records(records, guards, "", self.conversation, self.folder)
        by_name = {record.tool_name: record for record in permitted}
        for tool in tools:
            classes = classes_of(tool.name, {}, tool.parameters.get("properties"))
            pinned = choose(listing, [tool.name])
            scopes = {folded_name(name) for name in (tool.name, *classes)}
            own = [r for r in pinned.rules if folded_name(r.tool_name) in scopes]
            known = [by_name[tool.name]] if tool.name in by_name else []
            parts = (render_rules(own), guidance_section(known, GUIDANCE_TOKENS))
            self.descriptions[tool.name] = "\n\n".join(filter(None, parts))

    def _try(self, failure: str, work: Callable[[], Result], otherwise: Result) -> Result:
        """Do `work`; if it fails, return `otherwise`, and log the failure once a minute."""
        try:
            return work()
        except Exception as error:
            now = time.monotonic()
            if now - self._logged.get(failure, -LOG_INTERVAL) >= LOG_INTERVAL:
                self._logged[failure] = now
                log.warning("%s (%s)", failure, f"{type(error).__name__}: {error}"[:500])
            return otherwise
