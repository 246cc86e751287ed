"""The vocabulary of error classes.

Classes are for grouping: each failed call has one, read from the message that gave the failure away.
"""

from __future__ import annotations

import re
from pathlib import Path

from toolmem.late import late_pattern
from toolmem.readers.pattern_lists import sections

ERROR_CLASSES: dict[str, str] = {
    "timeout": "it took too long and was given up",
    "rate_limited": "too many requests, or a quota is used up",
    "permission_denied": "not signed in, or not allowed",
    "unknown_tool": "no tool, function or action of that name",
    "missing_parameter": "a required parameter or field was not given",
    "unknown_parameter": "a parameter, option or field that does not exist",
    "syntax_error": "a query, command or program that cannot be parsed",
    "unknown_column": "a database column that does not exist",
    "unknown_table": "a database table that does not exist",
    "command_not_found": "a program that is not installed",
    "not_found": "the thing asked for does not exist",
    "conflict": "it collides with what is there: duplicates, overlaps, locks",
    "invalid_value": "a parameter whose value is refused",
    "connection_error": "a host or service could not be reached",
    "parse_error": "data that cannot be decoded",
    "insufficient_resources": "money, stock, seats, memory or disk space do not suffice",
    "not_allowed_in_state": "the thing exists, but is not in a state that allows it",
    "server_error": "the service itself broke (5xx)",
    "failed_check": "a build, a test or a check that did not pass",
    "exception": "a program ended with an exception or crashed",
    "error": "none of the above",
}


_SCAN = 800  # characters of a message that are classified
_LISTS = sections(Path(__file__).with_name("error_classes.txt"))
_BY_MESSAGE = [(name, late_pattern(pattern, re.IGNORECASE)) for name, pattern in _LISTS]


def error_class_of(text: str) -> str:
    """The class of an error message: a key of ERROR_CLASSES, "error" where no other one fits.

    The most telling class comes first where a message carries words of several.
    """
    head = text[:_SCAN]
    for name, pattern in _BY_MESSAGE:
        if pattern.search(head):
            return name
    return "error"


def class_of_status(code: int) -> str:
    """The class of an HTTP status code."""
    exact = {
        400: "invalid_value",
        401: "permission_denied",
        402: "insufficient_resources",
        403: "permission_denied",
        404: "not_found",
        405: "unknown_tool",
        408: "timeout",
        409: "conflict",
        410: "not_found",
        422: "invalid_value",
        423: "conflict",
        429: "rate_limited",
        504: "timeout",
    }
    return exact.get(code, "server_error" if code >= 500 else "error")
