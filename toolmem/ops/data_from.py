"""`data_from`: only calls created since then."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator

from toolmem.errors import RequestError


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
