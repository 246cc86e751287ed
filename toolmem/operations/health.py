"""health: is the store there, and which store, models and flows does this process have?"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal, Required

from pydantic import Field
from typing_extensions import TypedDict

from toolmem.config.cross_checks import unasked_models
from toolmem.errors import StoreUnavailable
from toolmem.operations.operation import DEFAULT_WORKSPACE, rpc_operation
from toolmem.protocols import Services

_PATIENCE = 5.0  # seconds for the store to answer


def _says(description: str) -> Any:
    return Field(description=description)


Models = Annotated[dict[str, dict[str, str]], _says("By name: backend and model_name.")]


class Health(TypedDict, total=False):
    """No secrets, and no addresses that may hold one."""

    status: Required[Literal["ok"]]
    version: str
    store: Annotated[dict[str, str], _says("The default store: its backend, and the file of an embedded one.")]
    models: Models
    embedding_models: Models
    flows: list[str]
    warnings: Annotated[list[str], _says("Models that the configuration names and nothing asks.")]


@rpc_operation("memory.health", reads_only=True, address="/health")
async def health(services: Services, /, *, workspace_id: str | None = None) -> Health:
    """Ask whether the store is there, and what toolmem is made of here.

    Raises StoreError where the store does not answer.
    """
    from toolmem import __version__

    try:
        async with asyncio.timeout(_PATIENCE):
            await (await services.store_named()).get(workspace_id or DEFAULT_WORKSPACE, "health", "probe")
    except TimeoutError:
        raise StoreUnavailable(f"the store did not answer within {_PATIENCE:g} s") from None
    configured = services.configured
    settings, store = configured.settings, configured.settings.vector_store["default"]
    return {
        "status": "ok",
        "version": __version__,
        "store": {"backend": store.backend, **({"path": store.params.path} if store.backend == "sqlite" else {})},
        "models": _named(settings.llm),
        "embedding_models": _named(settings.embedding_model),
        "flows": sorted(configured.flows),
        "warnings": unasked_models(settings, configured.loaded.origins),
    }


def _named(models: Any) -> dict[str, dict[str, str]]:
    return {name: {"backend": each.backend, "model_name": each.asked_model} for name, each in models.items()}
