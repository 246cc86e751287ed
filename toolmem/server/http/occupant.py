"""Who holds a port that is taken: another toolmem tells it at /health."""

from __future__ import annotations

import http.client
import json
from contextlib import suppress
from typing import Any

from toolmem.readers.plain_text import plain_line

_PATIENCE = 1.0  # seconds for each step
_MOST_BYTES = 64 * 1024  # of its answer
_MOST_SHOWN = 300  # characters
_HERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # where a socket of every address is asked


def occupant(host: str, port: int) -> str:
    """In words. What answers is somebody else's: it is read as text, and not for longer than a few seconds."""
    told = _health(_HERE.get(host, host), port)
    if told.get("status") != "ok" or not isinstance(told.get("version"), str) or "flows" not in told:
        return "another program, perhaps another toolmem"
    store = told.get("store")
    path = (store.get("path") or store.get("backend")) if isinstance(store, dict) else None
    kept = f", store {path}" if isinstance(path, str) else ""
    return plain_line(f"another toolmem ({told['version']}{kept})", _MOST_SHOWN)


def _health(host: str, port: int) -> dict[str, Any]:
    asked = http.client.HTTPConnection(host, port, timeout=_PATIENCE)
    with suppress(OSError, ValueError, RecursionError, http.client.HTTPException):
        try:
            asked.request("GET", "/health", headers={"accept": "application/json"})
            told = json.loads(asked.getresponse().read(_MOST_BYTES))
            return told if isinstance(told, dict) else {}
        finally:
            asked.close()
    return {}
