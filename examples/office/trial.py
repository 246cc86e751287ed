"""Runs the arms of the trial: the same tasks in the same order, a fresh agent and a fresh clinic for each."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from examples.office.agent import Call, Conversation, ToolCallingModel, Usage, converse
from examples.office.clinic import TOOLS, Clinic
from examples.office.memories import ARMS, memory_of
from examples.office.tasks import LEARNING, ROLE, TRIAL, Task
from toolmem.errors import RequestError, ToolMemError
from toolmem.providers.tokenizer import QwenTokenizer

LEARNING_FILE = "learning.jsonl"


@dataclass(frozen=True)
class Options:
    """What was asked for. `learned`: a recording of the learning tasks that is there already."""

    arms: tuple[str, ...]
    out: Path
    seed: int = 0
    tasks: int = len(TRIAL)
    learning_tasks: int = len(LEARNING)
    most_calls: int = 40  # of one task
    learned: Path | None = None
    config: Path | None = None
    overrides: tuple[str, ...] = ()


@dataclass
class Arm:
    """What came of one kind of memory. `asked`: its tasks; those that are not in `solved` were not tried."""

    name: str
    asked: int
    memory_tokens: int = 0  # of its text, counted here
    calls: int = 0
    failed: int = 0
    solved: dict[str, bool] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    def row(self) -> dict[str, Any]:
        used = self.usage
        return {
            "memory": ARMS.get(self.name, self.name),
            "memory_tokens": self.memory_tokens,
            "calls": self.calls,
            "failed": self.failed,
            "tasks": self.asked,
            "solved": self.solved,
            "requests": used.requests,
            "prompt_tokens": used.prompt_tokens,
            "prompt_tokens_of_memory": used.requests * self.memory_tokens,
            "completion_tokens": used.completion_tokens,
            "estimated": used.estimated,
        }


class Trial:
    """`done`: the arms that were begun, in order; the learning tasks are none of them."""

    def __init__(self, options: Options, model: ToolCallingModel) -> None:
        self.options = options
        self.done: list[Arm] = []
        self.model = model
        self._tokenizer = QwenTokenizer()

    async def run(self) -> None:
        """Raises ModelError, ConfigError, RequestError; what was done until then stands in `done` and in the files."""
        asked = self.options
        refuse_to_overwrite(asked)
        learned = await self._learned() if set(asked.arms) - {"none"} else []
        order = random.Random(asked.seed).sample(TRIAL, len(TRIAL))[: asked.tasks]
        for name in asked.arms:
            if name == "model":  # each tool's text is asked for in its turn
                print("model: writing its text", file=sys.stderr)
            text = await memory_of(name, learned, asked.config, asked.overrides)
            asked.out.mkdir(parents=True, exist_ok=True)
            (asked.out / f"{name}.md").write_text(text, encoding="utf-8")
            arm = Arm(name, len(order), self._tokenizer.count(text))
            self.done.append(arm)
            await self._tried(arm, order, text)

    async def _learned(self) -> list[Call]:
        asked = self.options
        if asked.learned is not None:
            return recorded(asked.learned)
        order = random.Random(asked.seed).sample(LEARNING, len(LEARNING))[: asked.learning_tasks]
        await self._tried(Arm("learning", len(order)), order, "")
        return recorded(asked.out / LEARNING_FILE)

    async def _tried(self, arm: Arm, order: Sequence[Task], memory: str) -> None:
        system = f"{ROLE}\n\n{memory}" if memory else ROLE
        self.options.out.mkdir(parents=True, exist_ok=True)
        with (self.options.out / f"{arm.name}.jsonl").open("w", encoding="utf-8") as file:
            for number, task in enumerate(order, 1):
                talk, clinic = Conversation(f"{arm.name}-{number}", task.text, arm.usage), Clinic()

                def keep(call: Call) -> None:
                    print(json.dumps(call, ensure_ascii=False), file=file, flush=True)

                with counted(arm, talk):
                    await converse(
                        self.model, system, talk, TOOLS, clinic.call, most=self.options.most_calls, keep=keep
                    )
                arm.solved[task.name] = task.solved(clinic, talk.said)
                _tell(arm, number, task, talk)


@contextmanager
def counted(arm: Arm, talk: Conversation) -> Iterator[None]:
    """The calls of a conversation count, also where the model fails in the middle of it."""
    try:
        yield
    finally:
        arm.calls += len(talk.calls)
        arm.failed += _failed(talk)


def _failed(talk: Conversation) -> int:
    return sum(not call["success"] for call in talk.calls)


def _tell(arm: Arm, number: int, task: Task, talk: Conversation) -> None:
    came = "solved" if arm.solved[task.name] else "not solved"
    print(
        f"{arm.name} {number}/{arm.asked} {task.name!r}: {len(talk.calls)} calls, {_failed(talk)} failed, {came}",
        file=sys.stderr,
    )


def refuse_to_overwrite(asked: Options) -> None:
    """A recording may have cost money. Raises RequestError where a file would be replaced."""
    names = [f"{arm}.jsonl" for arm in asked.arms] + ["results.json"]
    names += [LEARNING_FILE] if asked.learned is None else []
    there = [str(asked.out / name) for name in names if (asked.out / name).exists()]
    if there:
        raise RequestError(f"already there: {', '.join(there)}; choose another folder", field="out")


def recorded(path: Path) -> list[Call]:
    """The calls of a recording. Raises RequestError where it is none of this trial's."""
    try:
        calls = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        for call in calls:
            _ = [call[name] for name in ("conversation_id", "tool_name", "input", "output", "success")]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RequestError(f"{path}: no recording of this trial ({type(error).__name__}: {error})") from None
    return calls


def table(arms: Sequence[Arm]) -> str:
    """As Markdown, a row for each arm."""
    columns = ["memory in the prompt", "calls", "failed", "tasks solved", "tokens of memory, about"]
    columns += ["requests", "prompt tokens", "of these memory, about", "completion tokens"]
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for arm in arms:
        row = arm.row()
        untried = arm.asked - len(arm.solved)
        solved = f"{sum(arm.solved.values())} of {arm.asked}" + (f" ({untried} not tried)" if untried else "")
        about = "~" if row["estimated"] else ""
        cells = [row["memory"], row["calls"], row["failed"], solved, f"{row['memory_tokens']:,}", row["requests"]]
        cells += [f"{about}{row['prompt_tokens']:,}", f"{row['prompt_tokens_of_memory']:,}"]
        lines.append("| " + " | ".join(map(str, [*cells, f"{about}{row['completion_tokens']:,}"])) + " |")
    return "\n".join(lines)


def write_results(trial: Trial, stopped: ToolMemError | None) -> None:
    """The figures of the table beside the recordings, with what they were made with."""
    asked = trial.options
    results = {
        "model": trial.model.model,
        "seed": asked.seed,
        "stopped": None if stopped is None else str(stopped),
        "arms": {arm.name: arm.row() for arm in trial.done},
    }
    text = json.dumps(results, ensure_ascii=False, indent=1)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "results.json").write_text(text + "\n", encoding="utf-8")
