"""`toolmem config`: check settings, and show where each value comes from."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any

import click

from toolmem.cli import options
from toolmem.cli.console import print_json, print_table
from toolmem.config.names import hint
from toolmem.config.show import shown_settings
from toolmem.errors import ConfigError, RequestError
from toolmem.llm.encoder import can_encode
from toolmem.memory.toolmem import ToolMem


@click.group()
def config() -> None:
    """Check settings, or show where each value comes from."""


@config.command()
@options.with_memory(options.config, options.overrides, exists=False)
def check(memory: ToolMem) -> None:
    """Print every problem of the settings, or the flows that can run. Exit code 2: problems.

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
@click.argument("names", cls=options.Values, metavar="[NAME | NAME=VALUE]...")
@options.config
@options.as_json
def show(names: tuple[str, ...], as_json: bool, **where: Any) -> None:
    """Print settings with their values, and where each value comes from.

    NAME is a setting or a section. Without one, all settings are printed. API keys are not shown.

    \b
    Examples:
      toolmem config show --config my.yaml llm.default.model_name=qwen-plus
      toolmem config show guard.rules
      toolmem config show op.summary_tool_memory_op
    """
    with options.open_memory(**where) as memory:
        rows = shown_settings(memory.engine.configuration, memory.engine.params())
        embedders = memory.services.settings.embedding_model.values()
        if any(each.backend == "multilingual" for each in embedders):
            can_encode()  # it warns if the encoder is not installed
    known = {prefix for name, *_ in rows for prefix in _prefixes(name)}
    for name in names:
        if name not in known:
            section = name.split(".")[0] + "."
            near = {each for each in known if each.startswith(section)}
            near = near or {each for each in known if each.endswith(f".{name}")}
            near = near or {each for each in known if "." not in each}
            raise RequestError(f"no setting is called {name!r} ({hint(name, near)})", "name")
    rows = [row for row in rows if not names or {*names} & {*_prefixes(row[0])}]
    if as_json:
        print_json([{"name": n, "value": v, "origin": o} for n, v, o in rows])
        return
    shown = [(name, json.dumps(value, ensure_ascii=False), origin) for name, value, origin in rows]
    print_table(("name", "value", "origin"), shown, numbers=False)


def _prefixes(name: str) -> list[str]:
    """The sections that a setting is in, and itself: `a`, `a.b` and `a.b.c` of `a.b.c`."""
    return list(accumulate(name.split("."), "{}.{}".format))
