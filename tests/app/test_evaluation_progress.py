"""What an evaluation says of how far it is, with a model and several judgements in flight."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from toolmem.flow.report import Event
from toolmem.research.evaluation import evaluate
from toolmem.testing.model_script import FAULTS, Rule, Script
from toolmem.testing.model_server import ModelServer

CALLS = 24


class Watched:
    """Phases and the figures told in each."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, list[tuple[int, int, str]]]] = []

    def say(self, phase: str) -> None:
        self.phases.append((phase, []))

    def __call__(self, event: Event) -> None:
        if event.kind == "progress":
            self.phases[-1][1].append((event.done, event.total, event.message))

    def figures(self, word: str) -> list[tuple[int, int, str]]:
        return [figure for phase, told in self.phases if word in phase for figure in told]


def evaluated(folder: Path, server: ModelServer, records: list[dict], *more: str) -> Watched:
    (folder / "calls.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    watched = Watched()
    evaluate(
        folder / "calls.jsonl",
        folder / "out",
        overrides=[
            "llm.default.backend=openai_compatible",
            "llm.default.model_name=small",
            f"llm.default.params.base_url={server.openai_url}",
            "llm.default.params.api_key=any-text",
            "llm.default.params.max_retries=0",
            "op.parse_tool_call_result_op.params.evaluation_sleep_interval=0",
            "op.summary_tool_memory_op.params.summary_sleep_interval=0",
            *more,
        ],
        say=watched.say,
        listener=watched,
    )
    return watched


def records(distinct: int = CALLS) -> list[dict]:
    return [{"tool_name": f"tool_{n % 8}", "input": {"n": n % distinct}, "output": "[]"} for n in range(CALLS)]


def assert_one_running_total(watched: Watched, *, ends: int = CALLS) -> None:
    judged = watched.figures("judge and store")
    assert {(total, unit) for _, total, unit in judged} == {(CALLS, "judged")}
    assert judged[-1][0] == ends
    assert all(later[0] >= earlier[0] for earlier, later in pairwise(judged))
    for phase, told in watched.phases:
        assert len({total for _, total, _ in told}) <= 1, phase
        assert all(later[0] >= earlier[0] for earlier, later in pairwise(told)), phase


def test_judged_calls_are_counted_over_the_whole_evaluation(tmp_path):
    with ModelServer(Script(latency=0.02)) as server:
        watched = evaluated(tmp_path, server, records())
    assert server.most_in_flight > 1
    assert [phase for phase, _ in watched.phases if "judge" in phase] == [
        "judge and store",
        "judge and store the newest 5 %",
    ]
    assert_one_running_total(watched)
    told = [[done for done, _, _ in told] for phase, told in watched.phases if "judge" in phase]
    assert told == [list(range(17)), list(range(16, CALLS + 1))]  # each begins with what is judged by then


def test_identical_calls_which_are_judged_once_count_each(tmp_path):
    with ModelServer(Script(latency=0.02)) as server:
        watched = evaluated(tmp_path, server, records(distinct=8))
    assert_one_running_total(watched, ends=16)  # the newest of each tool has a verdict then, and nothing is judged
    assert [done for done, _, _ in watched.figures("judge and store")] == [*range(0, 17, 2), 16]


@pytest.mark.parametrize("every", [3, 1])
def test_calls_that_are_judged_again_do_not_set_the_total_back(tmp_path, every):
    with ModelServer(Script([Rule(FAULTS["unavailable"], every=every)], latency=0.01)) as server:
        watched = evaluated(tmp_path, server, records())
    assert_one_running_total(watched)


def test_a_recording_whose_verdicts_are_known_is_not_counted_from_the_start_again(tmp_path):
    with ModelServer(Script()) as server:
        evaluated(tmp_path, server, records())
        again = evaluated(tmp_path, server, records())
    assert again.figures("judge and store") == [(0, CALLS, "judged"), (16, CALLS, "judged")]
