"""Tool declarations that stand beside recorded calls, each name once."""

from __future__ import annotations

from typing import Any

from toolmem.errors import RequestError
from toolmem.importers.json_values import NotJsonError, Repairs, clean_value
from toolmem.schema import ToolSchema


class Declarations:
    """Collects schemas. The first declaration of a name counts; what cannot be read is left out and said."""

    def __init__(self) -> None:
        self._schemas: dict[str, ToolSchema] = {}
        self._redeclared: set[str] = set()
        self._problems: list[str] = []

    def add(self, declarations: Any, place: str) -> None:
        """Add a list of declarations (OpenAI or MCP form); anything but a list declares nothing."""
        for declaration in declarations if isinstance(declarations, list) else ():
            try:
                schema = ToolSchema.read(clean_value(declaration, Repairs()), f"{place}: tools")
            except (NotJsonError, RequestError) as error:
                self._problems.append(f"a tool declaration was left out: {error}")
                continue
            if self._schemas.setdefault(schema.name, schema) != schema:
                self._redeclared.add(schema.name)

    @property
    def schemas(self) -> list[ToolSchema]:
        return list(self._schemas.values())

    @property
    def notes(self) -> list[str]:
        """What a user should be told, in plain words."""
        if not self._redeclared:
            return list(self._problems)
        names = ", ".join(sorted(self._redeclared))
        return [*self._problems, f"declared in more than one way, the first declaration is used: {names}"]
