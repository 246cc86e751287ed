"""The command: `python -m examples.office --help`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import click
import yaml
from msgspec import Struct
from msgspec.structs import asdict

from examples.office.agent import Call, Conversation, Model
from examples.office.clinic import TODAY, TOOLS, Clinic, stock, takings_of
from toolmem import ToolMem
from toolmem.cli.console import print_table
from toolmem.errors import ToolMemError

TASKS = yaml.safe_load(Path(__file__).with_name("tasks.yaml").read_text(encoding="utf-8"))
ROLE = (
    f"You work at the front desk of an animal clinic; today is {TODAY:%A}, {TODAY}. Do what you "
    "are asked with the tools, and book, hand out and bill nothing else. Where a tool refuses a "
    "call, find out what it wants and go on. When all is done, end with one line: `Answer:` and "
    "the values that were asked for, in order, as digits, separated by semicolons; `Answer: done` "
    "where nothing was asked."
)


class Arm(Struct):
    """What came of one prompt."""

    name: str
    tasks: int = 0
    solved: int = 0
    calls: int = 0
    failed: int = 0
    tokens: int = 0


def is_solved(task: dict[str, Any], clinic: Clinic, said: str) -> bool:
    """Whether the clinic stands as asked, nothing else was done, and the answers are right."""
    if clinic.state() != sorted(tuple(each) for each in task.get("end", [])):
        return False
    lines = re.findall(r"answer[ *_`]*:(.*)$", said, re.IGNORECASE | re.MULTILINE)
    told = [each.strip(" *_`.") for each in lines[-1].split(";")] if lines else []
    expected = [str(_value(each)) for each in task.get("answers", [])]
    return not expected or told == expected


def _value(asked: str) -> int:
    kind, *rest = asked.split()
    if kind == "stock":
        return stock(*rest)
    return takings_of(int(rest[0]), int(rest[1]), *rest[2:])


def try_tasks(model: Model, kind: str, memory: str, arm: Arm, most: int) -> list[Call]:
    """A fresh agent and a fresh clinic for each task; the calls of all."""
    calls: list[Call] = []
    for name, task in TASKS[kind].items():
        talk, clinic = Conversation(f"{arm.name} {name}", task["text"]), Clinic()
        model.converse(f"{ROLE}\n\n{memory}".strip(), talk, TOOLS, clinic.call, most)
        solved = is_solved(task, clinic, talk.said)
        failed = sum(not call["success"] for call in talk.calls)
        told = f"{len(talk.calls)} calls, {failed} failed, {'' if solved else 'not '}solved"
        click.echo(f"{talk.name}: {told}", err=True)
        arm.tasks, arm.solved = arm.tasks + 1, arm.solved + solved
        arm.calls, arm.failed = arm.calls + len(talk.calls), arm.failed + failed
        arm.tokens += talk.tokens
        calls += talk.calls
    return calls


@click.command()
@click.option("--model", "name", required=True, help="The chat model's name.")
@click.option("--base-url", default="https://api.openai.com/v1", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default="office.jsonl", show_default=True)
@click.option("--most-calls", default=40, show_default=True, help="Of one task.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(name: str, base_url: str, out: Path, most_calls: int, as_json: bool) -> None:
    """Try an agent with tool memory and without.

    The agent does the tasks to learn from, then the others twice: with an empty prompt, and with
    the guidance that toolmem wrote of its calls. Its calls are kept in OUT.

    \b
    Examples:
      OPENAI_API_KEY=... python -m examples.office --model gpt-4.1-mini
      python -m examples.office --model qwen3 --base-url http://127.0.0.1:8080/v1
      toolmem evaluate --input office.jsonl
    """
    if out.exists():
        raise click.UsageError(f"--out: {out} is there already, perhaps paid for; choose another")
    model, arms = Model(base_url, name), [Arm("learning"), Arm("no memory"), Arm("tool memory")]
    try:
        calls = try_tasks(model, "learning", "", arms[0], most_calls)
        out.write_text("".join(json.dumps(call) + "\n" for call in calls), encoding="utf-8")
        with ToolMem(":memory:") as memory:
            memory.add(calls, tools=TOOLS)
            memory.summarize()
            guidance = memory.prompt(TOOLS)
        try_tasks(model, "trial", "", arms[1], most_calls)
        try_tasks(model, "trial", guidance, arms[2], most_calls)
    except ToolMemError as error:
        click.echo(f"stopped: {error}", err=True)
        sys.exit(1)
    if as_json:
        click.echo(json.dumps([asdict(arm) for arm in arms]))
        return
    rows = []
    for arm in arms:
        figures = (arm.calls, arm.failed, arm.tokens)
        rows.append((arm.name, f"{arm.solved} of {arm.tasks}", *map(str, figures)))
    print_table(("prompt", "solved", "calls", "failed", "tokens"), rows)


if __name__ == "__main__":
    main()
