"""What a tool does, and to what, by its declaration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolmem.guard.view import target_names
from toolmem.guard.word_lists import words
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass
from toolmem.light_models import ToolSchema
from toolmem.sentences.said_words import AMOUNTS, DOINGS, NEIGHBOURS, READING, families_of, split, things_of

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
    declared: Mapping[str, Any] | None  # as its declaration has its parameters
    shell: bool  # it runs commands
    sql: bool  # it runs statements
    files: bool  # it takes a path

    @property
    def parameters(self) -> Mapping[str, Any]:
        declared = (self.declared or {}).get("properties")
        return declared if isinstance(declared, Mapping) else {}

    @property
    def knows(self) -> bool:
        """Its parameters are declared."""
        return bool(self.parameters)

    @property
    def takes_address(self) -> bool:
        words = (word for name in self.targets for word in words_of_name(name))
        return any(things_of(word) & {"url", "web", "host", "domain", "endpoint"} for word in words)


def words_of_name(name: str) -> list[str]:
    """send_email, sendEmail: send, email."""
    return _WORD.findall(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").lower())


def read_tool(schema: ToolSchema) -> DeclaredTool:
    named = words_of_name(schema.name)
    described = schema.description[:400].lower()
    given = schema.parameters.get("properties")
    declared: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    taken = {name: set(words_of_name(name)) for name in declared}

    def takes(words: str) -> tuple[str, ...]:
        return tuple(name for name, said in taken.items() if said & split(words))

    verb = next((word for word in named if families_of(word)), "")
    families = families_of(verb) or families_of(next(iter(_WORD.findall(described)), ""))
    things = [word for word in named if word != verb] or named
    called = frozenset().union(*map(things_of, things), things)
    if not families <= READING and not families & {"delete", "cancel", "kick"}:
        families |= {DOINGS[thing] for thing in called if thing in DOINGS}
    has = called.union(*(things_of(word) for words in taken.values() for word in words))
    told = has.union(*(things_of(word) for word in _WORD.findall(described)))
    amounts = tuple(name for name in taken if _is_amount(name, declared[name]))
    if verb == "send" and not amounts and "money" not in has:
        families -= {"pay"}  # "send" says both; what sends no money pays nobody
    if verb == "write" and has & {"file", "folder", "path"}:
        families -= {"send"}
    shell = bool(takes("command cmd commands") or (not taken and {"bash", "shell", "terminal"} & set(named)))
    sql = bool("sql" in named or takes("sql statement") or (takes("query") and "sql" in words_of_name(described)))
    told |= {"command", "file", "folder", "branch", "package"} if shell else set()
    told |= {"table", "database"} if sql else set()
    return DeclaredTool(
        schema.name,
        families,
        called,
        has,
        told,
        target_names({}, declared),
        amounts,
        bool(takes("currency")),
        takes("force forced"),
        any(said & _CONTENT for said in taken.values()),
        schema.parameters or None,
        shell,
        sql,
        bool(takes("path file filename folder directory")),
    )


def _is_amount(name: str, schema: Any) -> bool:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return bool(set(words_of_name(name)) & AMOUNTS) and kind in {"number", "integer", "string", None}


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
