"""`GET /health`: is the service up, and what is it made of? No secrets, no addresses that may hold one."""

from __future__ import annotations

import asyncio
from typing import Any

from toolmem import __version__
from toolmem.app import ToolMemApp
from toolmem.config.problems import unasked_models
from toolmem.errors import StoreError
from toolmem.server.http.answers import JsonAnswer, refusal
from toolmem.server.json_text import write_json

_PATIENCE = 5.0  # seconds for the store to answer
_PROBE = ("default", "health", "probe")  # a keyed record that nobody writes


async def health(app: ToolMemApp, *, detailed: bool) -> JsonAnswer:
    """200 where the store answers, else 503. `detailed`: for who may know more than that."""
    try:
        async with asyncio.timeout(_PATIENCE):
            await (await app.services.store_named()).get(*_PROBE)
    except TimeoutError:
        return refusal(503, f"the store did not answer within {_PATIENCE:g} s", kind="StoreUnavailable")
    except StoreError as error:
        return refusal(503, str(error) if detailed else "the store cannot be used", kind=type(error).__name__)
    return JsonAnswer(write_json({"status": "ok", **(_described(app) if detailed else {})}))


def _described(app: ToolMemApp) -> dict[str, Any]:
    settings = app.settings
    store = settings.vector_store["default"]
    return {
        "version": __version__,
        "store": {"backend": store.backend, **({"path": store.params.path} if store.backend == "sqlite" else {})},
        "models": {
            name: {"backend": model.backend, "model_name": model.asked_model} for name, model in settings.llm.items()
        },
        "embedding_models": {
            name: {"backend": model.backend, "model_name": model.asked_model}
            for name, model in settings.embedding_model.items()
        },
        "flows": sorted(app.flows),
        "warnings": unasked_models(settings, app.configured.loaded.origins),
    }
