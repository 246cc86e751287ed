"""The report's files beside the page: calls.csv, tools.csv, skips.csv, errors.csv, claims.csv and summary.json.

CSV: UTF-8, comma, one header line, lines end in a line feed, a text with a comma, a quote or a line break is quoted.
Booleans are `true` and `false`, an unknown value is an empty field. Texts are written as they were recorded, nothing is
cut; one that a spreadsheet would calculate (it begins with `=`, `+`, `-` or `@` and is no number) has an apostrophe
in front.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolmem.research.report.cited_calls import CLAIM_COLUMNS, claims_rows
from toolmem.research.report.corrected_rates import corrected_json, rates_of
from toolmem.research.report.findings import Evaluation
from toolmem.research.report.recorded import (
    ERROR_COLUMNS,
    TOOL_COLUMNS,
    Row,
    errors_rows,
    recorded_rows,
    tools_rows,
    totals,
)
from toolmem.research.report.savings import SKIP_COLUMNS, runs_rows, skips_rows

if TYPE_CHECKING:
    import pandas as pd

# Spaces, controls and full-width signs count: what reads the file may pass over the former and fold the latter.
_FORMULA = re.compile(r"(?![+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$)[\s\x00-\x1f\u200b\ufeff]*[=+@＝＋－＠-]")

CALL_COLUMNS = (
    "row",
    "tool_name",
    "success",
    "execution_failed",
    "score",
    "evaluation_status",
    "judge",
    "evaluation",
    "id",
    "input",
)


def write_tables(evaluation: Evaluation, out_dir: Path | str) -> dict[str, Path]:
    """Write the files into `out_dir` (made if absent) and answer their paths by name.

    calls.csv has one row per recorded call in input order, tools.csv one per tool, skips.csv one per summary run and
    tool, errors.csv one per error class and tool, claims.csv one per claim; summary.json is described at `summary`.
    """
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    tables: dict[str, tuple[Iterable[str], list[Row]]] = {
        "calls.csv": (CALL_COLUMNS, recorded_rows(evaluation)),
        "tools.csv": (TOOL_COLUMNS, tools_rows(evaluation)),
        "skips.csv": (SKIP_COLUMNS, skips_rows(evaluation)),
        "errors.csv": (ERROR_COLUMNS, errors_rows(evaluation)),
        "claims.csv": (CLAIM_COLUMNS, claims_rows(evaluation)),
    }
    for name, (columns, rows) in tables.items():
        write_rows(list(columns), ([row[column] for column in columns] for row in rows), folder / name)
    text = json.dumps(summary(evaluation), ensure_ascii=False, indent=2)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")
    return {name: folder / name for name in [*tables, "summary.json"]}


def summary(evaluation: Evaluation) -> dict[str, Any]:
    """summary.json: keys stay, keys may be added. Unknown figures are null.

    source      inputs, format, ignore_success, notes, workspace, store
    judge       identity, meaning, seen (the identities that judged the calls)
    writer, embedder, backend, settings, time_zone, started, toolmem
    calls       calls, tools, failures, unknown, success_rate, low, high, avg_score, worked, worked_rate, worked_low,
                worked_high, flag_wrong, scored, unscored, known_times, known_tokens: all recorded calls
    corrected   null without labels; else all and tools, each with by_judge, corrected, low, high, labels, pooled: the
                calls with a verdict, corrected by the labels of a person
    errors      calls per error class, all recorded calls
    summaries   per run: run, summarized, skipped, failed (tools), not_analyzed (calls), requests, prompt_tokens,
                completion_tokens, saved_requests, saved_prompt_tokens, estimated, seconds, answer
    spent       per op: requests, prompt_tokens, completion_tokens, cost, currency, ... (a dry run's: counted, not sent)
    phases      seconds per phase, in the order in which they ran
    failures    records that could not be used: where, tool_name, error
    """
    return {
        "toolmem": evaluation.toolmem_version,
        "started": evaluation.started.isoformat(),
        "time_zone": evaluation.time_zone,
        "source": {
            "inputs": evaluation.inputs,
            "format": evaluation.input_format,
            "ignore_success": evaluation.ignore_success,
            "notes": evaluation.notes,
            "workspace": evaluation.workspace,
            "store": evaluation.store,
        },
        "judge": {
            "identity": evaluation.judge,
            "meaning": evaluation.judge_meaning,
            "seen": sorted({str(call.judge) for call in evaluation.calls if call.judge is not None}),
        },
        "backend": evaluation.backend,
        "writer": evaluation.writer,
        "embedder": evaluation.embedder,
        "settings": evaluation.settings,
        "calls": totals(evaluation),
        "corrected": corrected_json(rates_of(evaluation)),
        "errors": {row["error_class"]: row["class_calls"] for row in errors_rows(evaluation)},
        "summaries": [run | {"seconds": round(run["seconds"], 10)} for run in runs_rows(evaluation)],
        "spent": {op: usage.model_dump(mode="json") for op, usage in evaluation.spent.items()},
        "phases": evaluation.phases,
        "failures": [failure.model_dump() for failure in evaluation.failures],
    }


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as this module's docstring says."""
    known = frame.astype(object).where(frame.notna(), None)
    write_rows(list(known.columns), known.itertuples(index=False, name=None), path)


def write_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], path: Path) -> None:
    """The same for rows of plain values; None is unknown. The folder is made if absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        file.write(",".join(_field(name) for name in columns) + "\n")
        file.writelines(",".join(map(_field, row)) + "\n" for row in rows)


def for_spreadsheets(text: str) -> str:
    """With an apostrophe in front where a spreadsheet would calculate it."""
    return f"'{text}" if _FORMULA.match(text) else text


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = for_spreadsheets(value) if isinstance(value, str) else str(value)
    # csv.writer before Python 3.13 leaves a lone carriage return unquoted, and readers then see one more row
    if any(mark in text for mark in ',"\r\n;\t'):
        return '"' + text.replace('"', '""') + '"'
    return text
