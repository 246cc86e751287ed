"""Client and AsyncClient: the flows and rules of a `toolmem serve` as Python calls.

Their methods are the operations of `toolmem.operations`, as those of `ToolMem` are, over a synchronous connection or an
asynchronous one (`clients`). `requests` says what is sent, `answers` makes
values and errors of what comes back, `retrying` knows when another attempt is safe.

Importing this package does nothing; HTTP is loaded with the first client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolmem.client.clients import AsyncBatch, AsyncClient, Batch, Client
    from toolmem.operations.tool_rules import PromptRules

_MODULES = {
    **dict.fromkeys(("AsyncBatch", "AsyncClient", "Batch", "Client"), "toolmem.client.clients"),
    "PromptRules": "toolmem.operations.tool_rules",
}

__all__ = ["AsyncBatch", "AsyncClient", "Batch", "Client", "PromptRules"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'toolmem.client' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value
