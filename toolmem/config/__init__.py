"""Configuration: files, dotted overrides and environment, merged and checked; where each value came from.

`load` reads everything into typed `Settings`; `toolmem.flow.configure` binds ops and flows with it. Each name below is
loaded when it is first used: who only asks this package for a folder or a switch waits for no YAML.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolmem.config.loading import Loaded, load
    from toolmem.config.overrides import split_overrides
    from toolmem.config.settings import Settings

_HOMES = {"Loaded": "loading", "load": "loading", "split_overrides": "overrides", "Settings": "settings"}

__all__ = ["Loaded", "Settings", "load", "split_overrides"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"toolmem.config.{_HOMES[name]}"), name)
