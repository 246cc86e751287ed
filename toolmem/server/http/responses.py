"""What the HTTP service answers: the status of each outcome, and one body for all of them, the FlowResponse.

`MEANINGS` says what each status means.

`metadata.errors` of every answer but 200 holds `{type, message, field?}`, at least one; `type` is the name of the
exception of `toolmem.errors`, where there is one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from starlette.responses import Response

from toolmem.config.nearest_names import nearest
from toolmem.errors import (
    BudgetReached,
    ConfigError,
    LiftProposed,
    ModelError,
    NotProvided,
    RecordError,
    Refused,
    RequestError,
    RunStopped,
    StoreError,
    ToolMemError,
    raised_by,
)
from toolmem.models import FlowResponse
from toolmem.server.json_text import write_json

logger = logging.getLogger("toolmem.service")

JSON = "application/json"
BUDGET_PAUSE = 60  # seconds after which asking again makes sense
BUSY_PAUSE = 1

MEANINGS = {  # of answers other than 200; also 404: no such flow, or not provided here, and 405: another method
    401: "The token is missing or wrong.",
    403: "Without a token the service answers to localhost and 127.0.0.1 only.",
    408: "The body did not arrive in time.",
    409: "Only the user lets rules bind less: nothing was changed, the change is proposed to them.",
    413: "The body, or a list in it, is too long.",
    415: "The body is not sent as application/json.",
    422: "Refused before any work: `metadata.errors` names the fields.",
    429: "The budget is spent.",
    500: "A defect of the service; its log says where.",
    502: "A model gave no usable answer.",
    503: "The store cannot do it, or too many requests are under way.",
}

_STATUSES: tuple[tuple[type[ToolMemError], int], ...] = (  # the first that fits counts
    (NotProvided, 404),
    (Refused, 422),
    (RecordError, 422),
    (LiftProposed, 409),
    (BudgetReached, 429),
    (ModelError, 502),
    (RunStopped, 502),
    (StoreError, 503),
)


class JsonAnswer(Response):
    """A body that is JSON text already."""

    media_type = JSON


def answered(response: FlowResponse) -> JsonAnswer:
    """A flow's response, whatever came of it."""
    try:
        return JsonAnswer(response.model_dump_json())
    except ValueError:  # a lone surrogate of the request: UTF-8 cannot carry it, an escape can
        return JsonAnswer(write_json(json.loads(json.dumps(response.model_dump(mode="python"), default=str))))


def refusal(
    status: int,
    message: str,
    errors: Sequence[Mapping[str, Any]] = (),
    *,
    kind: str = "RequestError",
    headers: Mapping[str, str] | None = None,
    **metadata: Any,
) -> JsonAnswer:
    """Any answer but a flow's: `errors` default to one of `kind` with this message."""
    body = {
        "answer": message,
        "success": False,
        "metadata": {"errors": list(errors) or [{"type": kind, "message": message}], **metadata},
    }
    return JsonAnswer(write_json(body), status, headers=dict(headers or {}))


def failed(error: Exception) -> JsonAnswer:
    """The answer to what a flow raised. What is not ours to show stays in the log."""
    if isinstance(error, ToolMemError):
        return _known(error)
    where = raised_by(error)
    logger.error("a request failed: %s at %s%s", type(error).__name__, _place(error), f", {where}" if where else "")
    logger.debug("how it failed", exc_info=error)
    kind = type(error).__name__
    named = f"{kind}, {where}" if where else kind
    return refusal(500, f"internal error ({named}); the service's log says where", kind="InternalError")


def _known(error: ToolMemError) -> JsonAnswer:
    status = next((code for kind, code in _STATUSES if isinstance(error, kind)), 500)
    if status >= 500:
        logger.warning("%s: %s", type(error).__name__, error)
    headers = {}
    pause = BUDGET_PAUSE if status == 429 else getattr(error, "retry_after", None)
    if pause is not None:
        headers["Retry-After"] = str(max(1, round(pause)))
    return refusal(status, str(error), _errors(error), headers=headers)


def _errors(error: ToolMemError) -> list[dict[str, Any]]:
    kind = type(error).__name__
    if isinstance(error, ConfigError):
        return [{"type": kind, "message": problem} for problem in error.problems]
    told: dict[str, Any] = {"type": kind, "message": str(error)}
    if isinstance(error, RequestError) and error.field is not None:
        told["field"] = error.field
    if isinstance(error, LiftProposed):
        told |= {"rule_id": error.rule_id, "code": error.code}
    if isinstance(error, RecordError) and error.index is not None:
        told["index"] = error.index
    return [told]


def _place(error: BaseException) -> str:
    """Where it was raised: files and lines of the innermost calls, without messages, which may hold payloads."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)[-4:]
    return " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in reversed(frames))


def no_such_flow(name: str, flows: Iterable[str], left_out: Mapping[str, str]) -> JsonAnswer:
    """404 with the nearest name, or with the reason why this flow is not provided."""
    known = sorted(flows)
    if name in left_out:
        return refusal(404, left_out[name], kind="NotProvided", flows=known)
    near = nearest(name[:100], known)
    there = f"did you mean {near!r}? There are" if near else "there are"
    message = f"no flow is called {name[:100]!r}; {there}: {', '.join(known)}"
    return refusal(404, message, flows=known, nearest=near)


def nothing_at_the_root(flows: Iterable[str]) -> JsonAnswer:
    """404 that says what the service has."""
    message = "this is toolmem's HTTP service: GET /docs describes POST /<flow>, POST /rpc and GET /health"
    return refusal(404, message, kind="NoSuchPage", flows=sorted(flows), docs="/docs")
