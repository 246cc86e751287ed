"""What an agent does for a guest teaches others the form of its values, and never the values."""

from __future__ import annotations

import json

import pytest

from toolmem import AgentSession
from toolmem.testing.scripted_llm import ScriptedLLM

GIVEN = {"customer": "Annabel-4471", "day": "2026-W19", "notes": {"phone": "0301234567"}, "urgent": True}


def turn(arguments, output, failed):
    asked = {"id": "c0", "type": "function", "function": {"name": "book", "arguments": json.dumps(arguments)}}
    answer = {"role": "tool", "tool_call_id": "c0", "content": output, "is_error": failed}
    return [
        {"role": "user", "content": "book it for Annabel-4471"},
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        answer,
        {"role": "assistant", "content": "done"},
    ]


async def served(app, guest: str) -> None:
    async with await AgentSession.start(app, workspace_id="team", tools=["book"], guest=guest) as session:
        given = {**GIVEN, "day": "19/2026"}
        await session.after_turn(turn(given, "Error: status 422: Annabel-4471 has no day 19/2026", True))
        for n in range(3):
            await session.after_turn(turn(GIVEN, f"booked for Annabel-4471: B-77{n}", False))


def values_in(text: str) -> list[str]:
    return [value for value in ("Annabel", "4471", "19/2026", "2026-W19", "0301234567", "B-77") if value in text]


@pytest.mark.parametrize("guest", ["", "visitor-7"])
async def test_a_card_shows_others_the_form_of_a_guests_values_alone(make_app, guest):
    async with make_app() as app:
        await served(app, guest)
        await app.run_flow("summary_tool_memory", workspace_id="team", tool_names="book")
        card = (await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="book")).answer
    assert "customer" in card
    assert bool(values_in(card)) is not bool(guest)
    if guest:
        assert "<#-A#>" in card  # 2026-W19
        assert "422" in card


async def test_a_model_that_writes_guidance_reads_no_value_of_a_guest(make_app):
    llm = ScriptedLLM.plausible()
    async with make_app(llms={"default": llm}) as app:
        await served(app, "visitor-7")
        judged = len(llm.prompts)
        await app.run_flow("summary_tool_memory", workspace_id="team", tool_names="book")
    written = llm.prompts[judged:]
    assert written
    assert values_in("".join(written)) == []
    assert "customer" in "".join(written)
