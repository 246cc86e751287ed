"""What the forms do: approve, reject, withdraw, restore, delete and save a rule.

Each works as the same change on the command line does: without evidence that the user asks for it,
what would loosen the user's rule in a guarded store is kept as a request.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolmem.errors import RequestError
from toolmem.memory.toolmem import Workspace
from toolmem.models.rules import ToolMemoryRule
from toolmem.operations.operation import OPERATIONS
from toolmem.rules.changes import Actor
from toolmem.server.console.rule_views import rule_fields, rule_of

# Told on the page to which a change leads.
TOLD = {
    "approve": "Approved: it holds now.",
    "reject": "Rejected: nothing was changed.",
    "withdraw": "Withdrawn: no call is held against it any more. It can be restored.",
    "restore": "Restored: it holds again.",
    "delete": "Deleted, with its text.",
    "save": "Saved: it holds now.",
    "waits": "The store is guarded, and nobody signed in from the terminal: the change waits.",
}


def change(memory: Workspace, form: Mapping[str, str], actor: Actor) -> tuple[str, str]:
    """Do what a form asks for. Returns a key of TOLD and the rule's id. Raises RequestError."""
    do = form.get("do", "")
    after = _save(memory, form, actor) if do == "save" else _decide(memory, do, form, actor)
    is_waiting = after.status == "request" or after.request is not None
    return ("waits" if is_waiting and do != "reject" else do), after.id


def _decide(memory: Workspace, do: str, form: Mapping[str, str], actor: Actor) -> ToolMemoryRule:
    rule, rules = rule_of(memory, form.get("id", "")), memory.rules
    if do == "approve":
        return rules.accept(rule, actor)
    if do == "reject":
        return rules.reject(rule, actor)
    if do == "withdraw":
        return rules.change(rule, actor, "withdrawn", expires_at=memory.services.clock.now())
    if do == "restore":
        return rules.change(rule, actor, "restored", expires_at=None)
    if do == "delete":
        return rules.delete(rule, actor)
    raise RequestError("do: expected the name of a change", "do")


def _save(memory: Workspace, form: Mapping[str, str], actor: Actor) -> ToolMemoryRule:
    given = rule_fields(form) | ({"id": form["id"]} if form.get("id") else {})
    given.setdefault("source", "user_explicit")
    made: ToolMemoryRule = memory.acting_as(actor).perform(OPERATIONS["tool_rule_put"], given)
    return made
