"""The kept calls of a tool as they come out of a store: what is damaged is logged and left out.

A row: seq, success, execution_failed, score, time_cost, token_cost, the judge as the backend names it, and where the
calls themselves are wanted the payload that `codec.call_payload` made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from toolmem.late import late_logger
from toolmem.store.codec import CALL_FAULTS, members, moment
from toolmem.store.semantics import ToolRow

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from toolmem.models import CallFigures, JudgeIdentity, ToolCallResult

logger = late_logger("toolmem.store")

Row = Sequence[Any]

_FIGURES = ("seq", "success", "execution_failed", "score", "time_cost", "token_cost", "judge")


def read_figures(row: ToolRow, rows: Iterable[Row], name_of: Callable[[Any], str]) -> tuple[CallFigures, ...]:
    """`name_of`: the judge as in `CallFigures.judge`."""
    found = [dict(zip(_FIGURES, (*values[:6], name_of(values[6])), strict=True)) for values in rows]
    try:
        return tuple(_many_figures().validate_python(found))
    except ValueError:  # rare: look for the damaged ones
        return tuple(each for fields in found for each in _readable(row, fields))


@cache
def _many_figures() -> TypeAdapter[list[CallFigures]]:
    """All of a window in one go: three times as fast as one by one."""
    from pydantic import TypeAdapter

    from toolmem.models import CallFigures

    return TypeAdapter(list[CallFigures])


def _readable(row: ToolRow, fields: dict[str, Any]) -> list[CallFigures]:
    try:
        return _many_figures().validate_python([fields])
    except ValueError:
        logger.error("the figures of call %r of tool %r are damaged and left out", fields["seq"], row.name)
        return []


def read_calls(
    row: ToolRow, rows: Iterable[Row], judge_of: Callable[[Any], JudgeIdentity | None]
) -> tuple[ToolCallResult, ...]:
    """In the order of the rows, marked as the row says what is summarized."""
    from toolmem.models import ToolCallResult

    covered, found = members(row.covered), []
    for values in rows:
        try:
            found.append(ToolCallResult.model_validate(_fields(row, values, judge_of, covered)))
        except CALL_FAULTS as error:
            logger.error("call %r of tool %r is damaged and left out: %s", values[0], row.name, type(error).__name__)
    return tuple(found)


def _fields(
    row: ToolRow, values: Row, judge_of: Callable[[Any], JudgeIdentity | None], covered: Collection[int]
) -> dict[str, Any]:
    seq, success, execution_failed, score, time_cost, token_cost, judge, payload = values
    body = json.loads(payload)
    if not isinstance(body, dict) or "create_time" not in body:
        raise ValueError("the payload is not a call")
    return {
        "id": row.assigned_id(seq),
        "evaluation_status": "ok",
        **body,
        "tool_name": row.name,
        "create_time": moment(body["create_time"]),
        "success": success,
        "execution_failed": execution_failed,
        "score": score,
        "time_cost": time_cost,
        "token_cost": token_cost,
        "judge": judge_of(judge),
        "seq": seq,
        "is_summarized": seq in covered,
    }
