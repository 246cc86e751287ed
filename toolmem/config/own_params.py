"""Checks the params of backends that are not built in against what their classes take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolmem.config.names import hint
from toolmem.config.settings import Settings
from toolmem.config.sockets import CHAT_MODELS, EMBEDDERS, STORES, origin

_OF_A_STORE = ("clock", "embedder")  # keywords that a store's class gets beside its params


def own_params(settings: Settings, place: Callable[[tuple[str, ...]], str]) -> list[str]:
    """Params that the class of a backend of one's own does not take, or lacks."""
    problems = []
    for section, socket in (("llm", CHAT_MODELS), ("embedding_model", EMBEDDERS), ("vector_store", STORES)):
        for name, entry in getattr(settings, section).items():
            factory = None if entry.params.own is None else socket.find(entry.backend)
            if factory is None:
                continue
            model = getattr(entry, "model_name", "")
            given = _OF_A_STORE if socket is STORES else ("model_name",) if model else ()
            for param, wrong in _wrong_params(factory, entry.params.own, given).items():
                where = place((section, name, "params", param))
                problems.append(f"{section}.{name}.params.{param}: {wrong}{f' [{where}]' if where else ''}")
    return problems


def _wrong_params(factory: Callable[..., Any], params: Mapping[str, Any], given: Iterable[str]) -> dict[str, str]:
    """What is wrong with the keyword arguments of a class, by name. `given`: those that toolmem adds."""
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # a class of C says nothing of its arguments
        return {}
    accepted = {p.name: p for p in signature.parameters.values() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    added = set(given)
    any_name = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    known = [name for name in accepted if name not in added]
    wrong = {name: f"toolmem itself hands over {name!r}" for name in params if name in added}
    if not any_name:
        wrong |= {name: f"unknown ({hint(name, known)})" for name in params if name not in accepted}
        wrong |= {name: f"{origin(factory)} must take this keyword" for name in added if name not in accepted}
    needed = [p.name for p in accepted.values() if p.default is p.empty and p.name not in {*added, *params}]
    return {**wrong, **dict.fromkeys(needed, "missing")}
