"""The flows and rules of a `toolmem serve` elsewhere, as Python calls: `Client`, and `AsyncClient` for async code.

A call is described once: its request, how its answer is read, and whether it may be sent again (`flows` over
`POST /<flow>`, `rules` over JSON-RPC, in the forms of `calls`). Both clients of `clients` carry the same descriptions
(`methods`), one over a synchronous connection, one over an asynchronous one; `connection` says what the two have in
common, `answers` makes values and errors of what comes back, `attempts` knows when another attempt is safe.

Importing this package does nothing; HTTP is loaded with the first client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolmem.client.clients import AsyncBatch, AsyncClient, Batch, Client
    from toolmem.client.retrieved import Retrieved
    from toolmem.client.rules import PromptRules

_HOMES = {
    **dict.fromkeys(("AsyncBatch", "AsyncClient", "Batch", "Client"), "toolmem.client.clients"),
    "PromptRules": "toolmem.client.rules",
    "Retrieved": "toolmem.client.retrieved",
}

__all__ = ["AsyncBatch", "AsyncClient", "Batch", "Client", "PromptRules", "Retrieved"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'toolmem.client' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
