"""What the event that ends a call is to know of the decision on it, which another process of the hook made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolmem.guard.decision import GuardDecision
    from toolmem.hosts.events import HookEvent


def advice_with_result(decision: GuardDecision) -> str:
    """What is told of a call beside its failure. How long to wait is told after each, and not again before the next."""
    if decision.action != "advise":
        return ""
    return " ".join(each.text for each in decision.sources if each.effective == "advise" and not each.is_wait)


def noted_of(decision: GuardDecision) -> dict[str, Any]:
    """What the call's end needs to know of its decision, as JSON."""
    mark = decision.mark
    return {
        "id": decision.id,
        "action": decision.action,
        "sources": [each.kind for each in decision.sources],
        "forced": list(mark.forced) if mark else [],
        "identity": mark.identity if mark else "",
        "state": mark.state if mark else None,
        "hints": dict(mark.hints) if mark else {},
    }


def decision_of(noted: Mapping[str, Any], event: HookEvent) -> GuardDecision | str | None:
    """The decision that was noted; its id alone where another version wrote the note."""
    from toolmem.guard.decision import CallMark, Finding, GuardDecision

    try:
        mark = CallMark(
            event.tool,
            str(noted["identity"]),
            event.session_id,
            noted["state"],
            cwd=event.cwd,
            forced=tuple(noted["forced"]),
            hints=noted["hints"],
        )
        sources = tuple(Finding(kind, "allow", "") for kind in noted["sources"])
        return GuardDecision(str(noted["id"]), noted["action"], sources=sources, mark=mark)
    except (KeyError, TypeError):  # of another version
        return str(noted["id"]) if "id" in noted else None
