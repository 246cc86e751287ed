"""`toolmem ledger`: show what requests to models cost."""

from __future__ import annotations

import click

from toolmem.cli import options
from toolmem.cli.console import print_json, print_table
from toolmem.memory.toolmem import ToolMem
from toolmem.research.tables import cost_rows


@click.command()
@options.with_memory()
@click.option("--newest", type=int, help="Read only this many of the newest requests.")
@options.as_json
def ledger(memory: ToolMem, newest: int | None, as_json: bool) -> None:
    """Show what requests to models cost, by op (a step) and model. --json shows each request.

    \b
    Examples:
      toolmem ledger
      toolmem ledger --store report/memory.db --json
    """
    requests = memory.ledger(newest=newest)
    if as_json:
        print_json(requests)
        return
    rows = []
    for row in cost_rows(requests):
        cost = None if row.cost is None else f"{row.cost:.4f} {row.currency}"
        counts = (row.requests, row.failed, row.prompt_tokens, row.completion_tokens)
        rows.append((row.op, row.model, *counts, cost))
    head = ("op", "model", "requests", "failed", "prompt tokens", "reply tokens", "cost")
    print_table(head, rows)
