"""What `retrieve` answers: memories, and the tools that have none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolmem.schema import ToolMemory


class Retrieved(list["ToolMemory"]):
    """A list of memories. `not_found`: tools that were asked for by name and have no memory in the workspace."""

    def __init__(self, memories: Iterable[ToolMemory] = (), not_found: Iterable[str] = ()) -> None:
        super().__init__(memories)
        self.not_found = list(not_found)
