"""Write calls in the formats of other programs, for `benchmarks/formats.py`."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from shared import PROJECT

sys.path.append(str(PROJECT / "tests" / "formats"))

from test_round_trip import claude_code, end, iso, lines, otel, table

from toolmem.models.calls import ToolCallResult

Calls = list[ToolCallResult]


def conversations(calls: Calls) -> Iterator[tuple[str, list[tuple[str, ToolCallResult]]]]:
    """Each conversation with its calls, and an id for each call."""
    numbered = ((f"call-{number}", call) for number, call in enumerate(calls))
    for name, group in itertools.groupby(numbered, lambda one: one[1].conversation_id):
        yield name, list(group)


def codex(calls: Calls) -> Iterator[Any]:
    for name, group in conversations(calls):
        first = {"type": "session_meta", "timestamp": iso(group[0][1].create_time)}
        yield {**first, "payload": {"session_id": name}}
        for id, call in group:
            done = {"type": "CommandExecution", "exit_code": int(not call.success)}
            about = {"call_id": id, "name": call.tool_name}
            output = {"type": "function_call_output", "output": call.output, **about}
            for kind, when, payload in (
                ("event_msg", call.create_time, {"type": "user_message", "message": call.context}),
                (
                    "response_item",
                    call.create_time,
                    {"type": "function_call", "arguments": json.dumps(call.input), **about},
                ),
                ("event_msg", end(call), {"type": "x", "item": {"id": id, **done}}),
                ("response_item", end(call), output),
            ):
                yield {"type": kind, "timestamp": iso(when), "payload": payload}


def gemini(calls: Calls) -> Iterator[Any]:
    for name, group in conversations(calls):
        yield {"sessionId": name, "projectHash": "x"}
        for id, call in group:
            yield {"type": "user", "content": call.context, "timestamp": iso(call.create_time)}
            result = [{"functionResponse": {"response": {"output": call.output}}}]
            done = {"id": id, "name": call.tool_name, "args": call.input, "result": result}
            done |= {"status": "success" if call.success else "error", "timestamp": iso(end(call))}
            yield {"type": "gemini", "timestamp": iso(call.create_time), "toolCalls": [done]}


def anthropic(calls: Calls) -> Iterator[Any]:
    for name, group in conversations(calls):
        messages: list[Any] = []
        for id, call in group:
            asked = {"type": "tool_use", "id": id, "name": call.tool_name}
            answer = {"type": "tool_result", "tool_use_id": id, "content": call.output}
            messages += [
                {"role": "user", "content": call.context},
                {"role": "assistant", "content": [{**asked, "input": call.input}]},
                {"role": "user", "content": [{**answer, "is_error": not call.success}]},
            ]
        yield {"id": name, "messages": messages}


def langsmith(calls: Calls) -> Iterator[Any]:
    for number, call in enumerate(calls):
        run = {"id": str(number), "run_type": "tool", "name": call.tool_name, "inputs": call.input}
        run |= {"start_time": iso(call.create_time), "end_time": iso(end(call))}
        run["extra"] = {"metadata": {"thread_id": call.conversation_id}}
        worked = {"outputs": {"output": call.output}}
        yield {**run, **(worked if call.success else {"error": call.output})}


def langfuse(calls: Calls) -> Iterator[Any]:
    for number, call in enumerate(calls):
        about = {"id": str(number), "type": "TOOL", "name": call.tool_name, "input": call.input}
        about |= {"traceId": call.conversation_id, "level": "DEFAULT" if call.success else "ERROR"}
        times = {"startTime": iso(call.create_time), "endTime": iso(end(call))}
        yield {**about, **times, "output": call.output}


def inspect_ai(calls: Calls) -> Iterator[Any]:
    for name, group in conversations(calls):
        events = []
        for id, call in group:
            about = {"event": "tool", "id": id, "function": call.tool_name}
            about |= {"timestamp": iso(call.create_time), "completed": iso(end(call))}
            error = None if call.success else {"message": call.output}
            about |= {"arguments": call.input, "result": call.output, "error": error}
            events.append(about)
        yield {"id": name, "epoch": 1, "input": group[0][1].context, "events": events}


WRITERS: tuple[Callable[[Calls], Iterable[Any]], ...] = (
    claude_code, codex, gemini, otel, langfuse, langsmith, inspect_ai, anthropic,
)  # fmt: skip


def texts(calls: Calls) -> dict[str, str]:
    """What a file in each format holds, by its name."""
    found = {f"{write.__name__}.jsonl": lines(write(calls)) for write in WRITERS}
    return {**found, "table.csv": table(calls)}
