"""What the rules of a call ask of earlier calls, and what the call is to those that come after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from toolmem.engine.guard_records import GuardRecords, Places, Remembered
from toolmem.engine.kept_decisions import StorePatience
from toolmem.guard.conversation import CheckedCall
from toolmem.guard.decision import CheckedRule, Mode, decide
from toolmem.guard.view import view_of
from toolmem.late_dataclasses import replace

if TYPE_CHECKING:
    from pathlib import Path

    from toolmem.guard.histories import History
    from toolmem.guard.view import View
    from toolmem.light_models import ToolSchema
    from toolmem.protocols import Clock, MemoryStore


class GuardedHistories:
    """Of one guard. Nothing is read, and no module loaded, where no rule asks for anything."""

    def __init__(
        self,
        store: MemoryStore,
        workspace: str,
        clock: Clock,
        patience: StorePatience,
        records: GuardRecords,
        modes: Mapping[str, Mode],
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._clock = clock
        self._patience = patience
        self._records = records
        self._modes = modes

    async def asked(
        self, known: Remembered, rules: Sequence[CheckedRule], conversation: str, *, is_down: bool
    ) -> History | None:
        """What rules of this call ask of earlier ones; None where they ask nothing."""
        asking = [rule for rule in rules if rule.needs_history]
        if not asking:
            return None
        from toolmem.engine.call_histories import history_of
        from toolmem.guard.histories import AskedTests
        from toolmem.rules.asked_tests import ask, asked_by

        noted = AskedTests(dict(known.asked.tests) if known.asked is not None else {})
        if (tests := noted.lacks(asked_by(asking))) and not is_down:
            asks = ask(self._store, self._workspace, self._clock, tests)
            await self._patience.attempt("what a rule asks of earlier calls is not noted", asks)
            noted.ask(tests)
            known.asked = noted
        return history_of(known, conversation)

    async def weighed(
        self,
        checked: CheckedCall,
        known: Remembered,
        history: History | None,
        places: Places,
        rules: Sequence[CheckedRule],
        of_call: tuple[Sequence[ToolSchema], Path | None, View | None],
    ) -> CheckedCall:
        """A call as it counts for rules, and for the calls after it. `of_call`: tools as declared, folder, its view."""
        if checked.decision.action == "deny" or (known.asked is None and history is None):
            return checked
        tools, folder, view = of_call
        from toolmem.engine.call_histories import CallHistories

        call = CallHistories(self._records, known, places, view or _view_of(checked, tools, folder))
        if not checked.stops and history is not None:
            now = self._clock.now().astimezone()
            counted = call.count(rules, history, checked.decision.id, now, self._modes["rules"])
            if found := await self._patience.within(counted, 5):
                decision = decide(checked.decision.id, [*found, *checked.decision.sources])
                checked = replace(checked, decision=decision, forced=() if decision.stops else checked.forced)
        if checked.decision.action != "deny":
            begins = call.begin(checked.decision.id, runs=not checked.stops)
            await self._patience.attempt("a call is not noted for the calls after it", begins)
        return checked


def _view_of(checked: CheckedCall, tools: Sequence[ToolSchema], folder: Path | None) -> View:
    given = checked.arguments if isinstance(checked.arguments, Mapping) else {"": checked.arguments}
    declared = next((tool.parameters for tool in tools if tool.name == checked.tool_name), None)
    return view_of(checked.tool_name, given, declared, directory=folder)
