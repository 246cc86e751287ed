"""Requests and responses of the flows, from a real run."""

from __future__ import annotations

from typing import Any

from page_writers.markdown import json_block, page
from page_writers.ops import flow_tables

_HEAD = """\
What each flow takes, and an example of each from a real run on the embedded store with the rule-based check. The same
JSON goes through `toolmem run FLOW --request FILE`, through `app.run(FLOW, **request)` in Python, and over HTTP. Long
parts of the examples are cut (`...`). Written by `python docs/generate.py`.
"""


def flows() -> str:
    from toolmem.server.http.openapi import recorded

    parts = [_HEAD, "## What they take", flow_tables(), "## Examples"]
    for each in recorded():
        parts += [f"### {each.flow}: {each.meaning[0].lower()}{each.meaning[1:]}"]
        parts += [json_block(each.request), json_block(shortened(each.response))]
    return page("Requests and responses", *parts)


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
