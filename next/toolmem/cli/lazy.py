"""Commands that are imported when they are run, and what they need beside toolmem."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import click

from toolmem.errors import ConfigError


class LazyGroup(click.Group):
    """A group that knows where its commands are: `{"name": "module:attribute"}`."""

    def __init__(self, *args: Any, lazy: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*self.commands, *self._lazy})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self._lazy:
            return super().get_command(context, name)
        module, _, attribute = self._lazy[name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command


def require_mcp() -> None:
    """Raises ConfigError where the MCP SDK is not installed."""
    if find_spec("mcp") is None:
        raise ConfigError(["the MCP SDK is not installed; install toolmem[mcp]"])
