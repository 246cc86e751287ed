"""What a tool does, and to what, by its declaration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolmem.guard.lexicon import AMOUNTS, DOINGS, NEIGHBOURS, READING, families_of, things_of
from toolmem.guard.view import target_names
from toolmem.guard.word_lists import words
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass
from toolmem.light_models import ToolSchema

_WORD = late_pattern(r"[a-z]+(?:[-'][a-z]+)*|[\u3400-\u9fff]+")
_CONTENT = words("written_parameters")


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """One declared tool as sentences speak of it."""

    name: str
    families: frozenset[str]
    called: frozenset[str]  # the things of its name
    has: frozenset[str]  # and those of its parameters
    told: frozenset[str]  # and those of its description
    targets: frozenset[str]  # its parameters that say whom or where
    amounts: tuple[str, ...]  # its parameters that are amounts
    currency: bool  # it is told the currency of an amount
    forces: tuple[str, ...]  # its parameters that say that something is forced
    writes: bool  # it has a parameter for content
    knows: bool  # its parameters are declared
    shell: bool  # it runs commands
    sql: bool  # it runs statements
    files: bool  # it takes a path

    @property
    def takes_address(self) -> bool:
        return any(things_of(word) & {"url", "web", "host", "domain", "endpoint"} for word in self._target_words())

    def _target_words(self) -> frozenset[str]:
        return frozenset(word for name in self.targets for word in _words(name))


def _words(name: str) -> list[str]:
    return _WORD.findall(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").lower())


def read_tool(schema: ToolSchema) -> DeclaredTool:
    name_words = _words(schema.name)
    described = schema.description[:400].lower()
    declared = schema.parameters.get("properties")
    declared = declared if isinstance(declared, Mapping) else {}
    verb = next((word for word in name_words if families_of(word)), "")
    families = families_of(verb)
    if not families:
        first = next(iter(_WORD.findall(described)), "")
        families = families_of(first)
    things = [word for word in name_words if word != verb] or name_words
    called = frozenset().union(*map(things_of, things), things)
    if not families <= READING and not families & {"delete", "cancel", "kick"}:
        families |= {DOINGS[thing] for thing in called if thing in DOINGS}
    parameters = frozenset().union(*(things_of(word) for name in declared for word in _words(name)))
    told = frozenset().union(*(things_of(word) for word in _WORD.findall(described)))
    amounts = tuple(name for name, of in declared.items() if _is_amount(name, of))
    if verb == "send" and not amounts and "money" not in called | parameters:
        families -= {"pay"}  # "send" says both; what sends no money pays nobody
    if verb == "write" and (called | parameters) & {"file", "folder", "path"}:
        families -= {"send"}
    shell = any(set(_words(name)) & {"command", "cmd", "commands"} for name in declared) or (
        not declared and bool(set(name_words) & {"bash", "shell", "terminal"})
    )
    sql = (
        "sql" in name_words
        or any(set(_words(name)) & {"sql", "statement"} for name in declared)
        or (any("query" in _words(name) for name in declared) and "sql" in _words(described))
    )
    if shell:
        told |= {"command", "file", "folder", "branch", "package"}
    if sql:
        told |= {"table", "database"}
    return DeclaredTool(
        schema.name,
        families,
        called,
        called | parameters,
        called | parameters | told,
        target_names({}, declared),
        amounts,
        any("currency" in _words(name) for name in declared),
        tuple(name for name in declared if set(_words(name)) & {"force", "forced"}),
        any(set(_words(name)) & _CONTENT for name in declared),
        bool(declared),
        shell,
        sql,
        any(set(_words(name)) & {"path", "file", "filename", "folder", "directory"} for name in declared),
    )


def _is_amount(name: str, schema: Any) -> bool:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return bool(set(_words(name)) & AMOUNTS) and kind in {"number", "integer", "string", None}


def able(
    tools: Sequence[DeclaredTool], families: frozenset[str], things: frozenset[str], *, near: bool = True
) -> list[DeclaredTool]:
    """The tools that do what is said to what is said: by name if there is one, else by parameters or description.

    `near`: where none does, those that do nearly that.
    """
    neighbours = frozenset(each for family in families for each in NEIGHBOURS.get(family, ())) if near else frozenset()
    for wanted in (families, neighbours):
        doing = [tool for tool in tools if tool.families & wanted]
        for scope in ("called", "has", "told"):
            found = [tool for tool in doing if things <= getattr(tool, scope)]
            if found:
                return found
    return []
