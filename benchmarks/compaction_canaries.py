"""What an AgentSession keeps of a conversation that is compacted again and again, by compaction-conformance-kit.

    python benchmarks/compaction_canaries.py [--json FILE] [--quick]
    PYTHONPATH=benchmarks compaction-kit check benchmarks/compaction_canaries.py:WithAgentSession

The kit (PyPI, MIT) plants canaries in a conversation (safety rules, hard constraints, facts, the state of the goal,
preferences), compacts five times, each time what the last round left, and looks which of them still stand in the text
that the model would be sent. Its compactors are run alone, and as the compressor of an AgentSession, which learns from
each turn as an agent's would and keeps what it captured beside the buffer. An AgentSession keeps demands of the user,
not facts: where a sentence demands nothing, it is as good as its compressor.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from compaction_kit import (
    Canary,
    CompactedContext,
    Compactor,
    LossyTruncationCompactor,
    NaiveSummaryCompactor,
    SeededSession,
    Turn,
    build_random_session,
    build_seeded_session,
    kit_version,
    run_conformance,
    seeded_canaries,
)
from tables import TextTable, arguments

from toolmem import AgentSession, AsyncToolMem

ROUNDS = 5
TOOLS = ("shell", "read_file", "write_file", "git_push", "send_email", "web_fetch", "search")
TYPES = ("safety_rule", "hard_constraint", "fact", "goal_state", "user_preference")
INNER: Sequence[Callable[[], Compactor]] = (LossyTruncationCompactor, NaiveSummaryCompactor)
Message = dict[str, Any]


class WithAgentSession:
    """A compactor of the kit as the compressor of an AgentSession; what it answers is all that the model is sent."""

    def __init__(self, inner: Compactor | None = None) -> None:
        self.inner = inner or LossyTruncationCompactor()
        self.name = f"AgentSession over {self.inner.name}"
        self._runner = asyncio.Runner()
        self._round = 1
        self._session: AgentSession | None = None

    def compact(self, turns: list[Turn], round_num: int = 1, budget_chars: int | None = None) -> CompactedContext:
        """Round 1 plays the conversation; a later round compacts what the session holds by then."""
        self._round = round_num
        text = self._runner.run(self._compacted(turns, budget_chars))
        return CompactedContext(text=text, compactor_name=self.name, round_num=round_num)

    async def _compacted(self, turns: list[Turn], budget: int | None) -> str:
        if self._round == 1 or self._session is None:
            self._session = await self._played(turns)
        self._session.compress(budget or 0)
        return "\n".join(f"[{each['role']}] {each['content']}" for each in self._session.messages())

    async def _played(self, turns: list[Turn]) -> AgentSession:
        memory = AsyncToolMem(":memory:", overrides=["session.judging=deferred"])
        base = "\n".join(turn.text for turn in turns if turn.role == "system")
        session = await AgentSession.start(memory, tools=TOOLS, base_prompt=base, compressor=self._compress)
        said: list[Message] = []
        for turn in turns:
            if turn.role == "user" and said:
                await session.after_turn(said)
                said = []
            if turn.role != "system":
                said.append({"role": turn.role, "content": turn.text})
        await session.after_turn(said)
        return session

    def _compress(self, messages: list[Message], budget: int, count: Callable[[str], int]) -> list[Message]:
        turns = [Turn(each["role"], each["content"]) for each in messages]
        return [{"role": "system", "content": self.inner.compact(turns, self._round, budget or None).text}]


def survival(make: Callable[[], Compactor], sessions: Sequence[tuple[SeededSession, list[Canary]]]) -> dict[str, Any]:
    """By type, the share of canaries after each round, averaged over the sessions; and the size of what is sent."""
    runs = [run_conformance(session, make(), rounds=ROUNDS, canaries=canaries) for session, canaries in sessions]
    by_type = {
        kind: [mean(run.rounds[number].survival_by_type.get(kind, 0.0) for run in runs) for number in range(ROUNDS)]
        for kind in TYPES
    }
    sizes = [mean(run.rounds[number].output_chars for run in runs) for number in range(ROUNDS)]
    return {"by_type": by_type, "characters": sizes}


def table_of(title: str, sessions: Sequence[tuple[SeededSession, list[Canary]]]) -> TextTable:
    rows = []
    for inner in INNER:
        for make in (inner, lambda inner=inner: WithAgentSession(inner())):
            found = survival(make, sessions)
            cells = [f"{found['by_type'][kind][0]:.0%} / {found['by_type'][kind][-1]:.0%}" for kind in TYPES]
            sizes = f"{found['characters'][0]:,.0f} / {found['characters'][-1]:,.0f}"
            rows.append((make().name, *cells, sizes))
    return TextTable(title, ("compactor", *(kind.replace("_", " ") for kind in TYPES), "characters sent"), rows)


def tables(*, quick: bool) -> list[TextTable]:
    seeds = range(1, 4 if quick else 13)
    version = f"compaction-conformance-kit {kit_version()}"
    return [
        table_of(f"Canaries after one round / after five ({version})", [(build_seeded_session(), seeded_canaries())]),
        table_of(
            f"Canaries in {len(seeds)} random conversations ({version})", [build_random_session(n) for n in seeds]
        ),
    ]


def main() -> None:
    given = arguments(__doc__)
    logging.disable(logging.WARNING)  # of stores in memory
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o700)
        found = tables(quick=given.quick)
    for table in found:
        table.show()
    if given.json is not None:
        body = {"tables": [{"title": each.title, "columns": each.columns, "rows": each.rows} for each in found]}
        given.json.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
