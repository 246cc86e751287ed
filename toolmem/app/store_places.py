"""Where the stores of an app lie, in a file or in memory; one that nobody named may be found elsewhere."""

from __future__ import annotations

from collections.abc import Collection

from toolmem.config.layers import CLASS_DEFAULT, DEFAULT
from toolmem.flow.configure import Configured


class StorePlaces:
    """`handed`: the names of stores that were handed over, which have no file."""

    def __init__(self, configured: Configured, handed: Collection[str]) -> None:
        self._configured = configured
        self._handed = handed
        self._found: dict[str, str] = {}  # those that do not lie in the working directory

    def file_of(self, name: str = "default") -> str:
        """The path of a store in a file, or `:memory:`; "" of another one."""
        section = self._configured.settings.vector_store[name]
        if name in self._handed or section.backend != "sqlite":
            return ""
        return self._found.get(name) or str(section.params.path)

    def is_named(self, name: str = "default") -> bool:
        """Did somebody say where it lies?"""
        origin = self._configured.loaded.origins.of(("vector_store", name, "params", "path"))
        return not self.file_of(name) or origin not in (DEFAULT, CLASS_DEFAULT)

    def find_at(self, path: str, name: str = "default") -> bool:
        """A store that nobody named lies there, and not in the working directory; False where somebody named it."""
        if self.is_named(name):
            return False
        self._found[name] = path
        return True
