"""What a user decides on rules that were to bind less, that do, or that are just gone from their store."""

from __future__ import annotations

from typing import Any

from toolmem.light_models import ToolMemoryRule
from toolmem.rules.compare_and_swap import until_written
from toolmem.rules.drafts import sentence_of
from toolmem.rules.embedded_text import document_of
from toolmem.rules.identity import namespace_of
from toolmem.rules.kept_rules import LostRule, rule_in
from toolmem.rules.replaced_demands import are_of_one_demand
from toolmem.rules.rule_records import Changing
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.stored_rules import StoredRule
from toolmem.store.journal_changes import Place, Proposal

_PASSING = {"updated_at"}


async def accept(rules: RuleStore, proposal: Proposal) -> ToolMemoryRule | None:
    """The rule as it was, changed as proposed; None where it is another by now. `rules` bear the evidence."""
    place = proposal.place
    before = rule_in(place.namespace, place.key, proposal.before)
    row = None if before is None else await rules.records.row(place.namespace, before.id)
    if before is None or row is None or _lasting(row.rule) != _lasting(before):
        return None
    after = None if proposal.after is None else rule_in(place.namespace, place.key, proposal.after)
    if after is None:
        if not await rules.delete_rule(before.tool_name, before.id):
            return None
    else:
        changed = after.model_copy(update={"updated_at": rules.clock.now()})
        await rules.records.write(changed, await document_of(changed.rule, rules.embedder), row, _by(rules))
    if after is None or after.status != "active":
        for each in (await rules.all_rules())[0]:  # one demand is kept under each class of tools that it is about
            if each.is_users and are_of_one_demand(each, before):
                await rules.withdraw(each)
    return before


async def hold_for(rules: RuleStore, rule: ToolMemoryRule, **bounds: Any) -> ToolMemoryRule | None:
    """An active rule that holds for longer, or less; None where it is not active. Raises LiftProposed."""

    async def decide() -> ToolMemoryRule | None:
        row = await rules.records.row(namespace_of(rule.tool_name), rule.id)
        if row is None or row.rule.status != "active":
            return None
        changed = row.rule.model_copy(update={**bounds, "updated_at": rules.clock.now()})
        return await rules.records.write(changed, await document_of(changed.rule, rules.embedder), row, _by(rules))

    return await until_written(f"the rules of {rule.tool_name!r}", decide, rules.clock.sleep)


def _lasting(rule: ToolMemoryRule) -> dict[str, object]:
    return rule.model_dump(exclude=_PASSING)


async def put_back(rules: RuleStore, place: Place, text: str) -> ToolMemoryRule | None:
    """A rule as it held, which holds again; None where it has ended, or `text` is no rule."""
    was = rule_in(place.namespace, place.key, text)
    now = rules.clock.now()
    if was is None or (was.expires_at is not None and was.expires_at <= now):
        return None
    rule = was.model_copy(update={"status": "active", "superseded_by": "", "updated_at": now})
    stored = await rules.records.stored(place.namespace)
    row = stored.with_id(rule.id)
    by = Changing(rules.speaker, None, restores=True)
    document = await document_of(rule.rule, rules.embedder)
    return await rules.records.write(rule, document, stored.free_version(rule.id) if row is None else row, by)


async def let_go(rules: RuleStore, lost: LostRule) -> ToolMemoryRule | None:
    """What the store has in the place of a lost rule is believed. `rules` bear the evidence."""
    kept = rule_in(*lost.kept)
    if kept is None:
        return None
    row = StoredRule(kept, 0 if lost.held is None else lost.held.version)
    after = None if lost.held is None else rule_in(*lost.held[:3])
    if after is None:
        await rules.records.bury(row, sentence_of(rules.workspace, kept), _by(rules))
    else:
        await rules.records.write(after, await document_of(after.rule, rules.embedder), row, _by(rules))
    return kept


def _by(rules: RuleStore) -> Changing:
    return Changing(rules.speaker, rules.evidence)
