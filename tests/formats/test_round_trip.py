"""The packaged recording, written in the formats of others, is read back as the same calls."""

import csv
import io
import json
from datetime import UTC, timedelta

import pytest
from formats.conftest import NOW, lines

from toolmem.formats.recording import read_recording
from toolmem.research.evaluation import sample


def iso(moment):
    return moment.astimezone(UTC).isoformat()


def end(call):
    return call.create_time + timedelta(seconds=call.time_cost or 0)


def claude_code(calls):
    def line(call, number, role, when, content):
        about = {"sessionId": call.conversation_id, "uuid": f"{number}{role}", "type": role}
        return {**about, "timestamp": iso(when), "message": {"role": role, "content": content}}

    for number, call in enumerate(calls):
        asked = {"type": "tool_use", "id": f"toolu_{number}", "name": call.tool_name}
        answer = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": call.output}
        answer["is_error"] = call.success is False
        yield line(call, number, "user", call.create_time, call.context)
        yield line(call, number, "assistant", call.create_time, [{**asked, "input": call.input}])
        yield line(call, number, "user", end(call), [answer])


def otel(calls):
    for number, call in enumerate(calls):
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool_name,
            "gen_ai.conversation.id": call.conversation_id,
            "gen_ai.tool.call.arguments": json.dumps(call.input),
            "gen_ai.tool.call.result": call.output,
        }
        pairs = [{"key": key, "value": {"stringValue": v}} for key, v in attributes.items()]
        span = {"traceId": f"{number:032x}", "spanId": f"{number:016x}", "attributes": pairs}
        span["startTimeUnixNano"] = str(round(call.create_time.timestamp() * 1_000) * 1_000_000)
        span["endTimeUnixNano"] = str(round(end(call).timestamp() * 1_000_000) * 1_000)
        span["status"] = {"code": 1 if call.success else 2}
        yield {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def table(calls):
    text = io.StringIO()
    rows = csv.writer(text)
    columns = ("tool", "args", "output", "status", "session_id", "started_at", "ended_at", "prompt")
    rows.writerow(columns)
    for call in calls:
        status = "ok" if call.success else "error"
        about = (status, call.conversation_id, iso(call.create_time), iso(end(call)), call.context)
        rows.writerow((call.tool_name, json.dumps(call.input), call.output, *about))
    return text.getvalue()


def compared(call, fields):
    seconds = None if call.time_cost is None else round(call.time_cost, 3)
    known = (call.conversation_id, call.tool_name, call.input, call.output, call.success, seconds)
    context = call.context if "context" in fields else ""
    return (*known, call.create_time.isoformat(timespec="milliseconds"), context)


@pytest.mark.parametrize(
    ("name", "write", "fields"),
    [
        ("a.jsonl", lambda calls: lines(*claude_code(calls)), {"context"}),
        ("b.jsonl", lambda calls: lines(*otel(calls)), ()),
        ("c.csv", table, {"context"}),
    ],
)
def test_a_format_holds_the_calls(tmp_path, name, write, fields):
    paths, _ = sample()
    calls = read_recording(paths, NOW).calls
    for call in calls:
        call.create_time = call.create_time.astimezone(UTC)
    (tmp_path / name).write_text(write(calls))
    found = read_recording([tmp_path / name], NOW)
    read, written = ([compared(call, fields) for call in of] for of in (found.calls, calls))
    assert read == written
    assert (found.bad, found.notes) == ([], [])
    assert len({call.id for call in found.calls}) == len(calls)
