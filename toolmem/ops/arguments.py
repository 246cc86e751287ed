"""What several ops are asked: tool names, tool schemas, a time since when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator

from toolmem.errors import RequestError
from toolmem.models import ToolSchema


def read_tool_names(given: Any) -> list[str] | None:
    """A comma-separated string, or a list (for names that hold a comma). In the order asked, each once.

    None where nothing was given. Raises RequestError.
    """
    if given is None:
        return None
    if isinstance(given, str):
        names: list[Any] = given.split(",")
    elif isinstance(given, Sequence):
        names = list(given)
    else:
        raise RequestError(
            f"tool_names: expected a comma-separated string or a list of names, got {type(given).__name__}",
            field="tool_names",
        )
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise RequestError(f"tool_names: expected names, got {wrong[0]!r}", field="tool_names")
    read = list(dict.fromkeys(name.strip() for name in names if name.strip()))
    if not read:
        raise RequestError("tool_names: names no tool", field="tool_names")
    return read


def _is_a_time(value: str) -> str:
    if value:
        datetime.fromisoformat(value)
    return value


DataFrom = Annotated[str, AfterValidator(_is_a_time)]  # ISO 8601; "" = all calls


def read_data_from(given: Any, time_zone: str) -> datetime | None:
    """The moment, aware and in UTC; None for "" and None. A time without a zone is read in `time_zone`.

    Raises RequestError.
    """
    if not given:
        return None
    try:
        since = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        raise RequestError(f"data_from: expected an ISO 8601 time, got {given!r}", field="data_from") from None
    if since.tzinfo is None:
        since = since.replace(tzinfo=ZoneInfo(time_zone))
    return since.astimezone(UTC)


def read_schemas(tools: Any) -> dict[str, ToolSchema]:
    """Tool declarations of a request, by name. Raises RequestError."""
    if tools is None:
        return {}
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        raise RequestError(f"tools: expected a list of tool schemas, got {type(tools).__name__}", field="tools")
    read = [
        tool if isinstance(tool, ToolSchema) else ToolSchema.read(tool, f"tools[{index}]")
        for index, tool in enumerate(tools)
    ]
    return {schema.name: schema for schema in read}
