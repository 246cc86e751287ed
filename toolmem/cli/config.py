"""`toolmem config`: check settings, and show where each value comes from."""

from __future__ import annotations

import json

import click

from toolmem.cli import options
from toolmem.cli.console import print_json, print_table
from toolmem.config.show import shown_settings
from toolmem.errors import ConfigError
from toolmem.llm.encoder import can_encode
from toolmem.memory.toolmem import ToolMem


@click.group()
def config() -> None:
    """Check settings, or show where each value comes from."""


@config.command()
@options.with_memory(options.config, options.overrides, exists=False)
def check(memory: ToolMem) -> None:
    """Name every problem of the settings at once. Exit code 2: there are problems.

    \b
    Examples:
      toolmem config check --config my.yaml
      toolmem config check op.summary_tool_memory_op.params.recent_call_count=50
    """
    if problems := memory.services.problems():
        raise ConfigError(problems)
    flows = memory.engine.flows
    click.echo(f"no problems; {len(flows.ready)} flows: {', '.join(sorted(flows.ready))}")


@config.command()
@options.with_memory(options.config, options.overrides, exists=False)
@options.as_json
def show(memory: ToolMem, as_json: bool) -> None:
    """Print every value with its origin. Keys are not shown.

    \b
    Example:
      toolmem config show --config my.yaml llm.default.model_name=qwen-plus
    """
    if any(e.backend == "multilingual" for e in memory.services.settings.embedding_model.values()):
        can_encode()  # it says what is in force where the encoder is not installed
    rows = shown_settings(memory.engine.configuration, memory.engine.params())
    if as_json:
        print_json([{"name": n, "value": v, "origin": o} for n, v, o in rows])
        return
    shown = [(name, json.dumps(value, ensure_ascii=False), origin) for name, value, origin in rows]
    print_table(("name", "value", "origin"), shown, numbers=False)
