"""Dumps of a workspace: one JSON Lines file of ToolMemory objects, readable by ReMe and by us.

ReMe's `load` wants a number where toolmem knows "unknown": such a field is written as -1 (tokens) or 0.0 (seconds,
score), and its exact value stands in `metadata.toolmem`, which ReMe carries along untouched. Reading takes the exact
value where it is there, and ReMe's own files (memory objects, or the vector nodes of its local store) where it is not.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from toolmem.config.own_folder import make_folder, write_new
from toolmem.errors import RecordError, RequestError
from toolmem.formats.call_records import RecordNotes, read_record
from toolmem.models import ToolCallResult, ToolMemory
from toolmem.protocols import Clock

EXACT = "toolmem"  # key under `metadata` that holds exact values
_REME_TIME = "%Y-%m-%d %H:%M:%S"  # as ReMe writes times: local, without a zone
_EXACT_OF_CALL = frozenset(
    (
        *("id", "success", "score", "time_cost", "token_cost", "context", "evaluation_status", "create_time"),
        *("execution_failed", "error_class", "judge", "seq"),
    )
)
_MOST_SHOWN = 20  # problems spelled out in one error


def dump_line(memory: ToolMemory) -> str:
    """One line of a dump, without the line end. `memory` holds its calls."""
    body = {
        "workspace_id": memory.workspace_id,
        "memory_id": memory.memory_id,
        "memory_type": "tool",
        "when_to_use": memory.when_to_use,
        "content": memory.content,
        "score": 0.0 if memory.score is None else memory.score,
        "time_created": memory.time_created.strftime(_REME_TIME),
        "time_modified": memory.time_modified.strftime(_REME_TIME),
        "author": memory.author,
        "tool_call_results": [_dumped_call(call) for call in memory.tool_call_results],
        "metadata": {
            EXACT: {
                "time_created": memory.time_created.isoformat(),
                "time_modified": memory.time_modified.isoformat(),
                "metadata": memory.metadata,
            }
        },
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _dumped_call(call: ToolCallResult) -> dict[str, Any]:
    exact = call.model_dump(mode="json", include=set(_EXACT_OF_CALL))
    shown: dict[str, Any] | str
    if isinstance(call.input, list):
        exact["input"] = call.input
        shown = json.dumps(call.input, ensure_ascii=False)
    else:
        shown = call.input
    return {
        "create_time": call.create_time.strftime(_REME_TIME),
        "tool_name": call.tool_name,
        "input": shown,
        "output": call.output,
        "success": call.failed is not True,
        "time_cost": 0.0 if call.time_cost is None else call.time_cost,
        "token_cost": -1 if call.token_cost is None else call.token_cost,
        "summary": call.summary,
        "evaluation": call.evaluation,
        "score": 0.0 if call.score is None else call.score,
        "is_summarized": call.is_summarized,
        "metadata": {**call.metadata, EXACT: exact},
    }


def write_dump(path: Path, memories: Iterable[ToolMemory]) -> int:
    """Write a dump for this user alone, in one step: readers see the old file or the whole new one.

    Answers how many memories.
    """
    make_folder(path.parent)
    # Two dumps of one workspace at once each have a file of their own until they are whole.
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    count = 0
    try:
        write_new(unfinished)
        with unfinished.open("w", encoding="utf-8", newline="\n") as out:
            for memory in memories:
                out.write(dump_line(memory) + "\n")
                count += 1
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return count


@dataclass
class DumpRead:
    """A whole dump, validated."""

    memories: list[ToolMemory] = field(default_factory=list)
    passed_over: list[dict[str, Any]] = field(default_factory=list)  # {line, memory_type} of other memory types


def read_dump(path: Path, *, workspace: str, clock: Clock, time_zone: str) -> DumpRead:
    """Read and validate the whole file before anything is changed. Raises RequestError that names every bad line."""
    if not path.is_file():
        raise RequestError(f"path: there is no dump {path.name!r}", field="path")
    read = DumpRead()
    problems: list[str] = []
    for number, line in _lines(path):
        try:
            memory = _read_line(line, workspace, clock, time_zone)
        except (RecordError, ValidationError, ValueError, TypeError, KeyError, RecursionError) as error:
            problems.append(f"{path.name}, line {number}: {_reason(error)}")
            continue
        if isinstance(memory, str):
            read.passed_over.append({"line": number, "memory_type": memory})
        else:
            read.memories.append(memory)
    if problems:
        more = [f"... and {len(problems) - _MOST_SHOWN} more"] if len(problems) > _MOST_SHOWN else []
        raise RequestError("\n".join(["nothing was loaded:", *problems[:_MOST_SHOWN], *more]), field="path")
    return read


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    # not splitlines(): a text may hold U+2028, which ends a line there but not in JSON Lines
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield number, line


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)


def _read_line(line: str, workspace: str, clock: Clock, time_zone: str) -> ToolMemory | str:
    """A tool memory, or the name of another memory type."""
    body = json.loads(line)
    if not isinstance(body, dict):
        raise ValueError(f"expected a memory object, got {type(body).__name__}")
    body = _from_vector_node(body)
    memory_type = body.get("memory_type", "")
    if memory_type != "tool":
        return str(memory_type) or "unknown"
    tool_name = body.get("when_to_use")
    if not isinstance(tool_name, str) or not tool_name.strip():
        raise ValueError("when_to_use: the tool's name is required")
    results = body.get("tool_call_results") or []
    if not isinstance(results, list):
        raise ValueError("tool_call_results: expected a list")
    given = body.get("metadata") or {}
    if not isinstance(given, Mapping):
        raise ValueError("metadata: expected an object")
    exact = given.get(EXACT) or {}
    return ToolMemory(
        workspace_id=workspace,
        memory_id=str(body.get("memory_id") or ""),
        when_to_use=tool_name,
        content=str(body.get("content") or ""),
        score=None,  # follows from the calls
        time_created=_time(exact, body, "time_created", time_zone),
        time_modified=_time(exact, body, "time_modified", time_zone),
        author=str(body.get("author") or ""),
        tool_call_results=[
            _read_call(raw, index, tool_name, clock=clock, time_zone=time_zone) for index, raw in enumerate(results)
        ],
        metadata=exact["metadata"] if "metadata" in exact else dict(given),
    )


def _from_vector_node(body: dict[str, Any]) -> dict[str, Any]:
    """ReMe's local store keeps vector nodes: the memory lies in the node's metadata.

    From 0.2.0.4 on the memory's own metadata, inside it, is JSON text; before, it is an object.
    """
    metadata = body.get("metadata")
    if "unique_id" not in body or not isinstance(metadata, Mapping) or "memory_type" not in metadata:
        return body
    inner = metadata.get("metadata")
    if isinstance(inner, str):
        inner = _object(inner, "metadata.metadata") if inner.strip() else {}
    return {
        **metadata,
        "metadata": inner,
        "memory_id": body["unique_id"],
        "workspace_id": body.get("workspace_id", ""),
        "when_to_use": body.get("content", ""),
    }


def _object(text: str, place: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"{place}: expected an object as JSON text, got {type(value).__name__}")
    return value


def _read_call(raw: Any, index: int, tool_name: str, *, clock: Clock, time_zone: str) -> ToolCallResult:
    if not isinstance(raw, Mapping):
        raise ValueError(f"tool_call_results[{index}]: expected an object, got {type(raw).__name__}")
    raw = dict(raw)
    metadata = dict(raw.get("metadata") or {})
    exact = metadata.pop(EXACT, None)
    raw["metadata"] = metadata
    raw.setdefault("tool_name", tool_name)
    if isinstance(exact, Mapping):
        raw.update(exact)
    else:  # ReMe scores every call that it keeps; it has neither ids nor a status
        raw["evaluation_status"] = "ok" if raw.get("evaluation") or raw.get("summary") else "pending"
        if raw.get("time_cost") == 0.0:  # its default, where nobody measured
            raw["time_cost"] = None
        if raw["evaluation_status"] == "pending":
            raw["score"] = None
    return read_record(raw, index, clock=clock, time_zone=time_zone, notes=RecordNotes(), trust=True)


def _time(exact: Mapping[str, Any], body: Mapping[str, Any], name: str, time_zone: str) -> datetime:
    value = exact.get(name) or body.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected a time, got {value!r}")
    read = datetime.fromisoformat(value)
    if read.tzinfo is None:
        read = read.replace(tzinfo=ZoneInfo(time_zone))
    return read.astimezone(UTC)
