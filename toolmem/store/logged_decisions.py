"""Decisions of the guard as every store keeps them: what can be logged, and how it is read back."""

from __future__ import annotations

import json
from typing import Any, get_args

from toolmem.errors import RequestError
from toolmem.late import late_logger
from toolmem.late_dataclasses import annotations_of
from toolmem.store.codec import CALL_FAULTS, dump_json, micros, moment, require_names
from toolmem.stored import LoggedDecision, Outcome

logger = late_logger("toolmem.store")

_OUTCOMES = get_args(Outcome)


def decision_json(workspace: str, decision: LoggedDecision) -> str:
    """The JSON that a store keeps. Raises RequestError, which names the field."""
    require_names(workspace)
    if not isinstance(decision.id, str) or not decision.id:
        raise RequestError(f"decision.id: expected text that is not empty, got {decision.id!r}", field="decision.id")
    if decision.outcome not in _OUTCOMES:
        known = ", ".join(map(repr, _OUTCOMES))
        raise RequestError(f"decision.outcome: expected one of {known}, got {decision.outcome!r}", field="decision")
    fields = {name: getattr(decision, name) for name in annotations_of(LoggedDecision)}
    try:
        return dump_json({**fields, "time": micros(decision.time)})
    except CALL_FAULTS as error:
        raise RequestError(f"decision {decision.id!r}: {error}", field="decision") from error


def read_decision(text: str | bytes) -> LoggedDecision | None:
    """None where it is damaged: then that is logged."""
    try:
        body: dict[str, Any] = json.loads(text)
        return LoggedDecision(**{**body, "time": moment(body["time"])})
    except (*CALL_FAULTS, AttributeError) as error:
        logger.error("a logged decision is damaged and left out: %s", type(error).__name__)
        return None
