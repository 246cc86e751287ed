"""Modules under the names that they had in 0.1: each import works throughout 0.2, with a DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False  # `typing`'s, without the 10 ms that importing it takes
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

# A name of 0.1, or the beginning of one, and what it is now; the longest that fits is taken.
NAMES = {
    "toolmem.schema": "toolmem.models",
    "toolmem.ports": "toolmem.protocols",
    "toolmem.ports.stored": "toolmem.stored",
    "toolmem.importers": "toolmem.formats",
    "toolmem.llm": "toolmem.providers",
    "toolmem.embedding": "toolmem.providers",
    "toolmem.transport": "toolmem.providers",
    "toolmem.service": "toolmem.server",
    "toolmem.evaluation": "toolmem.research.evaluation",
    "toolmem.comparison": "toolmem.research.comparison",
    "toolmem.recording": "toolmem.research.recordings",
    "toolmem.backtest": "toolmem.research.backtest",
    "toolmem.report": "toolmem.research.report",
    "toolmem.rules.agent_tools": "toolmem.operations.agent_tools",
}


class FormerNames:
    """Finds a module by a former name: the same module object, so that its classes are the same classes.

    A finder and a loader without the classes of `importlib.abc`, which brings 40 modules along.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("toolmem."):
            return None
        now = _now(fullname)
        loader: Any = self
        return None if now is None else ModuleSpec(fullname, loader, origin=now)

    def create_module(self, spec: ModuleSpec) -> None:
        """An empty one, that nobody keeps."""

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        assert spec.origin is not None
        warnings.warn(
            f"`{spec.name}` is `{spec.origin}` since 0.2, and the old name goes with 0.3: import the new one",
            DeprecationWarning,
            stacklevel=2,
        )
        sys.modules[spec.name] = import_module(spec.origin)


def _now(name: str) -> str | None:
    beginning = name
    while beginning:
        if beginning in NAMES:
            return NAMES[beginning] + name[len(beginning) :]
        beginning = beginning.rpartition(".")[0]
    return None


def install() -> None:
    """Before the finders of files: a renamed package's files would be loaded a second time under its former name."""
    if not any(isinstance(finder, FormerNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, FormerNames())
