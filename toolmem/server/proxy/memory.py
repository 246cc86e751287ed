"""The memory behind a proxy: it decides on calls, keeps how they ended, and tells what is known.

Nothing here fails a call: what the memory cannot do is logged, and `guard.on_error` says what
becomes of calls that nobody can decide on.
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

from toolmem.errors import RequestError
from toolmem.guard import Guard
from toolmem.guard.decision import fallback_decision
from toolmem.guard.stores import WORKSPACE, Stores
from toolmem.models.calls import ToolCallResult
from toolmem.models.decisions import Decision
from toolmem.models.tools import ToolSchema
from toolmem.server.proxy.call import CallOutcome, ToolCall

Done = TypeVar("Done")

log = logging.getLogger("toolmem.proxy")
KEPT_CALLS = 100  # of a tool
GUIDANCE_TOKENS = 200  # of one tool, in its description
MAX_TOOLS = 10_000  # of a server
TOLD_EVERY = 60.0  # seconds between two logs of one trouble


class ProxyMemory:
    """Opened when it is first needed, and tried again later where that failed.

    `name`: of the server, in the records. `shadow`: decide and record, and change nothing.
    """

    def __init__(
        self,
        opened: Callable[[], Stores],
        *,
        name: str = "mcp",
        shadow: bool = False,
        on_error: Literal["open", "closed"] = "open",
    ) -> None:
        self.name, self.shadow, self.on_error = name, shadow, on_error
        self.conversation = f"mcp-{uuid.uuid4().hex}"
        self.folder = os.getcwd()
        self._opened = opened
        self._lock = threading.Lock()
        self._stores: Stores | None = None
        self._guards: list[Guard] = []
        self._schemas: dict[str, ToolSchema] = {}
        self.texts: dict[str, str] = {}  # what `known_of` told, until the server's list changes
        self._told: dict[str, float] = {}

    @property
    def stores(self) -> Stores:
        """Raises StoreError."""
        with self._lock:
            if self._stores is None:
                stores = self._opened()
                self._guards = stores.guards(self.on_error, shadow=self.shadow)
                stores.mark_guarded(f"proxy of {self.name}")
                if stores.untrusted:
                    log.warning("%s; its rules do not bind", stores.untrusted)
                self._stores = stores
            return self._stores

    def close(self) -> None:
        """Close what was opened."""
        if self._stores is not None:
            self._stores.close()

    # ------------------------------------------------------------ around a call

    def decide(self, call: ToolCall) -> list[Decision]:
        """What each store says of a call."""

        def work() -> list[Decision]:
            assert self.stores
            return [
                guard.before(
                    call.tool,
                    call.arguments,
                    conversation=self.conversation,
                    schema=self._schemas.get(call.tool),
                    folder=self.folder,
                    force=None,
                )
                for guard in self._guards
            ]

        nobody = fallback_decision(call.tool, self.conversation, datetime.now(UTC), self.on_error)
        return self._try("calls cannot be held against the memory", work, [nobody])

    def ended(self, call: ToolCall, outcome: CallOutcome) -> str:
        """Keep how a call ended, and learn from it. What worked after an error like this one."""
        about = {
            "conversation_id": self.conversation,
            "server": self.name,
            "ending": outcome.ending,
        }
        record = ToolCallResult(
            tool_name=call.tool,
            create_time=datetime.now(UTC),
            input=call.arguments if isinstance(call.arguments, dict | list | str) else {},
            output=outcome.output,
            success=outcome.success,
            time_cost=time.perf_counter() - call.began,
            id=call.record_id,
            metadata=about,
        )
        failed = None if outcome.success is None else not outcome.success

        def advise() -> str:
            from toolmem.guidance.advice import BUDGET, at_error, known_of
            from toolmem.guidance.shown import within

            known = known_of(self.stores.main, WORKSPACE, call.tool)
            return "\n".join(line.text for line in within(at_error(known, record), BUDGET))

        def keep() -> None:
            with self.stores.main.transaction():  # one commit for the call and what is learned
                self.stores.main.append_calls(WORKSPACE, [record], KEPT_CALLS)
                for guard, decision in zip(self._guards, call.decisions, strict=False):
                    guard.after(
                        decision,
                        call.arguments,
                        output=outcome.output,
                        failed=failed,
                        call_id=call.record_id,
                    )

        is_told = failed and not self.shadow  # before the call itself is among those that are known
        advice = self._try("nothing is told of a failure", advise, "") if is_told else ""
        self._try("a call cannot be kept", keep, None)
        return advice

    # ------------------------------------------------------------ what is known of tools

    def known_of(self, tools: Sequence[Any]) -> Mapping[str, str]:
        """By name, the user's rules for a tool and its guidance.

        The same until the server's list changes: caches of hosts and models stand on the text.
        """
        from toolmem.formats.records import read_schemas

        fresh = []
        for tool in tools[:MAX_TOOLS]:
            try:
                (schema,) = read_schemas([tool]).values()
            except RequestError:  # it is passed on as it came
                continue
            self._schemas[schema.name] = schema
            if schema.name not in self.texts:
                fresh.append(schema)
        if fresh and not self.shadow:
            self._try("nothing is added to descriptions", lambda: self._describe(fresh), None)
        return self.texts

    def _describe(self, tools: Sequence[ToolSchema]) -> None:
        from toolmem.guidance.shown import guidance_section
        from toolmem.rules.identity import folded_name
        from toolmem.rules.prompt import choose, render_rules
        from toolmem.view.tool_classes import classes_of

        listing = self.stores.listing()
        records = self.stores.main.records(WORKSPACE, [tool.name for tool in tools])
        by_name = {record.tool_name: record for record in records}
        for tool in tools:
            classes = classes_of(tool.name, {}, tool.parameters.get("properties"))
            pinned = choose(listing, [tool.name])
            scopes = {folded_name(name) for name in (tool.name, *classes)}
            own = [r for r in pinned.rules if folded_name(r.tool_name) in scopes]
            known = [by_name[tool.name]] if tool.name in by_name else []
            parts = (render_rules(own), guidance_section(known, GUIDANCE_TOKENS))
            self.texts[tool.name] = "\n\n".join(filter(None, parts))

    # ------------------------------------------------------------ its troubles

    def _try(self, what_if_not: str, work: Callable[[], Done], otherwise: Done) -> Done:
        """What fails is logged, each trouble once a minute."""
        try:
            return work()
        except Exception as error:
            now = time.monotonic()
            if now - self._told.get(what_if_not, -TOLD_EVERY) >= TOLD_EVERY:
                self._told[what_if_not] = now
                log.warning("%s (%s)", what_if_not, f"{type(error).__name__}: {error}"[:500])
            return otherwise
