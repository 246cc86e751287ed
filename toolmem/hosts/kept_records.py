"""A call of an agent as it is kept, whether a hook was told of it or the agent's recording tells it later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def kept_record(
    host: str,
    session: str,
    call_id: str,
    tool: str,
    arguments: Any,
    output: str,
    failed: bool | None,
    seconds: float | None,
    **metadata: str,
) -> dict[str, Any]:
    """A record as `add_tool_call_result` takes it; long texts are cut, and `metadata` that says nothing is left out."""
    from toolmem.readers.long_values import shortened

    given, text = shortened(arguments), shortened(output)
    told: dict[str, Any] = {"host": host, **{name: value for name, value in metadata.items() if value}}
    if text != output:
        told["output_characters"] = len(output)
    return {
        "id": call_id or None,
        "tool_name": tool,
        "input": given if isinstance(given, Mapping | list | str) else {},
        "output": text,
        "success": None if failed is None else not failed,
        "time_cost": seconds,
        "conversation_id": session or None,
        "metadata": told,
    }
