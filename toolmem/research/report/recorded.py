"""Recorded calls, tools and errors as rows (a dictionary each, None where a value is not known) and as DataFrames.

Everything here counts all recorded calls unless a column says `window`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from toolmem.config.extras import need_pandas
from toolmem.models import ToolCallResult, ToolMemory
from toolmem.readers.proportions import wilson_interval
from toolmem.research.report.findings import Evaluation

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

UNCLASSIFIED = "unclassified"  # a failed call whose judge named no class


def calls_rows(evaluation: Evaluation) -> list[Row]:
    """One per recorded call, in input order; `calls_frame` names the keys."""
    zone = ZoneInfo(evaluation.time_zone)
    numbered = zip(evaluation.row_numbers, evaluation.calls, strict=True)
    return [_call_row(row, call, zone) for row, call in numbered]


def recorded_rows(evaluation: Evaluation) -> list[Row]:
    """As `calls_rows`, with the calls that were denied before they ran."""
    zone = ZoneInfo(evaluation.time_zone)
    denied = [_call_row(row, call, zone) for row, call in evaluation.denied]
    return sorted([*calls_rows(evaluation), *denied], key=lambda each: int(each["row"]))


def _call_row(row: int, call: ToolCallResult, zone: ZoneInfo) -> Row:
    return {
        "row": row,
        "tool_name": call.tool_name,
        "success": call.success,
        "execution_failed": call.execution_failed,
        "failed": call.failed,
        "score": _number(call.score),
        "evaluation_status": call.evaluation_status,
        "judge": "" if call.judge is None else str(call.judge),
        "evaluation": call.evaluation,
        "error_class": call.error_class,
        "create_time": call.create_time.astimezone(zone),
        "time_cost": _number(call.time_cost),
        "token_cost": _number(call.token_cost),
        "id": call.id or "",
        "input": json.dumps(call.input, ensure_ascii=False),
    }


def tools_rows(evaluation: Evaluation) -> list[Row]:
    """One per tool, most calls first; `tools_frame` explains the keys, TOOL_COLUMNS in that order."""
    memories = {memory.when_to_use: memory for memory in evaluation.memories}
    groups: dict[str, list[ToolCallResult]] = {}
    for call in evaluation.calls:
        groups.setdefault(call.tool_name, []).append(call)
    zone = ZoneInfo(evaluation.time_zone)
    found: list[Mapping[str, Any]] = [
        {"tool_name": name} | _recorded_figures(calls, zone) | _window_figures(memories.get(name))
        for name, calls in groups.items()
    ]
    found.sort(key=lambda tool: (-tool["calls"], tool["tool_name"]))
    return [{column: tool.get(column) for column in TOOL_COLUMNS} for tool in found]


TOOL_COLUMNS = {
    "tool_name": "object",
    "calls": "int64",
    "failures": "int64",
    "success_rate": "float64",
    "low": "float64",
    "high": "float64",
    "avg_score": "float64",
    "worked": "int64",
    "worked_rate": "float64",
    "worked_low": "float64",
    "worked_high": "float64",
    "flag_wrong": "int64",
    "scored": "int64",
    "unknown": "int64",
    "unscored": "int64",
    "avg_time_cost": "float64",
    "p95_time_cost": "float64",
    "avg_token_cost": "float64",
    "known_times": "int64",
    "known_tokens": "int64",
    "first_call": "object",
    "last_call": "object",
    "judges": "object",
    "window_calls": "int64",
    "window_failures": "int64",
    "window_success_rate": "float64",
    "window_score": "float64",
    "analyzed_calls": "Int64",
    "guidance_characters": "int64",
    "claims": "int64",
    "author": "object",
}


def _recorded_figures(calls: Sequence[ToolCallResult], zone: ZoneInfo) -> dict[str, object]:
    import numpy as np

    times = [call.time_cost for call in calls if call.time_cost is not None]
    tokens = [call.token_cost for call in calls if call.token_cost is not None]
    created = [call.create_time for call in calls]
    return _outcomes(calls) | {
        "avg_time_cost": _mean(times),
        "p95_time_cost": float(np.quantile(times, 0.95)) if times else None,
        "avg_token_cost": _mean(tokens),
        "known_times": len(times),
        "known_tokens": len(tokens),
        "first_call": min(created).astimezone(zone).isoformat(),
        "last_call": max(created).astimezone(zone).isoformat(),
        "judges": ", ".join(sorted({str(call.judge) for call in calls if call.judge is not None})),
    }


def _outcomes(calls: Sequence[ToolCallResult]) -> dict[str, float | int | None]:
    known = [call.failed for call in calls if call.failed is not None]
    scores = [call.score for call in calls if call.score is not None]
    failures = sum(known)
    interval = wilson_interval(len(known) - failures, len(known)) if known else None
    wrong = sum(
        call.success is True and call.execution_failed is True for call in calls
    )  # known to have failed, whatever the flag says
    worked = len(known) - failures - wrong
    worked_interval = wilson_interval(worked, len(known)) if known else None
    return {
        "calls": len(calls),
        "failures": failures,
        "unknown": len(calls) - len(known),
        "success_rate": (len(known) - failures) / len(known) if known else None,
        "low": interval[0] if interval else None,
        "high": interval[1] if interval else None,
        "avg_score": _mean(scores),
        "worked": worked,
        "worked_rate": worked / len(known) if known else None,
        "worked_low": worked_interval[0] if worked_interval else None,
        "worked_high": worked_interval[1] if worked_interval else None,
        "flag_wrong": wrong,
        "scored": len(scores),
        "unscored": len(calls) - len(scores),
    }


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _window_figures(memory: ToolMemory | None) -> dict[str, object]:
    if memory is None:
        return {"window_calls": 0, "window_failures": 0, "guidance_characters": 0, "claims": 0, "author": ""}
    window = _outcomes(memory.tool_call_results)
    analyzed = memory.metadata.get("guidance_statistics")
    return {
        "window_calls": window["calls"],
        "window_failures": window["failures"],
        "window_success_rate": window["success_rate"],
        "window_score": window["avg_score"],
        "analyzed_calls": analyzed.get("calls") if isinstance(analyzed, dict) else None,
        "guidance_characters": len(memory.content),
        "claims": len(memory.metadata.get("claims") or ()),
        "author": memory.author,
    }


def totals(evaluation: Evaluation) -> dict[str, float | int | None]:
    """The figures of `tools_frame` over all recorded calls of all tools together."""
    return _outcomes(evaluation.calls) | {
        "tools": len({call.tool_name for call in evaluation.calls}),
        "known_times": sum(call.time_cost is not None for call in evaluation.calls),
        "known_tokens": sum(call.token_cost is not None for call in evaluation.calls),
    }


FLAGS = {True: "recorded success", False: "recorded failure", None: "no flag"}
VERDICTS = ("failed", "ran, score 0", "ran, score 1", "no verdict")


def flag_and_judge_rows(evaluation: Evaluation) -> list[Row]:
    """One per flag, also one that no call has: `flag`, and the calls of each of VERDICTS."""
    found = Counter((FLAGS[call.success], _verdict_kind(call)) for call in evaluation.calls)
    return [{"flag": flag} | {verdict: found[flag, verdict] for verdict in VERDICTS} for flag in FLAGS.values()]


def _verdict_kind(call: ToolCallResult) -> str:
    if call.score is None:
        return "no verdict"
    if call.execution_failed:
        return "failed"
    return "ran, score 1" if call.score >= 0.5 else "ran, score 0"


ERROR_COLUMNS = ("error_class", "tool_name", "calls", "not_flagged", "class_calls", "row", "input", "output")


def errors_rows(evaluation: Evaluation, examples: int = 1) -> list[Row]:
    """Failed calls by error class and tool, most frequent class first; `errors_frame` explains the keys."""
    found: dict[tuple[str, str], list[tuple[int, ToolCallResult]]] = {}
    for row, call in zip(evaluation.row_numbers, evaluation.calls, strict=True):
        if call.failed or call.error_class:
            found.setdefault((call.error_class or UNCLASSIFIED, call.tool_name), []).append((row, call))
    sizes = Counter({pair[0]: 0 for pair in found})
    for (error_class, _), members in found.items():
        sizes[error_class] += len(members)
    order = sorted(found, key=lambda pair: (-sizes[pair[0]], pair[0], -len(found[pair]), pair[1]))
    not_flagged = {pair: sum(not call.failed for _, call in members) for pair, members in found.items()}
    rows = (
        (*pair, len(found[pair]), not_flagged[pair], sizes[pair[0]], row, input_text(call), call.output)
        for pair in order
        for row, call in found[pair][:examples]
    )
    return [dict(zip(ERROR_COLUMNS, row, strict=True)) for row in rows]


def input_text(call: ToolCallResult) -> str:
    """The call's input on one line: JSON, or the text itself where it is no object."""
    return call.input if isinstance(call.input, str) else json.dumps(call.input, ensure_ascii=False)


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


# ---------------------------------------------------------------- DataFrames


def frame(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> pd.DataFrame:
    """Rows as a DataFrame. Raises ConfigError where pandas is not installed."""
    need_pandas()
    import pandas as pd

    return pd.DataFrame([*rows], columns=[*columns])


def calls_frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row per recorded call, in input order.

    Columns: row (from 0), tool_name, success, execution_failed, failed (nullable booleans; `failed` is the recorded
    flag where known, else what the judge saw), score (float, NaN = no verdict), evaluation_status, judge, evaluation,
    error_class, create_time (aware, in the evaluation's time zone), time_cost (seconds), token_cost, id (by which
    claims name a call; empty where it was not stored), input (JSON text).
    """
    need_pandas()
    import pandas as pd

    rows = calls_rows(evaluation)
    made = pd.DataFrame({name: pd.array([row[name] for row in rows], dtype=kind) for name, kind in _CALLS.items()})
    times = pd.Series(pd.to_datetime([row["create_time"] for row in rows], utc=True))
    made.insert(list(_CALLS).index("time_cost"), "create_time", times.dt.tz_convert(evaluation.time_zone))
    return made


# The types of the columns; `create_time` stands before `time_cost`.
_CALLS: dict[str, Any] = {
    "row": "int64",
    "tool_name": "object",
    "success": "boolean",
    "execution_failed": "boolean",
    "failed": "boolean",
    "score": "float64",
    "evaluation_status": None,
    "judge": None,
    "evaluation": "object",
    "error_class": None,
    "time_cost": "float64",
    "token_cost": "float64",
    "id": "object",
    "input": "object",
}


def tools_frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row per tool, most calls first.

    Over all recorded calls: calls, failures, success_rate (share of calls that did not fail, by the recorded flag where
    there is one, else by the judge, among those whose outcome is known), low, high (95 % Wilson), avg_score, worked
    (calls of which neither the flag nor the judge says that they failed), worked_rate, worked_low, worked_high,
    flag_wrong (calls flagged as a success that the judge saw fail: the difference of the two rates), scored, unknown
    (outcome not known), unscored, avg_time_cost, p95_time_cost (seconds), avg_token_cost, known_times, known_tokens,
    first_call, last_call, judges.
    Over the window (the calls that the store kept): window_calls, window_failures, window_success_rate, window_score.
    Of the guidance: analyzed_calls, guidance_characters, claims, author.
    """
    return frame(tools_rows(evaluation), TOOL_COLUMNS).astype(TOOL_COLUMNS)


def flag_and_judge_frame(evaluation: Evaluation) -> pd.DataFrame:
    """How the recorded flag and the judge agree, all recorded calls.

    Rows: the flag (recorded success, recorded failure, no flag); columns: what the judge said (failed; ran, score 0;
    ran, score 1; no verdict). Cells are calls; the sum of all cells is the number of recorded calls.
    """
    return frame(flag_and_judge_rows(evaluation), ("flag", *VERDICTS)).set_index("flag")


def errors_frame(evaluation: Evaluation, examples: int = 1) -> pd.DataFrame:
    """Failed calls by error class and tool, all recorded calls; most frequent class first.

    A call counts where it failed (`ToolCallResult.failed`) or the judge named an error class. Columns: error_class,
    tool_name, calls, not_flagged (of these: did not fail as far as the recorded flag says), class_calls (of the class
    in all tools), row, input and output of the first such call.
    """
    return frame(errors_rows(evaluation, examples), ERROR_COLUMNS)
