"""Dumps of a workspace: JSON Lines of ToolMemory objects that ReMe and toolmem read.

ReMe needs a number where toolmem has None: this is written as -1 (tokens) or 0.0 (seconds, score).
The exact values are in `metadata.toolmem`, which ReMe keeps. Dumps that ReMe wrote, and the vector
nodes of its local store, have no such key; they are read as well.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from toolmem.errors import RequestError
from toolmem.files import replacing
from toolmem.formats.chat import json_digest
from toolmem.formats.files import read_lines
from toolmem.formats.records import REME_TIME, read_records, read_time
from toolmem.models.calls import JudgeIdentity, ToolCallResult
from toolmem.models.guidance import Guidance
from toolmem.models.tools import ToolRecord, Window
from toolmem.text.display import plain_line, plain_lines
from toolmem.text.forms import word_set

EXACT = "toolmem"  # the key under `metadata`
MAX_TEXT = 20_000  # characters of a tool's guidance
MAX_SEQ = 2**53
MAX_PROBLEMS = 20  # that one error lists
_EXACT_FIELDS = word_set(
    "id create_time input success time_cost token_cost context score evaluation_status"
    " execution_failed error_class judge"
)
_JUDGE = JudgeIdentity("imported", "unknown", "")


def dump_line(window: Window[ToolCallResult], score: float | None) -> bytes:
    """Write a tool's window as a line of a dump, without line end. `score`: its calls' average."""
    record = window.record
    guidance = record.guidance
    body = {
        "workspace_id": record.workspace,
        "memory_id": record.memory_id,
        "memory_type": "tool",
        "when_to_use": record.tool_name,
        "content": guidance.text if guidance else "",
        "score": score or 0.0,
        "time_created": record.time_created.strftime(REME_TIME),
        "time_modified": record.time_modified.strftime(REME_TIME),
        "author": guidance.author if guidance else "",
        "tool_call_results": [_call_object(call) for call in window.calls],
        "metadata": {EXACT: msgspec.to_builtins(record)},
    }
    return msgspec.json.encode(body)


def _call_object(call: ToolCallResult) -> dict[str, Any]:
    whole = msgspec.to_builtins(call)
    exact = {name: value for name, value in whole.items() if name in _EXACT_FIELDS}
    is_list = isinstance(call.input, list)
    return {
        "create_time": call.create_time.strftime(REME_TIME),
        "tool_name": call.tool_name,
        "input": json.dumps(call.input, ensure_ascii=False) if is_list else call.input,
        "output": call.output,
        "success": call.failed_by_flag is not True,
        "time_cost": call.time_cost or 0.0,
        "token_cost": -1 if call.token_cost is None else call.token_cost,
        "summary": call.summary,
        "evaluation": call.evaluation,
        "score": call.score or 0.0,
        "is_summarized": call.is_summarized,
        "metadata": {**call.metadata, EXACT: exact},
    }


def write_dump(path: Path, lines: Iterable[bytes]) -> int:
    """Write lines to a file that only this user can read, and return their number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with replacing(path, 0o600, keeps_mode=False) as out:
        for line in lines:
            out.write(line + b"\n")
            count += 1
    return count


class DumpRead(NamedTuple):
    """What a dump holds. `passed_over`: numbers of lines of another memory type, by this type."""

    windows: list[Window[ToolCallResult]]
    passed_over: dict[str, list[int]]


def read_dump(path: Path, workspace: str, now: datetime) -> DumpRead:
    """Read a dump for `workspace`; a missing time is `now`. RequestError names the bad lines."""
    read = DumpRead([], {})
    problems: list[str] = []
    for line in read_lines(path):
        place = f"{path.name}, line {line.number}"
        if line.error:
            problems.append(f"{place}: {line.error}")
            continue
        try:
            found = _window(line.value, workspace, now)
        except (ValueError, TypeError, KeyError) as error:
            what = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
            problems.append(f"{place}: {what}")
            continue
        if isinstance(found, str):
            read.passed_over.setdefault(found, []).append(line.number)
        else:
            read.windows.append(found)
    if problems:
        more = [f"and {len(problems) - MAX_PROBLEMS} more"] if len(problems) > MAX_PROBLEMS else []
        message = "\n".join(["nothing was loaded:", *problems[:MAX_PROBLEMS], *more])
        raise RequestError(message, field="path")
    return read


def _window(body: Any, workspace: str, now: datetime) -> Window[ToolCallResult] | str:
    """Read a tool's window. Returns the memory type instead if it is not `tool`."""
    if not isinstance(body, Mapping):
        raise ValueError(f"expected an object, got {type(body).__name__}")
    body = _from_vector_node(body)
    if body.get("memory_type") != "tool":
        return str(body.get("memory_type") or "unknown")
    name = body.get("when_to_use")
    if not isinstance(name, str) or not name.strip():
        raise ValueError("when_to_use: expected the tool's name")
    results = body.get("tool_call_results") or []
    metadata = body.get("metadata") or {}
    if not isinstance(results, list) or not isinstance(metadata, Mapping):
        raise ValueError("tool_call_results: expected a list; metadata: expected an object")
    exact = metadata.get(EXACT)
    if isinstance(exact, Mapping) and "workspace" in exact:  # earlier versions have none
        record = msgspec.convert(exact, ToolRecord)
        if record.tool_name != name or not 0 <= record.last_seq <= MAX_SEQ:
            raise ValueError(f"metadata.{EXACT}: does not fit the tool {name!r}")
        guidance = _safe_guidance(record.guidance) if record.guidance else None
        calls = [_exact_call(each) for each in results]
        return Window(replace(record, workspace=workspace, guidance=guidance), calls)
    text = plain_lines(str(body.get("content") or ""), MAX_TEXT)
    author = str(body.get("author") or "unknown")
    record = ToolRecord(
        workspace=workspace,
        tool_name=name,
        memory_id=str(body.get("memory_id") or os.urandom(8).hex()),
        time_created=read_time(body.get("time_created"), now, "time_created"),
        time_modified=read_time(body.get("time_modified"), now, "time_modified"),
        guidance=Guidance(text=text, author=author, written=text) if text else None,
    )
    is_own = isinstance(exact, Mapping)
    calls = [_exact_call(e) for e in results] if is_own else _calls_of_reme(results, name, now)
    return Window(record, calls)


def _safe_guidance(guidance: Guidance) -> Guidance:
    """The guidance in plain lines: a file may hold text that looks like a part of a prompt."""
    return replace(
        guidance,
        text=plain_lines(guidance.text, MAX_TEXT),
        written=plain_lines(guidance.written, MAX_TEXT),
        lines=[replace(line, text=plain_line(line.text)) for line in guidance.lines],
    )


def _from_vector_node(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the memory in a vector node's metadata, as ReMe's local store keeps it.

    The memory's own metadata is an object or JSON text.
    """
    outer = body.get("metadata")
    if "unique_id" not in body or not isinstance(outer, Mapping) or "memory_type" not in outer:
        return body
    inner = outer.get("metadata")
    inner = json.loads(inner or "{}") if isinstance(inner, str) else inner
    names = {"memory_id": body["unique_id"], "when_to_use": body.get("content", "")}
    return {**outer, "metadata": inner, **names}


def _exact_call(raw: Mapping[str, Any]) -> ToolCallResult:
    metadata = dict(raw["metadata"])
    exact = {key: value for key, value in metadata.pop(EXACT).items() if key != "seq"}
    unknown = dict.fromkeys(("success", "time_cost", "token_cost", "score"))
    return msgspec.convert({**raw, **unknown, **exact, "metadata": metadata}, ToolCallResult)


def _calls_of_reme(results: list[Any], name: str, now: datetime) -> list[ToolCallResult]:
    """Calls with ids from their content, so that a second load adds nothing. Raises ValueError."""
    reme = {"tool_name": name, "call_hash": ""}  # with a hash, a time cost of 0 is unknown
    given = [{**reme, **each} if isinstance(each, Mapping) else each for each in results]
    read = read_records(given, now)
    if read.failures:
        first = read.failures[0]
        raise ValueError(f"tool_call_results[{first.index}]: {first.error}")
    seen: Counter[str] = Counter()
    calls = []
    for (_, call), raw in zip(read.calls, given, strict=True):
        call.metadata.pop("call_hash", None)
        parts = (call.tool_name, call.create_time, call.input, call.output)
        digest = json_digest(parts).hex()
        seen[digest] += 1
        calls.append(_with_verdict(replace(call, id=f"{digest}-{seen[digest]}"), raw))
    return calls


def _with_verdict(call: ToolCallResult, raw: Mapping[str, Any]) -> ToolCallResult:
    summary = str(raw.get("summary") or "")
    evaluation = str(raw.get("evaluation") or "")
    score = raw.get("score")
    if not (summary or evaluation) or not isinstance(score, int | float):
        return call
    return replace(
        call,
        summary=summary,
        evaluation=evaluation,
        score=1.0 if score >= 0.5 else 0.0,
        evaluation_status="ok",
        execution_failed=None if call.success is None else not call.success,
        judge=_JUDGE,
        is_summarized=raw.get("is_summarized") is True,
    )
