"""Instructions kept to the end: "never X" in turn 1, compactions that leave nothing of it, then the agent calls X.

    python benchmarks/kept_to_the_end.py [--json FILE] [--quick]

Each instruction is said in the first turn of a session; other turns follow, and after them 0, 1 or 5 compactions, each
of which leaves one sentence of summary in the place of the whole conversation, and not a word of the instruction. Then
the agent makes the call that the instruction forbids, and one beside it that it does not forbid.

*Text only* is a prompt and nothing else. Its agent is a script, not a model: it keeps to an instruction exactly if the
words of it stand in the messages that it is sent, which is the best that a text can do. *Buffer* sends the compacted
conversation alone, *with rules* what `AgentSession.messages` sends. *Guard*: a script that never looks at a message and
calls, as a model that does not listen does; its tools are decorated with `session.tool`, and what counts is whether the
function ran. *Next session*: the same in a new session, after five compactions of the first one.

*Lifted*: before the call the user takes the instruction back with a sentence, which `after_turn` says was understood,
and the call must run. *In the same message*: it answers the message that lifts the instruction.
What is measured is keeping, not reading: sentences that are not read as a condition on this tool, and liftings that are
not understood (the user is told so, and the rule holds), stand in the second table and count nowhere in the first.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tables import TextTable, arguments

from toolmem import AgentSession, AsyncToolMem, CallDenied, ToolSchema

CASES = Path(__file__).with_name("kept_instructions.json")
ROUNDS = (0, 1, 5)
SUMMARY = {"role": "system", "content": "The user and the assistant worked on several tasks."}
OTHER_TURNS = ("what is on today?", "look at the second item", "thanks")
Message = dict[str, Any]


@dataclass(frozen=True)
class Instruction:
    """A sentence, the call that it forbids, one that it does not forbid, and the sentence that lifts it."""

    language: str
    said: str
    tool: str
    forbidden: dict[str, Any]
    free: dict[str, Any] | None
    lifted: str


@dataclass
class Outcome:
    """What happened in one session."""

    in_buffer: bool  # the sentence stands in the compacted conversation
    in_messages: bool  # and in what the session sends
    stopped: bool
    free_stopped: bool


def instructions() -> tuple[list[ToolSchema], list[Instruction]]:
    body = json.loads(CASES.read_text(encoding="utf-8"))
    return [ToolSchema.read(tool) for tool in body["tools"]], [Instruction(**each) for each in body["instructions"]]


def summarize(messages: list[Message], max_tokens: int, count: Callable[[str], int]) -> list[Message]:
    """The compactor: nothing of the conversation stays."""
    return [SUMMARY]


async def played(
    case: Instruction, tools: Sequence[ToolSchema], rounds: int, *, lifted: str = "", again: bool
) -> Outcome:
    """One conversation, or two where the call is made in the next session (`again`)."""
    memory = AsyncToolMem(":memory:", overrides=["session.judging=deferred"])
    session = await AgentSession.start(memory, tools=tools, compressor=summarize)
    await turn(session, case.said)
    for said in OTHER_TURNS:
        await turn(session, said)
    for _ in range(rounds):
        await turn(session, "go on")
        session.compress(0)
    if again:
        await session.close()
        session = await AgentSession.start(memory, tools=tools, compressor=summarize)
    if lifted == "turn before":
        await turn(session, case.lifted)
    session.messages(case.lifted if lifted == "same message" else "do it")
    outcome = await called(session, case)
    await session.close()
    await memory.close()
    return outcome


async def turn(session: AgentSession, said: str) -> None:
    session.messages(said)
    await session.after_turn([{"role": "user", "content": said}, {"role": "assistant", "content": "All right."}])


async def called(session: AgentSession, case: Instruction) -> Outcome:
    """The agent makes both calls; does the tool run?"""
    ran: list[dict[str, Any]] = []

    async def function(**given: Any) -> str:
        ran.append(given)
        return "done"

    function.__name__ = case.tool
    tool = session.tool(function)

    async def stopped(given: dict[str, Any] | None) -> bool:
        if given is None:
            return False
        before = len(ran)
        try:
            await tool(**given)
        except CallDenied:
            assert len(ran) == before
            return True
        return False

    buffer, sent = session.buffer, session.messages()
    return Outcome(stands(case, buffer), stands(case, sent), await stopped(case.forbidden), await stopped(case.free))


def stands(case: Instruction, messages: Iterable[Message]) -> bool:
    return any(case.said in str(message.get("content")) for message in messages)


def share(outcomes: Sequence[Outcome], of: Callable[[Outcome], bool]) -> str:
    return f"{sum(map(of, outcomes))} of {len(outcomes)}"


async def rows_of(
    tools: Sequence[ToolSchema],
    cases: Sequence[Instruction],
    liftable: set[str],
    language: str,
    rounds: Sequence[int],
) -> list[list[str]]:
    rows = []
    for number, again in [*((each, False) for each in rounds), (rounds[-1], True)]:
        said = [await played(case, tools, number, again=again) for case in cases]
        lifted = [
            [await played(case, tools, number, lifted=when, again=again) for case in cases if case.said in liftable]
            for when in ("turn before", "same message")
        ]
        rows.append(
            [
                {"en": "English", "zh": "Chinese"}[language],
                f"{number}, next session" if again else str(number),
                share(said, lambda each: each.in_buffer),
                share(said, lambda each: each.in_messages),
                share(said, lambda each: each.stopped),
                share(said, lambda each: each.free_stopped),
                *(share(outcomes, lambda each: each.stopped) for outcomes in lifted),
            ]
        )
    return rows


async def tables(*, quick: bool) -> list[TextTable]:
    tools, cases = instructions()
    read = {case.said: await is_read(case, tools) for case in cases}
    liftable = {said for said, (_, lifted) in read.items() if lifted}
    rows: list[list[str]] = []
    for language in ("en", "zh"):
        checked = [case for case in cases if case.language == language and read[case.said][0]]
        rounds = ROUNDS[:2] if quick else ROUNDS
        rows += await rows_of(tools, checked[:3] if quick else checked, liftable, language, rounds)
    columns = ("language", "compactions", "text only: buffer", "text only: with rules", "guard: stopped")
    lifted = ("other calls stopped", "stopped after lifting", "stopped in the message that lifts")
    unread = [
        [case.language, case.said, "no rule that is checked on this tool"] for case in cases if not read[case.said][0]
    ]
    unread += [[case.language, case.lifted, "lifts nothing"] for case in cases if read[case.said] == (True, False)]
    return [
        TextTable("Instructions kept", (*columns, *lifted), rows),
        TextTable(f"Not understood, of {len(cases)} instructions", ("language", "said", "read as"), unread),
    ]


async def is_read(case: Instruction, tools: Sequence[ToolSchema]) -> tuple[bool, bool]:
    """Does capture make of it a rule on this tool that can be checked, and does its lifting sentence withdraw that?"""
    async with AsyncToolMem(":memory:") as memory, await AgentSession.start(memory, tools=tools) as session:
        captured = await session.after_turn([{"role": "user", "content": case.said}])
        checked = any(rule.tool_name == case.tool and rule.checked for rule in captured.rules)
        taken = await session.after_turn([{"role": "user", "content": case.lifted}])
        return checked, checked and any(rule.tool_name == case.tool for rule in taken.withdrawn)


def main() -> None:
    given = arguments(__doc__)
    logging.disable(logging.WARNING)
    found = asyncio.run(tables(quick=given.quick))
    for table in found:
        table.show()
    if given.json is not None:
        body = {"tables": [{"title": each.title, "columns": each.columns, "rows": each.rows} for each in found]}
        given.json.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
