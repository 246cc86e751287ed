"""Checks over a whole configuration: do the names in it lead somewhere, and can what it names be made and asked?"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from toolmem.config.extras import EXTRAS, LARGE, lacks
from toolmem.config.layers import CLASS_DEFAULT, DEFAULT, Origins
from toolmem.config.nearest_names import hint
from toolmem.config.problems import Placing, placed
from toolmem.config.settings import Settings
from toolmem.config.sockets import CHAT_MODELS, EMBEDDERS, STORES, origin

SOCKETS = {"llm": CHAT_MODELS, "embedding_model": EMBEDDERS, "vector_store": STORES}  # by section

_WITHOUT_A_MODEL = {"llm": "offline", "embedding_model": "multilingual"}
_OF_A_MODEL = (("model_name",), ("params", "base_url"), ("params", "api_key"))


def unasked_models(settings: Settings, origins: Origins) -> list[str]:
    """A warning for each model that was named while its backend was left at the default.

    Who writes the backend down, `offline` as well, has decided, and is not warned.
    """
    warnings = []
    for section, backend in _WITHOUT_A_MODEL.items():
        entries = getattr(settings, section)
        for name, entry in entries.items():
            if entry.backend != backend or not _nobody_said(origins, (section, name, "backend")):
                continue
            given = [path for path in _OF_A_MODEL if not _nobody_said(origins, (section, name, *path))]
            if given:
                option = ".".join((section, name, *given[0]))
                warnings.append(
                    f"{option}: no model is asked, because the backend is {backend!r}; add {section}.{name}.backend="
                    f"dashscope or {section}.{name}.backend=openai_compatible"
                )
    return warnings


def _nobody_said(origins: Origins, path: tuple[str, ...]) -> bool:
    return origins.of(path) in (DEFAULT, CLASS_DEFAULT)


def dangling(settings: Settings) -> Iterator[str]:
    """A line for each name that leads to no entry of its section."""
    for name, store in settings.vector_store.items():
        yield from no_entry(settings, f"vector_store.{name}", "embedding_model", store.embedding_model)
    for key, entry in settings.op.items():
        for section in SOCKETS.keys() & entry.model_fields_set:
            yield from no_entry(settings, f"op.{key}", section, getattr(entry, section))


def no_entry(settings: Settings, where: str, section: str, name: str) -> Iterator[str]:
    """A line where the section has no entry of this name."""
    if name not in (there := getattr(settings, section)):
        yield f"{where}.{section}: no {section} is called {name!r} ({hint(name, there)})"


def unusable_backends(settings: Settings, place: Placing) -> Iterator[str]:
    """Name each param that the class of a backend of one's own does not take or lacks, and each absent package."""
    entries = [(section, *each) for section in SOCKETS for each in getattr(settings, section).items()]
    for section, name, entry in entries:
        factory = None if entry.params.own is None else SOCKETS[section].find(entry.backend)
        if factory is not None:
            added = _OF_A_STORE if section == "vector_store" else ("model_name",) if entry.model_name else ()
            for param, wrong in _wrong_params(factory, entry.params.own, added).items():
                path = (section, name, "params", param)
                yield f"{'.'.join(path)}: {wrong}{placed(place, path)}"
    for section, name, entry in entries:
        what = f"{section}.{name}.backend: {entry.backend}"
        if entry.backend in {**EXTRAS, **LARGE} and (problem := lacks(what, entry.backend)):
            yield problem + placed(place, (section, name, "backend"))


_OF_A_STORE = ("clock", "embedder")  # keywords that a store's class gets beside its params


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
