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
from toolmem.server.access import Refused
from toolmem.server.console.rule_views import content_digest, rule_fields, rule_of

# Told on the page to which a change leads.
TOLD = {
    "approve": "Approved: what was asked for is done.",
    "reject": "Rejected: nothing was changed.",
    "withdraw": "Withdrawn: no call is held against it any more. It can be restored.",
    "restore": "Restored: it holds again.",
    "delete": "Deleted, with its text.",
    "save": "Saved: it holds now.",
    "waits": "The store is guarded, and you did not sign in from the terminal: the change waits.",
}


def change(memory: Workspace, form: Mapping[str, str], actor: Actor) -> tuple[str, ToolMemoryRule]:
    """Do what a form asks for. Returns a key of TOLD, and the rule afterwards.

    Raises RequestError, and Refused where the rule is not as it was when its page was read.
    """
    do, began = form.get("do", ""), memory.services.clock.now()
    if do == "save" and not form.get("id"):
        after = _save(memory, form, actor)
    else:
        rule = rule_of(memory, form.get("id", ""))
        if form.get("seen") != content_digest(rule):
            raise Refused(409, "the rule was changed since you read its page: read it again")
        after = _save(memory, form, actor) if do == "save" else _decide(memory, do, rule, actor)
    is_waiting = after.request is not None and after.request.time >= began
    return ("waits" if is_waiting else do), after


def _decide(memory: Workspace, do: str, rule: ToolMemoryRule, actor: Actor) -> ToolMemoryRule:
    rules = memory.rules
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
    given = {**rule_fields(form), "source": "user_explicit"}
    if form.get("id"):
        given["id"] = form["id"]
    made: ToolMemoryRule = memory.acting_as(actor).perform(OPERATIONS["tool_rule_put"], given)
    return made
