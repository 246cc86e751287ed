"""`toolmem costs`: estimate what summaries of your calls would cost, by policy."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from toolmem.cli import options
from toolmem.cli.console import print_error, print_json, print_table, print_unread, progress_bar
from toolmem.cli.import_ import format_options, input_option
from toolmem.errors import RequestError
from toolmem.formats.recording import read_recording
from toolmem.research.costs import REPLY_TOKENS, Bill, bill
from toolmem.research.evaluation import sample
from toolmem.text.display import counted


@click.command()
@input_option
@format_options
@options.as_json
@options.config
@options.overrides
def costs(
    sources: tuple[Path, ...],
    as_json: bool,
    config: str | None,
    overrides: tuple[str, ...],
    **reading: Any,
) -> None:
    """Estimate what it costs to let a model write guidance, by policy.

    A policy says when the guidance of a tool is written anew: it is a choice of `force`,
    `min_new_calls` and `policy` of `op.summary_tool_memory_op.params`. Under each of four policies,
    recorded calls are replayed, and nothing is sent. The last columns show how many earlier calls
    of a tool its guidance did not cover yet: the median and the 95th percentile. The model is that
    of the settings, else qwen-plus. `toolmem.research.summarization_costs` takes your own policies.
    Exit code 1: a record could not be read, or there was no call; 3: a policy reaches the budget.

    \b
    Examples:
      toolmem costs
      toolmem costs --input calls.jsonl --json
      toolmem costs --input traces/ llm.default.model_name=qwen-flash budget.max_cost=1
      toolmem costs --config prices.yaml llm.default.model_name=my-model
    """
    settings, config = options.split_config(overrides, config)
    recorded = read_recording(list(sources) or sample()[0], datetime.now(UTC), **reading)
    if not recorded.calls and not recorded.bad:
        raise RequestError("input: the recording holds no call; name another by --input", "input")
    with progress_bar("replaying calls") as progress:
        found = bill(recorded.calls, config=config, overrides=settings, progress=progress)
    print_unread(recorded.bad, recorded.notes)
    if as_json:
        print_json(found)
    else:
        _print(found)
    if not found.calls:
        print_error("there is no call that could be replayed")
    reaching = "; ".join(each.policy for each in found.policies if each.budget_reached)
    if reaching:
        print_error(f"budget reached: {reaching}")
        sys.exit(3)
    sys.exit(1 if recorded.bad or not found.calls else 0)


def _print(found: Bill) -> None:
    rows = []
    for each in found.policies:
        cost = None if each.cost is None else f"{each.cost:.4f} {each.currency}"
        counts = (each.requests, each.prompt_tokens, each.reply_tokens)
        rows.append((each.policy, *counts, cost, each.age_median, each.age_95))
    age = "guidance is calls old, median"
    print_table(("policy", "requests", "tokens read", "written", "cost", age, "95 %"), rows)
    click.echo(
        f"{counted(found.calls, 'call')}; tokens are estimates, and a reply is taken for "
        f"{REPLY_TOKENS}. A card stands in for the model's text: this compares cost and freshness, "
        "not prose."
    )
    price = found.price
    if price is None:
        name = f"prices.[{found.model}]"
        click.echo(f"{found.model} has no price; set {name}.input and .output, per 1,000 tokens")
    else:
        source = ", ".join(filter(None, (price.source, price.date))) or "no source given"
        millions = f"{1000 * price.input:g} and {1000 * price.output:g} a million"
        paid = f"{price.input:g} for 1,000 tokens read, {price.output:g} written ({millions})"
        name = f"{found.model}, {price.currency}" if price.currency else found.model
        click.echo(f"{name}: {paid} ({source})")
