"""The command: `python -m examples.office --help`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from examples.office.agent import ToolCallingModel
from examples.office.memories import ARMS
from examples.office.tasks import LEARNING, TRIAL
from examples.office.trial import Options, Trial, refuse_to_overwrite, table, write_results
from toolmem.config import load
from toolmem.errors import BudgetReached, ConfigError, Refused, ToolMemError
from toolmem.flow.runner import SystemClock
from toolmem.providers.budget import Budget
from toolmem.providers.prices import PriceTable
from toolmem.providers.tokenizer import QwenTokenizer

_DONE, _PARTIAL, _REFUSED, _BUDGET, _INTERRUPTED = 0, 1, 2, 3, 130
_CHAT = "openai_compatible"
_HELP = """\
Agents do tasks at the front desk of an animal clinic whose tools have conventions that no schema tells: first those to
learn from, without memory; then others, once for each kind of memory. The program checks the end state of each task.

examples:
  export OPENAI_API_KEY=...           # and OPENAI_BASE_URL=http://127.0.0.1:8080/v1 for another service
  python -m examples.office --memory none --memory card --model NAME
  python -m examples.office --memory all --model NAME --seed 2 --out second budget.max_tokens=2000000
  python -m examples.office --memory card --learned first/learning.jsonl --model NAME --out third
  toolmem evaluate --input office-trial/learning.jsonl

Any override of toolmem's configuration may stand behind the options (llm.default.params.temperature=0.7); --config
takes a file of it. exit codes: 0 all tasks were tried, 1 the model failed (what was done is kept), 2 refused before any
work, 3 budget reached, 130 interrupted.
"""


def main(arguments: list[str] | None = None) -> int:
    """Answers the exit code."""
    options = _read(arguments)
    try:
        refuse_to_overwrite(options)
        trial = Trial(options, _model(options))
    except Refused as error:
        print(f"examples.office: {error}", file=sys.stderr)
        return _REFUSED
    return _run(trial)


def _run(trial: Trial) -> int:
    stopped: ToolMemError | None = None
    code = _DONE
    try:
        asyncio.run(_closing(trial))
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except ToolMemError as error:
        stopped = error
        code = _BUDGET if isinstance(error, BudgetReached) else _REFUSED if isinstance(error, Refused) else _PARTIAL
    if trial.done:
        write_results(trial, stopped)
        print(table(trial.done))
        print(f"The calls and texts are in {trial.options.out}", file=sys.stderr)
    if stopped is not None:
        print(f"examples.office: stopped: {stopped}", file=sys.stderr)
    return code


async def _closing(trial: Trial) -> None:
    try:
        await trial.run()
    finally:
        await trial.model.close()


def _model(options: Options) -> ToolCallingModel:
    """The model of the agents, as toolmem's own configuration has it. Raises ConfigError."""
    settings = load([] if options.config is None else [options.config], options.overrides).settings
    section = settings.llm["default"]
    if section.backend != _CHAT:
        raise ConfigError([f"llm.default.backend: agents need tools, which {_CHAT} has; got {section.backend!r}"])
    price = PriceTable(settings.prices)
    budget = Budget(settings.budget.max_tokens, settings.budget.max_cost, price=price)
    return ToolCallingModel(
        section,
        tokenizer=QwenTokenizer(),
        clock=SystemClock(),
        price=price,
        budget=budget if budget.limited else None,
    )


def _read(arguments: list[str] | None) -> Options:
    parser = argparse.ArgumentParser(
        prog="python -m examples.office", description=_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--memory", action="append", choices=[*ARMS, "all"], help="what the prompt holds; several times for several")
    add("--model", metavar="NAME", help="of the chat model, in place of llm.default.model_name")
    add("--seed", type=int, default=0, help="of the order of the tasks (0)")
    add("--out", type=Path, default=Path("office-trial"), metavar="DIR", help="calls, texts and results (office-trial)")
    add("--learned", type=Path, metavar="FILE", help="calls of an earlier learning phase, which is left out then")
    add("--config", type=Path, metavar="FILE", help="a configuration of toolmem")
    add("--tasks", type=_positive, default=len(TRIAL), metavar="N", help=f"only N of the {len(TRIAL)} tasks")
    add("--learning-tasks", type=_positive, default=len(LEARNING), metavar="N", help=f"only N of the {len(LEARNING)}")
    add("--most-calls", type=_positive, default=40, metavar="N", help="calls of one task, at most (40)")
    add("overrides", nargs="*", metavar="KEY=VALUE", help="overrides of the configuration")
    given = parser.parse_intermixed_args(arguments)
    chosen = given.memory or ["none", "card"]
    arms = tuple(ARMS) if "all" in chosen else tuple(dict.fromkeys(chosen))
    # A file of one's own says which backend it means; without one there is only one that has tools.
    overrides = [] if given.config else [f"llm.default.backend={_CHAT}"]
    overrides += [f"llm.default.model_name={given.model}"] if given.model else []
    return Options(
        arms,
        given.out,
        seed=given.seed,
        tasks=given.tasks,
        learning_tasks=given.learning_tasks,
        most_calls=given.most_calls,
        learned=given.learned,
        config=given.config,
        overrides=(*overrides, *given.overrides),
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected 1 or more")
    return number


if __name__ == "__main__":
    sys.exit(main())
