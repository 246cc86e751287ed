"""What files of ReMe and FlowLLM say that toolmem reads in its own way."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from toolmem.config.document import read_file
from toolmem.config.layers import CLASS_DEFAULT, Origins

# Meant for the other toolkits' loggers, thread pools and clients: accepted, and said to be ignored.
IGNORED = (
    *("enable_logo", "init_logger", "thread_pool_max_workers", "ray_max_workers"),
    *("token_count", "external_mcp"),
)
DATABASE = "memory.db"  # the embedded store's file in a `store_dir`


@functools.cache
def absent_ops() -> Mapping[str, str]:
    """Ops of other toolkits that toolmem does not have: name -> the release that it was read from."""
    tree = read_file(Path(__file__).with_name("reme_ops.yaml"), packaged=True).tree
    return {name: release for release, names in tree.items() for name in names}


def not_provided(op: str) -> str:
    """What a flow answers that uses an op of another toolkit."""
    return f"not provided by toolmem: {op}"


def drop_ignored(tree: dict[str, Any]) -> list[str]:
    """Take the ignored keys out; one warning that names them."""
    dropped = [key for key in IGNORED if tree.pop(key, _ABSENT) is not _ABSENT]
    models = tree.get("llm")
    for name, entry in models.items() if isinstance(models, dict) else ():
        if isinstance(entry, dict) and entry.pop("token_count", _ABSENT) is not _ABSENT:
            dropped.append(f"llm.{name}.token_count")
    return [f"ignored, they mean nothing here: {', '.join(dropped)}"] if dropped else []


_ABSENT = object()


def drop_absent_ops(tree: dict[str, Any], provided: Collection[str]) -> dict[str, str]:
    """Take out `op.<key>` entries whose op is one of the absent ones; key -> op."""
    entries = tree.get("op")
    dropped: dict[str, str] = {}
    if not isinstance(entries, dict):
        return dropped
    for key, entry in list(entries.items()):
        backend = entry.get("backend") if isinstance(entry, Mapping) else None
        op = backend if isinstance(backend, str) and backend else key
        if op in absent_ops() and op not in provided:
            dropped[key] = op
            del entries[key]
    return dropped


def map_stores(tree: dict[str, Any], origins: Origins) -> list[str]:
    """`memory` and `local` are the embedded store, in memory and in the folder `store_dir`. Answers problems."""
    problems: list[str] = []
    stores = tree.get("vector_store")
    for name, entry in stores.items() if isinstance(stores, dict) else ():
        backend = entry.get("backend") if isinstance(entry, dict) else None
        params = entry.setdefault("params", {}) if backend in ("memory", "local") else None
        if not isinstance(params, dict):
            continue
        path = ("vector_store", name)
        folder = params.pop("store_dir", None)
        if folder is not None and not isinstance(folder, str):
            problems.append(f"vector_store.{name}.params.store_dir: expected text, got {folder!r}")
            folder = None
        if "path" in params:
            problems.append(f"vector_store.{name}.params.path: the backend {backend!r} does not have it; use 'sqlite'")
        origin = f"{origins.of((*path, 'backend'))} ({backend})"
        entry["backend"] = "sqlite"
        params["path"] = ":memory:" if backend == "memory" else str(Path(folder or "./local_vector_store") / DATABASE)
        origins.put((*path, "backend"), origin)
        origins.put((*path, "params", "path"), CLASS_DEFAULT if backend == "local" and folder is None else origin)
    return problems


def widen_types(tree: Mapping[str, Any], default: Mapping[str, Any]) -> None:
    """An argument of a default flow takes what it always took, also where a file declares one of its types alone.

    ReMe declares `tool_names` as a string; a list of names is needed for names that hold a comma.
    """
    flows = tree.get("flow")
    for name, flow in flows.items() if isinstance(flows, Mapping) else ():
        known = default["flow"].get(name, {}).get("input_schema", {})
        arguments = flow.get("input_schema") if isinstance(flow, Mapping) else None
        for key, argument in arguments.items() if isinstance(arguments, Mapping) else ():
            types = known.get(key, {}).get("type")
            if isinstance(argument, dict) and isinstance(types, list) and argument.get("type") in (*types, "str"):
                argument["type"] = list(types)
