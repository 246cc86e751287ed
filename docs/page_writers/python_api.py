"""The Python API: public names with their signatures and docstrings."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from importlib import import_module
from typing import Any

from pydantic import BaseModel

from page_writers.markdown import GENERATED, code, docstring, page
from toolmem.rows import Row

# (module, what it is for, its names; none: the module's __all__)
SECTIONS: list[tuple[str, str, tuple[str, ...]]] = [
    ("toolmem", "What most programs need.", ()),
    ("toolmem.session", "Both halves in an agent.", ()),
    ("toolmem.rules.rule_store", "Rules in the store.", ("RuleStore",)),
    ("toolmem.rules.section", "The block of pinned rules in a prompt.", ("ToolMemoryRulesSection",)),
    ("toolmem.rules.capture.hook", "Rules from what was said and what failed.", ("ToolMemoryCaptureHook",)),
    (
        "toolmem.rules.prefetch",
        "Pinned rules at the start of a session.",
        ("prefetch_tool_memory_rules", "prefetch_tool_memory_rules_blocking"),
    ),
    ("toolmem.engine", "What a hook of an agent runs.", ("StoreFile", "prompt_for", "user_said", "after")),
    ("toolmem.formats", "Files of calls and conversations.", ()),
    ("toolmem.research.report", "DataFrames, figures and tables of an evaluation.", ()),
    ("toolmem.flow.op", "What an op works with.", ("Context",)),
    ("toolmem.flow.report", "What a run tells those who watch it.", ("Event",)),
    ("toolmem.flow.report", "What a run leaves behind.", ("RunReport", "OpReport")),
    (
        "toolmem.protocols",
        "What an adapter of your own has to provide.",
        ("MemoryStore", "LLM", "Judge", "GuidanceWriter", "Embedder", "Clock"),
    ),
    (
        "toolmem.config.sockets",
        "Backends of your own, by a name that configurations use.",
        ("register_store", "register_judge", "register_writer", "register_embedder", "register_chat_model"),
    ),
    (
        "toolmem.testing.adapter_contracts",
        "What adapters promise, as test suites; for stores see `toolmem.testing.store_contract`.",
        ("JudgeContract", "WriterContract", "EmbedderContract", "ChatModelContract"),
    ),
    ("toolmem.testing.scripted_llm", "A model that says what it was told to.", ("ScriptedLLM",)),
    (
        "toolmem.testing.agent_server",
        "A scripted model for whole agents, with tools and streaming.",
        ("AgentServer", "AgentRequest", "ModelTurn", "AskedCall", "ToolAnswer"),
    ),
    ("toolmem.testing.clock", "A clock to drive.", ("ManualClock",)),
    ("toolmem.errors", "Everything that is raised on purpose.", ()),
]


def python_api() -> str:
    parts = ["Public names, from their docstrings. " + GENERATED]
    shown: set[int] = set()
    for module_name, purpose, names in SECTIONS:
        module = import_module(module_name)
        parts += [f"## {module_name}", purpose]
        if module_name == "toolmem.errors":
            parts.append(code("text", inspect.cleandoc(module.__doc__ or "").partition("\n\n")[2]))
            continue
        for name in names or module.__all__:
            thing = getattr(module, name)
            if id(thing) in shown or not (inspect.isclass(thing) or inspect.isfunction(thing)):
                continue
            if inspect.isclass(thing) and issubclass(thing, Exception):
                continue
            shown.add(id(thing))
            parts += _entry(module_name, name, thing)
    return page("Python API", *parts)


def _entry(module: str, name: str, thing: Any) -> list[str]:
    parts = [f"### {name}", code("python", f"from {module} import {name}")]
    if inspect.isfunction(thing):
        return [*parts, code("text", _signature(name, thing)), docstring(thing)]
    if _has_own_init(thing):
        parts.append(code("text", _signature(name, thing.__init__)))
    parts.append(docstring(thing))
    for member, value in _public(thing):
        parts.append(f"#### {name}.{member}")
        if isinstance(value, property):
            parts.append(docstring(value))
        else:
            parts += [code("text", _signature(member, value)), docstring(value)]
    return [part for part in parts if part]


def _has_own_init(cls: type) -> bool:
    if issubclass(cls, BaseModel | Row | enum.Enum) or getattr(cls, "_is_protocol", False):
        return False
    return dataclasses.is_dataclass(cls) or "__init__" in vars(cls)


def _public(cls: type) -> list[tuple[str, Any]]:
    """Methods and properties with a docstring: the class's own, and those of bases that are no public classes.

    What every op has is said once, at `Op`.
    """
    from toolmem.flow.op import Op

    owners = [owner for owner in cls.__mro__ if owner.__module__.startswith("toolmem.") and owner is not Row]
    if issubclass(cls, Op):
        owners = [cls]
    found: dict[str, Any] = {}
    for owner in owners:
        if owner is not cls and getattr(owner, "_is_protocol", False):
            continue
        for name, value in vars(owner).items():
            plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            shown = inspect.isfunction(plain) or isinstance(plain, property)
            if shown and not name.startswith("_") and plain.__doc__:
                found.setdefault(name, plain)
    return list(found.items())


def _signature(name: str, function: Any) -> str:
    """As it is called: without `self`, one parameter per line where it is long."""
    signature = inspect.signature(function)
    parts, starred = [], False
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        parts.append(_parameter(parameter))
    returns = signature.return_annotation
    arrow = "" if returns is inspect.Signature.empty else f" -> {_annotation(returns)}"
    before = "await " if inspect.iscoroutinefunction(function) else ""
    short = f"{before}{name}({', '.join(parts)}){arrow}"
    if len(short) <= 96:
        return short
    return "\n".join([f"{before}{name}(", *(f"    {part}," for part in parts), f"){arrow}"])


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = stars + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        default = parameter.default
        shown = getattr(default, "__name__", "") if callable(default) else repr(default)
        text += f" = {'...' if not shown or shown.startswith('<') else shown}"
    return text


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
