"""Dotted overrides on the command line, as ReMe users write them.

toolmem run add_tool_call_result llm.default.model_name=qwen-plus --op.summary_tool_memory_op.params.force=true
toolmem backend=http http.port=8002 config=my.yaml
"""

from __future__ import annotations

from collections.abc import Sequence


def arrange(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    """The arguments as the command line's parser takes them.

    Overrides lose leading dashes and go behind everything else, `config=FILE` becomes `--config FILE`, and a call
    that begins with an override or a file (`toolmem backend=http ...`) is one of `serve` (`backend=mcp ...`: of `mcp`).
    `options`: names of the commands' own options (`--out`), which win. What stands behind `--` is left alone.
    """
    if not any("=" in argument for argument in arguments):
        return list(arguments)
    from toolmem.config import split_overrides

    files, overrides, rest = split_overrides(arguments, options)
    meant = "mcp" if _backend(overrides) == "mcp" else "serve"
    command = [] if rest and not rest[0].startswith("-") else [meant] if overrides or files else []
    configs = [part for file in files for part in ("--config", file)]
    if "--" in rest:
        at = rest.index("--")
        return [*command, *rest[:at], *configs, *overrides, *rest[at + 1 :]]
    return [*command, *rest, *configs, *overrides]


def _backend(overrides: Sequence[str]) -> str:
    given = [item.partition("=")[2] for item in overrides if item.startswith("backend=")]
    return given[-1] if given else ""
