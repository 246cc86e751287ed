"""Requests and responses of the flows, from a real run."""

from __future__ import annotations

import asyncio
import tempfile
from typing import Any

from page_writers.markdown import json_block, page
from page_writers.ops import flow_tables

_HEAD = """\
What each flow takes, and an example of each from a real run on the embedded store with the rule-based check. The same
JSON goes through `toolmem run FLOW --request FILE`, through `app.run(FLOW, **request)` in Python, and over HTTP. Long
parts of the examples are cut (`...`). Written by `python docs/generate.py`.
"""
CALLS = [
    {
        "tool_name": "search",
        "input": {"query": "rain", "limit": 50},
        "output": "Error: limit is at most 10",
        "success": False,
    },
    {"tool_name": "search", "input": {"query": "rain", "limit": 10}, "output": '["umbrella"]', "success": True},
    {"input": {"query": "snow"}, "output": "[]"},
]
EXAMPLES: list[tuple[str, dict[str, Any], str]] = [
    ("add_tool_call_result", {"tool_call_results": CALLS}, "Three records, one of them without a tool's name."),
    ("summary_tool_memory", {"tool_names": "search"}, "The first summary."),
    ("summary_tool_memory", {"tool_names": "search"}, "The same request again: nothing is new."),
    ("retrieve_tool_memory", {"tool_names": ["search", "nosuch"]}, "One tool is known, one is not."),
    (
        "retrieve_tool_memory",
        {"query": "search for rain", "top_k": 1},
        "By a query instead of a name; `similarity` is a cosine.",
    ),
    (
        "capture_tool_rules",
        {"user_message": "Never search for names.", "tool_calls": [{"name": "search", "success": True}]},
        "A turn in which something is demanded.",
    ),
    ("tool_rules_for_prompt", {"tools": ["search"]}, "What the next session is told."),
    ("retry_evaluations", {}, "No kept call is without a verdict."),
    ("rejudge", {"tool_names": "search", "force": True}, "All verdicts of a tool once more."),
    ("vector_store", {"action": "dump"}, "The workspace as a file in `dump_dir`."),
    ("vector_store", {"action": "load"}, "The same file again: nothing is added twice."),
    ("vector_store", {"action": "delete"}, "The tool memories; rules stay."),
    ("vector_store", {"action": "delete_workspace", "confirm": "team"}, "Everything of the workspace."),
]


def flows() -> str:
    answered = asyncio.run(_answers())
    parts = [_HEAD, "## What they take", flow_tables(), "## Examples"]
    for name, request, meaning, response in answered:
        parts += [f"### {name}: {meaning[0].lower()}{meaning[1:].rstrip('.')}"]
        parts += [json_block({"workspace_id": "team", **request}), json_block(shortened(response))]
    return page("Requests and responses", *parts)


async def _answers() -> list[tuple[str, dict[str, Any], str, dict[str, Any]]]:
    from toolmem.app import ToolMemApp
    from toolmem.testing.clock import ManualClock

    answered = []
    with tempfile.TemporaryDirectory() as folder:
        overrides = [f"vector_store.default.params.path='{folder}/memory.db'", f"dump_dir='{folder}/dumps'"]
        async with ToolMemApp(overrides=overrides, clock=ManualClock()) as app:
            without_example = set(app.flows) - {name for name, _, _ in EXAMPLES}
            assert not without_example, f"flows without an example: {without_example}"
            for name, request, meaning in EXAMPLES:
                response = (await app.run_flow(name, workspace_id="team", **request)).model_dump(mode="json")
                answered.append((name, request, meaning, _without(response, folder)))
    return answered


def _without(value: Any, folder: str) -> Any:
    if isinstance(value, dict):
        return {key: _without(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [_without(item, folder) for item in value]
    return value.replace(f"{folder}/dumps", ".toolmem/dumps") if isinstance(value, str) else value


VARYING = {"memory_id": "...", "id": "...", "call_ids": ["..."], "prompt_version": "...", "judge": "..."}


def shortened(value: Any, key: str = "") -> Any:
    """Without what differs from run to run, and with long parts cut."""
    if key in VARYING and value:
        return VARYING[key]
    if key == "judges":
        return ["offline/rule_based_check@..."] if value else value
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {name: shortened(item, name) for name, item in value.items()}
    if isinstance(value, list):
        cut = [shortened(item, key) for item in value[:3]]
        return [*cut, "..."] if len(value) > 3 else cut
    if isinstance(value, str) and len(value) > 160:
        return value[:160] + "..."
    return value
