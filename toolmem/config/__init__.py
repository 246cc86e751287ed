"""Configuration: files, dotted overrides and environment, merged and checked; where each value came from.

`load` reads everything into typed `Settings`; `toolmem.flow.configure` binds ops and flows with it.
"""

from __future__ import annotations

from toolmem.config.loading import Loaded, load
from toolmem.config.overrides import split_overrides
from toolmem.config.settings import Settings

__all__ = ["Loaded", "Settings", "load", "split_overrides"]
