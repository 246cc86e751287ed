"""Recorded calls and tools as DataFrames. Every frame here counts all recorded calls unless a column says `window`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolmem.config.extras import need_pandas
from toolmem.research.report.evaluation import Evaluation
from toolmem.research.report.rows import (
    ERROR_COLUMNS,
    TOOL_COLUMNS,
    VERDICTS,
    calls_rows,
    errors_rows,
    flag_and_judge_rows,
    tools_rows,
)

if TYPE_CHECKING:
    import pandas as pd


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
    frame = pd.DataFrame({name: pd.array([row[name] for row in rows], dtype=kind) for name, kind in _CALLS.items()})
    times = pd.Series(pd.to_datetime([row["create_time"] for row in rows], utc=True))
    place = list(_CALLS).index("time_cost")
    frame.insert(place, "create_time", times.dt.tz_convert(evaluation.time_zone))
    return frame


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
    need_pandas()
    import pandas as pd

    return pd.DataFrame(tools_rows(evaluation), columns=list(TOOL_COLUMNS)).astype(TOOL_COLUMNS)


def flag_and_judge_frame(evaluation: Evaluation) -> pd.DataFrame:
    """How the recorded flag and the judge agree, all recorded calls.

    Rows: the flag (recorded success, recorded failure, no flag); columns: what the judge said (failed; ran, score 0;
    ran, score 1; no verdict). Cells are calls; the sum of all cells is the number of recorded calls.
    """
    need_pandas()
    import pandas as pd

    return pd.DataFrame(flag_and_judge_rows(evaluation)).set_index("flag")[list(VERDICTS)]


def errors_frame(evaluation: Evaluation, examples: int = 1) -> pd.DataFrame:
    """Failed calls by error class and tool, all recorded calls; most frequent class first.

    A call counts where it failed (`ToolCallResult.failed`) or the judge named an error class. Columns: error_class,
    tool_name, calls, not_flagged (of these: did not fail as far as the recorded flag says), class_calls (of the class
    in all tools), row, input and output of the first such call.
    """
    need_pandas()
    import pandas as pd

    return pd.DataFrame(errors_rows(evaluation, examples), columns=list(ERROR_COLUMNS))
