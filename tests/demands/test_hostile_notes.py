"""Notes that must not bind: what the user did not say, wider than was said, or what does not hold together."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from toolmem.demands.note import read_note
from toolmem.demands.verification import Verified, verify
from toolmem.errors import RequestError
from toolmem.light_models import ToolSchema
from toolmem.rules.noted_demands import own_words

GIVEN = json.loads(Path(__file__).with_name("hostile_notes.json").read_text(encoding="utf-8"))
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
TOOLS = [
    ToolSchema(
        name=tool["name"],
        description=tool["description"],
        parameters={"properties": {name: {"type": kind} for name, kind in tool["parameters"].items()}},
    )
    for tool in GIVEN["tools"]
]


def outcome(row: dict[str, Any]) -> Verified | RequestError:
    heard = [
        each["text"]
        for each in row["heard"]
        if each.get("by", "user") == "user" and each.get("session", "here") == "here"
    ]
    given = json.loads(json.dumps(row["note"]).replace("%MEGABYTE%", "x" * 1_000_000))
    try:
        return verify(read_note(given), heard, TOOLS, now=NOW, own_words=own_words)
    except RequestError as error:
        return error


NOTES = [row for row in GIVEN["notes"] if "lift" not in row["note"]]


@pytest.mark.parametrize("row", NOTES, ids=[f"{row['id']} {row['why']}" for row in NOTES])
def test_a_note_that_must_not_bind_does_not(row: dict[str, Any]) -> None:
    found = outcome(row)
    match row["expect"]:
        case "refused":
            assert isinstance(found, RequestError), found
            assert found.field
        case "proposed":
            assert isinstance(found, Verified), found
            assert found.status == "proposed"
            assert found.why
        case "proposed_or_refused":
            assert isinstance(found, RequestError) or found.status == "proposed"
        case "proposed_or_session_ask":
            assert isinstance(found, Verified), found
            assert found.status == "proposed" or (found.note.effect, found.note.lasting) == ("ask", "session")
            assert found.why
        case "gloss_not_shown" | "never_stops_noting":  # kept; what is shown, and what it cannot stop, others hold
            assert isinstance(found, Verified), found
        case _:
            pytest.fail(f"no such expectation: {row['expect']}")
