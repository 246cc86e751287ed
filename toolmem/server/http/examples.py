"""Requests to each flow with the answers of a real run, for the OpenAPI document, its page and the docs.

`python docs/flow_examples.py` runs the requests again and writes the file; a test compares.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).with_name("examples.jsonl")


class Example(NamedTuple):
    """A request to a flow, what it is meant for, and the answer."""

    flow: str
    meaning: str
    request: dict[str, Any]
    response: dict[str, Any]


@functools.cache
def examples() -> dict[str, list[Example]]:
    """By flow; in the file they stand in the order in which they were asked."""
    found: dict[str, list[Example]] = {}
    for each in recorded():
        found.setdefault(each.flow, []).append(each)
    return found


def recorded() -> list[Example]:
    """All of them, as they stand in the file."""
    return [Example(**json.loads(line)) for line in FILE.read_text(encoding="utf-8").splitlines()]
