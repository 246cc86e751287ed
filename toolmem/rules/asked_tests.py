"""The tests of earlier calls that the rules of a store ask for, noted when such a rule is kept: calls that end are then
noted as having met them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolmem.errors import RequestError
from toolmem.guard.decision import CheckedRule
from toolmem.guard.histories import AskedTests, EarlierTest
from toolmem.rules.compare_and_swap import until_written
from toolmem.rules.identity import ASKED

if TYPE_CHECKING:
    from toolmem.protocols import Clock, MemoryStore


def asked_by(rules: Sequence[CheckedRule]) -> list[EarlierTest]:
    """The tests of earlier calls in these rules; of a damaged one none."""
    found: list[EarlierTest] = []
    for rule in rules:
        try:
            compiled = rule.compiled if rule.needs_history else None
        except RequestError:
            continue
        found += compiled.conditions.earlier if compiled is not None else ()
    return found


async def ask_for(store: MemoryStore, workspace: str, clock: Clock, when: Any) -> None:
    """A condition is kept in this store."""
    await ask(store, workspace, clock, asked_by([CheckedRule("", "", "deny", when)]))


async def ask(store: MemoryStore, workspace: str, clock: Clock, tests: Sequence[EarlierTest]) -> None:
    """Calls are noted from now on as having met these. Raises StoreError."""

    async def attempt() -> None:
        record = await store.get(workspace, *ASKED)
        asked = _read(None if record is None else record.value)
        if asked.lacks(tests):
            asked.ask(tests)
            version = 0 if record is None else record.version
            await store.put(workspace, *ASKED, asked.as_json(), expected_version=version)

    if tests:
        await until_written("the tests of earlier calls that rules ask for", attempt, clock.sleep)


def _read(value: Any) -> AskedTests:
    try:
        return AskedTests.from_json(value or {"tests": {}})
    except (KeyError, TypeError, ValueError, AttributeError):  # damaged: written anew
        return AskedTests()
