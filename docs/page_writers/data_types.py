"""What travels (calls, memories, rules, responses), and the columns of the files that the report writes."""

from __future__ import annotations

import csv
import dataclasses
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import create_model
from pydantic.fields import FieldInfo

from page_writers.markdown import GENERATED, code, comments, default_text, docstring, field_type, page, table
from toolmem.rows import Row

_OTEL_HEAD = """\
The column "OpenTelemetry" holds the attribute that means the same in the semantic conventions for generative AI
(repository open-telemetry/semantic-conventions-genai, status Development: `docs/gen-ai/execute-tool.md` for calls,
`docs/gen-ai/gen-ai-events.md` for verdicts, the registry of `gen_ai.*` attributes for requests to models). A call's
`metadata.conversation_id` is `gen_ai.conversation.id`. Where it is empty, the conventions have no such name.
"""
_TYPES_HEAD = f"""\
All times are aware and in UTC. `null` means unknown, never zero.

{_OTEL_HEAD}
"""
_FILES_HEAD = (
    """\
`toolmem evaluate` writes these beside `report.html`. CSV files are UTF-8 with one header line; booleans are `true` and
`false`, an unknown value is an empty field. A text that a spreadsheet would calculate (it begins with `=`, `+`, `-` or
`@` and is no number) has an apostrophe in front. An example value of each column comes from an evaluation of the
project's own sample.

"""
    + _OTEL_HEAD
)
_TOOL = {"tool_name": "gen_ai.tool.name"}
_CALL = {
    **_TOOL,
    "input": "gen_ai.tool.call.arguments",
    "output": "gen_ai.tool.call.result",
    "id": "gen_ai.tool.call.id",
    "error_class": "error.type",
    "score": "gen_ai.evaluation.score.value",
    "evaluation": "gen_ai.evaluation.explanation",
}
_REQUEST = {
    "model": "gen_ai.request.model",
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
}
OTEL: dict[str, dict[str, str]] = {  # by type or file: our name -> the name in OpenTelemetry's conventions
    "ToolCallResult": _CALL,
    "Verdict": _CALL,
    "JudgeIdentity": _REQUEST,
    "Usage": _REQUEST,
    "ToolSchema": {"name": "gen_ai.tool.name", "description": "gen_ai.tool.description"},
    "ToolMemory": {"when_to_use": "gen_ai.tool.name"},
    "ToolMemoryRule": _TOOL,
    "calls.csv": _CALL,
    "tools.csv": _TOOL,
    "skips.csv": _TOOL,
    "errors.csv": {**_TOOL, "error_class": "error.type"},
    "claims.csv": _TOOL,
}


def data_types() -> str:
    from toolmem import models

    parts = [_TYPES_HEAD + GENERATED]
    for name in (
        *("ToolCallResult", "ToolMemory", "FlowResponse", "ToolStatistics", "LifetimeCounters", "Claim", "Guidance"),
        *("Verdict", "JudgeIdentity", "Usage", "ToolSchema", "ToolMemoryRule"),
    ):
        cls: Any = getattr(models, name)
        said = comments(cls)
        rows = [
            (f"`{key}`", field_type(field), default_text(field), said.get(key, ""))
            for key, field in _fields(cls).items()
        ]
        parts += [f"## {name}", docstring(cls), _named(name, ["field", "type", "default", "meaning"], rows)]
    return page("Data types", *parts)


def _named(name: str, head: list[str], rows: list[tuple[str, ...]]) -> str:
    """A table of fields, with OpenTelemetry's names where there are any."""
    known = OTEL.get(name, {})
    names = [f"`{known[row[0].strip('`')]}`" if row[0].strip("`") in known else "" for row in rows]
    if not any(names):
        return table(head, rows)
    return table([*head, "OpenTelemetry"], [(*row, other) for row, other in zip(rows, names, strict=True)])


def _fields(cls: Any) -> Mapping[str, FieldInfo]:
    """Of a model, or of a dataclass that stands in models."""
    if not issubclass(cls, Row):
        return cls.model_fields
    hints = get_type_hints(cls, include_extras=True)
    known: dict[str, Any] = {each.name: (hints[each.name], each) for each in dataclasses.fields(cls)}
    return create_model(cls.__name__, **known).model_fields


def files() -> str:
    from toolmem.research.evaluation import evaluate
    from toolmem.research.report import cited_calls, csv_files, recorded, savings

    frame_of = {
        "calls.csv": recorded.calls_frame,
        "tools.csv": recorded.tools_frame,
        "skips.csv": savings.skips_frame,
        "errors.csv": recorded.errors_frame,
        "claims.csv": cited_calls.claims_frame,
    }
    parts = [_FILES_HEAD + "Written by `python docs/generate.py`."]
    with tempfile.TemporaryDirectory() as folder:
        csv_files.write_tables(evaluate(out=folder, limit=300), folder)
        for name, frame in frame_of.items():
            with (Path(folder) / name).open(encoding="utf-8", newline="") as file:
                rows = list(csv.reader(file))
            columns = [(f"`{column}`", _example(rows[1:], place)) for place, column in enumerate(rows[0])]
            parts += [f"## {name}", _named(name, ["column", "for example"], columns)]
            parts += [f"As a DataFrame: `toolmem.research.report.{frame.__name__}(evaluation)`.", docstring(frame)]
    described = docstring(csv_files.summary).partition("\n\n")
    parts += ["## summary.json", described[0], code("text", described[2])]
    return page("Files of the report", *parts)


def _example(rows: list[list[str]], place: int) -> str:
    """The first value that is not empty; the version of a judge's rules changes with them."""
    value = next((row[place] for row in rows if row[place]), "").replace("\n", " ")
    value = re.sub(r"@[0-9a-f]{12}", "@...", value)
    return f"`{value[:57]}...`" if len(value) > 60 else f"`{value}`" if value else "(empty)"
