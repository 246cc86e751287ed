"""Makes the recording: runs the planned conversations against the real tools and writes down what they answered.

    python -m examples.recording.recorder --out DIR --seed 7

The same seed gives the same calls, inputs, outputs, flags and times; only `time_cost` is measured anew.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import json
import platform
import random
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import apsw

from examples.recording.agents import Step, Talk
from examples.recording.tools.tool import Answer
from examples.recording.traffic import Planned, plan
from examples.recording.world import DAYS, TOOL_TYPES, World, open_world
from toolmem.sample import ABOUT, CONVERSATIONS, RECORDING, TOOLS

VERSION = "1"
SEED = 7
Progress = Callable[[int, int, int], None]  # day, days, calls so far
# A model had to write these arguments word for word: their size is kept as the call's tokens. The others have none.
_WRITTEN_BY_A_MODEL = frozenset(
    {"sql_query", "shell", "write_file", "send_email", "translate_text", "search_documents"}
)


@dataclass
class Recording:
    """The calls in order of time, and the same calls as conversations."""

    seed: int
    calls: list[dict[str, Any]] = field(default_factory=list)
    conversations: list[dict[str, Any]] = field(default_factory=list)


def record(seed: int = SEED, progress: Progress | None = None) -> Recording:
    """Run all conversations, one after the other."""
    recording = Recording(seed)
    day = ""
    with open_world(seed) as world:
        for planned in plan(seed):
            if progress is not None and planned.identifier[:5] != day:
                day = planned.identifier[:5]
                progress(int(day[3:]), DAYS, len(recording.calls))
            world.clock.at_least(planned.start)
            _converse(planned, world, recording)
            world.clock.advance(5)
    return recording


def _converse(planned: Planned, world: World, recording: Recording) -> None:
    rng = random.Random(f"{recording.seed}/{planned.identifier}")
    talk = Talk(planned.agent, rng, world)
    world.conversation = planned.identifier
    messages: list[dict[str, Any]] = []
    failed_calls: set[str] = set()
    step_number = 0
    for scenario in planned.scenarios:
        talk.hurried, talk.context = False, ""
        story = scenario(talk)
        step = next(story)
        messages.append({"role": "user", "content": talk.context})
        while True:
            world.clock.advance(step.wait + (rng.uniform(1, 3) if talk.hurried else rng.uniform(4, 25)))
            call, answer = _run(step, step_number, talk, planned, recording)
            key = json.dumps([step.tool, step.arguments], sort_keys=True)
            call["metadata"]["repeat_of_failed"] = key in failed_calls
            if call["metadata"]["expected_failure"]:
                failed_calls.add(key)
            recording.calls.append(call)
            messages += _messages(call)
            step_number += 1
            try:
                step = story.send(answer)
            except StopIteration:
                break
        messages.append({"role": "assistant", "content": "Done." if not answer.failed else "That did not work."})
    recording.conversations.append({"id": planned.identifier, "agent": planned.agent.name, "messages": messages})


def _run(step: Step, number: int, talk: Talk, planned: Planned, recording: Recording) -> tuple[dict[str, Any], Answer]:
    tool = talk.world.tools[step.tool]
    zone = timezone(timedelta(hours=planned.agent.utc_offset))
    moment = talk.world.clock.now().astimezone(zone)
    started = time.perf_counter()
    answer = tool.call(step.arguments)
    seconds = time.perf_counter() - started
    failed = answer.failed if step.failed is None else step.failed
    useful = (answer.useful if step.useful is None else step.useful) and not failed
    call = {
        "id": f"{planned.identifier}-{number:02d}",
        "tool_name": step.tool,
        "input": copy.deepcopy(step.arguments),
        "output": answer.output,
        "success": answer.success,
        "create_time": moment.isoformat(timespec="milliseconds"),
        "time_cost": round(seconds, 6),
        "token_cost": _tokens(step) if step.tool in _WRITTEN_BY_A_MODEL else None,
        "context": talk.context,
        "metadata": {
            "conversation_id": planned.identifier,
            "tool_call_id": f"call_{number}",
            "agent": planned.agent.name,
            "step": number,
            "recorder": VERSION,
            "seed": recording.seed,
            "mistake": step.mistake,
            "fault": answer.fault,
            "expected_failure": failed,
            "useful": useful,
        },
    }
    return call, answer


def _tokens(step: Step) -> int:
    """An estimate of what a model would have written: four characters a token, one for each that is not ASCII."""
    text = json.dumps(step.arguments, ensure_ascii=False)
    wide = sum(1 for character in text if ord(character) > 127)
    return wide + (len(text) - wide + 3) // 4


def _messages(call: dict[str, Any]) -> list[dict[str, Any]]:
    identifier = call["metadata"]["tool_call_id"]
    arguments = json.dumps(call["input"], ensure_ascii=False)
    function = {"name": call["tool_name"], "arguments": arguments}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": identifier, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": identifier, "name": call["tool_name"], "content": call["output"]},
    ]


def facts_about(recording: Recording) -> dict[str, Any]:
    """What the recording says of itself."""
    calls = recording.calls
    counts: dict[str, dict[str, int]] = {}
    for call in calls:
        tool = counts.setdefault(call["tool_name"], {"calls": 0, "flagged_failures": 0, "expected_failures": 0})
        tool["calls"] += 1
        tool["flagged_failures"] += not call["success"]
        tool["expected_failures"] += call["metadata"]["expected_failure"]
    return {
        "recorder": VERSION,
        "seed": recording.seed,
        "command": f"python -m examples.recording.recorder --out DIR --seed {recording.seed}",
        "made_with": {"python": platform.python_version(), "sqlite": apsw.sqlite_lib_version()},
        "calls": len(calls),
        "conversations": len(recording.conversations),
        "first": calls[0]["create_time"],
        "last": calls[-1]["create_time"],
        "real": "output, success and time_cost (seconds, measured on the machine that recorded)",
        "scripted": "context, input and create_time; the users, agents and companies are made up",
        "token_cost": "an estimate of the size of the arguments where a model writes them (4 characters a token, "
        "one token for each character that is not ASCII); null for the other tools",
        "tools": dict(sorted(counts.items())),
    }


def write(recording: Recording, folder: Path) -> None:
    """Write the recording's four files. The bytes depend on the content only."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_lines(folder / RECORDING, recording.calls)
    _write_lines(folder / CONVERSATIONS, recording.conversations)
    _write_json(folder / TOOLS, [tool.schema() for tool in TOOL_TYPES])
    _write_json(folder / ABOUT, facts_about(recording))


def _write_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _show(day: int, days: int, calls: int) -> None:
    print(f"day {day}/{days}: {calls} calls so far", file=sys.stderr)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m examples.recording.recorder", description="Record the sample again."
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the four files")
    parser.add_argument("--seed", type=int, default=SEED, help=f"default {SEED}: the seed of the committed recording")
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    recording = record(options.seed, _show)
    write(recording, options.out)
    print(
        f"{len(recording.calls)} calls in {time.perf_counter() - started:.1f} s: {options.out / RECORDING}",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
