"""Carry out forms: decide on a rule, save it, mark a decision as wrong, judge calls again.

Each form runs an operation. Where a hook or proxy has used the store, a change that loosens a rule
becomes a request, unless there is evidence that the user wants it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any, get_args
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from toolmem.errors import Conflict, RequestError, ToolMemError
from toolmem.memory.toolmem import Workspace
from toolmem.models.rules import ToolMemoryRule
from toolmem.operations.operation import OPERATIONS
from toolmem.rules.changes import NEW, ONLY_ASKS, Actor
from toolmem.rules.review import Review
from toolmem.server.access import Refused
from toolmem.server.console.rule_views import decision_of, editable, rule_fields, rule_of

log = logging.getLogger("toolmem.server")

# Shown on the page to which a change leads.
NOTICES = {
    "approve": "Approved: the request is carried out.",
    "lifted": "Lifted: calls are no longer checked against this rule.",
    "reject": "Rejected: nothing was changed.",
    "keep": "Kept: the rule holds as before.",
    "withdraw": "Withdrawn: calls are no longer checked against it. It can be restored.",
    "restore": "Restored: it holds again.",
    "delete": "Deleted with its text.",
    "save": "Saved: it holds now.",
    "waits": "The store is guarded, and you did not sign in from the terminal. The change waits.",
    "wrong": "Kept with the decision. Nothing else was changed: edit the rule, or withdraw it.",
    "marked": "Kept with the decision. Nothing else was changed.",
    "unmarked": "The mark is removed.",
}
REVIEWS = get_args(Review)


def change(memory: Workspace, form: Mapping[str, str], actor: Actor) -> str:
    """Carry out a form. Returns the address of the page with the result, as `rule?id=r1`.

    Raises Refused: 404 if the rule or decision is gone, 409 if the rule changed since its page was
    read, 422 for an invalid change.
    """
    back = f"rule?{urlencode({'id': form['id']})}" if form.get("id") else ""
    try:
        return _change(memory, form, actor)
    except Conflict as error:
        raise Refused(409, str(error), back) from None
    except RequestError as error:
        raise Refused(422, str(error), back) from None


def _change(memory: Workspace, form: Mapping[str, str], actor: Actor) -> str:
    do: Any = form.get("do", "")
    asked = form.get("id", "")
    if do in ("wrong", "right"):
        return _mark(memory, asked, is_wrong=do == "wrong")
    seen = (form.get("seen") or "nothing") if asked else NEW
    acting = memory.acting_as(replace(actor, seen=seen))
    began = memory.services.clock.now()
    outcome = do
    if do in REVIEWS:
        before = rule_of(memory, asked).rule
        after = acting.tool_rule_review(asked, do, seen=seen)
        is_question = before.request is not None and before.request.evidence == "typed"
        if do == "reject" and is_question:
            outcome = "keep"
        elif do == "approve" and after.status == "deleted":
            outcome = "lifted"
    elif do == "delete":
        return _delete(acting, asked)
    elif do == "save":
        after = _save(acting, form)
    else:
        raise RequestError("do: expected the name of a change", "do")
    if after.status == "deleted":
        return f"rules?{urlencode({'told': outcome})}"
    is_requested = after.request is not None and (do == "approve" or after.request.time >= began)
    outcome = "waits" if after.status == "request" or is_requested else outcome
    return f"rule?{urlencode({'id': after.id, 'told': outcome})}"


def _delete(memory: Workspace, rule_id: str) -> str:
    """Delete a rule that has ended, or request its deletion. Returns the next page."""
    found = rule_of(memory, rule_id)
    if found.state != "ended":
        raise RequestError("withdraw the rule before you delete its text", "do")
    if not memory.tool_rule_delete(found.rule.tool_name, rule_id):
        return f"rule?{urlencode({'id': rule_id, 'told': 'waits'})}"
    return f"rules?{urlencode({'told': 'delete'})}"


def _save(memory: Workspace, form: Mapping[str, str]) -> ToolMemoryRule:
    known = editable(memory, form["id"]).rule if form.get("id") else None
    given = {**rule_fields(memory, form, known), "source": "user_explicit"}
    if known is not None:
        given["id"] = known.id
        if given.get("effect") == "deny" and ONLY_ASKS in known.tags:
            given["tags"] = [tag for tag in known.tags if tag != ONLY_ASKS]
    made: ToolMemoryRule = memory.perform(OPERATIONS["tool_rule_put"], given)
    return made


def _mark(memory: Workspace, decision_id: str, *, is_wrong: bool) -> str:
    """Mark whether a decision was wrong. Returns the next page: if wrong, that of its rule."""
    decision_of(memory, decision_id)
    marked = memory.mark_decision(decision_id, wrong=is_wrong)
    for found in memory.tool_rules(ids=marked.rule_ids) if is_wrong else ():
        if found.state != "waiting":
            page = "rule" if found.rule.session else "draft"
            return f"{page}?{urlencode({'id': found.rule.id, 'told': 'wrong'})}"
    outcome = "marked" if is_wrong else "unmarked"
    return f"decision?{urlencode({'id': decision_id, 'told': outcome})}"


class Retry(Struct, frozen=True):
    """One run that judges calls again. `began` and `ended` are times of day, such as "14:30".

    `ended` is "" while it runs. Then `answer` or `problem` is set; neither if the judge failed.
    """

    began: str
    ended: str = ""
    answer: str = ""
    problem: str = ""  # why nothing was judged


class Retries:
    """Judges calls without a verdict in the background, one run at a time per workspace."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._newest: dict[str, Retry] = {}

    def newest(self, workspace: str) -> Retry | None:
        """Return the newest run, running or ended; None if none was started."""
        return self._newest.get(workspace)

    def start(self, memory: Workspace) -> None:
        """Begin a run, unless one is running."""
        name = memory.workspace_name
        began = memory.rules.local_time()
        with self._lock:
            if name in self._running:
                return
            threading.Thread(target=self._run, args=(memory,), daemon=True).start()
            self._running.add(name)  # the run waits for the lock before it ends
            self._newest[name] = Retry(f"{began:%H:%M}")

    def _run(self, memory: Workspace) -> None:
        name = memory.workspace_name
        answer = ""
        problem = ""
        try:
            done = memory.run("retry_evaluations")
            answer = f"{done.answer}."
            if failures := done.metadata["evaluation"]["failures"]:
                answer += f" {failures[0]['error']}"
        except ToolMemError as error:
            problem = str(error)
        except Exception:
            log.exception("the judge failed")
        finally:
            with self._lock:
                self._running.discard(name)
                ended = f"{memory.rules.local_time():%H:%M}"
                self._newest[name] = Retry(self._newest[name].began, ended, answer, problem)
