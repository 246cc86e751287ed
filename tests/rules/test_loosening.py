"""Where agents are held to a store, what lets a rule of its user bind less needs evidence of the user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from toolmem.engine import StoreFile
from toolmem.errors import LiftProposed
from toolmem.hosts.install_notes import InstallNote, keep_note
from toolmem.light_models import ToolMemoryRule
from toolmem.rules.evidence import UserEvidence
from toolmem.rules.rule_store import RuleStore

TYPED = UserEvidence("typed", "you may push to main again", "s1", "claude-code")
CONDITION = {"properties": {"programs": {"contains": {"const": "git"}}}, "required": ["programs"]}
Change = Callable[[RuleStore, ToolMemoryRule], Awaitable[Any]]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def held(tmp_path: Path) -> None:
    """Hooks stand in an agent's settings."""
    settings = tmp_path / "home" / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text("{}")
    keep_note("claude-code", settings, InstallNote.between(settings, None, b"{}", []))


@pytest.fixture
def rules(tmp_path: Path) -> RuleStore:
    path = tmp_path / "repo" / ".toolmem" / "memory.db"
    path.parent.mkdir(parents=True)
    store = StoreFile(path)
    return RuleStore(store.protocol, clock=store.clock)


async def put(rules: RuleStore, **given: Any) -> ToolMemoryRule:
    whole = {"priority": "critical", "source": "user_explicit", "effect": "deny", "when": True, **given}
    return await rules.put_rule("bash", "never push to main", **whole)


LOOSENING: dict[str, Change] = {
    "deleted": lambda rules, rule: rules.delete_rule("bash", rule.id),
    "deleted by the beginning of its id": lambda rules, rule: rules.delete_rule("bash", rule.id[:8]),
    "withdrawn": lambda rules, rule: rules.withdraw(rule),
    "rejected": lambda rules, rule: rules.set_status(rule.id, "withdrawn"),
    "proposed": lambda rules, rule: rules.set_status(rule.id, "proposed"),
    "superseded": lambda rules, rule: rules.withdraw(rule, superseded_by="other"),
    "put as withdrawn": lambda rules, rule: rules.put_rule("bash", rule.rule, status="withdrawn"),
    "only reminded": lambda rules, rule: rules.put_rule("bash", rule.rule, effect="remind"),
    "asked": lambda rules, rule: rules.put_rule("bash", rule.rule, effect="ask"),
    "narrowed": lambda rules, rule: rules.put_rule("bash", rule.rule, effect="deny", when=CONDITION),
    "of a lower priority": lambda rules, rule: rules.put_rule("bash", rule.rule, priority="normal"),
    "of another text": lambda rules, rule: rules.put_rule("bash", "push to main as you like", id=rule.id),
    "ending": lambda rules, rule: rules.put_rule(
        "bash", rule.rule, expires_at=datetime.now(UTC) + timedelta(seconds=5)
    ),
    "ended": lambda rules, rule: rules.put_rule("bash", rule.rule, expires_at=datetime.now(UTC) - timedelta(days=1)),
    "a program's": lambda rules, rule: rules.put_rule("bash", rule.rule, source="programmatic"),
}


@pytest.mark.parametrize("how", LOOSENING)
async def test_without_evidence_nothing_changes(rules: RuleStore, held: None, how: str) -> None:
    rule = await put(rules)

    with pytest.raises(LiftProposed) as proposed:
        await LOOSENING[how](rules, rule)

    assert proposed.value.rule_id == rule.id
    assert f"lift {proposed.value.code}" in str(proposed.value)
    assert await rules.get_rule("bash", rule.id) == rule


@pytest.mark.parametrize("how", LOOSENING)
async def test_with_evidence_it_does(rules: RuleStore, held: None, how: str) -> None:
    rule = await put(rules)

    await LOOSENING[how](rules.with_evidence(TYPED), rule)

    assert await rules.get_rule("bash", rule.id) != rule


@pytest.mark.parametrize("how", LOOSENING)
async def test_what_nobody_is_held_to_is_changed_as_before(rules: RuleStore, how: str) -> None:
    rule = await put(rules)

    await LOOSENING[how](rules, rule)

    assert await rules.get_rule("bash", rule.id) != rule


async def test_what_binds_more_needs_nothing(rules: RuleStore, held: None) -> None:
    rule = await put(rules, priority="high", effect="ask", when=CONDITION)

    assert (await rules.put_rule("bash", rule.rule, effect="deny", when=True)).effect == "deny"
    assert (await rules.put_rule("bash", rule.rule, priority="critical")).priority == "critical"
    await rules.with_evidence(TYPED).withdraw(rule)
    restored = await rules.set_status(rule.id, "active")
    assert restored is not None
    assert restored.status == "active"


async def test_an_agents_own_notes_stay_its_own(rules: RuleStore, held: None) -> None:
    agents = rules.for_agent()
    note = await agents.put_rule("bash", "the tests take a minute", priority="high")

    assert await agents.delete_rule("bash", note.id)


async def test_a_reminder_of_what_failed_goes_freely(rules: RuleStore, held: None) -> None:
    rule = await rules.put_rule("bash", "ls failed three times", priority="high", source="post_turn")

    assert await rules.delete_rule("bash", rule.id)
