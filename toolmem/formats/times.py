"""Times as records carry them, read into aware UTC."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any

from toolmem.errors import RequestError

_LARGEST_EPOCH = 1e11  # seconds: the year 5138; larger numbers are milliseconds or worse


@lru_cache(maxsize=32)
def zone(name: str) -> tzinfo:
    """The zone of an IANA name. Raises RequestError."""
    if name in ("", "UTC", "Etc/UTC"):
        return UTC
    try:
        from zoneinfo import ZoneInfo

        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise RequestError(
            f"time_zone: {name!r} is not a known time zone; use an IANA name such as 'UTC' or 'Asia/Shanghai'",
            field="time_zone",
        ) from error


def read_time(value: Any, time_zone: str) -> tuple[datetime, bool]:
    """(the time in UTC, whether it was naive and read in `time_zone`).

    Takes an ISO 8601 text (ReMe's "2025-11-03 14:05:00" among them), a datetime, or seconds since 1970. Raises
    ValueError with a text that says what would be right.
    """
    moment = _moment(value)
    naive = moment.tzinfo is None or moment.utcoffset() is None
    if naive:
        moment = moment.replace(tzinfo=zone(time_zone))
    try:
        return moment.astimezone(UTC), naive
    except (OverflowError, ValueError):
        raise ValueError(f"{moment.isoformat()} is outside the years 1 to 9999 in UTC") from None


def _moment(value: Any) -> datetime:
    if isinstance(value, datetime):
        return _plain(value)
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(f"{value[:60]!r} is not a time; use ISO 8601, e.g. '2026-01-31T12:00:00+00:00'") from None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not 0 <= value < _LARGEST_EPOCH:
            raise ValueError(f"{str(value)[:40]} is not in seconds since 1970; use ISO 8601 or seconds")
        return datetime.fromtimestamp(value, UTC)
    raise ValueError(f"expected ISO 8601 text, got {type(value).__name__}; e.g. '2026-01-31T12:00:00+00:00'")


def _plain(value: datetime) -> datetime:
    """A datetime proper: subclasses bring surprises, pandas' NaT is one of them."""
    if value != value:
        raise ValueError("not a time (NaT); use null where it is unknown")
    return datetime.combine(value.date(), value.timetz())
