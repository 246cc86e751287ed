"""Translate configuration files of ReMe and FlowLLM."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from pathlib import Path

import yaml

from toolmem.config.layers import Layer, Setting, names_in
from toolmem.text.forms import snake_case, word_set

# Settings of the loggers, thread pools and clients of ReMe and FlowLLM.
IGNORED = word_set(
    "enable_logo init_logger thread_pool_max_workers ray_max_workers token_count external_mcp"
)
_JSON_TYPES = dict(
    str="string", list="array", int="integer", float="number", bool="boolean", dict="object"
)
_NAME = re.compile(r"[A-Za-z_]\w*")


@cache
def foreign_ops() -> frozenset[str]:
    """Ops of ReMe and FlowLLM that toolmem does not have, in snake_case."""
    text = Path(__file__).with_name("reme_ops.yaml").read_text(encoding="utf-8")
    return frozenset(name for names in yaml.safe_load(text).values() for name in names)


def translate(layer: Layer, provided: Collection[str]) -> tuple[Layer, list[str], list[str]]:
    """Translate ReMe's settings. Returns the layer, the ignored keys, and ops that toolmem lacks.

    `provided`: names of the registered ops.
    """
    translated: Layer = {}
    ignored: list[str] = []
    backends = {key: layer.get(("op", key, "backend")) for key in names_in(layer, "op")}
    foreign = {
        key
        for key, backend in backends.items()
        if _is_foreign(str(backend.value) if backend else key, provided)
    }
    for path, setting in layer.items():
        if path[0] in IGNORED or (path[0] == "llm" and path[2:3] == ("token_count",)):
            ignored.append(".".join(path[: 3 if path[0] == "llm" else 1]))
        elif path[0] == "op" and path[1:2] and path[1] in foreign:
            continue
        elif path[0] == "flow" and path[2:3] == ("input_schema",) and path[-1] == "type":
            value = setting.value
            translated[path] = Setting(_JSON_TYPES.get(str(value), value), setting.origin)
        else:
            translated[path] = setting
    return translated, list(dict.fromkeys(ignored)), sorted(foreign)


def _is_foreign(name: str, provided: Collection[str]) -> bool:
    return name in foreign_ops() and name not in provided


def foreign_ops_of(flow_content: str, provided: Collection[str]) -> list[str]:
    """Return the ops of ReMe in a flow that toolmem does not provide, in snake_case."""
    names = (snake_case(name) for name in _NAME.findall(flow_content))
    return list(dict.fromkeys(name for name in names if _is_foreign(name, provided)))
